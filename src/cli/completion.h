// Prints the command table for the completion of bash, fish and zsh. The scripts that use the
// output are in docs/completion.
//
// A value or operand is a list of words. A word that begins with @ represents a kind of words:
// @files, @directories, @allocators, @processes, @programs.
#ifndef HEAPTAPE_CLI_COMPLETION_H
#define HEAPTAPE_CLI_COMPLETION_H

#include <stdio.h>

// Prints arrays of options, of the values of options, and of operands.
void completion_bash(FILE *to);

// Prints one `complete` for each command, option and list of operands.
void completion_fish(FILE *to);

// Prints the array of commands, and for each command a function _heaptape_NAME that calls
// _arguments.
void completion_zsh(FILE *to);

#endif
