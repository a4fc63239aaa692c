// The tables of `top`.
#pragma once

#include "report/top/follow.h"

#include <stdio.h>

enum screen_sort {
    SCREEN_LIVE,
    SCREEN_BLOCKS,
    SCREEN_GROWTH,
    SCREEN_ALLOCS,
    SCREEN_BYTES,
    SCREEN_SORTS
};

struct screen {
    enum live_by by;
    enum screen_sort sort;
    // Pid of the shown process; 0 selects the process with the highest peak of live bytes.
    uint32_t pid;
    size_t first; // first row that is shown
    // Width of the lines (0 if lines are not cut), and number of rows in the table.
    unsigned columns, rows;
    bool on_terminal; // clear the rest of each line, and list the keys
    bool automatic;   // the user has not chosen `by`
    double seconds;   // interval of the rates; 0 means the whole recording
};

// Returns the process that is shown, or NULL if the recording has no process yet.
struct live *screen_process(const struct screen *s, const struct follow *f);

// Shows the next process.
void screen_next_process(struct screen *s, const struct follow *f);

// Writes the tables as lines of text. Reduces s->first if the table has too few rows. Returns 0 or
// -ENOMEM.
int screen_draw(struct screen *s, const struct follow *f, FILE *to);
