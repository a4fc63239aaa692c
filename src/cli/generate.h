// Prints man pages from the command table and Markdown from the event table, for tools/generate.
#ifndef HEAPTAPE_CLI_GENERATE_H
#define HEAPTAPE_CLI_GENERATE_H

#include "cli/command.h"

#include <stdio.h>

// Prints the outline of a command's man page for scdoc, or of heaptape(1) if `c` is NULL.
// docs/adding.md lists the parts that are written by hand.
void generate_man(FILE *to, const struct command *c);

// Prints the table of event kinds in Markdown.
void generate_kinds(FILE *to);

#endif
