// The terminal while `top` has it: keys without Enter, and a screen that is put back at every exit.
#ifndef HEAPTAPE_TOP_TERMINAL_H
#define HEAPTAPE_TOP_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

enum terminal_key {
    TERMINAL_NONE = 0,
    TERMINAL_UP = 256,
    TERMINAL_DOWN,
    TERMINAL_LEFT,
    TERMINAL_RIGHT,
    TERMINAL_RESIZED
};

// From now on, until terminal_end or the end of the program: a signal that ends it does so as it would have, once the
// terminal is as it was. Standard output is a terminal; without a terminal on standard input there are no keys.
void terminal_begin(void);
void terminal_end(void);

// Waits for a key: its character or an enum terminal_key. TERMINAL_NONE when `until_ns` on the monotonic clock has come;
// TERMINAL_RESIZED when the screen is to be drawn anew.
int terminal_key(uint64_t until_ns);

// The size; 80 columns and 24 rows where the terminal does not know.
void terminal_size(unsigned *columns, unsigned *rows);

#endif
