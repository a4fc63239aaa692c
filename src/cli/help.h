// Usage lines and help texts, made from the command table.
#ifndef HEAPTAPE_CLI_HELP_H
#define HEAPTAPE_CLI_HELP_H

#include "cli/command.h"

#include <stdio.h>

// "usage: heaptape record [options] …" as one line; of heaptape as a whole when `c` is NULL.
void help_print_usage(FILE *to, const struct command *c);

// The whole text of `heaptape CMD --help`: usage, options, words, examples. At most 70 lines of 80 columns, as tests/house
// checks.
void help_print_command(FILE *to, const struct command *c);

// The list of commands.
void help_print_commands(FILE *to);

// "-o, --output=FILE" into `text`; returns its length.
int help_option_name(char *text, size_t size, const struct option *o);

// What stands before a name: "no-" for a flag that is on unless that is given, else "".
const char *help_option_prefix(const struct option *o);

// " (1 to 19; default: 3)", or "".
void help_option_note(char *text, size_t size, const struct option *o);

#endif
