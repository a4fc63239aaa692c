#include "formats/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void slots_release(struct slots *s)
{
    map_release(&s->by_block);
    free(s->free);
    *s = (struct slots){0};
}

uint64_t slots_take(struct slots *s, uint64_t block)
{
    uint64_t number = s->n_free ? s->free[s->first] : s->next + 1;
    if (map_put(&s->by_block, block, number) < 0)
        return 0;
    if (!s->n_free) {
        s->next++;
        return number;
    }
    s->first = (s->first + 1) & (s->capacity - 1);
    s->n_free--;
    return number;
}

static int grow(struct slots *s)
{
    size_t capacity = s->capacity ? s->capacity * 2 : 64;
    uint64_t *ring = malloc(capacity * sizeof *ring);
    if (!ring)
        return -ENOMEM;
    for (size_t i = 0; i < s->n_free; i++)
        ring[i] = s->free[(s->first + i) & (s->capacity - 1)];
    free(s->free);
    s->free = ring;
    s->first = 0;
    s->capacity = capacity;
    return 0;
}

int slots_give(struct slots *s, uint64_t block)
{
    uint64_t number = map_get(&s->by_block, block);
    if (!number)
        return 0;
    if (s->n_free == s->capacity && grow(s) < 0)
        return -ENOMEM;
    map_remove(&s->by_block, block);
    s->free[(s->first + s->n_free++) & (s->capacity - 1)] = number;
    return 0;
}
