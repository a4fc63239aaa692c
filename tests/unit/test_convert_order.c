// Tests the order with hand-written histories, each of which has one difficulty.
#include "convert/order/order_private.h"

#include "history.h"

enum { P = 0x10000, Q = 0x20000 };

static void check_counts(struct order_counts c, uint64_t repaired, uint64_t ambiguous,
                         uint64_t unmatched)
{
    assert_int_equal(c.repaired, repaired);
    assert_int_equal(c.ambiguous.n, ambiguous);
    assert_int_equal(c.unmatched.n, unmatched);
}

static void one_thread(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 0, 20, 48, Q);
    history_free(&h, 0, 30, P);
    history_malloc(&h, 0, 40, 64, P);
    history_put(&h, 0, &(struct event){.kind = HT_FREE, .stamp = 50});
    struct order_counts c = history_finish(&h);
    check_counts(c, 0, 0, 0);
    assert_int_equal(c.slots, 2);
    assert_int_equal(h.n_ops, 5);
    assert_int_equal(h.ops[2].block, 32);
    assert_int_equal(h.ops[3].op.slot, h.ops[0].op.slot);
    assert_int_equal(h.ops[4].op.slot, WORKLOAD_NO_SLOT);
    assert_int_equal(h.ops[3].op.stamp, 40);
    history_release(&h);
    (void)state;
}

static void block_freed_by_another_thread_waits(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 0, 20, 48, Q);
    history_free(&h, 1, 1000, Q);
    history_free(&h, 1, 1010, P);
    struct order_counts c = history_finish(&h);
    check_counts(c, 0, 0, 0);
    assert_int_equal(c.dependencies_needed, 2);
    // The dependency on the second allocation implies the first.
    assert_int_equal(c.dependencies, 1);
    assert_int_equal(h.ops[2].op.n_dependencies, 1);
    assert_int_equal(h.ops[2].dependencies[0].op, 1);
    assert_true(history_before(&h, 0, 3));
    history_release(&h);
    (void)state;
}

// The BASE before thread 0's third record has no stamp. Its bits in the place of the stamp are
// higher than all stamps.
static void base_has_no_stamp(void **state)
{
    const uint64_t far = 0x7f000001fff0;
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 1, 15, 32, Q);
    history_malloc(&h, 0, 20, 32, P + 0x100);
    history_malloc(&h, 0, 30, 32, far);
    history_malloc(&h, 1, 40, 32, Q + 0x100);
    check_counts(history_finish(&h), 0, 0, 0);
    assert_int_equal(h.ops[3].op.stamp, 30);
    assert_int_equal(h.ops[4].op.stamp, 40);
    history_release(&h);
    (void)state;
}

// Thread 1 allocates P after thread 0's free, but with a stamp that is too early.
static void inverted_reuse(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 1, 4900, 48, P);
    history_free(&h, 0, 5000, P);
    history_free(&h, 1, 5200, P);
    check_counts(history_finish(&h), 1, 0, 0);
    assert_int_equal(h.ops[history_find(&h, 0, 1)].block, 32);
    assert_int_equal(h.ops[history_find(&h, 1, 1)].block, 48);
    history_release(&h);
    (void)state;
}

// Like inverted_reuse, but thread 1 also frees P before thread 0's free is processed.
static void inverted_reuse_of_short_life(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 1, 4900, 48, P);
    history_free(&h, 1, 4950, P);
    history_free(&h, 0, 5000, P);
    check_counts(history_finish(&h), 1, 0, 0);
    assert_int_equal(h.ops[history_find(&h, 0, 1)].block, 32);
    assert_int_equal(h.ops[history_find(&h, 1, 1)].block, 48);
    history_release(&h);
    (void)state;
}

// Thread 2 frees both blocks. Thread 1's allocation is stamped early, so the first free is of the
// older block.
static void inverted_reuse_freed_by_a_third(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 1, 4900, 48, P);
    history_free(&h, 2, 5000, P);
    history_free(&h, 2, 6000, P);
    check_counts(history_finish(&h), 1, 0, 0);
    assert_int_equal(h.ops[history_find(&h, 2, 0)].block, 32);
    assert_int_equal(h.ops[history_find(&h, 2, 1)].block, 48);
    history_release(&h);
    (void)state;
}

