// Tests the order with random programs whose correct order is known. The test distorts their
// records as CPUs and recorders do: stamps of allocations are too early, records are published
// late, and a batch can end anywhere. The order must still identify every block and keep every
// dependency between threads.
#include "history.h"

#include <stdio.h>

enum {
    STEPS = 4000,
    ADDRESSES = 24, // A small number, so that threads soon reuse the addresses.
};

// Distortions of the records.
struct disturb {
    uint64_t early_ns;       // maximum by which an allocation's stamp is early
    unsigned early_permille; // share of early stamps
    bool early_gives;        // stamps of frees by threads other than the owner are early, too
    uint64_t hand_over_ns;   // minimum time before another thread frees a block
    uint64_t late_ns;        // maximum delay of publishing a record
    unsigned late_percent;   // share of delayed records
    // The recorder reads the streams of a batch in random order, some of them several times.
    bool shuffled;
    bool loses;   // words of a stream are lost
    bool cut_off; // the recording ends in the middle, at a different place in each stream
};

struct block {
    uint64_t id; // unique size of the block
    uint64_t address;
    uint64_t taken; // time of the allocation
    uint32_t taker;
    uint32_t last_thread; // last thread that allocated or resized the block
    uint64_t last_op;     // number of the op that allocated or resized the block
};

// A call of a thread, in program order.
struct call {
    uint64_t block; // id of the block, or 0
    uint8_t kind, flags;
    uint32_t after_thread; // thread that used the block before
    uint64_t after_op;     // number of the op of after_thread. If after_thread is HISTORY_THREADS,
                           // no other thread used the block.
};

struct program {
    const struct disturb *how;
    uint64_t seed;
    struct history h;
    bool lost;
    uint64_t now, watermark;                // watermark of the last batch
    uint64_t passed;                        // highest watermark for which ops were emitted
    uint64_t unfed[HISTORY_THREADS][STEPS]; // stamps of published records not yet fed
    size_t n_unfed[HISTORY_THREADS];
    uint64_t late; // records fed after a later stamp was emitted
    unsigned n_threads;
    uint64_t stamps[HISTORY_THREADS]; // last stamp written
    // End of the preemption of the thread between stamping and publishing.
    uint64_t busy[HISTORY_THREADS];
    struct event unpublished[HISTORY_THREADS]; // record that is not published yet; kind 0 if there
                                               // is no such record
    uint64_t effect_free[HISTORY_THREADS]; // address that becomes free once the record is published
    struct block blocks[ADDRESSES];
    size_t n_blocks;
    uint64_t free[ADDRESSES];
    size_t n_free;
    uint64_t next_id;
    struct call *calls[HISTORY_THREADS];
    size_t n_calls[HISTORY_THREADS];
};

static uint64_t pick(struct program *p, uint64_t below)
{
    return unit_random(&p->seed) % below;
}

static void publish(struct program *p, unsigned t)
{
    if (p->unpublished[t].kind) {
        history_put(&p->h, t, &p->unpublished[t]);
        p->unfed[t][p->n_unfed[t]++] = p->unpublished[t].stamp;
    }
    if (p->effect_free[t])
        p->free[p->n_free++] = p->effect_free[t];
    p->unpublished[t].kind = 0;
    p->effect_free[t] = 0;
    p->busy[t] = 0;
}

// Stamps a record and writes it. The thread may be preempted in between. `frees` is the address
// that becomes free when the record is written. `foreign` is true if another thread allocated the
// block.
static void record(struct program *p, unsigned t, struct event ev, uint64_t frees, bool foreign)
{
    bool may_be_early =
        event_infos[ev.kind].stamp != HT_STAMP_BEFORE || (foreign && p->how->early_gives);
    uint64_t early =
        may_be_early && pick(p, 1000) < p->how->early_permille ? pick(p, p->how->early_ns + 1) : 0;
    ev.stamp = p->now - early > p->stamps[t] ? p->now - early : p->stamps[t];
    p->stamps[t] = ev.stamp;
    p->unpublished[t] = ev;
    p->effect_free[t] = frees;
    if (pick(p, 100) < p->how->late_percent)
        p->busy[t] = p->now + 1 + pick(p, p->how->late_ns);
    else
        publish(p, t);
}

