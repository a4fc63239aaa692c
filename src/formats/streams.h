// Byte streams that grow side by side and are then wanted one after the other: in a temporary file, so that memory does
// not depend on their length.
#ifndef HEAPTAPE_FORMATS_STREAMS_H
#define HEAPTAPE_FORMATS_STREAMS_H

#include "formats/export_buffer.h"

struct stream;

// All zero but for `e` is empty.
struct streams {
    struct err *e;
    struct stream *streams;
    size_t n, capacity;
    uint32_t *owners; // of the file's chunks
    size_t n_owners, owners_capacity;
    struct output file;
    bool open;
};

void streams_release(struct streams *s);

// Appends to stream number `i`, which is made when it is new, with those before it. 0 or a negative errno with the
// text set.
int streams_put(struct streams *s, size_t i, const void *bytes, size_t n);

// Bytes in the stream.
uint64_t streams_bytes(const struct streams *s, size_t i);

// Writes all bytes of the streams, in order. Nothing is appended afterwards.
int streams_write(struct streams *s, struct export_buffer *to);

#endif
