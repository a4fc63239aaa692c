// Checks a plan that was loaded from a file. Even a malicious plan must not make the player access
// memory outside its tables. The threads of a plan that passes may still wait for each other
// forever. The watchdog ends such a replay.
#include "replay/plan/build.h"

#include <stdlib.h>

// Words of a plan's file, or of a window.
struct checked {
    const struct plan *plan;
    const struct plan_header *header;
    const struct plan_thread *threads;
    const uint64_t *words, *end;
    uint64_t left; // number of words that may still be visited, because streams do not overlap
    uint8_t plain[PLAN_OP_LIMIT]; // 1 for a call of one word that is counted in the header
    uint8_t *started;             // indexed by thread; NULL if starts are not counted
};

static bool is_called(const struct checked *c, unsigned kind)
{
    return kind && kind < HT_KIND_LIMIT && c->header->by_kind[kind];
}

static bool check_preexisting(const struct checked *c, uint64_t entry, const uint64_t *extra)
{
    bool is_power = extra[0] && !(extra[0] & (extra[0] - 1));
    unsigned kind = extra[1] < HT_KIND_LIMIT ? (unsigned)extra[1] : 0;
    bool allocates = kind == HT_MALLOC || kind == HT_MEMALIGN || kind == HT_NEW ||
                     kind == HT_NEW_ARRAY || kind == HT_NEW_ALIGNED || kind == HT_NEW_ARRAY_ALIGNED;
    return entry < c->header->slot_table_entries && is_power && allocates && is_called(c, kind);
}

// Checks a multi-word call or an op of the player. All words of the op are readable.
static bool check_other(struct checked *c, const uint64_t *w)
{
    enum plan_op op = plan_op_of(*w);
    uint64_t entry = plan_entry_of(*w), size = plan_size_of(*w);
    switch (op) {
#define HT_X(number, SYMBOL, kind, numbered, words, handler) case PLAN_##SYMBOL:
        PLAN_CALLS(HT_X)
#undef HT_X
        if (op == PLAN_PREEXISTING)
            return check_preexisting(c, entry, w + 1);
        break;
    case PLAN_WAIT:
    case PLAN_COUPLE:
        return size < c->header->n_threads;
    case PLAN_COUNT:
    case PLAN_SAMPLE:
    case PLAN_STATS:
    case PLAN_TRIM:
    case PLAN_PACE:
    case PLAN_TOUCH:
    case PLAN_SKIPPED:
        return true;
    case PLAN_TOUCH_LATE:
        return entry < c->header->slot_table_entries;
    case PLAN_SWITCH:
        return *w >> 9 < c->header->n_caches;
    case PLAN_START_THREAD:
        return size && size < c->header->n_threads && !c->threads[size].at_start &&
               (!c->started || !c->started[size]++);
    case PLAN_WIDE:
        op = plan_op_of(*w >> 8);
        entry = w[1];
        if (op == PLAN_PREEXISTING)
            return check_preexisting(c, entry, w + 3);
        break;
    case PLAN_STOP: // valid only at the end of another kind of stream
    case PLAN_NEXT_SEGMENT:
    case PLAN_SNAPSHOT: // plans with snapshots are not saved
    case PLAN_JUMP:     // check_stream() handles jumps
    case PLAN_OP_LIMIT:
        return false;
    }
    return is_called(c, plan_op_info(op).kind) && entry < c->header->slot_table_entries;
}

// Checks a stream from word number `at` up to the op `last`, which ends the stream.
static bool check_stream(struct checked *c, uint64_t at, enum plan_op last)
{
    uint64_t entries = c->header->slot_table_entries, wrong = 0;
    if (at >= (uint64_t)(c->end - c->words))
        return false;
    const uint64_t *w = c->words + at, *end = c->end;
    if ((uint64_t)(end - w) > c->left)
        end = w + c->left;
    const uint64_t *from = w;
    while (w < end && !wrong) {
        uint64_t word = *w;
        enum plan_op op = plan_op_of(word);
        if (__builtin_expect(c->plain[op], 1)) {
            wrong = plan_entry_of(word) >= entries;
            w++;
            continue;
        }
        if (op == last) {
            c->left -= (uint64_t)(w + 1 - from);
            return (uint64_t)(c->end - w) > PLAN_AHEAD_WORDS || last == PLAN_NEXT_SEGMENT;
        }
        unsigned n = plan_op_words(word);
        if (op == PLAN_JUMP) {
            c->left -= (uint64_t)(w + 1 - from);
            if (word >> 8 >= (uint64_t)(c->end - w - 1))
                return false;
            w = from = w + 1 + (word >> 8);
            end = (uint64_t)(c->end - w) > c->left ? w + c->left : c->end;
            continue;
        }
        wrong = n > (uint64_t)(end - w) || !check_other(c, w);
        w += n;
    }
    return false;
}

