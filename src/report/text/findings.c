#include "report/findings.h"
#include "cli/command.h"
#include "cli/words.h"

#include <stdio.h>

enum { INDENT = 2 };

// Prints the sentences of a finding in one paragraph. If `to` is NULL, only counts the lines.
static unsigned print_item(FILE *to, const struct findings_item *item)
{
    unsigned lines = 1;
    if (to)
        fprintf(to, "%s ", item->act ? "*" : "-");
    size_t column = words_print(to, item->text, INDENT, INDENT, &lines);
    words_print(to, item->advice, column, INDENT, &lines);
    if (to)
        putc('\n', to);
    return lines;
}

unsigned findings_lines(const struct findings *f, size_t i)
{
    return print_item(NULL, &f->items[i]);
}

void findings_print_some(const struct findings *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        print_item(stdout, &f->items[i]);
}

void findings_print(const struct findings *f)
{
    if (f->n)
        cli_table_head("\nfindings (* where a change may help)");
    findings_print_some(f, f->n);
}
