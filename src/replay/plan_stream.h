// Appends words to the streams of a plan. Internal to the plan.
#ifndef HEAPTAPE_REPLAY_PLAN_STREAM_H
#define HEAPTAPE_REPLAY_PLAN_STREAM_H

#include "base/err.h"
#include "replay/places.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The shared memory file that holds all streams. Grows at its end only, so that within a stream word numbers grow too.
struct plan_memory {
    int fd;
    uint64_t *words; // the whole reserve is mapped; the file is as long as is used
    uint64_t used, in_file, limit;
};

int plan_memory_init(struct plan_memory *m, uint64_t limit_bytes, struct err *e);
void plan_memory_release(struct plan_memory *m);

// Takes `n` words at the end of the file; *at is the number of the first. -E2BIG past the limit.
int plan_memory_take(struct plan_memory *m, uint64_t n, uint64_t *at, struct err *e);

// One thread's words, in chunks that jump to each other.
struct plan_stream {
    uint64_t first; // word number, 0: nothing was written
    uint64_t next, end;
    uint64_t chunk_words; // of the latest chunk: each is twice as big as the one before
    uint64_t ops;         // numbered ones
    uint64_t *index;      // index[i]: word number of op i * PLAN_INDEX_OPS
    size_t indexed, index_capacity;
    uint64_t counted_events; // since the latest SAMPLE or COUNT
    int64_t live_change;
    struct place_owner places;
    uint64_t paced_ns; // of the latest PACE
    bool born;         // by another thread
};

enum { PLAN_INDEX_OPS = 32 };

void plan_stream_release(struct plan_stream *s);

// Makes room for an op of n ≤ PLAN_MAX_OP_WORDS words; *w is where they go, at word number s->next.
int plan_stream_room(struct plan_memory *m, struct plan_stream *s, unsigned n, uint64_t **w, struct err *e);

// Says that the n words of a numbered op stand at s->next.
int plan_stream_number(struct plan_stream *s, unsigned n);

// Makes the op publish that it is done; *position is the word number that it will publish. `op` < s->ops.
void plan_stream_publish(struct plan_memory *m, const struct plan_stream *s, uint64_t op, uint64_t *position);

// The number of the op whose words end at or after `position`.
uint64_t plan_stream_op_at(const struct plan_memory *m, const struct plan_stream *s, uint64_t position);

#endif
