// The terminal in raw mode with an alternate screen. The terminal is restored at every exit.
#pragma once

#include <stdint.h>

enum terminal_key {
    TERMINAL_NONE = 0,
    TERMINAL_UP = 256,
    TERMINAL_DOWN,
    TERMINAL_LEFT,
    TERMINAL_RIGHT,
    TERMINAL_RESIZED
};

// Sets up the terminal, which stays in this mode until terminal_end or the end of the program.
// Standard output must be a terminal. If standard input is not a terminal, there are no keys. If a
// signal terminates the program, the terminal is restored first.
void terminal_begin(void);
void terminal_end(void);

// Waits for a key. Returns the character of the key or an enum terminal_key. Returns TERMINAL_NONE
// if no key was pressed before `until_ns` on the monotonic clock, or TERMINAL_RESIZED if the screen
// must be redrawn.
int terminal_key(uint64_t until_ns);

// Sets *columns and *rows to the size of the terminal, or to 80 and 24 if the size is unknown.
void terminal_size(unsigned *columns, unsigned *rows);
