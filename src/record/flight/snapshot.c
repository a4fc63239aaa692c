#include "record/flight/snapshot.h"

#include "convert/order/order_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUFFER_WORDS = 1 << 14 };

// State of the stream being written.
struct lane {
    struct trace_writer *writer;
    struct trace_segment next; // identifies the stream; first_word is the next position
    struct codec_state state;  // after the last word in the buffer
    uint64_t stamp;
    uint64_t *words; // buffer
    uint32_t n;
    uint64_t blocks; // number of blocks listed
    struct err *e;
};

struct snapshot_facts snapshot_facts_of(const struct order *o)
{
    struct snapshot_facts f = {.stamp = UINT64_MAX,
                               .late = o->counts.late,
                               .live_blocks = o->table.n,
                               .inherited_modules = o->inherited_modules,
                               .is_clear = o->n_duplicates == 0,
                               .is_empty = o->n_slots == 0};
    for (size_t i = 0; i < o->merge.n_streams; i++) {
        const struct merge_stream *s = o->merge.streams[i];
        f.pending_words += s->tail - s->head;
        if (s->head < s->tail && s->stamp < f.stamp)
            f.stamp = s->stamp;
    }
    return f;
}

static void count_stream(const struct merge_stream *s, struct snapshot_histogram *h)
{
    struct codec_state state = s->state;
    for (size_t at = s->head; at < s->tail;) {
        struct event ev;
        unsigned words = codec_get(&state, s->words + at, s->tail - at, &ev);
        if (!words || (ev.kind && ev.stamp > h->to))
            return;
        at += words;
        if (ev.kind && ev.stamp > h->from)
            h->counts[(ev.stamp - h->from - 1) / snapshot_part_stamps(h)] += words;
    }
}

void snapshot_count(const struct order *o, struct snapshot_histogram *h)
{
    for (size_t i = 0; i < o->merge.n_streams; i++)
        count_stream(o->merge.streams[i], h);
}

int snapshot_write_names(struct trace_writer *w, uint32_t process, const struct order *o,
                         struct err *e)
{
    struct names names = {0};
    int rc = names_copy(&names, &o->names, o->inherited_modules);
    rc = rc < 0 ? err_no_memory(e, w->frames.out->name) : trace_write_names(w, process, &names, e);
    names_release(&names);
    return rc;
}

uint64_t snapshot_first_word(const struct snapshot *s, const struct trace_segment *old)
{
    return old->first_word +
           map_get(&s->shifts, trace_stream_key(old->process, old->thread, old->stream));
}

static int write_words(struct lane *l, const uint64_t *words, size_t n,
                       const struct codec_state *before)
{
    int rc = 0;
    struct codec_state state = *before;
    while (rc == 0 && n) {
        struct trace_segment s = l->next;
        uint32_t piece = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
        s.epoch0 = state.epoch;
        s.base0 = state.base;
        s.words = words;
        s.n_words = piece;
        rc = trace_batch_add(l->writer, &s, l->e);
        if (rc == 0 && !s.n_words)
            return err_set(l->e, -EBADMSG, "%s: the records are invalid",
                           l->writer->frames.out->name);
        l->next.first_word += s.n_words;
        words += s.n_words;
        n -= s.n_words;
        state = (struct codec_state){s.epoch_end, s.base_end};
    }
    return rc;
}

static int flush_words(struct lane *l)
{
    uint32_t n = l->n;
    l->n = 0;
    // The records of each buffer start from the initial codec state.
    return write_words(l, l->words, n, &(struct codec_state){0});
}

static int put_event(struct lane *l, const struct event *ev)
{
    if (l->n + CODEC_MAX_RECORD_WORDS + CODEC_MAX_PREFIX_WORDS > BUFFER_WORDS) {
        int rc = flush_words(l);
        if (rc < 0)
            return rc;
        l->state = (struct codec_state){0};
    }
    l->n = (uint32_t)(codec_put(&l->state, l->words + l->n, l->stamp, ev) - l->words);
    return 0;
}

static int put_module(struct lane *l, const struct workload_module *m)
{
    char text[CODEC_MAX_TEXT_BYTES];
    int n = snprintf(text, sizeof text, "%s %s", m->build_id, m->path);
    const struct event ev = {.kind = HT_MODULE,
                             .ptr = m->start,
                             .size = m->bytes,
                             .value = m->offset,
                             .text = text,
                             .text_bytes =
                                 n < (int)sizeof text ? (uint32_t)n : (uint32_t)sizeof text - 1};
    return put_event(l, &ev);
}

// Stack frames must follow their module and precede later modules at the same addresses.
static int put_frames(struct lane *l, const struct site_table *t, size_t module)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && t->n_frames && i < t->frame_numbers.capacity; i++) {
        const struct map_cell *c = &t->frame_numbers.cells[i];
        const struct site_table_frame *f = c->value ? &t->frames[c->value - 1] : NULL;
        if (!f || f->frame.module != module)
            continue;
        const struct event ev = {
            .kind = HT_FRAME, .ptr = f->frame.address, .size = f->parent, .value = c->key};
        rc = put_event(l, &ev);
    }
    return rc;
}

// Returns an array of flags, which are set for modules that contain stack frames. The caller must
// free the array. Returns NULL if out of memory.
static bool *used_modules(const struct site_table *t)
{
    bool *used = calloc(t->all.n_modules + 1, sizeof *used);
    for (size_t i = 0; used && i < t->n_frames; i++)
        used[t->frames[i].frame.module] = true;
    return used;
}

