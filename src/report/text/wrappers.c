#include "report/wrapper_use.h"

#include "analysis/symbols/shorten.h"
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

static void print_wrapper(const struct wrapper_use *u)
{
    enum { NAME_BYTES = 100 };
    const struct symbol *f = &u->wrapper->function;
    char name[SHORTEN_BYTES];
    printf("%13s%13s%12s%14s%19s  %s", human_size(u->peak_bytes), human_size(u->end_bytes),
           human_size(u->bytes), human_number(u->calls), human_number(u->wrapper->callers),
           shorten_name(f->function, NAME_BYTES, name));
    if (f->file[0])
        printf(" (%s:%d)\n", basename(f->file), f->line);
    else
        printf(" (%s)\n", basename(f->module));
}

void wrapper_use_print(const struct wrapper_use *all, size_t n)
{
    if (!n) {
        puts("no allocation wrappers: no function of the program allocates for its callers");
        return;
    }
    cli_table_head("%13s%13s%12s%14s%19s  %s", "live at peak", "live at end", "allocated",
                   "allocations", "calling functions", "allocation wrapper");
    for (size_t i = 0; i < n; i++)
        print_wrapper(&all[i]);
}
