// Tests where the plan touches the pages of large blocks that the program used after their
// allocation.
#include "plan_op_name.h"
#include "replay/plan/build.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

enum { MIB = 1 << 20, PAGES = 16384, SIZE = PAGES * 4096 };

struct case_of {
    struct plan *plan;
    struct samples_residency residency;
    struct workload_residency block;
};

// Starts a case where the program uses the whole block of thread 0's first op. The samples (in MiB)
// have the stamps 10, 20, 30, …
static void begin(struct case_of *c, size_t n, const unsigned *mib, bool one_thread)
{
    struct workload_sample samples[8];
    struct err e = {0};
    for (size_t i = 0; i < n; i++)
        samples[i] =
            (struct workload_sample){.stamp = 10 * (i + 1), .anon_bytes = (uint64_t)mib[i] * MIB};
    assert_int_equal(
        plan_new(&c->plan, "test.htw",
                 &(struct plan_settings){.memory_bytes = 64 << 20, .one_thread = one_thread}, &e),
        0);
    assert_int_equal(plan_set_samples(c->plan, samples, n, &e), 0);
    c->block = (struct workload_residency){
        .op = 1, .used = SIZE >> 10, .resident = SIZE >> 10, .front = SIZE >> 10};
    c->residency = (struct samples_residency){.items = &c->block, .n = 1};
    c->plan->residency = &c->residency;
}

static void add(struct case_of *c, uint32_t thread, uint64_t stamp, struct workload_op op)
{
    struct err e = {0};
    op.stamp = stamp;
    if (plan_add_ops(c->plan, thread, &op, 1, &e) != 0)
        fail_msg("%s", e.text);
}

static struct workload_op small(uint32_t slot)
{
    return (struct workload_op){.kind = HT_MALLOC, .slot = slot}; // allocates 0 bytes
}

static const struct workload_op big = {.kind = HT_MALLOC, .slot = 1, .size = SIZE};

// Compares the thread's calls, samples, waits and touches with `expected`. A touch shows the number
// of pages used after it.
static void ops_are(struct case_of *c, uint32_t thread, const char *expected)
{
    char text[1000] = "";
    struct err e = {0};
    if (!c->plan->facts.bytes && plan_finish(c->plan, &e) != 0)
        fail_msg("%s", e.text);
    assert_true(plan_check(c->plan));
    const uint64_t *w = c->plan->memory.words + c->plan->streams[thread]->first;
    for (; plan_op_of(*w) != PLAN_STOP; w += plan_op_words(*w)) {
        enum plan_op op = plan_op_of(*w);
        size_t n = strlen(text);
        if (op == PLAN_TOUCH)
            snprintf(text + n, sizeof text - n, "TOUCH %u ", (unsigned)((*w >> 8) - (w[1] >> 32)));
        else if (op == PLAN_TOUCH_LATE)
            snprintf(text + n, sizeof text - n, "LATE %s%u-%u ", w[1] >> 63 ? "zeros " : "",
                     (unsigned)(uint32_t)w[1], (unsigned)plan_size_of(*w));
        else if (op != PLAN_COUNT && op != PLAN_COUPLE)
            snprintf(text + n, sizeof text - n, "%s ", plan_op_name(op));
    }
    if (strcmp(text, expected) != 0)
        fail_msg("thread %u: %sinstead of %s", thread, text, expected);
    if (!thread)
        plan_free(c->plan);
}

static void test_bit_by_bit(void **state)
{
    (void)state;
    struct case_of c;
    begin(&c, 4, (const unsigned[]){1, 1, 33, 65}, false);
    add(&c, 0, 5, small(0));
    add(&c, 0, 12, big);
    add(&c, 0, 25, small(2));
    add(&c, 0, 50, (struct workload_op){.kind = HT_FREE, .slot = 1});
    ops_are(&c, 0,
            "malloc SAMPLE TOUCH 0 malloc SAMPLE malloc LATE 0-8192 SAMPLE LATE 8192-16384 SAMPLE "
            "free ");
}

