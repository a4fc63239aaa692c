#include "cli/command.h"

// Every command, in the order of the list of commands. COMMAND(record) is `cmd_record`, defined in ../commands/record.c, which
// meson.build lists.
// clang-format off
#define COMMANDS(COMMAND) \
    COMMAND(record) \
    COMMAND(ctl) \
    COMMAND(top) \
    COMMAND(upload) \
    COMMAND(receive) \
    COMMAND(convert) \
    COMMAND(slice) \
    COMMAND(reduce) \
    COMMAND(anonymize) \
    COMMAND(merge) \
    COMMAND(replay) \
    COMMAND(compare) \
    COMMAND(matrix) \
    COMMAND(corpus) \
    COMMAND(advise) \
    COMMAND(stat) \
    COMMAND(symbolize) \
    COMMAND(diff) \
    COMMAND(sql) \
    COMMAND(report) \
    COMMAND(dump) \
    COMMAND(import) \
    COMMAND(export) \
    COMMAND(check) \
    COMMAND(trace_run) \
    COMMAND(allocators)
// clang-format on

#define DECLARE(name) extern const struct command cmd_##name;
#define ROW(name)     &cmd_##name,
COMMANDS(DECLARE)
const struct command *const cli_commands[] = {COMMANDS(ROW) NULL};
