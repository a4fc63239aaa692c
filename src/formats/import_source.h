// An importer's input as bytes, records or lines. Memory use does not depend on the length of the
// input.
#pragma once

#include "base/fio.h"

#include <sys/types.h>

enum {
    IMPORT_SOURCE_STEP_BYTES = 1 << 18, // bytes per read
    IMPORT_SOURCE_SLACK_BYTES = 16,     // readable bytes after `end`
    IMPORT_SOURCE_MAX_BYTES = 1 << 20,  // maximum of `want`, and maximum line length
};

struct unpack;

// data[at..end) has been read but not consumed.
struct import_source {
    struct input *in; // borrowed
    // Not NULL if the input consists of LZ4 or zstd frames. Offsets then refer to decompressed
    // bytes.
    struct unpack *unpack;
    uint8_t *data;
    size_t at, end, capacity;
    uint64_t offset; // offset of data[0] in the input
    uint64_t line;   // number of the last line, counting from 1
    bool ended;      // the end of the input has been reached
    bool cut_is_end; // treat a truncated last frame as the end of the input
    bool skip;       // the next bytes are the rest of an overlong line
};

// Initializes *s. Inputs that begin with an LZ4 or zstd frame are decompressed. Returns 0, or a
// negative errno with the message set. In either case, call import_source_release.
int import_source_init(struct import_source *s, struct input *in, struct err *e);
void import_source_release(struct import_source *s);

// Reads until `want` bytes are available; `want` is at most IMPORT_SOURCE_MAX_BYTES. Returns the
// number of available bytes, which is less than `want` only at the end of the input, or a negative
// errno with the message set.
ssize_t import_source_fill(struct import_source *s, size_t want, struct err *e);

static inline size_t import_source_left(const struct import_source *s)
{
    return s->end - s->at;
}

// Returns the offset of the next byte in the input.
static inline uint64_t import_source_offset(const struct import_source *s)
{
    return s->offset + s->at;
}

static inline ssize_t import_source_want(struct import_source *s, size_t want, struct err *e)
{
    return __builtin_expect(import_source_left(s) >= want, 1) ? (ssize_t)import_source_left(s)
                                                              : import_source_fill(s, want, e);
}

// Finds the next line, and returns it without its newline. A line may contain any byte, including
// NUL. The last line needs no newline. Returns 1, 0 at the end, or a negative errno with the
// message set. If a line is longer than IMPORT_SOURCE_MAX_BYTES, returns -EMSGSIZE without a
// message, and the next call continues after that line. The line is borrowed until the next call,
// and the byte after it is readable.
int import_source_line(struct import_source *s, const char **line, size_t *n, struct err *e);