static int put_sites(struct lane *l, const struct site_table *t)
{
    bool *used = used_modules(t);
    int rc = used ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i <= t->all.n_modules; i++) {
        rc = i ? put_module(l, &t->all.modules[i - 1]) : 0;
        if (rc == 0 && used[i])
            rc = put_frames(l, t, i);
    }
    free(used);
    return rc;
}

static int put_block(void *context, const struct heap_block *b)
{
    struct lane *l = context;
    struct event ev = {.kind = HT_PREEXISTING, .result = b->address, .size = b->size};
    ev.notes[HT_NOTE_SITE] = b->site;
    ev.notes[HT_NOTE_ALLOCATOR] = b->allocator;
    l->blocks += !b->size_unknown;
    return b->size_unknown ? 0 : put_event(l, &ev);
}

// Writes the first halves of reallocs whose second halves are pending.
static int put_pending(struct lane *l, const struct order_thread *t)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < t->n_pending; i++) {
        const struct event ev = {.kind = HT_REALLOC_BEGIN, .ptr = t->pending[i].address};
        rc = put_event(l, &ev);
    }
    return rc;
}

static int put_queue(struct lane *l, const struct merge_stream *s, bool in_order)
{
    int rc = flush_words(l);
    return rc < 0 || in_order ? rc
                              : write_words(l, s->words + s->head, s->tail - s->head, &s->state);
}

static int write_stream(struct lane *l, struct snapshot *to, uint32_t number,
                        const struct merge_stream *s)
{
    const struct order_thread *t = s->user;
    l->next.thread = s->thread;
    l->next.tid = s->tid;
    l->next.stream = s->stream;
    l->state = (struct codec_state){0};
    int rc = s->stream == 0 && t && t->n_pending ? put_pending(l, t) : 0;
    rc = rc ?: put_queue(l, s, to->in_order);
    uint64_t shift = l->next.first_word - (to->in_order ? 0 : s->next_word);
    if (rc == 0 && shift &&
        map_put(&to->shifts, trace_stream_key(number, s->thread, s->stream), shift) < 0)
        rc = -ENOMEM;
    return rc;
}

// Returns the stream of a live thread, which will list the blocks. Returns NULL if all threads have
// exited.
static const struct merge_stream *first_stream(const struct order *o)
{
    for (size_t i = 0; i < o->merge.n_streams; i++) {
        const struct merge_stream *s = o->merge.streams[i];
        const struct order_thread *t = s->user;
        if (s->stream == 0 && t && !t->ended)
            return s;
    }
    return NULL;
}

static int write_lists(struct lane *l, const struct order *o, const struct heap_notes *notes)
{
    return put_sites(l, &o->sites) ?: heap_each(o, notes, put_block, l);
}

static int write_process(struct snapshot *to, struct lane *l, uint32_t number,
                         const struct order *o, const struct heap_notes *notes)
{
    const struct merge_stream *first = first_stream(o);
    l->next.process = to->process;
    l->next.tid = first ? first->tid : to->pid;
    l->next.thread = first ? first->thread : 0;
    int rc = write_lists(l, o, notes);
    // Blocks are listed before their pending reallocs.
    l->stamp = to->stamp + 1;
    if (rc == 0 && first)
        rc = write_stream(l, to, number, first);
    else if (rc == 0)
        rc = flush_words(l);
    if (rc == 0 && !first && l->next.first_word &&
        map_put(&to->shifts, trace_stream_key(number, 0, 0), l->next.first_word) < 0)
        rc = -ENOMEM;
    for (size_t i = 0; rc == 0 && i < o->merge.n_streams; i++) {
        l->next.first_word = 0;
        if (o->merge.streams[i] != first)
            rc = write_stream(l, to, number, o->merge.streams[i]);
    }
    return rc;
}

int snapshot_write(struct snapshot *to, uint32_t number, const struct order *o,
                   const struct heap_notes *notes, struct err *e)
{
    struct lane l = {.writer = to->writer, .stamp = to->stamp, .e = e};
    l.words = malloc(BUFFER_WORDS * sizeof *l.words);
    int rc = l.words ? write_process(to, &l, number, o, notes) : -ENOMEM;
    to->blocks += l.blocks;
    free(l.words);
    return rc == -ENOMEM ? err_no_memory(e, to->writer->frames.out->name) : rc;
}

static int write_passed(struct snapshot *to, struct lane *l, uint32_t number,
                        struct merge_stream *s, bool all)
{
    const struct order_thread *t = s->user;
    uint64_t key = trace_stream_key(number, s->thread, s->stream);
    size_t end = all ? s->tail : s->head;
    if (s->kept < end) {
        l->next.thread = s->thread;
        l->next.tid = s->tid;
        l->next.stream = s->stream;
        // A gap of lost words is written before the next words of the stream, up to two batches too
        // early.
        l->next.first_word = map_get(&to->shifts, key) + s->lost_words;
        int rc = write_words(l, s->words + s->kept, end - s->kept, &s->kept_state);
        if (rc < 0 || map_put(&to->shifts, key, l->next.first_word) < 0)
            return rc < 0 ? rc : -ENOMEM;
        to->words += end - s->kept;
        s->lost_words = 0;
        s->kept = end;
    }
    s->kept_state = s->state;
    if (t && t->ended && s->head == s->tail)
        merge_forget(s);
    return 0;
}

int snapshot_write_passed(struct snapshot *to, uint32_t number, const struct order *o, bool all,
                          struct err *e)
{
    struct lane l = {.writer = to->writer, .next.process = to->process, .e = e};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < o->merge.n_streams; i++)
        rc = write_passed(to, &l, number, o->merge.streams[i], all);
    return rc == -ENOMEM ? err_no_memory(e, to->writer->frames.out->name) : rc;
}
