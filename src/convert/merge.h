// Merges the streams of a trace (one or two a thread) by stamp. A stream's words are queued as the batches are read;
// the caller removes records from the queues in the order of stamps.
#ifndef HEAPTAPE_CONVERT_MERGE_H
#define HEAPTAPE_CONVERT_MERGE_H

#include "base/map.h"
#include "trace/codec.h"
#include "trace/trace.h"

#include <stdbool.h>

#define MERGE_NOT_IN_HEAP SIZE_MAX

struct merge_stream {
    uint32_t process, thread, tid, stream;
    struct codec_state state; // before words[head]
    uint64_t *words;
    size_t head, tail, capacity;
    uint64_t stamp;         // of the next record, while in the heap
    size_t at;              // place in the heap, or MERGE_NOT_IN_HEAP
    struct codec_state fed; // after the last word queued
    uint64_t next_word;     // of the stream
    size_t ahead; // the first word that order_overtakes has not seen; below head: words[head] …
    struct codec_state ahead_state; // … and the state before it
    void *user;                     // the caller's, as is
    bool forced;                    // this: the next record is not to be put aside again
    bool held;                      // this: it is put aside, and stays out of the heap
};

struct merge {
    struct merge_stream **heap; // by stamp; streams that have records and are not put aside
    size_t n_heap, heap_capacity;
    struct merge_stream **streams;
    size_t n_streams, streams_capacity;
    struct map by_place; // process, thread, stream → index in streams + 1
    uint64_t lost_words; // missing between segments
};

void merge_release(struct merge *m);

// Queues a copy of the segment's words. `*stream` is where; its `user` is NULL when it is new. One that is not in the
// heap stays out of it: merge_put_back is the caller's to call. 0 or -ENOMEM.
int merge_feed(struct merge *m, const struct trace_segment *s, struct merge_stream **stream);

// The stream with the smallest stamp, NULL when the heap is empty.
static inline struct merge_stream *merge_top(const struct merge *m)
{
    return m->n_heap ? m->heap[0] : NULL;
}

// The smallest stamp of the others: the top one may go on until its stamp is above. UINT64_MAX when there is no other.
static inline uint64_t merge_second(const struct merge *m)
{
    uint64_t a = m->n_heap > 1 ? m->heap[1]->stamp : UINT64_MAX;
    uint64_t b = m->n_heap > 2 ? m->heap[2]->stamp : UINT64_MAX;
    return a < b ? a : b;
}

// Removes the stream from the heap.
void merge_put_aside(struct merge *m, struct merge_stream *s);

// Puts the stream to where its next record belongs, after records were allocated from it or after it was put aside; an
// empty one leaves the heap until it is fed.
void merge_put_back(struct merge *m, struct merge_stream *s);

// The same for a stream in the heap whose `stamp` is that of its next record, and greater than before.
void merge_sift_down(struct merge *m, struct merge_stream *s);

// Frees the queue, which is empty, until the stream is fed again.
void merge_forget(struct merge_stream *s);

// The word of the record behind notes, which stand before it.
static inline uint64_t merge_behind_notes(const struct merge_stream *s)
{
    size_t at = s->head;
    while (at + 1 < s->tail && codec_tag_of(s->words[at]) >= HT_FIRST_NOTE)
        at++;
    return s->words[at];
}

// Moves over words that only change the state to the next record and sets its stamp. False at the end of the queue.
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

#endif
