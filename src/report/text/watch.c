#include "report/text/watch.h"

#include "cli/command.h"
#include "report/text/balance.h"

static void print_choice(const struct trace_reader *r, uint32_t process, size_t n,
                         const struct peaks *peaks)
{
    enum { NEXT = 3 };
    char program[800];
    const char *about = peaks->estimated ? "about " : "";
    if (!peaks->n)
        note("converted process %u of %zu: %s", r->processes[process]->pid, n,
             balance_program(r->processes[process], program, sizeof program));
    for (size_t i = 0; i < peaks->n && i <= NEXT; i++) {
        const struct peak *p = &peaks->items[i];
        balance_program(r->processes[p->process], program, sizeof program);
        const char *bytes = human_size(p->peak_bytes);
        if (i == 0)
            note("converted process %u of %zu: %s (peak live %s)", p->pid, n, program, bytes);
        else
            note("the next by peak live bytes is process %u: %s (%s%s)", p->pid, program, about,
                 bytes);
    }
}

const struct convert_watch *watch_begin(const char *what)
{
    static struct progress progress;
    static const struct convert_watch watch = {&progress, note_text, error_text, print_choice};
    progress_init(&progress, what, "B", 0, cli_common.quiet);
    return &watch;
}

const struct convert_watch *watch_conversion(void)
{
    return watch_begin("convert");
}

const struct convert_watch *watch_notes(void)
{
    static const struct convert_watch watch = {NULL, note_text, error_text, print_choice};
    return &watch;
}
