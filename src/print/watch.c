#include "print/watch.h"

#include "cli/command.h"

static void print_note(const char *text)
{
    note("%s", text);
}

const struct convert_watch *watch_begin(const char *what)
{
    static struct progress progress;
    static const struct convert_watch watch = {&progress, print_note};
    progress_init(&progress, what, "B", 0, cli_common.quiet);
    return &watch;
}

const struct convert_watch *watch_conversion(void)
{
    return watch_begin("convert");
}

const struct convert_watch *watch_notes(void)
{
    static const struct convert_watch watch = {NULL, print_note};
    return &watch;
}
