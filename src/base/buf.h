// A growable byte buffer.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// data[0..size) is valid. A zeroed struct is an empty buffer.
struct buf {
    uint8_t *data;
    size_t size, capacity;
};

// Frees the storage. The buffer is then empty and can be reused.
void buf_release(struct buf *b);

// Reserves space for `more` bytes after the current contents. Returns 0, or -ENOMEM with the buffer
// unchanged.
int buf_reserve(struct buf *b, size_t more);

// Sets the size to `size_bytes`; new bytes are uninitialized. Returns 0 or -ENOMEM.
int buf_resize(struct buf *b, size_t size_bytes);

// Appends n bytes. Returns 0 or -ENOMEM.
int buf_put(struct buf *b, const void *bytes, size_t n);

// Appends a variable-length integer (base/varint.h). Returns 0 or -ENOMEM.
int buf_put_varint(struct buf *b, uint64_t v);

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

// Computes a * b. Returns 0 with the product in *out, or -EOVERFLOW with *out unchanged.
int size_mul(size_t a, size_t b, size_t *out);

// Dynamic arrays that grow by doubling. `items` is the address of the array pointer, whose type
// determines the item size. HT_GROW reserves space for `want` items. If *n is less than `want`,
// HT_EXTEND also zeroes the new items and sets *n to `want`. Both return 0 or -ENOMEM.
#define HT_GROW(items, capacity, want)                                                             \
    array_reserve((void **)(items), (capacity), (want), sizeof **(items))
#define HT_EXTEND(items, n, capacity, want)                                                        \
    array_extend((void **)(items), (n), (capacity), (want), sizeof **(items))

// Appends an item, which is an expression or a compound literal. Evaluates to 0 or -ENOMEM.
#define HT_APPEND(items, n, capacity, ...)                                                         \
    (HT_GROW(items, capacity, *(n) + 1) ?: ((*(items))[(*(n))++] = (__VA_ARGS__), 0))

int array_reserve(void **items, size_t *capacity, size_t want, size_t item_bytes);
int array_extend(void **items, size_t *n, size_t *capacity, size_t want, size_t item_bytes);
