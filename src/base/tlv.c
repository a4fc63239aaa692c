#include "base/tlv.h"

#include "base/varint.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
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

static uint64_t get_number(const void *from, struct tlv_member m)
{
    uint64_t v = 0;
    memcpy(&v, (const char *)from + m.at, m.bytes);
    return v;
}

static char *get_pointer(const void *from, struct tlv_member m)
{
    char *p;
    memcpy(&p, (const char *)from + m.at, sizeof p);
    return p;
}

static void set_member(void *to, struct tlv_member m, const void *value)
{
    memcpy((char *)to + m.at, value, m.bytes);
}

static int put_row(struct buf *b, const struct tlv_row *r, const void *from)
{
    if (r->when.bytes && !get_number(from, r->when))
        return 0;
    switch (r->type) {
    case TLV_NUMBER:
        return tlv_put_u64(b, r->tag, get_number(from, r->value));
    case TLV_FLAG:
        return tlv_put_u64(b, r->tag, get_number(from, r->value) != 0);
    case TLV_STRING:
        return tlv_put_string(b, r->tag, get_pointer(from, r->value));
    case TLV_BYTES:
        return tlv_put_bytes(b, r->tag, get_pointer(from, r->value), get_number(from, r->count));
    }
    return 0;
}

int tlv_put_rows(struct buf *b, const struct tlv_row *rows, const void *from)
{
    int rc = 0;
    for (; rows->tag && rc == 0; rows++)
        rc = put_row(b, rows, from);
    return rc;
}

int tlv_set(const struct tlv_row *rows, void *to, const struct tlv *field)
{
    while (rows->tag && rows->tag != field->tag)
        rows++;
    if (!rows->tag)
        return 0;
    uint64_t v = rows->type == TLV_FLAG ? field->number != 0 : field->number, size = field->size;
    if (rows->type == TLV_NUMBER || rows->type == TLV_FLAG) {
        set_member(to, rows->value, &v);
        return 0;
    }
    char *copy = malloc(field->size + 1);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, field->bytes, field->size);
    copy[field->size] = 0;
    free(get_pointer(to, rows->value));
    set_member(to, rows->value, &copy);
    set_member(to, rows->count, &size);
    return 0;
}

void tlv_release_rows(const struct tlv_row *rows, const void *of)
{
    for (; rows->tag; rows++) {
        if (rows->type == TLV_STRING || rows->type == TLV_BYTES)
            free(get_pointer(of, rows->value));
    }
}
