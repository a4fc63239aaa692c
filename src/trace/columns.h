// The payload of EVENTS frames: segments of records, as plain words or split into columns. For src/trace, and for
// whoever has to know where records end.
// Layout: docs/reference/trace-format.md, "Events".
#ifndef HEAPTAPE_TRACE_COLUMNS_H
#define HEAPTAPE_TRACE_COLUMNS_H

#include "base/buf.h"
#include "base/frame.h"
#include "trace/codec.h"
#include "trace/trace.h"

// How the words stand in the payload. Wire values.
enum columns_transform {
    EVENTS_WORDS = 0,
    EVENTS_COLUMNS_OLD = 1, // notes of new sites are as they are; only read
    EVENTS_COLUMNS = 2,
};

enum {
    EVENTS_HEADER_BYTES = 24,
    EVENTS_SEGMENT_BYTES = 48,
    EVENTS_LAST_OF_BATCH = 1,                   // bit of the flags
    EVENTS_TRANSFORM_AT = 8,                    // the flags' second byte
    EVENTS_MAX_WORDS = FRAME_MAX_RAW_BYTES / 8, // in one frame, whatever the transform
};

// Wire order.
enum column {
    COLUMN_TAG,                     // each record
    COLUMN_STAMP,                   // 2: low and high byte of the difference to the stamp before
    COLUMN_SIZE = COLUMN_STAMP + 2, // 2: SIZED
    COLUMN_REL = COLUMN_SIZE + 2,   // 4: SIZED
    COLUMN_PTR = COLUMN_REL + 4,    // 6: PLAIN
    COLUMN_WORDS = COLUMN_PTR + 6,  // EPOCH, BASE, LONG, notes
    COLUMN_COUNT,
};

// What stands behind a tag. The first two are the hot ones: loops use them as indices.
enum columns_form {
    COLUMNS_SIZED,
    COLUMNS_PLAIN,
    COLUMNS_EPOCH,
    COLUMNS_BASE,
    COLUMNS_LONG,
    COLUMNS_NOTE,
    COLUMNS_BAD
};

struct columns {
    uint8_t forms[1 << CODEC_TAG_BITS]; // enum columns_form by tag
    uint32_t hot, sized,
        counted;   // a bit for each tag: SIZED or PLAIN; SIZED; a one-word record of it is an event
    uint32_t room; // words that the columns have room for
    uint32_t words;   // taken since columns_clear
    uint32_t stamp;   // field of the record before, of any segment of the frame
    uint64_t defined; // site of the last HT_FRAMES of the frame; 0: there was none
    struct buf column[COLUMN_COUNT];
    struct frame_hint hints[COLUMN_COUNT];
};

// A run of whole records. Each note counts as one.
struct columns_records {
    struct codec_state state; // in: before the first word; out: after the last
    uint32_t words, records;
    uint64_t events; // that count
    bool modules;    // some are HT_MODULE; not reset
};

// The table alone, for columns_scan and columns_get.
void columns_init(struct columns *c);
void columns_release(struct columns *c);

// Makes room for `words` words. 0 or -ENOMEM.
int columns_reserve(struct columns *c, uint32_t words);
void columns_clear(struct columns *c);

// Walks whole records in w[0..n) and stops where the next one is not whole or no record at all.
void columns_scan(const struct columns *c, const uint64_t *w, uint32_t n,
                  struct columns_records *r);

// As columns_scan, and appends the records to the columns. n ≤ room - words.
void columns_put(struct columns *c, const uint64_t *w, uint32_t n, struct columns_records *r);

// `fast` as in frame_hint. Appends the table of lengths to a payload and gives the columns as COLUMN_COUNT parts of it, valid as long as they are.
// 0 or -ENOMEM.
int columns_finish(struct columns *c, bool fast, struct buf *payload, struct frame_part *parts);

// The other way. `at` points to the table of lengths; `segments` have their counts, and `words` room for all of them.
// false when the bytes are no such columns.
struct columns_source {
    enum columns_transform transform;
    const uint8_t *column[COLUMN_COUNT];
    uint32_t left[COLUMN_COUNT];
    uint32_t stamp;
    uint64_t defined;
};
bool columns_open(struct columns_source *src, enum columns_transform transform, const uint8_t *at,
                  size_t n);
bool columns_get(const struct columns *c, struct columns_source *src, struct columns_records *r,
                 uint64_t *words);
bool columns_ended(const struct columns_source *src);

// Returns the first event kind that the event table lacks in the n bytes at `at`, which follow the table of segments, or 0.
unsigned columns_unknown_kind(enum columns_transform transform, const uint8_t *at, size_t n);

#endif
