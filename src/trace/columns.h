// Payload of EVENTS frames: segments of records, as words or split into columns. Used by src/trace,
// and by code that must find where records end. Layout: docs/reference/trace-format.md, "Events".
#pragma once

#include "base/buf.h"
#include "base/frame.h"
#include "trace/codec.h"
#include "trace/trace.h"

// Layout of the words in the payload. Wire values.
enum columns_transform {
    EVENTS_WORDS = 0,
    // Layouts of older traces, which can only be read.
    EVENTS_COLUMNS_1 = 1, // sites are not replaced with 0
    EVENTS_COLUMNS_2 = 2, // stamps of all records; addresses are not rotated
    EVENTS_COLUMNS_3 = 3, // no packed columns
    EVENTS_COLUMNS = 4,
};

enum {
    EVENTS_HEADER_BYTES = 24,
    EVENTS_SEGMENT_BYTES = 48,
    EVENTS_LAST_OF_BATCH = 1,                   // flag
    EVENTS_TRANSFORM_AT = 8,                    // bit position of the transform in the flags
    EVENTS_MAX_WORDS = FRAME_MAX_RAW_BYTES / 8, // limit per frame, for all transforms
    EVENTS_PACKING_AT = 28, // bit position of the packing (trace/packing.h) in a column's length
};

// Columns in wire order.
enum column {
    COLUMN_TAG,   // all records; a flag is set if the stamp differs from the previous stamp
    COLUMN_STAMP, // 2 columns: low and high byte of the difference of the stamps
    COLUMN_SIZE = COLUMN_STAMP + 2, // 2 columns: SIZED
    COLUMN_REL = COLUMN_SIZE + 2,   // 4 columns: SIZED
    COLUMN_PTR = COLUMN_REL + 4,    // 6 columns: PLAIN
    COLUMN_WORDS = COLUMN_PTR + 6,  // EPOCH, BASE, LONG, notes
    COLUMN_COUNT,
};

// Layout of a record, determined by its tag. The first two layouts are the most frequent, and loops
// use them as indices.
enum columns_form {
    COLUMNS_SIZED,
    COLUMNS_PLAIN,
    COLUMNS_EPOCH,
    COLUMNS_BASE,
    COLUMNS_LONG,
    COLUMNS_NOTE,
    COLUMNS_BAD
};

// Properties of the records that have the same tag, for the loop that splits frequent records.
struct columns_class {
    uint8_t sized, plain, word_bytes, counts, is_site, is_base;
    // If `ends` of a record and `follows` of the next record share a bit, the loop stops before the
    // first of the two.
    uint8_t ends, follows;
};

struct columns {
    uint8_t forms[1 << CODEC_TAG_BITS]; // enum columns_form by tag
    // Bit sets of tags. `hot` has the tags of SIZED and PLAIN records; `counted` has the tags of
    // one-word records that count as events.
    uint32_t hot, sized, counted;
    bool wide;                          // the processor supports trace/wide.h
    uint32_t sums[1 << CODEC_TAG_BITS]; // by tag: counts that a record adds to its group
    struct columns_class classes[1 << CODEC_TAG_BITS]; // by tag
    uint32_t room;                                     // capacity in words
    uint32_t words;                                    // words appended since columns_clear
    uint16_t stamp;   // stamp field of the previous record in the frame, in any segment
    uint64_t defined; // site defined by the last HT_FRAMES in the frame; 0 before the first
    struct buf column[COLUMN_COUNT];
    struct buf packed; // packed columns, one after another; valid after columns_finish
    struct frame_hint hints[2][COLUMN_COUNT]; // by `fast` of columns_finish
};

// Consecutive complete records. A note counts as a record.
struct columns_records {
    struct codec_state state; // in: state before the first word; out: state after the last word
    uint32_t words, records;
    uint64_t events; // counted events
    bool modules;    // set if any record is HT_MODULE; never cleared
};

// Initializes the tables for columns_scan and columns_get. Does not allocate columns.
void columns_init(struct columns *c);
void columns_release(struct columns *c);

// Reserves space for the columns of `words` words. Returns 0 or -ENOMEM.
int columns_reserve(struct columns *c, uint32_t words);
void columns_clear(struct columns *c);

// Scans complete records in w[0..n) and stops at the first word that does not start a complete
// record.
void columns_scan(const struct columns *c, const uint64_t *w, uint32_t n,
                  struct columns_records *r);

// Like columns_scan, but also appends the records to the columns. Requires n ≤ room - words.
void columns_put(struct columns *c, const uint64_t *w, uint32_t n, struct columns_records *r);

// Appends the table of lengths to the payload. Sets `parts` to the COLUMN_COUNT columns, packed if
// possible. The parts are valid until the columns change. `fast` selects the hints (struct
// frame_hint). Returns 0 or -ENOMEM.
int columns_finish(struct columns *c, bool fast, struct buf *payload, struct frame_part *parts);

// Decoder of columns. `at` points to the table of lengths. columns_open unpacks packed columns into
// `c`; call columns_reserve first. columns_get restores the words of one segment. On entry, *r
// contains the number of words and records of the segment, and `words` has space for the words.
// Both functions return false if the columns are invalid.
struct columns_source {
    enum columns_transform transform;
    const uint8_t *column[COLUMN_COUNT];
    uint32_t left[COLUMN_COUNT];
    uint16_t stamp;
    uint64_t defined;
};
bool columns_open(struct columns *c, struct columns_source *src, enum columns_transform transform,
                  const uint8_t *at, size_t n);
bool columns_get(const struct columns *c, struct columns_source *src, struct columns_records *r,
                 uint64_t *words);
bool columns_ended(const struct columns_source *src);

// Returns the first unknown event kind in the n bytes at `at`, which follow the table of segments,
// or 0 if all kinds are known. Unpacks columns like columns_open.
unsigned columns_unknown_kind(struct columns *c, enum columns_transform transform,
                              const uint8_t *at, size_t n);