// The order of two allocations of P follows neither from a free nor from a thread.
static void undecided_order_is_reported(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 4800, 32, P);
    history_malloc(&h, 1, 4900, 48, P);
    history_free(&h, 2, 5000, P);
    history_free(&h, 2, 6000, P);
    check_counts(history_finish(&h), 1, 1, 0);
    history_release(&h);
    (void)state;
}

// Thread 1 frees a block from before the recording. The library read the size of the block. Thread
// 0 allocates at the same address long after the free, but within the window.
static void later_allocation_is_not_of_a_block_from_before(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 16, Q);
    history_put(
        &h, 1,
        &(struct event){.kind = HT_FREE, .stamp = 1000, .ptr = P, .notes[HT_NOTE_USABLE] = 112});
    history_malloc(&h, 0, 60000, 32, P);
    history_free(&h, 0, 61000, P);
    check_counts(history_finish(&h), 0, 0, 1);
    assert_int_equal(h.ops[history_find(&h, 1, 0) - 1].op.size, 112);
    assert_int_equal(h.ops[history_find(&h, 0, 2)].block, 32);
    history_release(&h);
    (void)state;
}

// A free is stamped before the allocation of its block.
static void early_free_waits_for_its_allocation(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 2, 1, 16, Q);
    history_free(&h, 1, 990, P);
    history_malloc(&h, 1, 995, 40, P + 64);
    history_malloc(&h, 0, 1000, 32, P);
    history_free(&h, 2, 200000, Q);
    struct order_counts c = history_finish(&h);
    check_counts(c, 1, 0, 0);
    assert_int_equal(h.ops[history_find(&h, 2, 0)].block, 32);
    assert_true(history_before(&h, history_find(&h, 1, 0), history_find(&h, 2, 0)));
    assert_int_equal(h.ops[history_find(&h, 2, 1)].op.size, 40);
    history_release(&h);
    (void)state;
}

// Thread 0 frees P, allocates P again and hands the block to thread 1. Thread 1's free is stamped
// before the hand-over.
static void free_stamped_before_the_owners_free(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 1, 20, 33, Q);
    history_free(&h, 1, 4880, P);
    history_free(&h, 0, 4930, P);
    history_malloc(&h, 0, 4945, 48, P);
    history_malloc(&h, 1, 9000, 64, P);
    history_free(&h, 1, 9100, P);
    check_counts(history_finish(&h), 1, 0, 0);
    assert_int_equal(h.ops[history_find(&h, 1, 1)].block, 48);
    assert_int_equal(h.ops[history_find(&h, 0, 1)].block, 32);
    assert_true(history_before(&h, history_find(&h, 0, 2), history_find(&h, 1, 1)));
    history_release(&h);
    (void)state;
}

// Like free_stamped_before_the_owners_free, but neither thread allocated the block.
static void free_stamped_before_another_threads_free(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 1, 20, 33, Q);
    history_malloc(&h, 2, 30, 34, Q + 64);
    history_free(&h, 2, 5000, P);
    history_free(&h, 1, 5020, P);
    history_malloc(&h, 1, 5040, 48, P);
    check_counts(history_finish(&h), 1, 0, 0);
    assert_int_equal(h.ops[history_find(&h, 1, 1)].block, 32);
    assert_int_equal(h.ops[history_find(&h, 2, 1)].block, 48);
    history_release(&h);
    (void)state;
}

// Like the previous test, but thread 2 has already waited for a later op of thread 0. If `pauses`
// is set, thread 2 has a later record, whose stamp is beyond the skid.
static void free_with_implied_dependency(bool pauses)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 0, 15, 35, Q + 128);
    history_malloc(&h, 1, 20, 33, Q);
    history_malloc(&h, 2, 30, 34, Q + 64);
    history_free(&h, 2, 1000, Q + 128);
    history_free(&h, 2, 5000, P);
    history_free(&h, 1, 5020, P);
    history_malloc(&h, 1, 5040, 48, P);
    if (pauses)
        history_malloc(&h, 2, 9000, 36, Q + 192);
    check_counts(history_finish(&h), 1, 0, 0);
    assert_int_equal(h.ops[history_find(&h, 1, 1)].block, 32);
    assert_int_equal(h.ops[history_find(&h, 2, 2)].block, 48);
    history_release(&h);
}

static void free_with_implied_dependency_before_another_threads_free(void **state)
{
    (void)state;
    free_with_implied_dependency(false);
}

static void free_with_implied_dependency_before_a_pause(void **state)
{
    (void)state;
    free_with_implied_dependency(true);
}

