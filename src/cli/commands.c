#include "cli/command.h"

#define POINTER(name)     &cmd_##name,
#define HEADING_ROW(text) {.heading = text},
#define COMMAND_ROW(name) {.command = &cmd_##name},
const struct command *const cli_commands[] = {COMMANDS(CLI_NOTHING, POINTER) NULL};
const struct command_row cli_command_rows[] = {COMMANDS(HEADING_ROW, COMMAND_ROW){0}};
