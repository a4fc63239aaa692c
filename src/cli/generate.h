// What tools/generate makes checked-in files from: the command table as man pages, the event table as a table of a document.
#ifndef HEAPTAPE_CLI_GENERATE_H
#define HEAPTAPE_CLI_GENERATE_H

#include "cli/command.h"

#include <stdio.h>

// The man page of a command in scdoc's language, up to and with OPTIONS; of heaptape as a whole when `c` is NULL.
void generate_man(FILE *to, const struct command *c);

// The table of event kinds in Markdown.
void generate_kinds(FILE *to);

#endif
