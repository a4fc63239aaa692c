// The streams of a plan, one for each thread, and the memory in which their words are. Internal to plan.
#ifndef HEAPTAPE_PLAN_STREAMS_H
#define HEAPTAPE_PLAN_STREAMS_H

#include "base/err.h"
#include "replay/plan/file.h"
#include "replay/plan/plan.h"
#include "replay/plan/slot_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plan_stream;

// Memory for streams: either a file in shared memory, which grows at its end, or the window that is being filled, one
// after the other. Word numbers only grow, so within a stream they tell which word comes first.
struct plan_memory {
    int fd;            // of the file; -1: none, the words belong to somebody else
    uint64_t *words;   // they move when a file grows
    uint64_t words_at; // number of the first of them
    uint64_t used,
        limit; // number of the next word, and of the first beyond the end of the file or window
    uint64_t in_file;          // words that the file has
    uint64_t window_words;     // 0: this is a file
    uint64_t window;           // number of the window
    struct plan_stream **open; // streams that have words in it
    size_t n_open, open_capacity;
};

int plan_memory_init(struct plan_memory *m, uint64_t limit_bytes, struct err *e);
void plan_memory_release(struct plan_memory *m);

// The first window, in words that the caller keeps.
void plan_memory_init_windows(struct plan_memory *m, uint64_t *words, uint64_t window_words);

// Allocates `n` words; *at is the number of the first. Beyond the limit: -E2BIG, or in a window, -EAGAIN without a
// message.
int plan_memory_allocate(struct plan_memory *m, uint64_t n, uint64_t *at, struct err *e);

// Ends the segments of all streams that have words in the window. They stay in m->open.
void plan_memory_close_window(struct plan_memory *m);

// The next window, in the same words.
void plan_memory_next_window(struct plan_memory *m);

static inline uint64_t *plan_memory_at(const struct plan_memory *m, uint64_t n)
{
    return m->words + (n - m->words_at);
}

// The ops of a thread in a window, including the NEXT_SEGMENT or STOP at its end.
struct plan_segment {
    uint64_t window;
    uint64_t first, end; // word numbers
    uint64_t first_op;   // numbered ones
};

// The words of one thread, in chunks that are linked by JUMPs.
struct plan_stream {
    struct plan_memory *memory;
    uint32_t number;
    bool started_by_thread; // not there from the start
    bool outlives;          // its start was recorded, and not its end
    bool open;              // has words; of windows: in the one being filled
    uint64_t first;         // word number, 0: nothing was written
    uint64_t next, end;
    uint64_t chunk_words; // of the newest chunk: each is twice as big as the one before
    uint64_t ops;         // numbered ones
    uint64_t *index;      // index[i]: word number of op index_from + i * PLAN_INDEX_OPS
    uint64_t index_from;  // ops in the window being filled have this number or more
    size_t indexed, index_capacity;
    uint64_t counted_events;   // since the last SAMPLE or COUNT
    uint64_t unsampled_events; // since the last SAMPLE
    int64_t live_change;
    struct slot_table_pool pool;
    struct plan_span span;
    uint64_t pace_stamp; // from this stamp on an op is preceded by the next PACE
    uint64_t section;    // the last one in which it has an op: see couple.c
    struct plan_segment
        *segments; // in windows: the last PLAN_WINDOWS, number i at i % PLAN_WINDOWS
    uint64_t n_segments;
};

enum { PLAN_INDEX_OPS = 32 };

void plan_stream_release(struct plan_stream *s);

// Reserves space for an op of n ≤ PLAN_MAX_OP_WORDS words, which go to *w, word number s->next. -EAGAIN as
// plan_memory_allocate.
int plan_stream_reserve(struct plan_stream *s, unsigned n, uint64_t **w, struct err *e);

// The n words of a numbered op have been written at s->next.
int plan_stream_number(struct plan_stream *s, unsigned n);

// Appends the STOP. There is always space for that.
void plan_stream_stop(struct plan_stream *s);

// Makes op number `op` < s->ops publish that it is done; *position is the word number that it will publish. If the op
// is in a window that was handed over, *position is where the thread leaves that window, or 0 if all threads have left
// it.
void plan_stream_publish(const struct plan_stream *s, uint64_t op, uint64_t *position);

// The number of the op whose words end at or after `position`, which is in a file.
uint64_t plan_stream_op_at(const struct plan_stream *s, uint64_t position);

// The same, counted from op number `op` at word number `at`, of a stream in `m`.
uint64_t plan_memory_op_at(const struct plan_memory *m, uint64_t at, uint64_t op,
                           uint64_t position);

#endif
