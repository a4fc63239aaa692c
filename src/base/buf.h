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

// Arrays that grow by doubling: `items` is the address of the caller's pointer to them, whose type gives their size.
// Room for `want` items, or all zero items up to `want` of them. 0 or -ENOMEM.
#define HT_GROW(items, capacity, want)                                                             \
    array_reserve((void **)(items), (capacity), (want), sizeof **(items))
#define HT_EXTEND(items, n, capacity, want)                                                        \
    array_extend((void **)(items), (n), (capacity), (want), sizeof **(items))

// What these macros call.
int array_reserve(void **items, size_t *capacity, size_t want, size_t item_bytes);
int array_extend(void **items, size_t *n, size_t *capacity, size_t want, size_t item_bytes);

#endif
