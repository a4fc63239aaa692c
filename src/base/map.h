// Hash map from numbers to numbers. Keys come from files and may have been chosen to collide, so
// each process hashes with a random multiplier.
#pragma once

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

struct map_cell {
    uint64_t key, value; // value is 0 if the cell is empty
};

// A zeroed struct is an empty map.
struct map {
    struct map_cell *cells;
    size_t n, capacity; // capacity is a power of two
    uint64_t seed;      // odd random multiplier of keys (base/seed.h)
};

void map_release(struct map *m);

// Returns the value of the key, or 0.
uint64_t map_get(const struct map *m, uint64_t key);

// Prefetches the cell of the key.
void map_prefetch(const struct map *m, uint64_t key);

// Sets the value of the key. `value` must not be 0. Returns 0 or -ENOMEM.
int map_put(struct map *m, uint64_t key, uint64_t value);

void map_remove(struct map *m, uint64_t key);

// Evaluates to the address of the item with this key in a dynamic array (base/buf.h), or to NULL
// when out of memory. If the key is new, appends a zeroed item. `numbers` maps each key to the
// index of its item plus 1.
#define MAP_ITEM(numbers, key, items, n, capacity)                                                 \
    ({                                                                                             \
        uint64_t map_key = (key), map_number = map_get(numbers, map_key);                          \
        if (!map_number && HT_EXTEND(items, n, capacity, *(n) + 1) == 0 &&                         \
            map_put(numbers, map_key, *(n)) == 0)                                                  \
            map_number = *(n);                                                                     \
        map_number ? *(items) + map_number - 1 : NULL;                                             \
    })
