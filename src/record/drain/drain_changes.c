// The recorder's part of pausing: uses stamps to decide which records were made while recording was
// on.
#include "record/drain/drain_private.h"

#include "base/buf.h"
#include "base/search.h"

#include <errno.h>
#include <limits.h>

enum { MANY_CHANGES = 1 << 16, TOO_MANY_CHANGES = 1 << 18 };

int drain_read_changes(struct drain_spool *s)
{
    struct spool_control *k = &s->header->control;
    uint64_t taken = s->changes_taken,
             made = atomic_load_explicit(&k->changes_made, memory_order_acquire);
    if (made - taken > SPOOL_STATE_CHANGES)
        return -EBADMSG;
    size_t n = (size_t)(made - taken);
    if (HT_GROW(&s->changes, &s->changes_capacity, s->n_changes + n) < 0)
        return -ENOMEM;
    for (; taken < made; taken++) {
        uint64_t change =
            atomic_load_explicit(&k->changes[taken % SPOOL_STATE_CHANGES], memory_order_relaxed);
        bool on = (change & 3) == SPOOL_RECORDING;
        uint64_t before = s->n_changes ? s->changes[s->n_changes - 1] : 0;
        // Keep the stamps in order.
        if (change >> 2 < before >> 2)
            change = (before & ~3ull) | (change & 3);
        s->changes[s->n_changes++] = change;
        s->recorded_from = on && !s->recorded_from ? change >> 2 : s->recorded_from;
        s->recorded_to = on ? 0 : change >> 2;
    }
    s->changes_taken = taken;
    atomic_store_explicit(&k->changes_taken, taken, memory_order_release);
    return 0;
}

void drain_forget_changes(struct drain_spool *s, bool all_seen)
{
    size_t n = s->n_changes / 2;
    if (s->n_changes < (all_seen ? MANY_CHANGES : TOO_MANY_CHANGES))
        return;
    s->first_state = s->changes[n - 1] & 3;
    s->n_changes -= n;
    s->changes_forgotten += n;
    memmove(s->changes, s->changes + n, s->n_changes * sizeof *s->changes);
}

static size_t changes_until(const struct drain_spool *s, uint64_t stamp)
{
    return HT_SEARCH(i, s->n_changes, s->changes[i] >> 2 > stamp);
}

// Returns true if recording was on at `stamp`. First tries the stream's last position in the list
// of changes.
static bool is_recorded(const struct drain_spool *s, struct drain_stream *l, uint64_t stamp)
{
    size_t i = l->change > s->changes_forgotten ? (size_t)(l->change - s->changes_forgotten) : 0;
    if (i > s->n_changes || (i > 0 && s->changes[i - 1] >> 2 > stamp) ||
        (i < s->n_changes && s->changes[i] >> 2 <= stamp))
        i = changes_until(s, stamp);
    l->change = s->changes_forgotten + i;
    return (i ? s->changes[i - 1] & 3 : s->first_state) == SPOOL_RECORDING;
}

// Returns true if the event is kept. Thread starts and exits, and the library's own records, are
// always kept. A realloc is kept or dropped as a whole, depending on the stamp of its first half.
static bool is_kept(const struct drain_spool *s, struct drain_stream *l, const struct event *ev)
{
    bool recorded = is_recorded(s, l, ev->stamp);
    enum event_class class = event_infos[ev->kind].class;
    if (class == HT_CLASS_THREAD || class == HT_CLASS_META)
        return true;
    if (class == HT_CLASS_RESIZE && l->resizing != DRAIN_RESIZING_NONE)
        recorded = l->resizing == DRAIN_RESIZING_KEPT;
    if (class == HT_CLASS_RESIZE)
        l->resizing = DRAIN_RESIZING_NONE;
    if (class == HT_CLASS_HALF)
        l->resizing = recorded ? DRAIN_RESIZING_KEPT : DRAIN_RESIZING_DROPPED;
    return recorded;
}

// Returns true if recording is on from the stream's last record onwards.
static bool all_recorded(const struct drain_spool *s, const struct drain_stream *l)
{
    uint64_t last = s->n_changes ? s->changes[s->n_changes - 1] & 3 : s->first_state;
    return last == SPOOL_RECORDING && l->change == s->changes_forgotten + s->n_changes &&
           !l->dropping;
}

