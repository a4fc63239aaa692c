// Finds the known word that is nearest to a mistyped word.
#pragma once

#include <stddef.h>

struct suggest {
    const char *word; // borrowed
    size_t n;
    const char *best; // nearest word so far, or NULL
    unsigned distance;
};

void suggest_init(struct suggest *s, const char *word, size_t n);
void suggest_offer(struct suggest *s, const char *known);

// Returns the optimal string alignment distance of two words: the number of insertions, deletions,
// substitutions and transpositions. Returns UINT_MAX if a word is longer than 63 bytes.
unsigned suggest_distance(const char *a, size_t a_n, const char *b, size_t b_n);
