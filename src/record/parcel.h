// What the drain hands to the encoder at once: pieces of a trace, in order. Inside src/record only.
#ifndef HEAPTAPE_RECORD_PARCEL_H
#define HEAPTAPE_RECORD_PARCEL_H

#include "trace/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PARCEL_WORDS = 3 << 15, // 768 KiB: a round, and what is found full while it ends
    PARCEL_SAMPLES = 256,
};

enum piece_kind { PIECE_PROCESS, PIECE_PROCESS_END, PIECE_SAMPLES, PIECE_BEGIN_ROUND, PIECE_SEGMENT, PIECE_END_ROUND };

struct piece {
    enum piece_kind kind;
    uint64_t events; // of the segment, that count
    union {
        struct trace_process process;
        struct trace_segment segment; // its words are the parcel's
        uint64_t watermark;
        uint32_t samples; // how many of the parcel's next ones
    };
};

struct parcel {
    struct parcel *next;
    struct piece *pieces;
    size_t n_pieces, capacity;
    uint64_t *words;
    uint32_t n_words;
    struct trace_sample samples[PARCEL_SAMPLES];
    uint32_t n_samples;
};

// NULL when out of memory.
struct parcel *parcel_new(void);
void parcel_free(struct parcel *p);

// Releases what the pieces hold and empties it; its memory stays.
void parcel_clear(struct parcel *p);

// Appends a piece, zero but for its kind. NULL when out of memory.
struct piece *parcel_add(struct parcel *p, enum piece_kind kind);

#endif