// Passes `run`, a part of `whole`, to the sink. Returns 1 if the sink accepted the whole run, else
// 0, or a negative errno.
static int64_t pass_run(struct drain_spool *s, struct drain_stream *l,
                        const struct trace_segment *whole, struct trace_segment *run,
                        const struct drain_sink *sink, struct err *e)
{
    uint32_t from = (uint32_t)(run->words - whole->words), n = run->n_words;
    run->first_word = whole->first_word + from - l->dropped;
    int rc = n ? sink->segment(sink->ctx, s, run, e) : 0;
    return rc < 0 ? rc : run->n_words == n;
}

static int pass_runs(struct drain_spool *s, struct drain_stream *l, struct trace_segment *g,
                     const struct drain_sink *sink, struct err *e)
{
    struct codec_state state = {g->epoch0, g->base0};
    struct trace_segment run = *g;
    struct event ev;
    uint32_t at = 0, used;
    int64_t whole = 1;
    run.n_words = 0;
    for (; whole > 0 && at < g->n_words; at += used) {
        struct codec_state before = state;
        used = codec_get(&state, g->words + at, g->n_words - at, &ev);
        if (!used)
            break;
        // Words that only change the codec state are kept or dropped with the preceding record,
        // because a run starts with its own state.
        bool drop = ev.kind ? !is_kept(s, l, &ev) : l->dropping;
        if (drop != l->dropping) {
            whole = drop ? pass_run(s, l, g, &run, sink, e) : 1;
            run.words = g->words + at;
            run.n_words = 0;
            run.epoch0 = run.epoch_end = before.epoch;
            run.base0 = run.base_end = before.base;
        }
        l->dropping = drop;
        l->dropped += drop ? used : 0;
        run.n_words += drop ? 0 : used;
    }
    // A run that the sink refused was followed by a dropped record.
    if (!l->dropping)
        whole = pass_run(s, l, g, &run, sink, e);
    g->n_words = at;
    g->epoch_end = state.epoch;
    g->base_end = state.base;
    return whole < 0 ? (int)whole : 0;
}

int drain_pass_recorded(struct drain_spool *s, struct drain_stream *l, struct trace_segment *g,
                        const struct drain_sink *sink, struct err *e)
{
    if (!all_recorded(s, l))
        return pass_runs(s, l, g, sink, e);
    bool is_half = codec_tag_of(g->words[g->n_words - 1]) == HT_REALLOC_BEGIN;
    l->resizing = is_half ? DRAIN_RESIZING_KEPT : DRAIN_RESIZING_NONE;
    g->first_word -= l->dropped;
    return sink->segment(sink->ctx, s, g, e);
}

bool drain_has_request(const struct drain *c, enum spool_request what)
{
    if (c->streams_waiting)
        return false;
    for (size_t i = 0; i < c->n_spools; i++) {
        if (c->spools[i]->asked[what] != c->spools[i]->answered[what])
            return true;
    }
    return false;
}

void drain_answer(struct drain *c, enum spool_request what, int error)
{
    for (size_t i = 0; i < c->n_spools; i++) {
        struct drain_spool *s = c->spools[i];
        struct spool_control *k = &s->header->control;
        if (s->asked[what] == s->answered[what])
            continue;
        s->answered[what] = s->asked[what];
        if (what == SPOOL_RESET)
            atomic_store(&k->reset_error, (uint32_t)error);
        atomic_store(&k->done[what], s->asked[what]);
        drain_wake(&k->done[what], INT_MAX);
    }
}

static void restart_spool(struct drain_spool *s)
{
    atomic_fetch_add(&s->header->restarts, 1);
    s->words = s->lost_words = s->events = 0;
    // Reset the count now, because the requester may read it as soon as the reset is answered.
    atomic_store_explicit(&s->header->control.events, 0, memory_order_relaxed);
    for (size_t i = 0; i < s->streams_capacity; i++)
        s->streams[i].dropped = s->streams[i].next;
}

void drain_restart(struct drain *c)
{
    c->n_made = 0;
    for (size_t i = 0; i < c->n_spools; i++) {
        c->spools[i]->number = c->n_made++;
        restart_spool(c->spools[i]);
    }
}
