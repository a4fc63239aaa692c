#include "cli/command.h"

// All commands in the order of `heaptape help`. COMMAND(record) refers to `cmd_record` in
// src/commands/record.c.
#define COMMANDS(HEADING, COMMAND)                                                                 \
    HEADING("Start here")                                                                          \
    COMMAND(doctor)                                                                                \
    COMMAND(record)                                                                                \
    COMMAND(stat)                                                                                  \
    COMMAND(top)                                                                                   \
    COMMAND(report)                                                                                \
    COMMAND(compare)                                                                               \
    COMMAND(advise)                                                                                \
    HEADING("Record")                                                                              \
    COMMAND(ctl)                                                                                   \
    COMMAND(check)                                                                                 \
    COMMAND(symbolize)                                                                             \
    COMMAND(corpus)                                                                                \
    HEADING("Inspect recordings")                                                                  \
    COMMAND(diff)                                                                                  \
    COMMAND(dump)                                                                                  \
    COMMAND(sql)                                                                                   \
    HEADING("Compare allocators")                                                                  \
    COMMAND(replay)                                                                                \
    COMMAND(allocators)                                                                            \
    COMMAND(reduce)                                                                                \
    COMMAND(matrix)                                                                                \
    HEADING("Exchange with other tools")                                                           \
    COMMAND(import)                                                                                \
    COMMAND(export)                                                                                \
    COMMAND(anonymize)                                                                             \
    COMMAND(trace_run)                                                                             \
    HEADING("Services on many hosts")                                                              \
    COMMAND(upload)                                                                                \
    COMMAND(receive)                                                                               \
    HEADING("More")                                                                                \
    COMMAND(convert)                                                                               \
    COMMAND(slice)                                                                                 \
    COMMAND(merge)
// clang-format on

#define NOTHING(...)
#define DECLARE(name)     extern const struct command cmd_##name;
#define POINTER(name)     &cmd_##name,
#define HEADING_ROW(text) {.heading = text},
#define COMMAND_ROW(name) {.command = &cmd_##name},
COMMANDS(NOTHING, DECLARE)
const struct command *const cli_commands[] = {COMMANDS(NOTHING, POINTER) NULL};
const struct command_row cli_command_rows[] = {COMMANDS(HEADING_ROW, COMMAND_ROW){0}};
