// Byte streams that grow side by side and are then wanted one after the other: in a temporary file, so that memory does
// not depend on their length.
#ifndef HEAPTAPE_FORMATS_FORMAT_WL_STREAMS_H
#define HEAPTAPE_FORMATS_FORMAT_WL_STREAMS_H

#include "formats/export_buffer.h"

struct wl_stream;

// All zero but for `e` is empty.
struct wl_streams {
    struct err *e;
    struct wl_stream *streams;
    size_t n, capacity;
    uint32_t *owners; // of the file's chunks
    size_t n_owners, owners_capacity;
    struct output file;
    bool open;
};

void wl_streams_release(struct wl_streams *s);

// Appends up to 64 bytes to stream number `i`, which is made when it is new, with those before it. 0 or a negative errno
// with the text set.
int wl_streams_put(struct wl_streams *s, size_t i, const void *bytes, size_t n);

// Bytes in the stream.
uint64_t wl_streams_bytes(const struct wl_streams *s, size_t i);

// Writes all bytes of the streams, in order. Nothing is appended afterwards.
int wl_streams_write(struct wl_streams *s, struct export_buffer *to);

#endif