// Like free_stamped_before_another_threads_free, but the allocation between the frees is stamped
// before both frees.
static void early_free_and_early_allocation(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 1, 20, 33, Q);
    history_malloc(&h, 2, 30, 34, Q + 64);
    history_malloc(&h, 0, 4990, 48, P);
    history_free(&h, 2, 5000, P);
    history_free(&h, 1, 5020, P);
    struct order_counts c = history_finish(&h);
    // One thread allocated both blocks, so the opposite order of the frees is also possible.
    assert_true(c.ambiguous.n > 0);
    history_release(&h);
    (void)state;
}

// The order of the frees is undecided and must be reported. The guess minimizes the error of the
// stamps.
static void undecided_frees_are_reported(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 1, 20, 33, Q);
    history_free(&h, 1, 5000, P);
    history_free(&h, 0, 5040, P);
    history_malloc(&h, 0, 5060, 48, P);
    history_malloc(&h, 1, 5250, 64, P);
    check_counts(history_finish(&h), 1, 1, 0);
    assert_int_equal(h.ops[history_find(&h, 1, 1)].block, 48);
    history_release(&h);
    (void)state;
}

// Two frees are close in time, but their threads' uses of the address decide the order.
static void close_frees_keep_their_order(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 1, 20, 33, Q);
    history_free(&h, 1, 5000, P);
    history_malloc(&h, 1, 5020, 64, P);
    history_free(&h, 0, 5040, P);
    history_malloc(&h, 0, 5060, 48, P);
    check_counts(history_finish(&h), 0, 0, 0);
    assert_int_equal(h.ops[history_find(&h, 1, 1)].block, 32);
    assert_int_equal(h.ops[history_find(&h, 0, 1)].block, 64);
    history_release(&h);
    (void)state;
}

static void unmatched_free_becomes_a_block_from_before(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 1, 10, 48, Q);
    history_free(&h, 0, 20, P);
    history_free(&h, 0, 30, P + 64);
    history_realloc(&h, 0, 40, 45, P + 128, 100, P + 256);
    history_free(&h, 1, 500000, Q);
    struct order_counts c = history_finish(&h);
    check_counts(c, 0, 0, 2);
    const struct history_op *made = &h.ops[history_find(&h, 0, 2) - 1];
    unit_assert_kind(made->op.kind, HT_PREEXISTING);
    assert_int_equal(made->op.flags, WORKLOAD_SIZE_UNKNOWN);
    // The block exists from the start, so its slot cannot have been used before.
    assert_int_not_equal(made->op.slot, h.ops[0].op.slot);
    const struct history_op *moved = &h.ops[history_find(&h, 0, 3)];
    unit_assert_kind(moved->op.kind, HT_REALLOC);
    assert_int_equal(moved->op.flags, WORKLOAD_MOVED);
    assert_int_equal(moved->block, UINT64_MAX);
    history_release(&h);
    (void)state;
}

static void listed_block_is_there_from_the_start(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_put(&h, 0,
                &(struct event){.kind = HT_PREEXISTING, .stamp = 20, .size = 64, .result = Q});
    // The allocation of this block was recorded before the list of preexisting blocks was made.
    history_put(&h, 0,
                &(struct event){.kind = HT_PREEXISTING, .stamp = 30, .size = 40, .result = P});
    history_free(&h, 0, 40, Q);
    history_free(&h, 0, 50, P);
    check_counts(history_finish(&h), 0, 0, 0);
    assert_int_equal(h.n_ops, 4);
    const struct workload_op *listed = &h.ops[history_find(&h, 0, 1) - 1].op;
    unit_assert_kind(listed->kind, HT_PREEXISTING);
    assert_int_equal(listed->size, 64);
    assert_int_equal(listed->value, HT_MALLOC);
    assert_int_equal(h.ops[history_find(&h, 0, 1)].op.slot, listed->slot);
    history_release(&h);
    (void)state;
}

static void listed_block_has_the_call_site_of_its_note(void **state)
{
    struct history h;
    history_init(&h);
    history_put(
        &h, 0,
        &(struct event){
            .kind = HT_MALLOC, .stamp = 10, .size = 32, .result = P, .notes[HT_NOTE_SITE] = 71});
    history_put(&h, 0,
                &(struct event){.kind = HT_PREEXISTING,
                                .stamp = 20,
                                .size = 64,
                                .result = Q,
                                .notes[HT_NOTE_SITE] = 72});
    history_free(&h, 0, 40, Q);
    check_counts(history_finish(&h), 0, 0, 0);
    const struct workload_op *listed = &h.ops[history_find(&h, 0, 1) - 1].op;
    unit_assert_kind(listed->kind, HT_PREEXISTING);
    // Sites are numbered in the order of their first use.
    assert_int_equal(listed->value, HT_MALLOC | 2 << 8);
    history_release(&h);
    (void)state;
}