static void call(struct program *p, unsigned t, unsigned kind, unsigned flags, struct block *b)
{
    struct call *c = &p->calls[t][p->n_calls[t]++];
    *c = (struct call){
        .kind = (uint8_t)kind, .flags = (uint8_t)flags, .after_thread = HISTORY_THREADS};
    if (!b)
        return;
    c->block = b->id;
    if (b->last_thread != t && b->last_thread < HISTORY_THREADS) {
        c->after_thread = b->last_thread;
        c->after_op = b->last_op;
    }
    b->last_thread = t;
    b->last_op = p->n_calls[t] - 1;
}

static void step_take(struct program *p, unsigned t)
{
    // Usually chooses the last freed address, as thread caches do.
    size_t i = pick(p, 3) ? p->n_free - 1 : pick(p, p->n_free);
    struct block *b = &p->blocks[p->n_blocks++];
    *b = (struct block){.id = p->next_id++,
                        .address = p->free[i],
                        .taken = p->now,
                        .taker = t,
                        .last_thread = HISTORY_THREADS};
    p->free[i] = p->free[--p->n_free];
    call(p, t, HT_MALLOC, 0, b);
    record(p, t, (struct event){.kind = HT_MALLOC, .size = b->id, .result = b->address}, 0, false);
}

// Returns true if the thread can use the block. A block of another thread can be used only after
// its allocation has returned.
static bool in_reach(const struct program *p, unsigned t, const struct block *b)
{
    return b->taker == t || (!p->busy[b->taker] && p->now >= b->taken + p->how->hand_over_ns);
}

static void step_give(struct program *p, unsigned t, struct block *b)
{
    call(p, t, HT_FREE, 0, b);
    uint64_t address = b->address;
    bool foreign = b->taker != t;
    *b = p->blocks[--p->n_blocks];
    record(p, t, (struct event){.kind = HT_FREE, .ptr = address}, address, foreign);
}

static void pass(struct program *p, uint64_t ns);

static void step_resize(struct program *p, unsigned t, struct block *b)
{
    uint64_t from = b->address, size = p->next_id++;
    bool fails = pick(p, 5) == 0, moves = !fails && p->n_free && pick(p, 2);
    call(p, t, HT_REALLOC, fails ? WORKLOAD_FAILED : moves ? WORKLOAD_MOVED : 0, b);
    p->stamps[t] = p->now > p->stamps[t] ? p->now : p->stamps[t];
    history_put(&p->h, t,
                &(struct event){.kind = HT_REALLOC_BEGIN, .stamp = p->stamps[t], .ptr = from});
    uint64_t to = moves ? p->free[--p->n_free] : from;
    // From now on, another thread can get the old address, although the call has not returned.
    if (moves)
        p->free[p->n_free++] = from;
    if (!fails)
        b->id = size;
    b->address = to;
    b->taker = t;
    p->now += 50;
    b->taken = p->now;
    record(p, t,
           (struct event){.kind = HT_REALLOC,
                          .size = size,
                          .ptr = fails ? from : 0,
                          .result = fails ? 0 : to,
                          .error = fails ? 12 : 0},
           0, false);
}

static void step(struct program *p)
{
    unsigned t = (unsigned)pick(p, p->n_threads);
    struct block *b = p->n_blocks ? &p->blocks[pick(p, p->n_blocks)] : NULL;
    unsigned what = (unsigned)pick(p, 10);
    if (p->busy[t])
        return;
    if (what < 5 && p->n_free)
        step_take(p, t);
    else if (what < 9 && b && in_reach(p, t, b))
        step_give(p, t, b);
    else if (what == 9 && b && in_reach(p, t, b))
        step_resize(p, t, b);
}

static void pass(struct program *p, uint64_t ns)
{
    p->now += ns;
    for (unsigned t = 0; t < p->n_threads; t++) {
        if (p->busy[t] && p->busy[t] <= p->now)
            publish(p, t);
    }
}

static void feed(struct program *p, unsigned t)
{
    for (size_t i = 0; i < p->n_unfed[t]; i++)
        p->late += p->unfed[t][i] <= p->passed;
    p->n_unfed[t] = 0;
    history_feed(&p->h, t, 0);
}

// Reads a stream, or drops its new records.
static void read_stream(struct program *p, unsigned t)
{
    if (p->how->loses && !p->lost && p->h.n_ops > 500 && pick(p, 20) == 0)
        p->lost = history_lose(&p->h, t);
    else
        feed(p, t);
}

