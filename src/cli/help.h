// Usage lines and help texts, printed from the command table.
#pragma once

#include "cli/command.h"

#include <stdio.h>

// Prints the text of `heaptape COMMAND --help`. tests/house limits it to 70 lines of 80 columns.
void help_print_command(FILE *to, const struct command *c);

// Prints the list of commands.
void help_print_commands(FILE *to);

// Writes "-o, --output=FILE" into `text` and returns its length.
int help_option_name(char *text, size_t size, const struct option *o);

// Writes an option's limits and default into `text`, such as " (1 to 19; default: 3)", or "".
void help_option_note(char *text, size_t size, const struct option *o);
