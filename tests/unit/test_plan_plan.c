#include "plan_op_name.h"
#include "replay/plan/file.h"
#include "replay/plan/ops.h"
#include "replay/plan/plan.h"
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

// A finished plan, mapped like in the player.
struct mapped {
    struct plan *plan;
    const uint64_t *words;
    const struct plan_header *header;
    const struct plan_thread *threads;
    size_t bytes;
};

static struct plan *new_plan(void)
{
    struct plan *p;
    struct err e = {0};
    assert_int_equal(
        plan_new(&p, "test.htw", &(struct plan_settings){.memory_bytes = 64 << 20}, &e), 0);
    return p;
}

static void add(struct plan *p, uint32_t thread, struct workload_op op)
{
    struct err e = {0};
    if (plan_add_ops(p, thread, &op, 1, &e) != 0)
        fail_msg("%s", e.text);
}

static void refused(struct plan *p, uint32_t thread, struct workload_op op, const char *text)
{
    struct err e = {0};
    assert_int_equal(plan_add_ops(p, thread, &op, 1, &e), -EBADMSG);
    assert_non_null(strstr(e.text, "test.htw: "));
    assert_non_null(strstr(e.text, text));
    plan_free(p);
}

static struct workload_op allocate(uint32_t slot, uint64_t size)
{
    return (struct workload_op){.kind = HT_MALLOC, .slot = slot, .size = size};
}

static struct workload_op deallocate(uint32_t slot)
{
    return (struct workload_op){.kind = HT_FREE, .slot = slot};
}

static struct workload_op after(struct workload_op op, const struct workload_dependency *dependency)
{
    op.dependencies = dependency;
    op.n_dependencies = 1;
    return op;
}

static struct mapped finish(struct plan *p)
{
    struct err e = {0};
    if (plan_finish(p, &e) != 0)
        fail_msg("%s", e.text);
    struct mapped m = {.plan = p, .bytes = plan_facts(p)->bytes};
    m.words = mmap(NULL, m.bytes, PROT_READ, MAP_SHARED, plan_fd(p), 0);
    assert_true(m.words != MAP_FAILED);
    m.header = (const struct plan_header *)m.words;
    m.threads = (const struct plan_thread *)(m.words + m.header->threads_at);
    assert_int_equal(m.header->magic, PLAN_MAGIC);
    return m;
}

static void release(struct mapped *m)
{
    munmap((void *)m->words, m->bytes);
    plan_free(m->plan);
}

// An op decoded like in the player.
struct read_op {
    enum plan_op op;
    bool publish, wide;
    uint64_t entry, size, extra[2];
    uint64_t end; // index of the word after the op
};

static struct read_op read_op(const struct mapped *m, uint64_t *at)
{
    struct read_op s = {0};
    while (plan_op_of(m->words[*at]) == PLAN_JUMP)
        *at += 1 + (m->words[*at] >> 8);
    uint64_t word = m->words[(*at)++];
    s.op = plan_op_of(word);
    s.publish = word & PLAN_PUBLISH;
    s.entry = plan_entry_of(word);
    s.size = plan_size_of(word);
    if (s.op == PLAN_WIDE) {
        s.wide = true;
        s.op = plan_op_of(word >> 8);
        s.entry = m->words[(*at)++];
        s.size = m->words[(*at)++];
    }
    for (unsigned i = 0; i < plan_op_info(s.op).words; i++)
        s.extra[i] = m->words[(*at)++];
    s.end = *at;
    return s;
}

static void check_op(enum plan_op is, enum plan_op expected, int line)
{
    if (is != expected)
        fail_msg("line %d: the op is %s and not %s", line, plan_op_name(is),
                 plan_op_name(expected));
}

#define assert_op(read, expected) check_op((read).op, expected, __LINE__)

// The ops of one thread may be earlier than the ops of another thread that were added before.
static void test_duration_of_all_threads(void **state)
{
    (void)state;
    struct plan *p = new_plan();
    struct workload_op ops[] = {allocate(0, 8), allocate(1, 8), allocate(2, 8)};
    ops[0].stamp = 100;
    ops[1].stamp = 900;
    ops[2].stamp = 400;
    add(p, 0, ops[0]);
    add(p, 0, ops[1]);
    add(p, 1, ops[2]);
    struct mapped m = finish(p);
    assert_int_equal(plan_facts(p)->duration_stamps, 800);
    release(&m);
}

