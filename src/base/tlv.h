// Tagged fields: varint tag, varint length, bytes. How frames that are no event columns hold their facts, so
// that a reader skips what it does not know.
#ifndef HEAPTAPE_BASE_TLV_H
#define HEAPTAPE_BASE_TLV_H

#include "base/buf.h"

#include <stdint.h>

// Append a field. 0 or -ENOMEM. Numbers are varints.
int tlv_put_bytes(struct buf *b, unsigned tag, const void *bytes, size_t n);
int tlv_put_string(struct buf *b, unsigned tag, const char *text); // NULL: nothing is written
int tlv_put_u64(struct buf *b, unsigned tag, uint64_t v);

// One field as read; `bytes` is borrowed from the input.
struct tlv {
    unsigned tag;
    const uint8_t *bytes;
    size_t size;
    uint64_t number; // the bytes as one varint, 0 when they are none
};

// Takes the field at *at and moves on: 1, 0 at the end, -EBADMSG when the field does not fit.
int tlv_next(const uint8_t **at, const uint8_t *end, struct tlv *field);

// Calls `set` with each field of the n bytes at `at`, until it returns a negative errno. 0, that errno, or -EBADMSG when the
// fields do not fit.
int tlv_read(const uint8_t *at, size_t n, int (*set)(void *to, const struct tlv *field), void *to);

// A copy of the field's bytes as a C string, cut at the first NUL; the caller frees it. NULL when out of
// memory.
char *tlv_string(const struct tlv *field);

#endif