// In a process with one thread, no other thread can have allocated or freed a block, so the order
// does not wait.
static void one_thread_never_waits(void **state)
{
    struct history h;
    history_init(&h);
    history_free(&h, 0, 30, P);
    history_malloc(&h, 0, 40, 32, Q);
    history_malloc(&h, 0, 50, 48, Q);
    history_batch(&h, 50);
    assert_int_equal(h.n_ops, 5);
    struct order_counts c = history_finish(&h);
    check_counts(c, 0, 1, 1);
    history_release(&h);
    (void)state;
}

// The free of the block at P is missing. After the window, the order adds it.
static void lost_free(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 0, 20, 40, P + 64);
    history_malloc(&h, 1, 5000, 48, P);
    for (unsigned i = 0; i < 100; i++)
        history_malloc(&h, 0, 10000 + 10000 * i, 1000 + i, Q + 16 * i);
    history_free(&h, 2, 2000000, P);
    check_counts(history_finish(&h), 0, 1, 0);
    assert_int_equal(h.ops[history_find(&h, 2, 0)].block, 48);
    const struct history_op *closed = &h.ops[history_find(&h, 1, 1)];
    unit_assert_kind(closed->op.kind, HT_FREE);
    assert_int_equal(closed->block, 32);
    history_release(&h);
    (void)state;
}

// An address has more lost frees than the converter can track. The converter drops the oldest
// block, not the newest.
static void very_many_lost_frees(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 1, 5, 16, Q);
    for (uint64_t i = 0; i < 100; i++)
        history_malloc(&h, 0, 10 + i, 32 + i, P);
    for (uint64_t i = 0; i < 100; i++)
        history_free(&h, 1, 200 + i, P);
    struct order_counts c = history_finish(&h);
    // The first frees belong to the oldest blocks, in order.
    uint64_t lost = 0;
    for (size_t i = 0; i < h.n_ops && lost < c.unmatched.n; i++) {
        if (h.ops[i].op.kind == HT_FREE)
            assert_int_equal(h.ops[i].block, 32 + lost++);
    }
    assert_int_equal(lost, 35);
    history_release(&h);
    (void)state;
}

static void realloc_keeps_its_slot(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_realloc(&h, 0, 20, 25, P, 33, P);
    history_realloc(&h, 0, 30, 35, P, 34, Q);
    history_realloc(&h, 0, 40, 45, Q, 1 << 20, 0);
    history_realloc(&h, 0, 50, 55, Q, 0, 0);
    history_realloc(&h, 0, 60, 65, 0, 36, P);
    check_counts(history_finish(&h), 0, 0, 0);
    static const uint8_t flags[] = {
        0, 0, WORKLOAD_MOVED, WORKLOAD_FAILED, WORKLOAD_FREED, WORKLOAD_FROM_NULL};
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(h.ops[i].op.flags, flags[i]);
        assert_int_equal(h.ops[i].op.slot, 0);
    }
    assert_int_equal(h.ops[3].op.error, 12);
    history_release(&h);
    (void)state;
}

// While thread 0's realloc moves its block, thread 1 allocates at the old address.
static void realloc_races_with_reuse(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_realloc(&h, 0, 1000, 1200, P, 64, Q);
    history_malloc(&h, 1, 1100, 48, P);
    history_free(&h, 1, 1150, P);
    history_free(&h, 0, 1300, Q);
    check_counts(history_finish(&h), 0, 0, 0);
    assert_int_equal(h.ops[history_find(&h, 1, 1)].block, 48);
    assert_int_equal(h.ops[history_find(&h, 0, 2)].block, 64);
    history_release(&h);
    (void)state;
}

// Like realloc_races_with_reuse, but the allocation is stamped before the realloc began.
static void realloc_races_with_inverted_reuse(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 1, 900, 48, P);
    history_realloc(&h, 0, 1000, 1200, P, 64, Q);
    history_free(&h, 1, 1150, P);
    history_free(&h, 0, 1300, Q);
    check_counts(history_finish(&h), 1, 0, 0);
    assert_int_equal(h.ops[history_find(&h, 0, 1)].block, 32);
    assert_int_equal(h.ops[history_find(&h, 1, 1)].block, 48);
    history_release(&h);
    (void)state;
}

