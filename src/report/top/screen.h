// The tables of `top`.
#ifndef HEAPTAPE_TOP_SCREEN_H
#define HEAPTAPE_TOP_SCREEN_H

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
    uint32_t pid;           // process that is shown; 0: the one with the highest peak of live bytes
    size_t first;           // first row that is shown
    unsigned columns, rows; // 0: lines are not cut; `rows` of the table
    bool lists_keys;
    bool automatic; // the user has not chosen `by`
    double seconds; // interval of the rates; 0: the whole recording
};

// Returns the process that is shown, or NULL if there is no process yet.
struct live *screen_process(const struct screen *s, const struct follow *f);

// Shows the next process.
void screen_next_process(struct screen *s, const struct follow *f);

// Writes the tables as lines of text. On a terminal, each line ends with an escape sequence that
// clears the rest of the line. Reduces s->first if the table has fewer rows. Returns 0 or -ENOMEM.
int screen_draw(struct screen *s, const struct follow *f, bool terminal, FILE *to);

#endif
