// Finds the known word that a mistyped one was meant to be.
#ifndef HEAPTAPE_CLI_SUGGEST_H
#define HEAPTAPE_CLI_SUGGEST_H

#include <stddef.h>

struct suggest {
    const char *word; // borrowed
    size_t n;
    const char *best; // the nearest word offered, NULL while none is near enough
    unsigned distance;
};

void suggest_init(struct suggest *s, const char *word, size_t n);
void suggest_offer(struct suggest *s, const char *known);

// Optimal string alignment distance: insertions, deletions, changes and swaps of neighbours. Words longer than 63
// bytes are far from everything.
unsigned suggest_distance(const char *a, size_t a_n, const char *b, size_t b_n);

#endif