static void test_usual_calls_are_one_word(void **state)
{
    (void)state;
    struct plan *p = new_plan();
    add(p, 0, allocate(0, 100));
    add(p, 0, allocate(1, 0xffffffff));
    add(p, 0, (struct workload_op){.kind = HT_CALLOC, .slot = 2, .size = 24, .count = 1});
    add(p, 0, deallocate(0));
    add(p, 0, allocate(0, 7));
    struct mapped m = finish(p);
    uint64_t at = m.threads[0].first_word, first = at;
    struct read_op a = read_op(&m, &at), b = read_op(&m, &at), c = read_op(&m, &at),
                   d = read_op(&m, &at), again = read_op(&m, &at);
    assert_int_equal(at, first + 5);
    assert_op(a, PLAN_MALLOC);
    assert_int_equal(a.size, 100);
    assert_int_equal(b.size, 0xffffffff);
    assert_op(c, PLAN_CALLOC);
    assert_int_equal(c.size, 24);
    assert_op(d, PLAN_FREE);
    assert_int_equal(d.entry, a.entry);
    assert_true(a.entry > 0 && a.entry != b.entry && b.entry != c.entry);
    assert_int_equal(again.entry,
                     a.entry); // the cache reuses the last freed entry first
    struct read_op count = read_op(&m, &at), stop = read_op(&m, &at);
    assert_op(count, PLAN_COUNT);
    assert_op(stop, PLAN_STOP);
    assert_true(m.threads[0].at_start);
    release(&m);
}

static void test_calls_that_need_more(void **state)
{
    (void)state;
    struct plan *p = new_plan();
    add(p, 0, allocate(0, 1ull << 32));
    add(p, 0, (struct workload_op){.kind = HT_CALLOC, .slot = 1, .size = 24, .count = 3});
    add(p, 0,
        (struct workload_op){
            .kind = HT_POSIX_MEMALIGN, .slot = 2, .size = 1ull << 33, .align = 64});
    add(p, 0, (struct workload_op){.kind = HT_REALLOC, .slot = 1, .size = 500});
    add(p, 0, (struct workload_op){.kind = HT_REALLOCARRAY, .slot = 1, .size = 6, .count = 7});
    add(p, 0,
        (struct workload_op){
            .kind = HT_REALLOC, .slot = 3, .size = 9, .flags = WORKLOAD_FROM_NULL});
    add(p, 0, (struct workload_op){.kind = HT_REALLOC, .slot = 1, .flags = WORKLOAD_FREED});
    add(p, 0,
        (struct workload_op){.kind = HT_DELETE_SIZED_ALIGNED, .slot = 2, .size = 40, .align = 64});
    add(p, 0, (struct workload_op){.kind = HT_FREE, .slot = WORKLOAD_NO_SLOT});
    struct mapped m = finish(p);
    uint64_t at = m.threads[0].first_word;
    struct read_op s = read_op(&m, &at);
    assert_true(s.wide && s.op == PLAN_MALLOC && s.size == 1ull << 32);
    s = read_op(&m, &at);
    assert_true(!s.wide && s.op == PLAN_CALLOC_MANY && s.size == 24 && s.extra[0] == 3);
    uint64_t entry = s.entry;
    s = read_op(&m, &at);
    assert_true(s.wide && s.op == PLAN_POSIX_MEMALIGN && s.size == 1ull << 33 && s.extra[0] == 64);
    s = read_op(&m, &at);
    assert_true(s.op == PLAN_REALLOC && s.entry == entry && s.size == 500 && s.extra[0] == 72);
    s = read_op(&m, &at);
    assert_true(s.op == PLAN_REALLOCARRAY && s.entry == entry && s.size == 6 && s.extra[0] == 7 &&
                s.extra[1] == 500);
    s = read_op(&m, &at);
    assert_true(s.op == PLAN_REALLOC_NEW && s.size == 9);
    s = read_op(&m, &at);
    assert_true(s.op == PLAN_REALLOC_FREE && s.entry == entry);
    s = read_op(&m, &at);
    assert_true(s.op == PLAN_DELETE_SIZED_ALIGNED && s.size == 40 && s.extra[0] == 64);
    s = read_op(&m, &at);
    assert_true(s.op == PLAN_FREE && s.entry == 0); // entry 0 is NULL
    assert_int_equal(plan_facts(m.plan)->events, 9);
    assert_int_equal(plan_facts(m.plan)->by_kind[HT_REALLOC], 3);
    release(&m);
}