static void failed_realloc_keeps_the_address(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_realloc(&h, 1, 1000, 1010, P, 1 << 30, 0);
    history_free(&h, 0, 2000, P);
    struct order_counts c = history_finish(&h);
    check_counts(c, 0, 0, 0);
    assert_int_equal(h.ops[2].block, 32);
    // The failed call used the block, so the free must come after it.
    assert_true(history_before(&h, 1, 2));
    history_release(&h);
    (void)state;
}

// The stream of a signal handler and the main stream are one thread in the workload.
static void streams_are_one_thread(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_put_in(&h, 0, 1, &(struct event){.kind = HT_FREE, .stamp = 20, .ptr = P});
    history_put_in(&h, 0, 1,
                   &(struct event){.kind = HT_MALLOC, .stamp = 25, .size = 48, .result = P});
    history_free(&h, 0, 30, P);
    struct order_counts c = history_finish(&h);
    check_counts(c, 0, 0, 0);
    assert_int_equal(c.threads, 1);
    assert_int_equal(h.ops[1].block, 32);
    assert_int_equal(h.ops[3].block, 48);
    assert_int_equal(c.dependencies, 0);
    history_release(&h);
    (void)state;
}

// While one stream of a thread is blocked, the other must not overtake it.
static void lanes_are_held_together(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 4, 24, P + 128);
    history_malloc(&h, 1, 5, 16, P + 64);
    history_free(&h, 0, 10, Q);
    history_put_in(&h, 0, 1,
                   &(struct event){.kind = HT_MALLOC, .stamp = 20, .size = 48, .result = P});
    history_malloc(&h, 1, 500000, 32, Q + 64);
    check_counts(history_finish(&h), 0, 0, 1);
    unit_assert_kind(h.ops[history_find(&h, 0, 1)].op.kind, HT_FREE);
    assert_int_equal(h.ops[history_find(&h, 0, 2)].op.size, 48);
    history_release(&h);
    (void)state;
}

// Thread 1's allocation follows thread 0's free, but was published in an earlier batch.
static void later_batch_earlier_stamp(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 1, 1050, 48, P);
    history_batch(&h, 0);
    history_free(&h, 0, 1000, P);
    history_batch(&h, 2000);
    history_free(&h, 1, 3000, P);
    check_counts(history_finish(&h), 0, 0, 0);
    assert_int_equal(h.ops[1].block, 32);
    assert_int_equal(h.ops[3].block, 48);
    history_release(&h);
    (void)state;
}

// Records above the watermark are emitted only at the end.
static void watermark_holds_back(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    history_malloc(&h, 0, 100, 48, Q);
    history_batch(&h, 99);
    assert_int_equal(h.n_ops, 1);
    history_batch(&h, 100);
    assert_int_equal(h.n_ops, 2);
    history_finish(&h);
    assert_int_equal(h.n_ops, 2);
    history_release(&h);
    (void)state;
}

static void thread_waits_for_its_creation(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 32, P);
    // The start is stamped before the creation. Thread numbers of the trace need not be dense.
    history_put(&h, 5, &(struct event){.kind = HT_THREAD_START, .stamp = 90, .value = 0});
    history_put(&h, 0, &(struct event){.kind = HT_THREAD_CREATE, .stamp = 100, .value = 5});
    history_free(&h, 5, 200, P);
    history_put(&h, 5, &(struct event){.kind = HT_THREAD_END, .stamp = 300});
    struct order_counts c = history_finish(&h);
    check_counts(c, 1, 0, 0);
    assert_int_equal(c.threads, 2);
    unit_assert_kind(h.ops[1].op.kind, HT_THREAD_CREATE);
    assert_int_equal(h.ops[1].op.value, 1);
    unit_assert_kind(h.ops[2].op.kind, HT_THREAD_START);
    assert_int_equal(h.ops[2].op.value, 0);
    assert_true(history_before(&h, 1, 2));
    // The dependency on the creation implies the allocation before it.
    assert_int_equal(c.dependencies, 1);
    assert_int_equal(c.dependencies_needed, 2);
    history_release(&h);
    (void)state;
}