static void test_pages_of_calloc_are_distinguished(void **state)
{
    (void)state;
    struct case_of c;
    begin(&c, 2, (const unsigned[]){1, 33}, false);
    add(&c, 0, 5, small(0));
    add(&c, 0, 12, (struct workload_op){.kind = HT_CALLOC, .slot = 1, .count = 1, .size = SIZE});
    add(&c, 0, 50, (struct workload_op){.kind = HT_FREE, .slot = 1});
    ops_are(&c, 0, "malloc SAMPLE TOUCH 8192 calloc SAMPLE LATE zeros 8192-16384 free ");
}

static void test_the_rest_is_touched_before_the_free(void **state)
{
    (void)state;
    struct case_of c;
    begin(&c, 2, (const unsigned[]){1, 33}, false);
    add(&c, 0, 5, small(0));
    add(&c, 0, 12, big);
    add(&c, 0, 50, (struct workload_op){.kind = HT_REALLOC, .slot = 1, .size = 100});
    ops_are(&c, 0, "malloc SAMPLE TOUCH 8192 malloc SAMPLE LATE 8192-16384 realloc ");
}

static void test_or_before_its_thread_exits(void **state)
{
    (void)state;
    struct case_of c;
    begin(&c, 2, (const unsigned[]){1, 1}, false);
    add(&c, 0, 5, small(0));
    add(&c, 0, 12, big);
    add(&c, 0, 50, (struct workload_op){.kind = HT_THREAD_END});
    ops_are(&c, 0, "malloc SAMPLE TOUCH 0 malloc SAMPLE LATE 0-16384 SKIPPED ");
}

// If there is no later sample, it is unknown when the rest of the block is used. In a slice of a
// workload, this may be after the end of the slice.
static void test_or_after_the_last_sample(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct case_of c;
        begin(&c, 2, (const unsigned[]){1, 33}, false);
        c.plan->whole = whole;
        add(&c, 0, 5, small(0));
        add(&c, 0, 12, big);
        add(&c, 0, 50, small(2));
        ops_are(&c, 0,
                whole ? "malloc SAMPLE TOUCH 8192 malloc SAMPLE LATE 8192-16384 malloc "
                      : "malloc SAMPLE TOUCH 8192 malloc SAMPLE malloc ");
    }
}

// A program may run long after its last call.
static void test_or_after_the_last_call(void **state)
{
    (void)state;
    struct err e = {0};
    struct case_of c;
    begin(&c, 4, (const unsigned[]){1, 1, 33, 49}, false);
    c.plan->whole = true;
    add(&c, 0, 5, small(0));
    add(&c, 0, 12, big);
    add(&c, 1, 15, small(2));
    assert_int_equal(plan_put_end(c.plan, &e), 0);
    ops_are(&c, 1, "malloc ");
    ops_are(&c, 0,
            "malloc SAMPLE TOUCH 0 malloc SAMPLE LATE 0-8192 SAMPLE LATE 8192-12288 SAMPLE LATE "
            "12288-16384 ");
}

static void test_a_program_that_uses_its_block_at_once(void **state)
{
    (void)state;
    struct case_of c;
    // The second sample is too low by less than the tolerance. The third sample is below the memory
    // of earlier samples, because the allocator kept that memory.
    begin(&c, 3, (const unsigned[]){1, 64, 10}, false);
    add(&c, 0, 5, small(0));
    add(&c, 0, 12, big);
    add(&c, 0, 50, (struct workload_op){.kind = HT_FREE, .slot = 1});
    ops_are(&c, 0, "malloc SAMPLE TOUCH 16384 malloc SAMPLE SAMPLE free ");
}

// The program never uses the second half of the block. The samples are as expected.
static void test_a_block_of_which_half_is_used(void **state)
{
    (void)state;
    struct case_of c;
    begin(&c, 3, (const unsigned[]){1, 33, 1}, false);
    c.block.used = c.block.resident = c.block.front = SIZE >> 11;
    add(&c, 0, 5, small(0));
    add(&c, 0, 12, big);
    add(&c, 0, 25, (struct workload_op){.kind = HT_FREE, .slot = 1});
    add(&c, 0, 35, small(1));
    assert_int_equal(c.plan->unused, 0);
    ops_are(&c, 0, "malloc SAMPLE TOUCH 8192 malloc SAMPLE free SAMPLE malloc ");
}

static void test_without_samples(void **state)
{
    (void)state;
    struct case_of c;
    begin(&c, 0, NULL, false);
    add(&c, 0, 5, small(0));
    add(&c, 0, 12, big);
    add(&c, 0, 50, (struct workload_op){.kind = HT_FREE, .slot = 1});
    ops_are(&c, 0, "malloc TOUCH 16384 malloc free ");
}

