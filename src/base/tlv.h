// Tagged fields. A field consists of a tag (varint), the number of its bytes (varint) and the
// bytes. All frames consist of such fields, except frames of events. Readers skip unknown tags.
#pragma once

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

// Append a field. Numbers are encoded as varints. tlv_put_string appends nothing if `text` is NULL.
// Return 0 or -ENOMEM.
int tlv_put_bytes(struct buf *b, unsigned tag, const void *bytes, size_t n);
int tlv_put_string(struct buf *b, unsigned tag, const char *text);
int tlv_put_u64(struct buf *b, unsigned tag, uint64_t v);

// A field read from a payload; `bytes` is borrowed.
struct tlv {
    unsigned tag;
    const uint8_t *bytes;
    size_t size;
    uint64_t number; // the bytes decoded as one varint, or 0
};

// Reads the field at *at and advances. Returns 1, 0 at the end, or -EBADMSG if the field is
// malformed.
int tlv_next(const uint8_t **at, const uint8_t *end, struct tlv *field);

// Calls `set` for each field in the n bytes at `at` and stops if `set` returns a negative errno.
// Returns 0, that errno, or -EBADMSG if a field is malformed.
int tlv_read(const uint8_t *at, size_t n, int (*set)(void *to, const struct tlv *field), void *to);

// A member of a struct: its offset and size.
struct tlv_member {
    uint16_t at, bytes;
};
#define TLV_MEMBER(type, member)                                                                   \
    {                                                                                              \
        offsetof(type, member), sizeof(((type *)0)->member)                                        \
    }

enum tlv_type {
    TLV_NUMBER, // unsigned integer. If it has fewer than 64 bits, reading drops the higher bits
    TLV_FLAG,   // bool or int: 0 or 1
    TLV_STRING, // char *, owned. If it is NULL, no field is written
    TLV_BYTES,  // pointer to owned bytes, whose number is in `count`. Reading appends a NUL
};

// Describes the field for a member of a struct. If the member `when` is given and 0, no field is
// written. A table of rows ends with a row whose tag is 0.
struct tlv_row {
    unsigned tag;
    enum tlv_type type;
    struct tlv_member value, when, count;
};

// Appends the fields of all rows. Returns 0 or -ENOMEM.
int tlv_put_rows(struct buf *b, const struct tlv_row *rows, const void *from);

// Sets the member whose row has the field's tag, and frees the member's old string or bytes first.
// Ignores a field that has no row. Returns 0 or -ENOMEM.
int tlv_set(const struct tlv_row *rows, void *to, const struct tlv *field);

// Frees the strings and bytes of a struct, but does not reset the pointers.
void tlv_release_rows(const struct tlv_row *rows, const void *of);