static void test_skipped_ops(void **state)
{
    (void)state;
    struct plan *p = new_plan();
    add(p, 0,
        (struct workload_op){.kind = HT_MALLOC,
                             .size = 1ull << 62,
                             .slot = WORKLOAD_NO_SLOT,
                             .error = ENOMEM,
                             .flags = WORKLOAD_FAILED});
    add(p, 0, (struct workload_op){.kind = HT_MARK, .text = "x", .text_bytes = 1});
    add(p, 0, allocate(0, 5));
    add(p, 0,
        (struct workload_op){
            .kind = HT_REALLOC, .slot = 0, .size = 1ull << 62, .flags = WORKLOAD_FAILED});
    add(p, 0, (struct workload_op){.kind = HT_MUNMAP, .size = 4096});
    struct mapped m = finish(p);
    uint64_t at = m.threads[0].first_word;
    assert_op(read_op(&m, &at), PLAN_SKIPPED);
    assert_op(read_op(&m, &at), PLAN_SKIPPED);
    assert_op(read_op(&m, &at), PLAN_MALLOC);
    assert_op(read_op(&m, &at), PLAN_SKIPPED);
    assert_op(read_op(&m, &at), PLAN_SKIPPED);
    assert_int_equal(plan_facts(m.plan)->events, 1);
    assert_int_equal(plan_facts(m.plan)->skipped, 3);
    assert_int_equal(plan_facts(m.plan)->peak_live_bytes, 5);
    release(&m);
}

// Thread 1 depends on every hundredth op of thread 0. Thread 0 is many chunks ahead, and its ops
// have all lengths.
static void test_only_dependencies_publish(void **state)
{
    (void)state;
    enum { OPS = 10000 };
    struct plan *p = new_plan();
    for (uint32_t i = 0; i < OPS; i++)
        add(p, 0, allocate(i, i % 7 ? i : (1ull << 32) + i));
    for (uint32_t i = 0; i < OPS; i += 100)
        add(p, 1, after(deallocate(i), &(struct workload_dependency){0, i}));
    struct mapped m = finish(p);
    uint64_t at = m.threads[0].first_word, positions[OPS], others = 0;
    for (uint32_t i = 0; i < OPS;) {
        struct read_op s = read_op(&m, &at);
        if (s.op == PLAN_SAMPLE)
            continue;
        assert_op(s, PLAN_MALLOC);
        assert_true(s.publish || i % 100);
        others += s.publish && i % 100;
        assert_int_equal(plan_op_at(m.plan, 0, s.end), i);
        positions[i++] = s.end;
    }
    at = m.threads[1].first_word;
    for (uint32_t i = 0; i < OPS; i += 100) {
        struct read_op wait = read_op(&m, &at);
        while (wait.op == PLAN_COUPLE || wait.op == PLAN_COUNT)
            wait = read_op(&m, &at);
        struct read_op s = read_op(&m, &at);
        assert_true(wait.op == PLAN_WAIT && wait.size == 0 && wait.extra[0] == positions[i]);
        assert_op(s, PLAN_FREE);
    }
    assert_int_equal(plan_facts(m.plan)->dependencies, OPS / 100);
    assert_true(others <= 2); // because of the coupling, thread 1 waits for these ops
    release(&m);
}

static void test_threads_started_by_threads(void **state)
{
    (void)state;
    struct plan *p = new_plan();
    add(p, 0, (struct workload_op){.kind = HT_THREAD_CREATE, .value = 1});
    add(p, 1, allocate(0, 1));
    add(p, 2, allocate(1, 1)); // No thread starts thread 2, so it exists from the start.
    add(p, 0, (struct workload_op){.kind = HT_THREAD_CREATE, .value = 2});
    add(p, 0, (struct workload_op){.kind = HT_THREAD_CREATE, .value = 1});
    add(p, 0, (struct workload_op){.kind = HT_THREAD_CREATE, .value = 3}); // has no effect
    struct mapped m = finish(p);
    uint64_t at = m.threads[0].first_word;
    struct read_op s = read_op(&m, &at);
    assert_true(s.op == PLAN_START_THREAD && s.size == 1);
    assert_op(read_op(&m, &at), PLAN_SKIPPED);
    assert_op(read_op(&m, &at), PLAN_SKIPPED);
    assert_int_equal(m.header->n_threads, 4);
    assert_int_equal(m.threads[1].at_start, 0);
    assert_int_equal(m.threads[2].at_start, 1);
    assert_int_equal(m.threads[3].first_word, 0);
    release(&m);
}

