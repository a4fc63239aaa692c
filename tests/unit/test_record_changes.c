// Tests which records of a stream are passed on while recording is switched off and on at random.
#include "record/drain/drain_private.h"
#include "unit_event.h"

#include <errno.h>

enum { EVENTS = 4000, BATCH = 40, RECORD_WORDS = CODEC_MAX_RECORD_WORDS + CODEC_MAX_PREFIX_WORDS };

struct fixture {
    struct spool_header header;
    struct drain_spool spool;
    struct drain_stream stream;
    uint64_t changes[EVENTS]; // stamp << 2 | state
    size_t n_changes;
    bool halved; // the previous event began a realloc
    bool resizing_kept;
    struct event kept[BATCH]; // expected events of the batch
    size_t n_kept, n_seen;
    uint64_t next_word; // first word of the next run
};

static struct fixture *make(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->spool.header = &f->header;
    f->spool.first_state = SPOOL_RECORDING;
    return f;
}

static void release(struct fixture *f)
{
    free(f->spool.changes);
    free(f);
}

static void change(struct fixture *f, uint64_t stamp, bool on)
{
    struct spool_control *k = &f->header.control;
    uint64_t made = atomic_load(&k->changes_made),
             value = stamp << 2 | (on ? SPOOL_RECORDING : SPOOL_PAUSED);
    atomic_store(&k->changes[made % SPOOL_STATE_CHANGES], value);
    atomic_store(&k->changes_made, made + 1);
    f->changes[f->n_changes++] = value;
}

static bool is_on(const struct fixture *f, uint64_t stamp)
{
    uint32_t state = SPOOL_RECORDING;
    for (size_t i = 0; i < f->n_changes && f->changes[i] >> 2 <= stamp; i++)
        state = f->changes[i] & 3;
    return state == SPOOL_RECORDING;
}

static bool is_kept(struct fixture *f, const struct event *ev)
{
    if (ev->kind == HT_REALLOC_BEGIN)
        f->resizing_kept = is_on(f, ev->stamp);
    if (ev->kind == HT_REALLOC || ev->kind == HT_REALLOC_BEGIN)
        return f->resizing_kept;
    return ev->kind == HT_THREAD_END || is_on(f, ev->stamp);
}

static int see(void *context, struct drain_spool *s, struct trace_segment *g, struct err *e)
{
    struct fixture *f = context;
    struct codec_state state = {g->epoch0, g->base0};
    struct event ev;
    (void)s;
    (void)e;
    assert_true(g->n_words > 0);
    assert_int_equal(g->first_word, f->next_word);
    f->next_word += g->n_words;
    for (uint32_t at = 0, used; at < g->n_words; at += used) {
        used = codec_get(&state, g->words + at, g->n_words - at, &ev);
        assert_true(used > 0);
        if (!ev.kind)
            continue;
        assert_true(f->n_seen < f->n_kept);
        unit_assert_events_equal(&ev, &f->kept[f->n_seen++]);
    }
    g->epoch_end = state.epoch;
    g->base_end = state.base;
    return 0;
}

// Passes a batch of random events at and after `*stamp`. About one of `every` events is preceded by
// a change.
static void pass_batch(struct fixture *f, struct codec_state *state, uint64_t *stamp,
                       uint64_t *random, unsigned every)
{
    static const uint8_t kinds[] = {HT_MALLOC, HT_FREE, HT_REALLOC_BEGIN, HT_THREAD_END};
    const struct drain_sink sink = {.ctx = f, .segment = see};
    uint64_t words[BATCH * RECORD_WORDS], *end = words;
    struct trace_segment g = {
        .first_word = f->stream.next, .epoch0 = state->epoch, .base0 = state->base, .words = words};
    struct event events[BATCH];
    struct err e = {0};
    f->n_kept = f->n_seen = 0;
    for (unsigned i = 0; i < BATCH; i++) {
        *stamp +=
            unit_random(random) % 3 ? unit_random(random) % 3 : 1ull << unit_random(random) % 34;
        if (unit_random(random) % every == 0)
            change(f, *stamp, unit_random(random) % 2);
        struct event ev = {.kind = f->halved ? HT_REALLOC : kinds[unit_random(random) % 4],
                           .stamp = *stamp};
        uint64_t address = (1 + unit_random(random) % 4) << 36 | (unit_random(random) % 64) << 4;
        f->halved = ev.kind == HT_REALLOC_BEGIN;
        if (ev.kind == HT_MALLOC || ev.kind == HT_REALLOC) {
            ev.size = 8;
            ev.result = address;
        } else if (ev.kind != HT_THREAD_END) {
            ev.ptr = address;
        }
        end = codec_put(state, end, ev.stamp, &ev);
        events[i] = ev;
    }
    // A later change may have the stamp of an event.
    for (unsigned i = 0; i < BATCH; i++) {
        if (is_kept(f, &events[i]))
            f->kept[f->n_kept++] = events[i];
    }
    g.n_words = (uint32_t)(end - words);
    assert_int_equal(drain_read_changes(&f->spool), 0);
    assert_int_equal(drain_pass_recorded(&f->spool, &f->stream, &g, &sink, &e), 0);
    f->stream.next += end - words;
    assert_int_equal(f->n_seen, f->n_kept);
    assert_int_equal(g.epoch_end, state->epoch);
    assert_int_equal(g.base_end, state->base);
    assert_int_equal(f->stream.dropped, f->stream.next - f->next_word);
}

