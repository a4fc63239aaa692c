// What tools/generate makes checked-in files from: the command table as man pages, the event table as a table of a document.
#ifndef HEAPTAPE_CLI_GENERATE_H
#define HEAPTAPE_CLI_GENERATE_H

#include "cli/command.h"

#include <stdio.h>

// The parts of a command's man page that follow from its row, in scdoc's language: everything but the text below DESCRIPTION,
// further lines below options and words, and what follows the examples. NULL: of heaptape as a whole, up to and with OPTIONS.
void generate_man(FILE *to, const struct command *c);

// The table of event kinds in Markdown.
void generate_kinds(FILE *to);

#endif