// Cuts a batch like the recorder: reads the watermark first, then each stream while the threads
// continue.
static void batch_cut(struct program *p)
{
    uint64_t watermark = p->now;
    unsigned order[2 * HISTORY_THREADS], n = 0;
    for (unsigned t = 0; t < p->n_threads; t++)
        order[n++] = t;
    for (unsigned i = 0; p->how->shuffled && i < p->n_threads; i++) {
        unsigned k = (unsigned)pick(p, p->n_threads), was = order[i];
        order[i] = order[k];
        order[k] = was;
        if (pick(p, 4) == 0)
            order[n++] = (unsigned)pick(p, p->n_threads);
    }
    for (unsigned i = 0; i < n; i++) {
        read_stream(p, order[i]);
        for (unsigned k = (unsigned)pick(p, 20); k-- > 0;) {
            pass(p, 1 + pick(p, 60));
            step(p);
        }
    }
    // Like the converter, the test emits ops one batch later.
    history_watermark(&p->h, p->watermark);
    p->passed = p->watermark;
    p->watermark = watermark;
}

static void check_call(const struct program *p, const size_t *index, unsigned t, size_t n)
{
    const struct call *c = &p->calls[t][n];
    size_t at = index[t * (size_t)STEPS * 4 + n];
    const struct history_op *o = &p->h.ops[at];
    if (o->op.kind != c->kind || o->op.flags != c->flags)
        fail_msg("thread %u op %zu is a %s", t, n, event_infos[o->op.kind].name);
    if (o->block != c->block)
        fail_msg("thread %u op %zu uses block %llu and not %llu", t, n,
                 (unsigned long long)o->block, (unsigned long long)c->block);
    if (c->after_thread == HISTORY_THREADS)
        return;
    size_t before = index[c->after_thread * (size_t)STEPS * 4 + c->after_op];
    if (before > at || !history_before(&p->h, before, at))
        fail_msg("thread %u op %zu does not wait for thread %u op %llu", t, n, c->after_thread,
                 (unsigned long long)c->after_op);
}

// Checks that the calls of every thread were emitted in order, each with its true block.
static void check(const struct program *p, const uint32_t *number)
{
    size_t *index = calloc((size_t)HISTORY_THREADS * STEPS * 4, sizeof *index);
    size_t seen[HISTORY_THREADS] = {0};
    for (size_t i = 0; i < p->h.n_ops; i++) {
        unsigned t = 0;
        while (number[t] != p->h.ops[i].thread)
            t++;
        index[t * (size_t)STEPS * 4 + seen[t]++] = i;
    }
    for (unsigned t = 0; t < p->n_threads; t++) {
        if (p->how->cut_off)
            assert_true(seen[t] <= p->n_calls[t]);
        else
            assert_int_equal(seen[t], p->n_calls[t]);
        for (size_t n = 0; n < seen[t]; n++)
            check_call(p, index, t, n);
    }
    free(index);
}

static void program_init(struct program *p, const struct disturb *how, uint64_t seed)
{
    *p = (struct program){.how = how, .seed = seed, .now = 1000000, .next_id = 1};
    p->n_threads = 2 + (unsigned)pick(p, HISTORY_THREADS - 1);
    history_init(&p->h);
    for (unsigned t = 0; t < p->n_threads; t++) {
        p->calls[t] = calloc(STEPS * 4, sizeof *p->calls[t]);
        // These allocations make the numbers of the threads in the workload equal to their numbers
        // here.
        history_malloc(&p->h, t, 1000 + t, 60000 + t, 0x900000 + 64 * t);
        p->calls[t][p->n_calls[t]++] = (struct call){60000 + t, HT_MALLOC, 0, HISTORY_THREADS, 0};
    }
    while (p->n_free < ADDRESSES) {
        p->free[p->n_free] = 0x10000 + 64 * p->n_free;
        p->n_free++;
    }
}

// Sums over all runs of one kind.
struct outcome {
    unsigned runs, told, repaired, lost;
    uint64_t late, dependencies, dependencies_needed;
};