// Half of the changes are forgotten when there are too many.
static void forgotten_changes(void **unused)
{
    (void)unused;
    enum { MANY = 1 << 16 };
    struct fixture *f = make();
    struct spool_control *k = &f->header.control;
    for (uint64_t i = 0; i < MANY; i++) {
        assert_int_equal(f->spool.n_changes, i);
        atomic_store(&k->changes[i % SPOOL_STATE_CHANGES], i << 2 | (i >> 1 & 1));
        atomic_store(&k->changes_made, i + 1);
        assert_int_equal(drain_read_changes(&f->spool), 0);
        assert_int_equal(atomic_load(&k->changes_taken), i + 1);
        drain_forget_changes(&f->spool, i % 2);
    }
    assert_int_equal(f->spool.n_changes, MANY / 2);
    assert_int_equal(f->spool.changes_forgotten, MANY / 2);
    assert_int_equal(f->spool.first_state, (MANY / 2 - 1) >> 1 & 1);
    assert_int_equal(f->spool.changes[0] >> 2, MANY / 2);
    assert_int_equal(f->spool.changes[MANY / 2 - 1] >> 2, MANY - 1);
    release(f);
}

// The ring holds a limited number of changes, and their stamps may not decrease.
static void changes_of_the_ring(void **unused)
{
    (void)unused;
    struct fixture *f = make();
    change(f, 10, false);
    change(f, 7, true);
    change(f, 12, false);
    assert_int_equal(drain_read_changes(&f->spool), 0);
    assert_int_equal(f->spool.n_changes, 3);
    assert_int_equal(f->spool.changes[1], 10 << 2 | SPOOL_RECORDING);
    assert_int_equal(f->spool.recorded_from, 10);
    assert_int_equal(f->spool.recorded_to, 12);
    atomic_store(&f->header.control.changes_made, 3 + SPOOL_STATE_CHANGES + 1);
    assert_int_equal(drain_read_changes(&f->spool), -EBADMSG);
    atomic_store(&f->header.control.changes_made, 3 + SPOOL_STATE_CHANGES);
    assert_int_equal(drain_read_changes(&f->spool), 0);
    release(f);
}

static void random_changes(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct fixture *f = make();
        struct codec_state state = {0};
        uint64_t random = seed, stamp = 1;
        for (unsigned i = 0; i < EVENTS / BATCH / 2; i++)
            pass_batch(f, &state, &stamp, &random, seed % 3 ? 4 : 200);
        release(f);
    }
}

static int refuse_all(void *context, struct drain_spool *s, struct trace_segment *g, struct err *e)
{
    unsigned *runs = context;
    (void)s;
    (void)e;
    (*runs)++;
    g->n_words = 0;
    return 0;
}

// Passes frees at these stamps and, at the end, the first word of a longer record.
static uint32_t pass_frees(struct fixture *f, const struct drain_sink *sink,
                           const uint64_t stamps[3])
{
    uint64_t words[3 + CODEC_MAX_LONG_WORDS], *end = words;
    struct codec_state state = {.base = codec_base_for(1ull << 36)};
    struct trace_segment g = {.base0 = state.base, .words = words};
    struct err e = {0};
    for (unsigned i = 0; i < 3; i++) {
        const struct event ev = {.kind = HT_FREE, .stamp = stamps[i], .ptr = 1ull << 36};
        end = codec_put(&state, end, ev.stamp, &ev);
    }
    codec_put_long(end, &(struct event){.kind = HT_MALLOC, .stamp = 99, .size = 8, .result = 8});
    g.n_words = (uint32_t)(end + 1 - words);
    assert_int_equal(g.n_words, 4);
    assert_int_equal(drain_read_changes(&f->spool), 0);
    assert_int_equal(drain_pass_recorded(&f->spool, &f->stream, &g, sink, &e), 0);
    return g.n_words;
}

static void words_that_are_not_accepted(void **unused)
{
    (void)unused;
    struct fixture *f = make();
    unsigned runs = 0;
    change(f, 10, false);
    change(f, 20, true);
    const struct drain_sink refusing = {.ctx = &runs, .segment = refuse_all};
    // After the sink has refused the first run, the third record is not passed as a second run.
    pass_frees(f, &refusing, (const uint64_t[]){5, 15, 25});
    assert_int_equal(runs, 1);
    release(f);
    f = make();
    const struct drain_sink seeing = {.ctx = f, .segment = see};
    change(f, 10, false);
    change(f, 20, true);
    for (unsigned i = 0; i < 2; i++)
        f->kept[f->n_kept++] =
            (struct event){.kind = HT_FREE, .stamp = i ? 25 : 5, .ptr = 1ull << 36};
    // The incomplete record at the end is not passed on.
    assert_int_equal(pass_frees(f, &seeing, (const uint64_t[]){5, 15, 25}), 3);
    assert_int_equal(f->n_seen, 2);
    release(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_changes),
    cmocka_unit_test(forgotten_changes),
    cmocka_unit_test(changes_of_the_ring),
    cmocka_unit_test(words_that_are_not_accepted),
};

UNIT_MAIN(tests)
