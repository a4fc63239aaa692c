// Prints man pages and shell completions from the command table, and Markdown from the event table,
// for tools/generate.
#pragma once

#include "cli/command.h"

#include <stdio.h>

// Prints the outline of a command's man page for scdoc, or of heaptape(1) if `c` is NULL.
// docs/adding.md lists the parts that are written by hand.
void generate_man(FILE *to, const struct command *c);

// Prints the table of event kinds in Markdown.
void generate_kinds(FILE *to);

// Print the command table for the completion scripts in docs/completion. A value or operand is a
// list of words. A word that begins with @ represents a kind of word, such as @files.
//
// generate_bash prints arrays of options, of the values of options, and of operands. generate_fish
// prints a `complete` for each command, option and list of operands. generate_zsh prints the array
// of commands, and for each command a function _heaptape_NAME that calls _arguments.
void generate_bash(FILE *to);
void generate_fish(FILE *to);
void generate_zsh(FILE *to);
