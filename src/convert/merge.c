#include "convert/merge.h"

#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>

void merge_release(struct merge *m)
{
    for (size_t i = 0; i < m->n_streams; i++) {
        free(m->streams[i]->words);
        free(m->streams[i]);
    }
    free(m->streams);
    free(m->heap);
    map_release(&m->by_place);
    *m = (struct merge){0};
}

static void place_stream(struct merge *m, size_t i, struct merge_stream *s)
{
    m->heap[i] = s;
    s->at = i;
}

static void sift_up(struct merge *m, struct merge_stream *s)
{
    size_t i = s->at;
    while (i && s->stamp < m->heap[(i - 1) / 2]->stamp) {
        place_stream(m, i, m->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    place_stream(m, i, s);
}

void merge_sift_down(struct merge *m, struct merge_stream *s)
{
    size_t i = s->at;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= m->n_heap)
            break;
        if (child + 1 < m->n_heap && m->heap[child + 1]->stamp < m->heap[child]->stamp)
            child++;
        if (m->heap[child]->stamp >= s->stamp)
            break;
        place_stream(m, i, m->heap[child]);
        i = child;
    }
    place_stream(m, i, s);
}

void merge_put_aside(struct merge *m, struct merge_stream *s)
{
    size_t i = s->at;
    if (i == MERGE_NOT_IN_HEAP)
        return;
    s->at = MERGE_NOT_IN_HEAP;
    struct merge_stream *last = m->heap[--m->n_heap];
    if (last == s)
        return;
    place_stream(m, i, last);
    sift_up(m, last);
    merge_sift_down(m, last);
}

void merge_put_back(struct merge *m, struct merge_stream *s)
{
    if (!merge_peek(s)) {
        merge_put_aside(m, s);
        return;
    }
    // merge_feed has reserved space for every stream.
    if (s->at == MERGE_NOT_IN_HEAP)
        place_stream(m, m->n_heap++, s);
    sift_up(m, s);
    merge_sift_down(m, s);
}

void merge_forget(struct merge_stream *s)
{
    if (s->keeps && s->kept < s->tail)
        return;
    free(s->words);
    s->words = NULL;
    s->head = s->tail = s->capacity = s->ahead = s->kept = 0;
}

static struct merge_stream *stream_new(struct merge *m, const struct trace_segment *s, uint64_t key)
{
    if (HT_GROW(&m->streams, &m->streams_capacity, m->n_streams + 1) < 0 ||
        HT_GROW(&m->heap, &m->heap_capacity, m->n_streams + 1) < 0 ||
        map_put(&m->by_place, key, m->n_streams + 1) < 0)
        return NULL;
    struct merge_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->process = s->process;
    stream->thread = s->thread;
    stream->tid = s->tid;
    stream->stream = s->stream;
    stream->keeps = m->keeps;
    stream->at = MERGE_NOT_IN_HEAP;
    m->streams[m->n_streams++] = stream;
    return stream;
}

static struct merge_stream *stream_of(struct merge *m, const struct trace_segment *s)
{
    uint64_t key = trace_stream_key(s->process, s->thread, s->stream);
    uint64_t at = map_get(&m->by_place, key);
    return at ? m->streams[at - 1] : stream_new(m, s, key);
}

// Makes room for `n` words plus two words that set the codec state.
static int make_room(struct merge_stream *s, size_t n)
{
    size_t first = s->keeps ? s->kept : s->head, left = s->tail - first;
    if (first && (left == 0 || (s->tail + n + 2 > s->capacity && first >= left))) {
        memmove(s->words, s->words + first, left * sizeof *s->words);
        s->ahead = s->ahead > first ? s->ahead - first : 0;
        s->head -= first;
        s->kept = 0;
        s->tail = left;
    }
    return HT_GROW(&s->words, &s->capacity, s->tail + n + 2);
}

// Returns true if the event is a call of an allocator other than number `allocator`.
static bool is_of_other(const struct event *ev, unsigned allocator)
{
    unsigned class = event_infos[ev->kind].class;
    return class >= HT_CLASS_ALLOC && class <= HT_CLASS_HALF &&
           event_allocator(ev->notes) != allocator;
}

// Appends the segment's records to the queue, except the calls of other allocators.
static void append_records(struct merge_stream *s, const struct trace_segment *segment,
                           unsigned allocator)
{
    struct codec_state state = {segment->epoch0, segment->base0};
    for (uint32_t i = 0, words; i < segment->n_words; i += words) {
        struct event ev;
        words = codec_get(&state, segment->words + i, segment->n_words - i, &ev);
        if (!words) // the record is corrupt
            words = segment->n_words - i;
        else if (is_of_other(&ev, allocator))
            continue;
        memcpy(s->words + s->tail, segment->words + i, words * sizeof *s->words);
        s->tail += words;
    }
}

int merge_feed(struct merge *m, const struct trace_segment *segment, struct merge_stream **stream)
{
    struct merge_stream *s = stream_of(m, segment);
    *stream = s;
    if (!s || make_room(s, segment->n_words) < 0)
        return -ENOMEM;
    if (segment->first_word > s->next_word) {
        m->lost_words += segment->first_word - s->next_word;
        s->lost_words += segment->first_word - s->next_word;
    }
    s->next_word = segment->first_word + segment->n_words;
    if (segment->epoch0 != s->fed.epoch)
        s->words[s->tail++] = codec_epoch_record(segment->epoch0);
    if (segment->base0 != s->fed.base)
        s->words[s->tail++] = codec_base_record(segment->base0);
    if (m->only_allocator) {
        append_records(s, segment, m->only_allocator - 1);
    } else if (segment->n_words) {
        memcpy(s->words + s->tail, segment->words, segment->n_words * sizeof *s->words);
        s->tail += segment->n_words;
    }
    s->fed = (struct codec_state){segment->epoch_end, segment->base_end};
    return 0;
}
