// Prints the command table as man pages and the event table in Markdown, for tools/generate.
#ifndef HEAPTAPE_CLI_GENERATE_H
#define HEAPTAPE_CLI_GENERATE_H

#include "cli/command.h"

#include <stdio.h>

// Prints the outline of a command's man page in scdoc's language; of heaptape(1) when `c` is NULL.
// docs/adding.md says which texts the page has by hand.
void generate_man(FILE *to, const struct command *c);

// The table of event kinds in Markdown.
void generate_kinds(FILE *to);

#endif