// One thread allocates, and another thread frees. The slots return through the shared pool. An op
// that reuses a slot depends on the free.
static void slots_come_back_to_the_producer(void **state)
{
    enum { BLOCKS = 12000 }; // several times the number of slots that a thread keeps
    struct history h;
    history_init(&h);
    uint64_t stamp = 1000;
    for (unsigned i = 0; i < BLOCKS; i++, stamp += 2000) {
        history_malloc(&h, 0, stamp, 1 + i, P + 16 * (i % 128));
        history_free(&h, 1, stamp + 1000, P + 16 * (i % 128));
        if (i % 1000 == 999)
            history_batch(&h, stamp);
    }
    struct order_counts c = history_finish(&h);
    check_counts(c, 0, 0, 0);
    assert_true(c.slots <= 4097);
    for (size_t i = 0; i < h.n_ops; i += 997) {
        size_t use = i;
        while (use-- > 0 && h.ops[use].op.slot != h.ops[i].op.slot)
            ;
        if (use != SIZE_MAX)
            assert_true(history_before(&h, use, i));
    }
    history_release(&h);
    (void)state;
}

static void ended_threads_leave_their_slots(void **state)
{
    struct history h;
    history_init(&h);
    history_malloc(&h, 0, 10, 8, Q);
    for (unsigned i = 1; i < HISTORY_THREADS; i++) {
        uint64_t stamp = 10000 * i;
        history_put(&h, 0, &(struct event){.kind = HT_THREAD_CREATE, .stamp = stamp, .value = i});
        history_put(&h, i,
                    &(struct event){.kind = HT_THREAD_START, .stamp = stamp + 10, .value = 0});
        history_malloc(&h, i, stamp + 20, 100 + i, P);
        history_free(&h, i, stamp + 30, P);
        history_put(&h, i, &(struct event){.kind = HT_THREAD_END, .stamp = stamp + 40});
    }
    struct order_counts c = history_finish(&h);
    check_counts(c, 0, 0, 0);
    assert_int_equal(c.slots, 2);
    history_release(&h);
    (void)state;
}

static void lost_words_are_counted(void **state)
{
    struct history h;
    history_init(&h);
    uint64_t word = codec_sized(HT_MALLOC, 20, 32, P / 8);
    struct trace_segment s = {
        .first_word = 7, .n_words = 1, .words = &word, .tid = 4711, .epoch0 = 1, .epoch_end = 1};
    assert_int_equal(order_feed(h.order, &s), 0);
    history_put(&h, 1, &(struct event){.kind = HT_LOST, .stamp = 30, .value = 5});
    struct order_faults lost = history_finish(&h).lost;
    assert_int_equal(lost.n, 12);
    assert_int_equal(lost.tid, 4711);
    assert_int_equal(lost.stamp, 1 << CODEC_STAMP_BITS);
    history_release(&h);
    (void)state;
}

// Tests the records of the used part of a live block. A record applies to its time, and to the
// given age before this time. An age that begins before time 0 is ignored.
static void steps_of_residency(void **state)
{
    struct history h;
    size_t n = 0;
    history_init(&h);
    history_malloc(&h, 0, 10, 1 << 20, P);
    history_put(
        &h, 1,
        &(struct event){
            .kind = HT_RESIDENCY_STEP, .stamp = 20, .ptr = P, .size = 1 << 20, .value = 8192});
    history_put(
        &h, 1,
        &(struct event){
            .kind = HT_RESIDENCY_UNCHANGED, .stamp = 90, .ptr = P, .count = 8192, .value = 91});
    history_put(
        &h, 1,
        &(struct event){
            .kind = HT_RESIDENCY_UNCHANGED, .stamp = 90, .ptr = P, .count = 8192, .value = 30});
    history_put(
        &h, 1,
        &(struct event){
            .kind = HT_RESIDENCY_STEP, .stamp = 90, .ptr = P, .size = 1 << 20, .value = 65536});
    history_put(&h, 0,
                &(struct event){.kind = HT_RESIDENCY,
                                .stamp = 100,
                                .ptr = P,
                                .size = 1 << 20,
                                .count = 65536,
                                .align = 65536});
    history_free(&h, 0, 100, P);
    struct order_counts c = history_finish(&h);
    const struct workload_residency_step *s = samples_residency_steps(c.residency, 0, 0, &n);
    assert_int_equal(n, 3);
    assert_true(s[0].stamp == 20 && s[0].used == 8);
    assert_true(s[1].stamp == 60 && s[1].used == 8);
    assert_true(s[2].stamp == 90 && s[2].used == 64);
    history_release(&h);
    (void)state;
}

