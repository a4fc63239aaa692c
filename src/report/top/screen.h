// The tables that `top` shows.
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
    uint32_t pid;           // of the process shown; 0: the one with the highest peak of live bytes
    size_t first;           // row
    unsigned columns, rows; // 0: lines are as long as they are; rows of the table
    bool lists_keys;
    bool automatic; // `by` was not chosen by the user
    double seconds; // of the interval that rates are of; 0: of the whole recording
};

// The process that is shown; NULL: there is none yet.
struct live *screen_process(const struct screen *s, const struct follow *f);

// Shows the next process.
void screen_next_process(struct screen *s, const struct follow *f);

// Writes the tables in lines of text; those of a terminal each end with a clearing of what stood there. s->first may become
// less. 0 or -ENOMEM.
int screen_draw(struct screen *s, const struct follow *f, bool terminal, FILE *to);

#endif
