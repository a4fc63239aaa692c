// For tests of the order: streams of records as threads would write them, and what comes out of the order, checked.
#ifndef HEAPTAPE_TESTS_HISTORY_H
#define HEAPTAPE_TESTS_HISTORY_H

#include "convert/order/order.h"
#include "trace/codec.h"

#include "unit_event.h"

#include <stdbool.h>
#include <string.h>

enum { HISTORY_THREADS = 8, HISTORY_STREAMS = 2 };

// One stream of a thread. Records are encoded as they are added; `batch` cuts them.
struct history_stream {
    struct codec_state state, fed_state;
    uint64_t *words;
    size_t n, fed, capacity;
};

// An op that came out. Takes have sizes that nothing else has, so that `block` says which block it was.
struct history_op {
    struct workload_op op;
    struct workload_dependency dependencies[4];
    uint32_t thread;
    uint64_t number; // in its thread
    uint64_t block;  // size of the take that its slot stands for; 0 when it has no slot
};

struct history {
    struct order *order;
    struct history_stream streams[HISTORY_THREADS][HISTORY_STREAMS];
    struct history_op *ops;
    size_t n_ops, ops_capacity;
    uint64_t next_op[64];
    uint64_t last_stamp[64];
    uint64_t *blocks; // by slot: size of the take, 0 when free
    size_t n_blocks;
};

// The order's options: stamps are nanoseconds, a window of 100 µs, a skid of 1 µs.
void history_init(struct history *h);
void history_release(struct history *h);

// Adds a record to stream 0 of the thread, in its one-word form when it has one. Stamps of a stream do not decrease.
void history_put(struct history *h, unsigned thread, const struct event *ev);
void history_put_in(struct history *h, unsigned thread, unsigned stream, const struct event *ev);

// Short forms of it. Addresses are multiples of 16.
void history_malloc(struct history *h, unsigned thread, uint64_t stamp, uint64_t size,
                    uint64_t address);
void history_free(struct history *h, unsigned thread, uint64_t stamp, uint64_t address);
void history_realloc(struct history *h, unsigned thread, uint64_t begin, uint64_t end,
                     uint64_t from, uint64_t size, uint64_t to);

// Feeds what was added since; then all up to `watermark` comes out.
void history_batch(struct history *h, uint64_t watermark);

// The two halves of it: feeds what a stream has, and puts out what is due.
void history_feed(struct history *h, unsigned thread, unsigned stream);
void history_watermark(struct history *h, uint64_t watermark);

// Loses what was added to stream 0 of the thread since it was fed last: false when that is nothing.
bool history_lose(struct history *h, unsigned thread);

// Takes back the last words of stream 0 of the thread, of those that have not been fed, so that they never come: about
// `words` of them, to the start of a record.
void history_cut(struct history *h, unsigned thread, size_t words);

// Feeds the rest; everything comes out.
struct order_counts history_finish(struct history *h);

// Does what came out as number `a` happen before number `b`, by program order and waits?
bool history_before(const struct history *h, size_t a, size_t b);

// The index of the thread's op number `n` that is no PREEXISTING; fails when there is none.
size_t history_find(const struct history *h, uint32_t thread, uint64_t n);

#endif