// A block begins 3,000 bytes before the end of a page. These bytes count as used if the next page
// is used.
static void bytes_of_a_block_before_its_first_page(void **state)
{
    enum { AT = P + 4096 - 3000, BYTES = 64 << 10 };
    struct history h;
    history_init(&h);
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t front = i ? 8192 : 0;
        history_malloc(&h, 0, 10 + i * 20, BYTES, AT);
        history_put(&h, 0,
                    &(struct event){.kind = HT_RESIDENCY,
                                    .stamp = 20 + i * 20,
                                    .ptr = AT,
                                    .size = BYTES,
                                    .count = 16384,
                                    .align = 12288,
                                    .value = front});
        history_free(&h, 0, 20 + i * 20, AT);
    }
    struct order_counts c = history_finish(&h);
    const struct workload_residency *r = samples_residency_find(c.residency, 0, 0);
    assert_true(r && r->front == 0 && r->used == 12 && r->resident == 16);
    r = samples_residency_find(c.residency, 0, 2);
    assert_true(r && r->front == 10 && r->used == 14 && r->resident == 18);
    history_release(&h);
    (void)state;
}

// Adds 300 blocks that another thread frees, with stamps from `from` on. Returns the number of
// remaining search steps.
static uint64_t steps_left(uint64_t from)
{
    struct history h;
    history_init(&h);
    for (uint64_t i = 1; i <= 300; i++) {
        history_malloc(&h, 0, from + i * 100000, 32, P * i);
        history_free(&h, 1, from + i * 100000 + 50000, P * i);
    }
    check_counts(history_finish(&h), 0, 0, 0);
    uint64_t left = h.order->steps;
    history_release(&h);
    return left;
}

static void the_time_of_day_costs_no_search(void **state)
{
    assert_int_equal(steps_left(1ull << 31), steps_left(0));
    assert_int_equal(steps_left(5ull << 31), steps_left(0));
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_of_day_costs_no_search),
        cmocka_unit_test(one_thread),
        cmocka_unit_test(bytes_of_a_block_before_its_first_page),
        cmocka_unit_test(base_has_no_stamp),
        cmocka_unit_test(block_freed_by_another_thread_waits),
        cmocka_unit_test(inverted_reuse),
        cmocka_unit_test(inverted_reuse_of_short_life),
        cmocka_unit_test(inverted_reuse_freed_by_a_third),
        cmocka_unit_test(undecided_order_is_reported),
        cmocka_unit_test(later_allocation_is_not_of_a_block_from_before),
        cmocka_unit_test(early_free_waits_for_its_allocation),
        cmocka_unit_test(free_stamped_before_the_owners_free),
        cmocka_unit_test(free_stamped_before_another_threads_free),
        cmocka_unit_test(free_with_implied_dependency_before_another_threads_free),
        cmocka_unit_test(free_with_implied_dependency_before_a_pause),
        cmocka_unit_test(early_free_and_early_allocation),
        cmocka_unit_test(undecided_frees_are_reported),
        cmocka_unit_test(close_frees_keep_their_order),
        cmocka_unit_test(unmatched_free_becomes_a_block_from_before),
        cmocka_unit_test(listed_block_is_there_from_the_start),
        cmocka_unit_test(listed_block_has_the_call_site_of_its_note),
        cmocka_unit_test(one_thread_never_waits),
        cmocka_unit_test(lost_free),
        cmocka_unit_test(very_many_lost_frees),
        cmocka_unit_test(realloc_keeps_its_slot),
        cmocka_unit_test(realloc_races_with_reuse),
        cmocka_unit_test(realloc_races_with_inverted_reuse),
        cmocka_unit_test(failed_realloc_keeps_the_address),
        cmocka_unit_test(streams_are_one_thread),
        cmocka_unit_test(lanes_are_held_together),
        cmocka_unit_test(later_batch_earlier_stamp),
        cmocka_unit_test(watermark_holds_back),
        cmocka_unit_test(thread_waits_for_its_creation),
        cmocka_unit_test(slots_come_back_to_the_producer),
        cmocka_unit_test(ended_threads_leave_their_slots),
        cmocka_unit_test(lost_words_are_counted),
        cmocka_unit_test(steps_of_residency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
