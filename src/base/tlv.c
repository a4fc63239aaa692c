#include "base/tlv.h"

#include "base/varint.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

int tlv_put_bytes(struct buf *b, unsigned tag, const void *bytes, size_t n)
{
    return buf_put_varint(b, tag) || buf_put_varint(b, n) || buf_put(b, bytes, n) ? -ENOMEM : 0;
}

int tlv_put_string(struct buf *b, unsigned tag, const char *text)
{
    return text ? tlv_put_bytes(b, tag, text, strlen(text)) : 0;
}

int tlv_put_u64(struct buf *b, unsigned tag, uint64_t v)
{
    uint8_t bytes[VARINT_MAX_BYTES];
    return tlv_put_bytes(b, tag, bytes, varint_put(bytes, v));
}

int tlv_next(const uint8_t **at, const uint8_t *end, struct tlv *field)
{
    if (*at == end)
        return 0;
    uint64_t tag, size;
    size_t n = varint_get(*at, end, &tag);
    if (!n || tag > UINT_MAX)
        return -EBADMSG;
    const uint8_t *p = *at + n;
    n = varint_get(p, end, &size);
    if (!n || size > (size_t)(end - p) - n)
        return -EBADMSG;
    p += n;
    *field = (struct tlv){.tag = (unsigned)tag, .bytes = p, .size = (size_t)size};
    if (varint_get(p, p + size, &field->number) != size)
        field->number = 0;
    *at = p + size;
    return 1;
}

int tlv_read(const uint8_t *at, size_t n, int (*set)(void *to, const struct tlv *field), void *to)
{
    const uint8_t *end = at + n;
    struct tlv f;
    int rc;
    while ((rc = tlv_next(&at, end, &f)) > 0) {
        rc = set(to, &f);
        if (rc < 0)
            return rc;
    }
    return rc;
}

char *tlv_string(const struct tlv *field)
{
    return strndup((const char *)field->bytes, field->size);
}