// Thread 2 starts after the exit of thread 1. If thread 1 has calls after its exit, the start of
// thread 2 cannot wait for it.
static void test_starts_wait_for_exits(void **state)
{
    (void)state;
    for (uint64_t calls_after = 0; calls_after < 2; calls_after++) {
        struct plan *p = new_plan();
        for (uint32_t i = 1; i < 3; i++) {
            add(p, 0, (struct workload_op){.kind = HT_THREAD_CREATE, .value = i});
            add(p, i, allocate(i, 1));
            add(p, i, (struct workload_op){.kind = HT_THREAD_END});
        }
        if (calls_after)
            add(p, 1, deallocate(1));
        struct mapped m = finish(p);
        uint64_t at = m.threads[0].first_word;
        struct read_op first = read_op(&m, &at), second = read_op(&m, &at);
        while (second.op != PLAN_START_THREAD)
            second = read_op(&m, &at);
        assert_true(first.size == 1 && first.entry == 0);
        assert_true(second.size == 2 && second.entry == 1);
        assert_int_equal(m.header->waits_for_exits, !calls_after);
        release(&m);
    }
}

// A preexisting block is listed late, in a slot that another block used before.
static void test_preexisting_blocks_have_separate_entries(void **state)
{
    (void)state;
    struct plan *p = new_plan();
    add(p, 0, allocate(0, 10));
    add(p, 0, deallocate(0));
    add(p, 0, (struct workload_op){.kind = HT_PREEXISTING, .slot = 0, .size = 30});
    add(p, 0, deallocate(0));
    struct mapped m = finish(p);
    uint64_t at = m.threads[0].first_word, before = m.header->preexisting_at;
    struct read_op first = read_op(&m, &at), made = read_op(&m, &before);
    read_op(&m, &at);
    assert_op(read_op(&m, &at), PLAN_SKIPPED);
    struct read_op last = read_op(&m, &at);
    assert_op(made, PLAN_PREEXISTING);
    assert_int_equal(made.size, 30);
    assert_int_equal(last.entry, made.entry);
    assert_true(made.entry != first.entry);
    assert_int_equal(plan_facts(m.plan)->peak_live_bytes, 40);
    assert_int_equal(plan_facts(m.plan)->live_at_end_bytes, 0);
    assert_int_equal(plan_facts(m.plan)->events, 3);
    release(&m);
}

// Each block that is live at the end is freed by the function that belongs to its call.
static void test_leftovers_are_freed_by_their_family(void **state)
{
    static const uint8_t kinds[][2] = {{HT_MALLOC, PLAN_FREE},
                                       {HT_MEMALIGN, PLAN_FREE},
                                       {HT_NEW, PLAN_DELETE},
                                       {HT_NEW_NOTHROW, PLAN_DELETE},
                                       {HT_NEW_ARRAY, PLAN_DELETE_ARRAY},
                                       {HT_NEW_ARRAY_NOTHROW, PLAN_DELETE_ARRAY},
                                       {HT_NEW_ALIGNED, PLAN_DELETE_ALIGNED},
                                       {HT_NEW_ALIGNED_NOTHROW, PLAN_DELETE_ALIGNED},
                                       {HT_NEW_ARRAY_ALIGNED, PLAN_DELETE_ARRAY_ALIGNED},
                                       {HT_NEW_ARRAY_ALIGNED_NOTHROW, PLAN_DELETE_ARRAY_ALIGNED}};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    struct plan *p = new_plan();
    (void)state;
    for (unsigned i = 0; i < KINDS; i++) {
        bool aligned = event_infos[kinds[i][0]].fields & HT_F_ALIGN;
        add(p, 0,
            (struct workload_op){
                .kind = kinds[i][0], .slot = i, .size = 64, .align = aligned ? 32 : 0});
    }
    struct mapped m = finish(p);
    uint64_t at = m.header->leftovers_at;
    for (unsigned i = 0; i < KINDS; i++)
        assert_int_equal(read_op(&m, &at).op, kinds[i][1]);
    release(&m);
}

