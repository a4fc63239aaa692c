#include "base/buf.h"

#include "base/varint.h"

#include <errno.h>
#include <stdlib.h>

void buf_release(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

int buf_reserve(struct buf *b, size_t more)
{
    if (more > SIZE_MAX - b->size)
        return -ENOMEM;
    return HT_GROW(&b->data, &b->capacity, b->size + more);
}

int buf_resize(struct buf *b, size_t size_bytes)
{
    int rc = HT_GROW(&b->data, &b->capacity, size_bytes);
    if (rc == 0)
        b->size = size_bytes;
    return rc;
}

int buf_put(struct buf *b, const void *bytes, size_t n)
{
    int rc = buf_reserve(b, n);
    if (rc < 0)
        return rc;
    if (n)
        memcpy(b->data + b->size, bytes, n);
    b->size += n;
    return 0;
}

int buf_put_varint(struct buf *b, uint64_t v)
{
    uint8_t bytes[VARINT_MAX_BYTES];
    return buf_put(b, bytes, varint_put(bytes, v));
}

int size_mul(size_t a, size_t b, size_t *out)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return -EOVERFLOW;
    *out = product;
    return 0;
}

int array_reserve(void **items, size_t *capacity, size_t want, size_t item_bytes)
{
    if (want <= *capacity)
        return 0;
    size_t n = *capacity < 16 ? 16 : *capacity;
    while (n < want)
        n = n > SIZE_MAX / 2 ? want : n * 2;
    size_t bytes;
    if (size_mul(n, item_bytes, &bytes) < 0)
        return -ENOMEM;
    void *grown = realloc(*items, bytes);
    if (!grown)
        return -ENOMEM;
    *items = grown;
    *capacity = n;
    return 0;
}

int array_extend(void **items, size_t *n, size_t *capacity, size_t want, size_t item_bytes)
{
    if (want <= *n)
        return 0;
    if (array_reserve(items, capacity, want, item_bytes) < 0)
        return -ENOMEM;
    memset((char *)*items + *n * item_bytes, 0, (want - *n) * item_bytes);
    *n = want;
    return 0;
}
