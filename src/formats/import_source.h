// What an importer reads: bytes, records or lines of an input, in memory that does not depend on its length.
#ifndef HEAPTAPE_FORMATS_IMPORT_SOURCE_H
#define HEAPTAPE_FORMATS_IMPORT_SOURCE_H

#include "base/fio.h"

#include <sys/types.h>

enum {
    IMPORT_SOURCE_STEP_BYTES = 1 << 18, // read at a time
    IMPORT_SOURCE_SLACK_BYTES = 16,     // behind what is there, which can be read, too
    IMPORT_SOURCE_MAX_BYTES = 1 << 20,  // that can be looked at together, and the longest line
};

struct unpack;

// data[at..end) has been read and not been used.
struct import_source {
    struct input *in; // borrowed
    struct unpack *
        unpack; // the input is LZ4 or zstd frames: offsets are those of what comes out; NULL: it is not
    uint8_t *data;
    size_t at, end, capacity;
    uint64_t offset; // of data[0] in the input
    uint64_t line;   // number of the last line, from 1
    bool ended;      // the input is
    bool cut_is_end; // it ends where the last frame is cut off: what is whole of it has been read
    bool skip;       // what comes next is the rest of a line that was too long
};

// An input that begins as an LZ4 or zstd frame is decompressed. 0 or a negative errno with the text set; release it in either case.
int import_source_init(struct import_source *s, struct input *in, struct err *e);
void import_source_release(struct import_source *s);

// Makes sure that `want` ≤ IMPORT_SOURCE_MAX_BYTES bytes can be looked at. Returns how many can, fewer only when the input ends,
// or a negative errno with the text set.
ssize_t import_source_fill(struct import_source *s, size_t want, struct err *e);

static inline size_t import_source_left(const struct import_source *s)
{
    return s->end - s->at;
}

// Offset in the input of the next byte.
static inline uint64_t import_source_offset(const struct import_source *s)
{
    return s->offset + s->at;
}

static inline ssize_t import_source_want(struct import_source *s, size_t want, struct err *e)
{
    return __builtin_expect(import_source_left(s) >= want, 1) ? (ssize_t)import_source_left(s)
                                                              : import_source_fill(s, want, e);
}

// The next line, without its newline; it may hold any byte, also NUL. The last one needs no newline. 1, 0 at the end, a
// negative errno with the text set; -EMSGSIZE for a line longer than IMPORT_SOURCE_MAX_BYTES, without text: the next call goes on
// behind it. Borrowed until the next call; a byte behind it may be read.
int import_source_line(struct import_source *s, const char **line, size_t *n, struct err *e);

#endif
