// Helpers for tests of the order: they build streams of records, run the order, and check its
// output.
#pragma once

#include "convert/order/order.h"
#include "trace/codec.h"

#include "unit_event.h"

#include <stdbool.h>
#include <string.h>

enum { HISTORY_THREADS = 8, HISTORY_STREAMS = 2 };

// A stream of a thread. Records are encoded when they are added. history_batch removes them from
// the stream.
struct history_stream {
    struct codec_state state, fed_state;
    uint64_t *words;
    size_t n, fed, capacity;
};

// An op that the order emitted. Allocations have unique sizes, so `block` identifies the block.
struct history_op {
    struct workload_op op;
    struct workload_dependency dependencies[4];
    uint32_t thread;
    uint64_t number; // number of the op in its thread
    uint64_t block;  // size of the allocation in the op's slot; 0 if the op has no slot
};

struct history {
    struct order *order;
    struct history_stream streams[HISTORY_THREADS][HISTORY_STREAMS];
    struct history_op *ops;
    size_t n_ops, ops_capacity;
    uint64_t next_op[64];
    uint64_t last_stamp[64];
    uint64_t *blocks; // size of the allocation in each slot; 0 if the slot is free
    size_t n_blocks;
};

// Initializes *h and its order. Stamps are in nanoseconds, the window is 100 µs, and the skid is 1
// µs.
void history_init(struct history *h);
void history_release(struct history *h);

// Adds a record to stream 0 of the thread. Uses the one-word form if the event fits into one word.
// Stamps in a stream must not decrease.
void history_put(struct history *h, unsigned thread, const struct event *ev);
void history_put_in(struct history *h, unsigned thread, unsigned stream, const struct event *ev);

// Each of these functions calls history_put with one kind of event. Addresses are multiples of 16.
void history_malloc(struct history *h, unsigned thread, uint64_t stamp, uint64_t size,
                    uint64_t address);
void history_free(struct history *h, unsigned thread, uint64_t stamp, uint64_t address);
void history_realloc(struct history *h, unsigned thread, uint64_t begin, uint64_t end,
                     uint64_t from, uint64_t size, uint64_t to);

// Feeds the records added since the last batch and emits the ops up to `watermark`.
void history_batch(struct history *h, uint64_t watermark);

// The two steps of history_batch. history_feed feeds one stream; history_watermark emits the ops up
// to the watermark.
void history_feed(struct history *h, unsigned thread, unsigned stream);
void history_watermark(struct history *h, uint64_t watermark);

// Drops the records of stream 0 that were added since the last feed. Returns false if nothing was
// added.
bool history_lose(struct history *h, unsigned thread);

// Removes about `words` words from the end of stream 0, rounded to a whole record. Only words that
// were not fed yet can be removed.
void history_cut(struct history *h, unsigned thread, size_t words);

// Feeds the remaining records and emits all ops. Returns the counts of the order.
struct order_counts history_finish(struct history *h);

// Returns true if op `a` happens before op `b` by program order and dependencies.
bool history_before(const struct history *h, size_t a, size_t b);

// Returns the index of the thread's op number `n`, not counting PREEXISTING. Fails if the op does
// not exist.
size_t history_find(const struct history *h, uint32_t thread, uint64_t n);
