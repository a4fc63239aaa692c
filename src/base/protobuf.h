// Encoder for protocol buffers (protobuf.dev). A message is a sequence of fields; each field begins
// with a varint of its number and wire type (0: varint, 2: length and bytes).
#pragma once

#include "base/buf.h"

#include <errno.h>

// Appends a number field. Returns 0 or -ENOMEM.
static inline int protobuf_put_u64(struct buf *to, unsigned field, uint64_t v)
{
    return buf_put_varint(to, (uint64_t)field << 3) || buf_put_varint(to, v) ? -ENOMEM : 0;
}

// Appends a string, or an encoded message, as a field. Returns 0 or -ENOMEM.
static inline int protobuf_put_bytes(struct buf *to, unsigned field, const void *bytes, size_t n)
{
    return buf_put_varint(to, (uint64_t)field << 3 | 2) || buf_put_varint(to, n) ||
                   buf_put(to, bytes, n)
               ? -ENOMEM
               : 0;
}

// Appends an encoded message as a field, and clears `message`. Returns 0 or -ENOMEM.
static inline int protobuf_put_message(struct buf *to, unsigned field, struct buf *message)
{
    int rc = protobuf_put_bytes(to, field, message->data, message->size);
    message->size = 0;
    return rc;
}
