// A plan's streams, one for each thread, and the memory that contains the words of the streams.
// Internal to plan.
#pragma once

#include "base/err.h"
#include "replay/plan/file.h"
#include "replay/plan/plan.h"
#include "replay/plan/slot_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plan_stream;

// Memory for streams: either a growing file in shared memory, or the window being filled. Word
// numbers never decrease, so they order the words of a stream.
struct plan_memory {
    int fd;            // -1 for windows, whose words belong to the caller
    uint64_t *words;   // the address changes when a file grows
    uint64_t words_at; // number of the first word in `words`
    // Number of the next word, and number of the first word beyond the file or window.
    uint64_t used, limit;
    uint64_t in_file;          // number of words in the file
    uint64_t window_words;     // 0 for a file
    uint64_t window;           // number of the current window
    struct plan_stream **open; // streams with words in the window
    size_t n_open, open_capacity;
};

int plan_memory_init(struct plan_memory *m, uint64_t limit_bytes, struct err *e);
void plan_memory_release(struct plan_memory *m);

// Starts with window 0. `words` has space for one window and remains owned by the caller.
void plan_memory_init_windows(struct plan_memory *m, uint64_t *words, uint64_t window_words);

// Allocates `n` words and sets *at to the number of the first word. Returns 0, -E2BIG if a file has
// reached its limit, -EAGAIN without a message if the window is full, or another negative errno.
int plan_memory_allocate(struct plan_memory *m, uint64_t n, uint64_t *at, struct err *e);

// Ends the segments of all streams that have words in the window. The streams stay in m->open.
void plan_memory_close_window(struct plan_memory *m);

// Starts the next window, reusing the same words.
void plan_memory_next_window(struct plan_memory *m);

static inline uint64_t *plan_memory_at(const struct plan_memory *m, uint64_t n)
{
    return m->words + (n - m->words_at);
}

// A thread's ops in a window, including the NEXT_SEGMENT or STOP that ends them.
struct plan_segment {
    uint64_t window;
    uint64_t first, end; // word numbers
    uint64_t first_op;   // number of the segment's first numbered op
};

// The words of one thread, in chunks linked by JUMPs.
struct plan_stream {
    struct plan_memory *memory;
    uint32_t number;
    bool started_by_thread; // a THREAD_CREATE names this thread
    bool outlives;          // the thread's start was recorded, but its exit was not
    bool open;              // the stream contains words; with windows, in the current window
    uint64_t first;         // number of the first word, or 0 if the stream is empty
    uint64_t next, end;
    uint64_t chunk_words; // size of the newest chunk; chunk sizes double
    uint64_t ops;         // number of numbered ops
    uint64_t ops_at_exit; // value of `ops` after the thread's exit, or 0
    uint64_t freed_bytes; // in the last block that the thread freed
    uint64_t freed_ops;   // value of `ops` after that free
    uint64_t *index;      // index[i] is the word number of op index_from + i * PLAN_INDEX_OPS
    uint64_t index_from;  // with windows: number of the first op in the current window
    size_t indexed, index_capacity;
    uint64_t counted_events;   // number of events since the last SAMPLE or COUNT
    uint64_t unsampled_events; // number of events since the last SAMPLE
    int64_t live_change;
    struct slot_table_pool pool;
    struct plan_span span;
    uint64_t pace_stamp; // ops from this timestamp on require another PACE
    uint64_t section;    // last section with an op of this thread; see couple.c
    // With windows: the last PLAN_WINDOWS segments. Segment i is at index i % PLAN_WINDOWS.
    struct plan_segment *segments;
    uint64_t n_segments;
};

enum { PLAN_INDEX_OPS = 32 };

void plan_stream_release(struct plan_stream *s);

// Reserves space for an op of n ≤ PLAN_MAX_OP_WORDS words, and sets *w to the space. The first of
// these words has word number s->next. Returns 0, or an error of plan_memory_allocate().
int plan_stream_reserve(struct plan_stream *s, unsigned n, uint64_t **w, struct err *e);

// Call after writing the n words of a numbered op at s->next. Returns 0, or -ENOMEM.
int plan_stream_number(struct plan_stream *s, unsigned n);

// Makes op number `op` (less than s->ops) publish, and returns the word number that the op
// publishes. If the op's window is already complete, returns the end of the thread's segment in
// that window. If all threads must have left that window, returns 0.
uint64_t plan_stream_publish(const struct plan_stream *s, uint64_t op);

// Returns the number of the first op whose words end at or after `position`. The stream must be in
// a file.
uint64_t plan_stream_op_at(const struct plan_stream *s, uint64_t position);

// Like plan_stream_op_at, for a stream in `m`. Counts from op number `op`, which is at word number
// `at`.
uint64_t plan_memory_op_at(const struct plan_memory *m, uint64_t at, uint64_t op,
                           uint64_t position);
