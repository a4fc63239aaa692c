// The command table for the completion of bash, fish and zsh. What follows these parts in docs/completion is written by
// hand.
//
// A value or operand is a list of words: those that may stand there, and kinds of things: @files, @folders, @allocators,
// @processes, @programs.
#ifndef HEAPTAPE_CLI_COMPLETION_H
#define HEAPTAPE_CLI_COMPLETION_H

#include <stdio.h>

// Arrays of the commands' options, of the values of options, and of the operands.
void completion_bash(FILE *to);

// One `complete` for each command, option and list of operands.
void completion_fish(FILE *to);

// The array of commands, and a function _heaptape_NAME for each, which calls _arguments.
void completion_zsh(FILE *to);

#endif