// Thread 1 frees the blocks of thread 0. The slot table must not grow, and thread 0 may reuse an
// entry freed by thread 1 only after a dependency.
static void test_entries_pass_to_other_threads(void **state)
{
    (void)state;
    enum { ROUNDS = 100000 };
    struct plan *p = new_plan();
    for (uint32_t i = 0; i < ROUNDS; i++) {
        add(p, 0, allocate(i % 8, 16));
        add(p, 1, after(deallocate(i % 8), &(struct workload_dependency){0, i}));
    }
    struct mapped m = finish(p);
    assert_true(m.header->slot_table_entries < 2000);
    assert_true(plan_facts(m.plan)->dependencies > ROUNDS);
    assert_true(plan_facts(m.plan)->dependencies < ROUNDS + ROUNDS / 100);
    uint64_t at = m.threads[0].first_word, waited = 0;
    static uint64_t freed_at[2000]; // position at which thread 1 last freed the entry
    uint64_t other = m.threads[1].first_word, n = 0;
    while (n < ROUNDS) {
        struct read_op s = read_op(&m, &at);
        if (s.op == PLAN_WAIT)
            waited = s.extra[0];
        if (s.op != PLAN_MALLOC)
            continue;
        assert_true(freed_at[s.entry] <= waited);
        n++;
        struct read_op g;
        do
            g = read_op(&m, &other);
        while (g.op != PLAN_FREE);
        assert_int_equal(g.entry, s.entry);
        freed_at[g.entry] = g.end;
    }
    release(&m);
}

// Two threads never use entries in the same cache line.
static void test_threads_do_not_share_lines(void **state)
{
    (void)state;
    struct plan *p = new_plan();
    for (uint32_t i = 0; i < 100; i++)
        add(p, i % 2, allocate(i, 1));
    struct mapped m = finish(p);
    uint64_t at[2] = {m.threads[0].first_word, m.threads[1].first_word};
    uint8_t user[1000] = {0};
    for (uint32_t i = 0; i < 100; i++) {
        struct read_op s = read_op(&m, &at[i % 2]);
        assert_true(user[s.entry / 8] == 0 || user[s.entry / 8] == i % 2 + 1);
        user[s.entry / 8] = (uint8_t)(i % 2 + 1);
    }
    release(&m);
}

static void check_samples(uint32_t n_events, uint64_t samples_wanted)
{
    struct plan *p;
    struct err e = {0};
    assert_int_equal(
        plan_new(&p, "test.htw", &(struct plan_settings){.memory_bytes = 256 << 20}, &e), 0);
    for (uint32_t i = 0; i < n_events / 2; i++) {
        add(p, 0, allocate(0, 16));
        add(p, 0, deallocate(0));
    }
    add(p, 0, allocate(0, 100));
    struct mapped m = finish(p);
    uint64_t at = m.threads[0].first_word, events = 0, samples = 0;
    int64_t live = 0;
    for (;;) {
        struct read_op s = read_op(&m, &at);
        if (s.op == PLAN_STOP)
            break;
        if (s.op != PLAN_SAMPLE && s.op != PLAN_COUNT)
            continue;
        samples += s.op == PLAN_SAMPLE;
        // The count has 56 bits, so the fields of a call overlap it.
        events += (s.size << 32 | s.entry << 8) >> 8;
        live += (int64_t)s.extra[0];
    }
    assert_int_equal(events, n_events + 1);
    assert_int_equal(live, 100);
    assert_int_equal(samples, plan_facts(m.plan)->samples);
    assert_int_equal(samples, samples_wanted);
    release(&m);
}

static void test_samples(void **state)
{
    (void)state;
    check_samples(4000, 0);
    check_samples(3 * PLAN_SAMPLE_EVENTS, 3);
    check_samples(2 * PLAN_SAMPLES_WANTED * PLAN_SAMPLE_EVENTS, PLAN_SAMPLES_WANTED);
}

