// Byte streams that grow in parallel and are written one after another. A temporary file holds the
// streams, so memory use does not depend on their length.
#pragma once

#include "formats/export_buffer.h"

struct stream;

// Set `e`; the other members start as zero.
struct streams {
    struct err *e;
    struct stream *streams;
    size_t n, capacity;
    uint32_t *owners; // owning stream of each chunk in the file
    size_t n_owners, owners_capacity;
    struct output file;
    bool open;
};

void streams_release(struct streams *s);

// Appends to stream `i`. If the stream is new, creates it and all streams before it. Returns 0, or
// a negative errno with the message set.
int streams_put(struct streams *s, size_t i, const void *bytes, size_t n);

uint64_t streams_bytes(const struct streams *s, size_t i);

// Writes the streams in order. Do not append data afterwards.
int streams_write(struct streams *s, struct export_buffer *to);
