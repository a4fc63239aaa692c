// Bars for tables on a terminal, in ASCII if the locale is not UTF-8.
#pragma once

#include <stddef.h>

#define BAR_BYTES(cells) (3 * (cells) + 1)
enum { BAR_LEVEL_BYTES = 4 };

// Writes a bar of up to `cells` characters into `text` (BAR_BYTES). `of_one` is the share to fill,
// from 0 to 1. The resolution is an eighth of a character or, in ASCII, a whole character. A share
// above 0 always fills at least one step. Returns `text`.
char *bar_text(char *text, size_t cells, double of_one);

// Writes one character that is filled from below. A share of 0 is a space. Returns `text`.
char *bar_level(char text[BAR_LEVEL_BYTES], double of_one);
