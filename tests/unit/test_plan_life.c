// Tests plans of random workloads with several threads and large blocks that are used late. In
// every order that the plan's dependencies allow, no thread touches a block before its allocation
// or after its free.
#include "play.h"
#include "replay/plan/build.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 5, SLOTS = 12, OPS = 200, MAX_STEPS = 3, ROUNDS = 300 };

struct made_op {
    struct workload_op op;
    struct workload_dependency dependency;
    uint32_t thread;
};

struct made {
    struct made_op ops[OPS];
    struct workload_sample samples[OPS];
    struct samples_residency residency;
    size_t n_samples;
    uint64_t last_stamp;
};

// The last op on the block in a slot.
struct made_slot {
    bool holds;
    uint32_t thread;
    uint64_t op;
};

static uint64_t seed;

static unsigned below(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

static uint64_t any_size(void)
{
    static const uint64_t sizes[] = {100, 64 << 10, 300 << 10, 1 << 20, 5 << 20};
    return sizes[below(5)];
}

// Adds the measurements of a block that the program used completely in the end.
static void add_residency(struct made *m, const struct made_op *o, uint64_t number)
{
    uint32_t kib = (uint32_t)(o->op.size >> 10);
    struct workload_residency r = {
        .op = number, .thread = o->thread, .used = kib, .resident = kib, .front = kib};
    assert_int_equal(samples_residency_add(&m->residency, &r), 0);
    for (unsigned i = 0, n = below(MAX_STEPS + 1), used = 0; i < n; i++) {
        struct workload_residency_step s = {
            .op = number, .thread = o->thread, .stamp = o->op.stamp + 1 + i * below(300)};
        s.used = used += below(kib - used);
        assert_int_equal(samples_residency_add_step(&m->residency, &s), 0);
    }
}

static void choose_op(struct made_op *o, struct made_slot *slot, uint64_t number)
{
    bool allocates = !slot->holds, frees = !allocates && below(3);
    o->op.kind = allocates ? (below(4) ? HT_MALLOC : HT_CALLOC) : frees ? HT_FREE : HT_REALLOC;
    o->op.count = o->op.kind == HT_CALLOC;
    o->op.size = frees ? 0 : any_size();
    if (!allocates && slot->thread != o->thread) {
        o->dependency = (struct workload_dependency){.thread = slot->thread, .op = slot->op};
        o->op.dependencies = &o->dependency;
        o->op.n_dependencies = 1;
    }
    *slot = (struct made_slot){.holds = !frees, .thread = o->thread, .op = number};
}

static void make(struct made *m)
{
    struct made_slot slots[SLOTS] = {0};
    uint64_t numbers[MAX_THREADS] = {0}, stamp = 1;
    unsigned n_threads = 2 + below(MAX_THREADS - 1);
    memset(m, 0, sizeof *m);
    for (unsigned i = 0; i < OPS; i++) {
        struct made_op *o = &m->ops[i];
        stamp += below(20);
        o->thread = below(n_threads);
        o->op.slot = below(SLOTS);
        o->op.stamp = stamp;
        choose_op(o, &slots[o->op.slot], numbers[o->thread]);
        if (o->op.size >= HT_BIG_BYTES && below(4))
            add_residency(m, o, numbers[o->thread]);
        numbers[o->thread]++;
        if (!below(4))
            m->samples[m->n_samples++] =
                (struct workload_sample){.stamp = stamp, .anon_bytes = (uint64_t)below(20) << 20};
    }
    samples_residency_sort(&m->residency);
}

static void play_made(const struct made *m, bool one_thread)
{
    struct err e = {0};
    struct plan *p;
    const struct plan_settings settings = {
        .memory_bytes = 64 << 20, .one_thread = one_thread, .ns_per_stamp = below(2)};
    assert_int_equal(plan_new(&p, "random", &settings, &e), 0);
    assert_int_equal(plan_set_samples(p, m->samples, m->n_samples, &e), 0);
    p->residency = &m->residency;
    p->whole = below(2);
    for (unsigned i = 0; i < OPS; i++) {
        if (plan_add_ops(p, m->ops[i].thread, &m->ops[i].op, 1, &e) != 0)
            fail_msg("%s", e.text);
    }
    if (p->whole)
        assert_int_equal(plan_put_end(p, &e), 0);
    assert_int_equal(plan_finish(p, &e), 0);
    assert_true(plan_check(p));
    play_plan(p, true);
    plan_free(p);
}

static void test_no_block_is_touched_outside_its_life(void **state)
{
    (void)state;
    static struct made m;
    for (seed = 1; seed <= ROUNDS; seed++) {
        uint64_t round = seed;
        make(&m);
        play_made(&m, false);
        play_made(&m, true);
        samples_residency_release(&m.residency);
        seed = round;
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_no_block_is_touched_outside_its_life),
};

UNIT_MAIN(tests)
