// Binary search.
#pragma once

#include <stddef.h>

// Evaluates to the lowest index below `n` for which the condition is true, or to `n`. The condition
// is an expression of the variable `i`. If the condition is true for an index, it must be true for
// all higher indices.
#define HT_SEARCH(i, n, condition)                                                                 \
    ({                                                                                             \
        size_t search_low = 0, search_high = (n);                                                  \
        while (search_low < search_high) {                                                         \
            size_t i = search_low + (search_high - search_low) / 2;                                \
            if (condition)                                                                         \
                search_high = i;                                                                   \
            else                                                                                   \
                search_low = i + 1;                                                                \
        }                                                                                          \
        search_low;                                                                                \
    })
