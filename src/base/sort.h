// Sorts arrays by members of their items.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sort_type { SORT_NONE, SORT_U32, SORT_U64, SORT_DOUBLE };

struct sort_key {
    enum sort_type type;
    bool descending;
    size_t offset; // of the member in an item
};

// Keys that are members of a struct. Their type must be uint32_t, uint64_t or double.
#define SORT_UP(item, member)   SORT_KEY(item, member, false)
#define SORT_DOWN(item, member) SORT_KEY(item, member, true)
// clang-format off
#define SORT_KEY(item, member, descending) \
    {_Generic(((item *)0)->member, uint32_t: SORT_U32, uint64_t: SORT_U64, double: SORT_DOUBLE), \
     descending, offsetof(item, member)}
// clang-format on

// Sorts `n` items by the keys. If the first key is equal, the second key decides, and so on.
// `items` may be NULL if `n` is 0.
#define HT_SORT(items, n, ...)                                                                     \
    sort_items(items, n, sizeof *(items), (const struct sort_key[]){__VA_ARGS__, {0}})

void sort_items(void *items, size_t n, size_t item_bytes, const struct sort_key *keys);
