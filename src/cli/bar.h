// Small bars for tables on a terminal; of ASCII where the locale has no UTF-8.
#ifndef HEAPTAPE_CLI_BAR_H
#define HEAPTAPE_CLI_BAR_H

#include <stddef.h>

// A cell takes at most 3 bytes of UTF-8.
#define BAR_BYTES(cells) (3 * (cells) + 1)
enum { BAR_LEVEL_BYTES = 4 };

// A bar of at most `cells` characters, `of_one` (0 to 1) of them filled, to an eighth, in ASCII to a whole one; the
// least is one of these, but for 0.
char *bar_text(char *text, size_t cells, double of_one);

// One character, filled from below; 0 is a space.
char *bar_level(char text[BAR_LEVEL_BYTES], double of_one);

#endif