// The freeing thread waits until the allocating thread has touched the block for the last time.
static void test_another_thread_frees(void **state)
{
    (void)state;
    struct case_of c;
    const struct workload_dependency allocated = {.thread = 0, .op = 1};
    struct workload_op freed = {
        .kind = HT_FREE, .slot = 1, .dependencies = &allocated, .n_dependencies = 1};
    begin(&c, 3, (const unsigned[]){1, 1, 33}, false);
    add(&c, 0, 5, small(0));
    add(&c, 0, 12, big);
    add(&c, 1, 25, small(2));
    add(&c, 0, 35, small(3));
    add(&c, 1, 50, freed);
    ops_are(&c, 1, "SAMPLE malloc WAIT WAIT LATE 8192-16384 free ");
    ops_are(&c, 0, "malloc SAMPLE TOUCH 0 malloc LATE 0-8192 SAMPLE malloc ");
}

// The samples show that the whole block was used before the other thread freed it. The other thread
// has no pages left to touch, but its free still waits.
static void test_another_thread_frees_a_used_block(void **state)
{
    (void)state;
    for (int resizes = 0; resizes < 2; resizes++) {
        struct case_of c;
        const struct workload_dependency allocated = {.thread = 0, .op = 1};
        struct workload_op released = {.kind = resizes ? HT_REALLOC : HT_FREE,
                                       .slot = 1,
                                       .size = resizes ? 100 : 0,
                                       .dependencies = &allocated,
                                       .n_dependencies = 1};
        begin(&c, 4, (const unsigned[]){1, 1, 65, 65}, false);
        add(&c, 0, 5, small(0));
        add(&c, 0, 12, big);
        add(&c, 1, 25, small(2));
        add(&c, 0, 35, small(3));
        add(&c, 1, 50, released);
        ops_are(&c, 1,
                resizes ? "SAMPLE malloc SAMPLE WAIT WAIT realloc "
                        : "SAMPLE malloc SAMPLE WAIT WAIT free ");
        ops_are(&c, 0, "malloc SAMPLE TOUCH 0 malloc LATE 0-16384 SAMPLE malloc ");
    }
}

// The thread that allocated the block sleeps when the samples show that the block is used.
static void test_another_thread_touches(void **state)
{
    (void)state;
    struct case_of c;
    begin(&c, 3, (const unsigned[]){1, 1, 65}, false);
    add(&c, 0, 5, small(0));
    add(&c, 0, 12, big);
    add(&c, 1, 25, small(2));
    add(&c, 1, 35, small(3));
    add(&c, 0, 50, (struct workload_op){.kind = HT_FREE, .slot = 1});
    ops_are(&c, 1, "SAMPLE malloc WAIT LATE 0-16384 SAMPLE malloc ");
    ops_are(&c, 0, "malloc SAMPLE TOUCH 0 malloc WAIT free ");
}

static void test_all_threads_in_one(void **state)
{
    (void)state;
    struct case_of c;
    begin(&c, 3, (const unsigned[]){1, 1, 33}, true);
    add(&c, 0, 5, small(0));
    add(&c, 0, 12, big);
    add(&c, 1, 25, small(2));
    add(&c, 0, 35, small(3));
    add(&c, 1, 50, (struct workload_op){.kind = HT_FREE, .slot = 1});
    ops_are(
        &c, 0,
        "malloc SAMPLE TOUCH 0 malloc SWITCH SAMPLE malloc SWITCH LATE 0-8192 SAMPLE malloc SWITCH "
        "LATE 8192-16384 free ");
}

// Depending on its address, a block of 66,000 bytes contains 15 or 16 whole pages. If 15 pages are
// used, the whole block may be used.
static void test_a_block_that_is_used_as_a_whole(void **state)
{
    (void)state;
    for (unsigned pages = 14; pages < 17; pages++) {
        struct case_of c;
        begin(&c, 0, NULL, false);
        c.block.used = c.block.resident = c.block.front = pages * 4;
        add(&c, 0, 5, small(0));
        add(&c, 0, 12, (struct workload_op){.kind = HT_MALLOC, .slot = 1, .size = 66000});
        ops_are(&c, 0, pages == 14 ? "malloc TOUCH 14 malloc " : "malloc TOUCH 17 malloc ");
    }
}

