#include "record/flight/ring.h"

#include <errno.h>
#include <stdlib.h>

enum { OVERHEAD = sizeof(struct ring_frame) + 32 }; // memory per frame, including malloc's overhead

void flight_ring_release(struct flight_ring *r)
{
    while (r->n)
        flight_ring_drop(r);
    free(r->frames);
    *r = (struct flight_ring){0};
}

static struct ring_frame *find_slot(const struct flight_ring *r, size_t i)
{
    return &r->frames[(r->first + i) & (r->capacity - 1)];
}

const struct ring_frame *flight_ring_at(const struct flight_ring *r, size_t i)
{
    return find_slot(r, i);
}

static int grow_ring(struct flight_ring *r)
{
    size_t capacity = r->capacity ? 2 * r->capacity : 64;
    struct ring_frame *frames = malloc(capacity * sizeof *frames);
    if (!frames)
        return -ENOMEM;
    for (size_t i = 0; i < r->n; i++)
        frames[i] = *find_slot(r, i);
    free(r->frames);
    r->frames = frames;
    r->first = 0;
    r->capacity = capacity;
    return 0;
}

int flight_ring_push(struct flight_ring *r, const struct frame *f, const struct buf *stored,
                     uint64_t now_ns)
{
    uint8_t *copy = r->n == r->capacity && grow_ring(r) < 0 ? NULL : malloc(stored->size);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, stored->data, stored->size);
    r->n++;
    *find_slot(r, r->n - 1) = (struct ring_frame){*f, now_ns, {copy, stored->size, stored->size}};
    r->bytes += stored->size + OVERHEAD;
    return 0;
}

bool flight_ring_is_over(const struct flight_ring *r, uint64_t now_ns)
{
    return r->n && (r->bytes > r->max_bytes ||
                    (now_ns > r->max_ns && find_slot(r, 0)->came_ns < now_ns - r->max_ns));
}

void flight_ring_drop(struct flight_ring *r)
{
    struct ring_frame *f = find_slot(r, 0);
    r->bytes -= f->stored.size + OVERHEAD;
    buf_release(&f->stored);
    r->first++;
    r->n--;
}
