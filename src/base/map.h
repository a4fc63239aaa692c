// Hash map from numbers to numbers. Keys come from files and may have been chosen to collide, so
// each process hashes with a random multiplier.
#ifndef HEAPTAPE_BASE_MAP_H
#define HEAPTAPE_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_cell {
    uint64_t key, value; // value is 0 if the cell is empty
};

// A zeroed struct is an empty map.
struct map {
    struct map_cell *cells;
    size_t n, capacity; // capacity is a power of two
    uint64_t seed;      // multiplier of keys, odd: base/seed.h
};

void map_release(struct map *m);

// Returns the value of the key, or 0.
uint64_t map_get(const struct map *m, uint64_t key);

// Prefetches the cell of the key.
void map_prefetch(const struct map *m, uint64_t key);

// Sets the value of the key. `value` must not be 0. Returns 0 or -ENOMEM.
int map_put(struct map *m, uint64_t key, uint64_t value);

void map_remove(struct map *m, uint64_t key);

#endif