static bool check_facts(const struct plan *p, const struct plan_header *h)
{
    const struct plan_facts *f = &p->facts;
    uint64_t ring = f->streamed ? plan_ring_at(p) : 0,
             window = f->streamed ? plan_window_bytes(p->settings.memory_bytes) : 0;
    return h->magic == PLAN_MAGIC && h->words == p->memory.used && h->n_threads == p->n_streams &&
           h->threads_at < h->words &&
           (h->words - h->threads_at) * 8 / sizeof(struct plan_thread) >= h->n_threads &&
           h->slot_table_entries == f->slot_table_entries &&
           f->slot_table_entries <= p->memory_bytes / 8 && h->samples == f->samples &&
           h->waits_for_exits <= 1 && f->samples <= 2 * PLAN_SAMPLES_WANTED &&
           f->stats_samples <= PLAN_MAX_STATS && h->max_block_bytes <= PTRDIFF_MAX &&
           h->n_caches <= PLAN_MAX_THREADS && h->ring_at == ring && h->window_words == window / 8 &&
           f->window_bytes == window && h->streaming_bytes == f->streaming_bytes &&
           f->streaming_bytes == (f->streamed ? plan_streaming_bytes(p) : 0) &&
           f->streamed == p->settings.streamed && f->one_thread == p->settings.one_thread &&
           f->events > 0;
}

// Checks a streamed plan's windows. The ops in the windows are checked when they are streamed.
static bool check_windows(const struct checked *c)
{
    const struct plan *p = c->plan;
    for (uint64_t i = 0; i < p->facts.windows; i++) {
        const struct plan_window *w = &p->windows[i];
        if (w->words > c->header->window_words || w->segments > p->n_streams ||
            w->at > PLAN_FIRST_WINDOW)
            return false;
    }
    for (size_t i = 0; i < p->n_samples; i++) {
        uint64_t n = p->samples[i] - PLAN_FIRST_WINDOW, window = n / c->header->window_words;
        if (window >= p->facts.windows || n % c->header->window_words >= p->windows[window].words)
            return false;
    }
    return true;
}

static bool check_threads(struct checked *c)
{
    const struct plan *p = c->plan;
    enum plan_op last = p->facts.streamed ? PLAN_NEXT_SEGMENT : PLAN_STOP;
    for (uint32_t i = 0; i < c->header->n_threads; i++) {
        const struct plan_thread *t = &c->threads[i];
        bool has_ops = t->first_word != 0;
        if (has_ops != (p->streams[i] != NULL) ||
            (!p->facts.streamed && has_ops && t->first_word != p->streams[i]->first))
            return false;
        if (p->facts.streamed)
            c->left = 1; // all threads share this NEXT_SEGMENT
        if (has_ops && !check_stream(c, t->first_word, last))
            return false;
    }
    return true;
}

static struct checked checked_words(const struct plan *p, const uint64_t *words, uint64_t n)
{
    const struct plan_header *h = (const struct plan_header *)p->memory.words;
    struct checked c = {.plan = p,
                        .header = h,
                        .threads = (const struct plan_thread *)(p->memory.words + h->threads_at),
                        .words = words,
                        .end = words + n,
                        .left = n};
    for (unsigned op = 0; op < PLAN_OP_LIMIT; op++)
        c.plain[op] = is_called(&c, plan_op_info(op).kind) && plan_op_info(op).words == 0;
    return c;
}

bool plan_check(const struct plan *p)
{
    if (!check_facts(p, (const struct plan_header *)p->memory.words))
        return false;
    struct checked c = checked_words(p, p->memory.words, p->memory.used);
    if (p->facts.streamed && !check_windows(&c))
        return false;
    c.started = calloc(p->n_streams + 1, 1);
    bool ok = c.started && check_stream(&c, c.header->preexisting_at, PLAN_STOP) &&
              check_stream(&c, c.header->leftovers_at, PLAN_STOP) && check_threads(&c);
    free(c.started);
    return ok;
}

bool plan_check_window(const struct plan *p, const uint64_t *words, uint64_t w,
                       const struct plan_window_segment *segments)
{
    struct checked c = checked_words(p, words, p->windows[w].words);
    uint64_t first = PLAN_FIRST_WINDOW + w * c.header->window_words;
    for (size_t i = 0; i < p->windows[w].segments; i++) {
        if (segments[i].thread >= p->n_streams || !p->streams[segments[i].thread] ||
            segments[i].first < first ||
            !check_stream(&c, segments[i].first - first, PLAN_NEXT_SEGMENT))
            return false;
    }
    return true;
}
