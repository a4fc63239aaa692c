#include "commands/watch.h"

#include "cli/command.h"

static void print_note(const char *text)
{
    note("%s", text);
}

const struct convert_watch *watch_conversion(void)
{
    static struct progress progress;
    static const struct convert_watch watch = {&progress, print_note};
    progress_init(&progress, "convert", "B", 0, cli_common.quiet);
    return &watch;
}
