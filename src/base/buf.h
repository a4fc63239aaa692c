// A growable byte buffer.
#ifndef HEAPTAPE_BASE_BUF_H
#define HEAPTAPE_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// data[0..size) is valid. All zero is an empty buffer that owns nothing.
struct buf {
    uint8_t *data;
    size_t size, capacity;
};

// Frees the storage; the buffer is empty and usable again.
void buf_release(struct buf *b);

// Makes room for `more` bytes past size. 0, or -ENOMEM (the buffer is unchanged).
int buf_reserve(struct buf *b, size_t more);

// Sets size to `size_bytes`; new bytes are uninitialised. 0 or -ENOMEM.
int buf_resize(struct buf *b, size_t size_bytes);

// Appends. 0 or -ENOMEM.
int buf_put(struct buf *b, const void *bytes, size_t n);

static inline int buf_put_u8(struct buf *b, uint8_t v)
{
    if (b->size == b->capacity) {
        int rc = buf_reserve(b, 1);
        if (rc < 0)
            return rc;
    }
    b->data[b->size++] = v;
    return 0;
}

// Multiplies without overflow: 0, or -EOVERFLOW and *out is untouched.
int size_mul(size_t a, size_t b, size_t *out);

// Grows an array of `item_bytes`-sized items to hold at least `want` of them, doubling. 0 or -ENOMEM.
int array_reserve(void **items, size_t *capacity, size_t want, size_t item_bytes);

// Makes an array of *n items at least `want` long; the new ones are all zero. 0 or -ENOMEM.
int array_extend(void **items, size_t *n, size_t *capacity, size_t want, size_t item_bytes);

#endif
