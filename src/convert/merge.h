// Merges the streams of a trace (one or two per thread) by stamp. Words are queued per stream as
// batches are read; the caller consumes the records in stamp order.
#pragma once

#include "base/map.h"
#include "trace/codec.h"
#include "trace/trace.h"

#include <stdbool.h>

#define MERGE_NOT_IN_HEAP SIZE_MAX

struct merge_stream {
    uint32_t process, thread, tid, stream;
    struct codec_state state; // state before words[head]
    uint64_t *words;
    size_t head, tail, capacity;
    uint64_t stamp;                 // stamp of the next record; valid while in the heap
    size_t at;                      // index of the stream in the heap, or MERGE_NOT_IN_HEAP
    struct codec_state fed;         // state after the last queued word
    uint64_t next_word;             // position of the next word to feed, in words from the start
    size_t ahead;                   // order_overtakes has read the words before max(ahead, head)
    struct codec_state ahead_state; // state before words[ahead]
    // With merge.keeps: `kept` is the first consumed word that the caller still needs, and
    // `kept_state` is the codec state before this word. `lost_words` is the number of words lost in
    // gaps since the caller last reset the member.
    size_t kept;
    struct codec_state kept_state;
    uint64_t lost_words;
    bool keeps;
    void *user;  // for the caller's use
    bool forced; // for the caller's use: the next record must not be set aside again
    bool held;   // for the caller's use: the stream is set aside, outside the heap
};

struct merge {
    struct merge_stream **heap; // min-heap by stamp: streams with records that are not set aside
    size_t n_heap, heap_capacity;
    struct merge_stream **streams;
    size_t n_streams, streams_capacity;
    struct map by_place; // maps process, thread and stream to the index in `streams` plus 1
    uint64_t lost_words; // number of words missing between segments
    bool keeps;          // keep consumed words, from merge_stream.kept on
    // If above 0, the calls of all allocators except number `only_allocator` - 1 are dropped.
    unsigned only_allocator;
};

void merge_release(struct merge *m);

// Queues a copy of the segment's words and sets *stream. If the stream is new, stream->user is
// NULL. Does not add the stream to the heap; call merge_put_back to add it. Returns 0 or -ENOMEM.
int merge_feed(struct merge *m, const struct trace_segment *s, struct merge_stream **stream);

// Returns the stream with the lowest stamp, or NULL if the heap is empty.
static inline struct merge_stream *merge_top(const struct merge *m)
{
    return m->n_heap ? m->heap[0] : NULL;
}

// Returns the second-lowest stamp, or UINT64_MAX. The top stream can be read up to this stamp
// without changing the heap.
static inline uint64_t merge_second(const struct merge *m)
{
    uint64_t a = m->n_heap > 1 ? m->heap[1]->stamp : UINT64_MAX;
    uint64_t b = m->n_heap > 2 ? m->heap[2]->stamp : UINT64_MAX;
    return a < b ? a : b;
}

// Removes the stream from the heap.
void merge_put_aside(struct merge *m, struct merge_stream *s);

// Moves the stream to its position in the heap, according to the stamp of its next record. Call
// after consuming records or after setting the stream aside. Removes an empty stream from the heap.
void merge_put_back(struct merge *m, struct merge_stream *s);

// Like merge_put_back, but for a stream in the heap whose `stamp` has been updated and has
// increased.
void merge_sift_down(struct merge *m, struct merge_stream *s);

// Unless the stream's queue contains consumed words that the caller still needs
// (merge_stream.kept), frees its memory. All records must have been consumed. The stream can be fed
// again.
void merge_forget(struct merge_stream *s);

// Returns the first word of the next record, skipping its notes.
static inline uint64_t merge_behind_notes(const struct merge_stream *s)
{
    size_t at = s->head;
    while (at + 1 < s->tail && codec_tag_of(s->words[at]) >= HT_FIRST_NOTE)
        at++;
    return s->words[at];
}

// Skips words that only change the codec state, and sets `stamp` to the stamp of the next record.
// Returns false at the end of the queue.
static inline bool merge_peek(struct merge_stream *s)
{
    while (s->head < s->tail) {
        uint64_t word = s->words[s->head];
        unsigned tag = codec_tag_of(word);
        if (__builtin_expect(tag >= HT_FIRST_NOTE, 0))
            word = merge_behind_notes(s);
        if (tag == CODEC_TAG_EPOCH)
            s->state.epoch = word >> CODEC_TAG_BITS;
        else if (tag == CODEC_TAG_BASE)
            s->state.base = word >> CODEC_TAG_BITS << CODEC_ADDRESS_SHIFT;
        else {
            s->stamp = codec_stamp(s->state.epoch, word);
            return true;
        }
        s->head++;
    }
    return false;
}