// For a block measured while it was live, the use at each step does not have to appear in the
// samples.
static void test_steps(void **state)
{
    (void)state;
    static struct workload_residency_step steps[] = {{.op = 1, .stamp = 20, .used = 100 << 2},
                                                     {.op = 1, .stamp = 30, .used = 8192 << 2},
                                                     {.op = 1, .stamp = 40, .used = 100 << 2}};
    struct case_of c;
    begin(&c, 1, (const unsigned[]){1}, false);
    c.residency.steps = steps;
    c.residency.n_steps = 3;
    c.plan->whole = true;
    add(&c, 0, 5, small(0));
    add(&c, 0, 12, big);
    for (unsigned i = 0; i < 4; i++)
        add(&c, 0, 18 + 8 * i, small(2 + i));
    add(&c, 0, 50, (struct workload_op){.kind = HT_FREE, .slot = 1});
    ops_are(&c, 0,
            "malloc SAMPLE TOUCH 100 malloc malloc LATE 100-8192 malloc malloc LATE 8192-16384 "
            "malloc free ");
}

static void test_samples_do_not_override_steps(void **state)
{
    (void)state;
    static struct workload_residency_step step = {.op = 1, .stamp = 45, .used = 100 << 2};
    struct case_of c;
    begin(&c, 3, (const unsigned[]){1, 65, 65}, false);
    c.residency.steps = &step;
    c.residency.n_steps = 1;
    add(&c, 0, 5, small(0));
    add(&c, 0, 12, big);
    add(&c, 0, 35, small(2));
    add(&c, 0, 50, (struct workload_op){.kind = HT_FREE, .slot = 1});
    ops_are(&c, 0, "malloc SAMPLE TOUCH 100 malloc SAMPLE SAMPLE malloc LATE 100-16384 free ");
}

// The samples between the allocation of the block and the step of 8,192 pages exceed the memory
// before the block by 0 MiB at first, and then by 16 MiB.
static void test_samples_fill_in_between_steps(void **state)
{
    (void)state;
    static struct workload_residency_step steps[] = {{.op = 1, .stamp = 45, .used = 8192 << 2},
                                                     {.op = 1, .stamp = 65, .used = 8192 << 2}};
    struct case_of c;
    begin(&c, 7, (const unsigned[]){1, 1, 17, 17, 65, 65, 65}, false);
    c.residency.steps = steps;
    c.residency.n_steps = 2;
    add(&c, 0, 5, small(0));
    add(&c, 0, 12, big);
    add(&c, 0, 35, small(2));
    add(&c, 0, 48, small(3));
    add(&c, 0, 55, small(4));
    add(&c, 0, 68, small(5));
    add(&c, 0, 75, (struct workload_op){.kind = HT_FREE, .slot = 1});
    ops_are(&c, 0,
            "malloc SAMPLE TOUCH 0 malloc SAMPLE LATE 0-4096 SAMPLE malloc SAMPLE LATE 4096-8192 "
            "malloc SAMPLE malloc SAMPLE malloc LATE 8192-16384 SAMPLE free ");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_steps),
    cmocka_unit_test(test_samples_fill_in_between_steps),
    cmocka_unit_test(test_samples_do_not_override_steps),
    cmocka_unit_test(test_bit_by_bit),
    cmocka_unit_test(test_pages_of_calloc_are_distinguished),
    cmocka_unit_test(test_the_rest_is_touched_before_the_free),
    cmocka_unit_test(test_or_before_its_thread_exits),
    cmocka_unit_test(test_or_after_the_last_sample),
    cmocka_unit_test(test_or_after_the_last_call),
    cmocka_unit_test(test_a_program_that_uses_its_block_at_once),
    cmocka_unit_test(test_a_block_of_which_half_is_used),
    cmocka_unit_test(test_without_samples),
    cmocka_unit_test(test_another_thread_frees),
    cmocka_unit_test(test_another_thread_frees_a_used_block),
    cmocka_unit_test(test_another_thread_touches),
    cmocka_unit_test(test_all_threads_in_one),
    cmocka_unit_test(test_a_block_that_is_used_as_a_whole),
};

UNIT_MAIN(tests)