static void test_trims_come_after_every_second_call(void **state)
{
    (void)state;
    struct plan *p;
    struct err e = {0};
    const struct plan_settings settings = {.memory_bytes = 64 << 20, .trim_every = 2};
    assert_int_equal(plan_new(&p, "test.htw", &settings, &e), 0);
    for (uint32_t i = 0; i < 5; i++)
        add(p, 0, allocate(i, 1));
    struct mapped m = finish(p);
    uint64_t at = m.threads[0].first_word;
    for (unsigned i = 0; i < 5; i++) {
        if (i && i % 2 == 0)
            assert_op(read_op(&m, &at), PLAN_TRIM);
        assert_op(read_op(&m, &at), PLAN_MALLOC);
    }
    release(&m);
}

static void test_bad_workloads_are_refused(void **state)
{
    (void)state;
    struct plan *p = new_plan();
    refused(p, 0, deallocate(0), "op 0 of thread 0 uses slot 0, which holds no block");
    p = new_plan();
    add(p, 0, allocate(0, 1));
    add(p, 0, deallocate(0));
    refused(p, 0, deallocate(0), "op 2 of thread 0 uses slot 0");
    p = new_plan();
    add(p, 0, allocate(0, 1));
    refused(p, 0, allocate(0, 1), "allocates into slot 0, which already holds a block");
    p = new_plan();
    refused(p, 0, (struct workload_op){.kind = HT_REALLOC, .slot = 3, .size = 1}, "uses slot 3");
    p = new_plan();
    add(p, 0, allocate(0, 1));
    refused(p, 1, after(deallocate(0), &(struct workload_dependency){0, 1}),
            "depends on op 1 of thread 0, which does not come before it");
    p = new_plan();
    refused(p, 0, after(allocate(0, 1), &(struct workload_dependency){0, 0}),
            "depends on op 0 of thread 0");
    p = new_plan();
    refused(p, 0, allocate(0xfffffff0, 1), "table of slots does not fit");
    p = new_plan();
    refused(p, 0xffffffff, allocate(0, 1), "thread 4294967295");
    p = new_plan();
    refused(p, 0, (struct workload_op){.kind = HT_REALLOC_BEGIN},
            "which cannot occur in a workload");
}

static void test_an_empty_workload_is_refused(void **state)
{
    (void)state;
    struct err e = {0};
    struct plan *p = new_plan();
    add(p, 0, (struct workload_op){.kind = HT_THREAD_END});
    assert_int_equal(plan_finish(p, &e), -ENODATA);
    assert_non_null(strstr(e.text, "test.htw: holds no call to replay"));
    plan_free(p);
}

static void test_too_little_memory(void **state)
{
    (void)state;
    struct plan *p;
    struct err e = {0};
    struct workload_op ops[] = {allocate(0, 1), deallocate(0)};
    int rc = 0;
    assert_int_equal(plan_new(&p, "test.htw", &(struct plan_settings){.memory_bytes = 1 << 20}, &e),
                     0);
    for (uint32_t i = 0; rc == 0 && i < 1 << 20; i++)
        rc = plan_add_ops(p, 0, &ops[i % 2], 1, &e);
    assert_int_equal(rc, -E2BIG);
    assert_non_null(strstr(e.text, "--memory"));
    plan_free(p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_usual_calls_are_one_word),
    cmocka_unit_test(test_calls_that_need_more),
    cmocka_unit_test(test_skipped_ops),
    cmocka_unit_test(test_only_dependencies_publish),
    cmocka_unit_test(test_threads_started_by_threads),
    cmocka_unit_test(test_starts_wait_for_exits),
    cmocka_unit_test(test_preexisting_blocks_have_separate_entries),
    cmocka_unit_test(test_leftovers_are_freed_by_their_family),
    cmocka_unit_test(test_entries_pass_to_other_threads),
    cmocka_unit_test(test_threads_do_not_share_lines),
    cmocka_unit_test(test_samples),
    cmocka_unit_test(test_trims_come_after_every_second_call),
    cmocka_unit_test(test_bad_workloads_are_refused),
    cmocka_unit_test(test_an_empty_workload_is_refused),
    cmocka_unit_test(test_too_little_memory),
    cmocka_unit_test(test_duration_of_all_threads),
};

UNIT_MAIN(tests)
