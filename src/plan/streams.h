// Appends words to the streams of a plan. Internal to the plan.
#ifndef HEAPTAPE_PLAN_STREAMS_H
#define HEAPTAPE_PLAN_STREAMS_H

#include "base/err.h"
#include "plan/file.h"
#include "plan/plan.h"
#include "plan/slot_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plan_stream;

// Where streams are written. Word numbers only grow, so that within a stream they say what comes first: a file in shared
// memory that grows at its end, or a ring of windows, each of which is filled, handed over, and filled again once it has
// been played. In a ring a number goes on growing when its windows are used again.
struct plan_memory {
    int fd;                     // of the file; -1: the words are somebody else's
    uint64_t *words;            // of a file the whole reserve is mapped; it is as long as is used
    uint64_t used, limit;       // number of the next word and of the one that is too many: of the window, in a ring
    uint64_t in_file;           // words that the file has
    uint64_t shift;             // word n stands at words[n - shift] …
    uint64_t at;                // … which is word number `at` + n - shift for the player
    uint64_t window_words;      // 0: no ring
    uint64_t window, n_windows; // number of the one being filled; how many there is room for
    struct plan_stream **open;  // that have words in it
    size_t n_open, open_capacity;
};

int plan_memory_init(struct plan_memory *m, uint64_t limit_bytes, struct err *e);
void plan_memory_release(struct plan_memory *m);

// A ring of n_windows in words that the caller keeps; the player finds the first one as word number `at`.
void plan_memory_init_ring(struct plan_memory *m, uint64_t *words, uint64_t at, uint64_t window_words,
                           uint64_t n_windows);

// Takes `n` words; *at is the number of the first. Past the limit: -E2BIG, in a ring -EAGAIN without a text: the window is
// full.
int plan_memory_take(struct plan_memory *m, uint64_t n, uint64_t *at, struct err *e);

// Ends the streams that have words in the window, each with a MORE unless it has had its STOP. They stay in m->open.
void plan_memory_close_window(struct plan_memory *m);

// Goes on to the next window.
void plan_memory_next_window(struct plan_memory *m);

static inline uint64_t *plan_memory_at(const struct plan_memory *m, uint64_t n)
{
    return m->words + (n - m->shift);
}

// What a thread does in a window, MORE or STOP included.
struct plan_segment {
    uint64_t window;
    uint64_t first, end;       // word numbers
    uint64_t first_op, end_op; // numbered ones
};

// One thread's words, in chunks that jump to each other.
struct plan_stream {
    struct plan_memory *memory;
    uint32_t number;
    bool born;      // by another thread
    bool open;      // has words; in a ring: in the window being filled
    bool stopped;   // has had its STOP
    uint64_t first; // word number, 0: nothing was written
    uint64_t next, end;
    uint64_t chunk_words; // of the latest chunk: each is twice as big as the one before
    uint64_t ops;         // numbered ones
    uint64_t *index;      // index[i]: word number of op index_from + i * PLAN_INDEX_OPS
    uint64_t index_from;  // in a ring: ops in the window being filled have this number or more
    size_t indexed, index_capacity;
    uint64_t counted_events; // since the latest SAMPLE or COUNT
    int64_t live_change;
    struct place_owner places;
    struct plan_span span;
    uint64_t paced_ns;             // of the latest PACE
    struct plan_segment *segments; // in a ring: the latest PLAN_WINDOWS, number i at i % PLAN_WINDOWS
    uint64_t n_segments;
};

enum { PLAN_INDEX_OPS = 32 };

void plan_stream_release(struct plan_stream *s);

// Makes room for an op of n ≤ PLAN_MAX_OP_WORDS words; *w is where they go, at word number s->next. -EAGAIN as
// plan_memory_take.
int plan_stream_room(struct plan_stream *s, unsigned n, uint64_t **w, struct err *e);

// Says that the n words of a numbered op stand at s->next.
int plan_stream_number(struct plan_stream *s, unsigned n);

// Ends it. There is always room for that.
void plan_stream_stop(struct plan_stream *s);

// Makes the op publish that it is done; *position is the word number that it will publish. `op` < s->ops. If it is in a
// window that has been handed over, *position is where the thread leaves that window, and 0 if all have left it.
void plan_stream_publish(const struct plan_stream *s, uint64_t op, uint64_t *position);

// The number of the op whose words end at or after `position`; UINT64_MAX when it is not known any more.
uint64_t plan_stream_op_at(const struct plan_stream *s, uint64_t position);

#endif
