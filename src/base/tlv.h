// Tagged fields. A field consists of a tag (varint), a length (varint) and as many bytes as the
// length states. All frames except frames of events consist of such fields. Readers skip unknown
// tags.
#ifndef HEAPTAPE_BASE_TLV_H
#define HEAPTAPE_BASE_TLV_H

#include "base/buf.h"

#include <stdint.h>

// Append a field. Numbers are encoded as varints. Return 0 or -ENOMEM.
int tlv_put_bytes(struct buf *b, unsigned tag, const void *bytes, size_t n);
int tlv_put_string(struct buf *b, unsigned tag, const char *text); // no field if text is NULL
int tlv_put_u64(struct buf *b, unsigned tag, uint64_t v);

// A field read from a payload; `bytes` is borrowed.
struct tlv {
    unsigned tag;
    const uint8_t *bytes;
    size_t size;
    uint64_t number; // the bytes decoded as one varint, or 0
};

// Reads the field at *at and advances. Returns 1, 0 at the end, or -EBADMSG if the field does not
// fit.
int tlv_next(const uint8_t **at, const uint8_t *end, struct tlv *field);

// Calls `set` for each field in the n bytes at `at` and stops if `set` returns a negative errno.
// Returns 0, that errno, or -EBADMSG if a field does not fit.
int tlv_read(const uint8_t *at, size_t n, int (*set)(void *to, const struct tlv *field), void *to);

// Copies the bytes, up to the first NUL, to a C string that the caller frees. Returns NULL if out
// of memory.
char *tlv_string(const struct tlv *field);

#endif