static void finish(struct program *p, struct outcome *out)
{
    static const uint32_t number[HISTORY_THREADS] = {0, 1, 2, 3, 4, 5, 6, 7};
    for (unsigned t = 0; p->how->cut_off && t < p->n_threads; t++)
        history_cut(&p->h, t, pick(p, 3) ? pick(p, 40) : 0);
    for (unsigned t = 0; t < p->n_threads; t++)
        feed(p, t);
    if (p->how->cut_off)
        order_cut_off(p->h.order);
    struct order_counts c = history_finish(&p->h);
    out->runs++;
    out->repaired += c.repaired > 0;
    out->lost += c.lost.n > 0;
    out->late += c.late;
    out->dependencies += c.dependencies;
    out->dependencies_needed += c.dependencies_needed;
    assert_int_equal(c.lost.n > 0, p->lost);
    if (!p->how->loses && !p->how->cut_off)
        assert_int_equal(c.late, p->late);
    // history.c has already checked every op. If the order reported no ambiguity, the ops must also
    // match the program.
    if (c.ambiguous.n || c.unmatched.n || c.lost.n)
        out->told++;
    else
        check(p, number);
}

static void run_program(const struct disturb *how, uint64_t seed, struct outcome *out)
{
    struct program p;
    program_init(&p, how, seed);
    for (unsigned i = 0; i < STEPS; i++) {
        pass(&p, 1 + pick(&p, 60));
        step(&p);
        if (pick(&p, 200) == 0)
            batch_cut(&p);
    }
    if (!how->cut_off)
        pass(&p, 10000000);
    finish(&p, out);
    for (unsigned t = 0; t < p.n_threads; t++)
        free(p.calls[t]);
    history_release(&p.h);
}

static struct outcome run_programs(const struct disturb *how, uint64_t seeds)
{
    struct outcome out = {0};
    for (uint64_t seed = 1; seed <= seeds; seed++)
        run_program(how, seed, &out);
    print_message("%u runs: %u repaired, %u told, %u with loss\n", out.runs, out.repaired, out.told,
                  out.lost);
    return out;
}

// Hand-over takes longer than the distortion of stamps: the order can be proved.
static void early_allocations(void **state)
{
    static const struct disturb how = {.early_ns = 1000,
                                       .early_permille = 1000,
                                       .hand_over_ns = 2100,
                                       .late_ns = 20000,
                                       .late_percent = 1};
    struct outcome out = run_programs(&how, 300);
    assert_int_equal(out.told, 0);
    // Fails if the test did not distort the order.
    assert_true(out.repaired > out.runs * 9 / 10);
    assert_true(out.dependencies > 0 && out.dependencies < out.dependencies_needed);
    (void)state;
}

static void published_late_and_shuffled(void **state)
{
    static const struct disturb how = {.early_ns = 1000,
                                       .early_permille = 500,
                                       .hand_over_ns = 2100,
                                       .late_ns = 500000,
                                       .late_percent = 2,
                                       .shuffled = true};
    struct outcome out = run_programs(&how, 200);
    assert_int_equal(out.told, 0);
    assert_true(out.late > out.runs);
    (void)state;
}

// Blocks are handed over immediately. A few stamps are early by more than the hand-over takes.
static void handed_over_at_once(void **state)
{
    static const struct disturb how = {.early_ns = 1000,
                                       .early_permille = 1,
                                       .early_gives = true,
                                       .hand_over_ns = 40,
                                       .shuffled = true};
    struct outcome out = run_programs(&how, 120);
    assert_true(out.repaired > out.runs / 2);
    assert_true(out.told < out.runs);
    (void)state;
}

static void lost_words(void **state)
{
    static const struct disturb how = {
        .early_ns = 1000, .early_permille = 200, .hand_over_ns = 2100, .loses = true};
    struct outcome out = run_programs(&how, 100);
    assert_true(out.lost > out.runs / 2);
    (void)state;
}

static void cut_off(void **state)
{
    static const struct disturb how = {.early_ns = 1000,
                                       .early_permille = 200,
                                       .hand_over_ns = 2100,
                                       .late_ns = 20000,
                                       .late_percent = 1,
                                       .cut_off = true};
    struct outcome out = run_programs(&how, 200);
    assert_true(out.told > 0 && out.told < out.runs);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(early_allocations),
        cmocka_unit_test(published_late_and_shuffled),
        cmocka_unit_test(handed_over_at_once),
        cmocka_unit_test(lost_words),
        cmocka_unit_test(cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
