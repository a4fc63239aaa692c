// A hash map from numbers to numbers: for the few things that are looked up by a number which the trace gives, and
// that may be any. Keys may have been chosen to collide: where they go is a secret of the process.
#ifndef HEAPTAPE_BASE_MAP_H
#define HEAPTAPE_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_cell {
    uint64_t key, value; // value 0: no such key
};

// All zero is an empty map that owns nothing.
struct map {
    struct map_cell *cells;
    size_t n, capacity; // a power of two
    uint64_t seed;      // what the keys are multiplied by: odd, see base/seed.h
};

void map_release(struct map *m);

// The key's value, 0 when it has none.
uint64_t map_get(const struct map *m, uint64_t key);

// Fetches what the others will need of the key.
void map_prefetch(const struct map *m, uint64_t key);

// `value` is not 0. 0 or -ENOMEM.
int map_put(struct map *m, uint64_t key, uint64_t value);

// The key has no value any more.
void map_remove(struct map *m, uint64_t key);

#endif
