#include "base/map.h"

#include "base/seed.h"

#include <errno.h>
#include <stdlib.h>

void map_release(struct map *m)
{
    free(m->cells);
    *m = (struct map){0};
}

static size_t home_of(const struct map *m, uint64_t key)
{
    unsigned __int128 product = (unsigned __int128)key * m->seed;
    return ((uint64_t)(product >> 64) ^ (uint64_t)product) & (m->capacity - 1);
}

// Returns the key's cell, or the empty cell where the key belongs. The search terminates, because
// the map always has an empty cell.
static struct map_cell *find_cell(const struct map *m, uint64_t key)
{
    size_t i = home_of(m, key);
    while (m->cells[i].value && m->cells[i].key != key)
        i = (i + 1) & (m->capacity - 1);
    return &m->cells[i];
}

uint64_t map_get(const struct map *m, uint64_t key)
{
    return m->capacity ? find_cell(m, key)->value : 0;
}

void map_prefetch(const struct map *m, uint64_t key)
{
    if (m->capacity)
        __builtin_prefetch(&m->cells[home_of(m, key)], 1);
}

static int grow_cells(struct map *m)
{
    struct map old = *m;
    m->capacity = old.capacity ? old.capacity * 2 : 8;
    m->seed = old.capacity ? old.seed : seed_random();
    m->cells = calloc(m->capacity, sizeof *m->cells);
    if (!m->cells) {
        *m = old;
        return -ENOMEM;
    }
    for (size_t i = 0; i < old.capacity; i++) {
        if (old.cells[i].value)
            *find_cell(m, old.cells[i].key) = old.cells[i];
    }
    free(old.cells);
    return 0;
}

int map_put(struct map *m, uint64_t key, uint64_t value)
{
    if (2 * (m->n + 1) > m->capacity && grow_cells(m) < 0)
        return -ENOMEM;
    struct map_cell *c = find_cell(m, key);
    m->n += c->value == 0;
    *c = (struct map_cell){key, value};
    return 0;
}

void map_remove(struct map *m, uint64_t key)
{
    struct map_cell *empty = m->capacity ? find_cell(m, key) : NULL;
    if (!empty || !empty->value)
        return;
    // Move the following cells back, except those that would end up before their home cell.
    for (size_t i = (size_t)(empty - m->cells + 1) & (m->capacity - 1); m->cells[i].value;
         i = (i + 1) & (m->capacity - 1)) {
        size_t at = (size_t)(empty - m->cells),
               from_home = (i - home_of(m, m->cells[i].key)) & (m->capacity - 1);
        if (from_home < ((i - at) & (m->capacity - 1)))
            continue;
        *empty = m->cells[i];
        empty = &m->cells[i];
    }
    *empty = (struct map_cell){0};
    m->n--;
}
