// Tests the growth of call sites and their allocations in a span.
#include "analysis/by_site.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>

static struct by_site sites;
static uint32_t next_slot;

static int empty(void **state)
{
    (void)state;
    next_slot = 0;
    return 0;
}

static int release(void **state)
{
    (void)state;
    by_site_release(&sites);
    return 0;
}

static uint32_t add(uint32_t thread, uint64_t site, uint64_t size)
{
    struct workload_op op = {
        .kind = HT_MALLOC, .slot = next_slot, .size = size, .value = site, .stamp = sites.events};
    assert_int_equal(by_site_op(&sites, thread, &op), 0);
    return next_slot++;
}

static void drop(uint32_t slot)
{
    struct workload_op op = {.kind = HT_FREE, .slot = slot, .stamp = sites.events};
    assert_int_equal(by_site_op(&sites, 0, &op), 0);
}

static void mark(const char *text)
{
    struct workload_op op = {.kind = HT_MARK,
                             .slot = WORKLOAD_NO_SLOT,
                             .text = text,
                             .text_bytes = (uint32_t)strlen(text)};
    assert_int_equal(by_site_op(&sites, 0, &op), 0);
}

// The sites are a slow leak, a larger burst whose blocks stay live, a cache that fills at the
// start, a sawtooth that ends at a high level, and a site that shrinks.
static void test_a_leak_grows_and_a_burst_does_not(void **state)
{
    enum { LEAK = 1, BURST, FILLS, SAW, SHRINKS, STEPS = 20000 };
    static uint32_t saw[STEPS], shrinks[STEPS];
    uint32_t n_saw = 0;
    (void)state;
    for (int i = 0; i < STEPS; i++)
        shrinks[i] = add(0, SHRINKS, 10);
    for (int i = 0; i < STEPS; i++) {
        add(0, LEAK, 10);
        drop(shrinks[i]);
        saw[n_saw++] = add(0, SAW, 100);
        if (i < STEPS / 4)
            add(0, FILLS, 100);
        for (int k = 0; i == STEPS / 2 && k < 1000; k++)
            add(0, BURST, 1000);
        for (; i % 1000 == 999 && i < STEPS - 1000 && n_saw; n_saw--)
            drop(saw[n_saw - 1]);
    }
    by_site_finish(&sites);
    const struct by_site_totals *t = sites.sites;
    assert_int_equal(t[LEAK].live_bytes, 200000);
    assert_true(t[LEAK].growth_bytes > 150000 && t[LEAK].growth_bytes <= 200000);
    assert_int_equal(t[BURST].live_bytes, 1000000);
    assert_int_equal(t[BURST].growth_bytes, 0);
    assert_int_equal(t[FILLS].growth_bytes, 0);
    assert_true(t[SAW].growth_bytes < t[LEAK].growth_bytes);
    assert_int_equal(t[SHRINKS].growth_bytes, 0);
}

// A site fills in the first half and then shrinks; another site grows in the second half.
static void test_growth_in_a_part_of_the_run(void **state)
{
    enum { EARLY = 1, LATE, STEPS = 8000 };
    static uint32_t early[STEPS];
    (void)state;
    for (int i = 0; i < STEPS; i++)
        early[i] = add(0, EARLY, 10);
    for (int i = 0; i < STEPS; i += 2) {
        drop(early[i]);
        add(0, LATE, 20);
    }
    by_site_finish(&sites);
    assert_int_equal(sites.events, 2 * STEPS);
    assert_true(by_site_growth(&sites, EARLY, 0, STEPS) > 7.8e4);
    assert_true(by_site_growth(&sites, LATE, 0, STEPS) == 0);
    assert_true(by_site_growth(&sites, EARLY, STEPS, 2 * STEPS) < -3.8e4);
    assert_true(by_site_growth(&sites, LATE, STEPS, 2 * STEPS) > 7.8e4);
    assert_true(by_site_growth(&sites, LATE, STEPS, STEPS) == 0);
}

// A leak ranks before a cache that grows more but replaces blocks, and before growth that levels
// off. A leaking site that also frees blocks still counts.
static void test_the_order_by_growth(void **state)
{
    enum { LEAK = 1, CACHE, LEVELS, MIXED, STEPS = 20000 };
    (void)state;
    for (int i = 0; i < STEPS; i++) {
        add(0, LEAK, 10);
        uint32_t entry = add(0, CACHE, 30), mixed = add(0, MIXED, 600);
        if (i % 500 == 499)
            drop(entry);
        if (i % 10 > 0)
            drop(mixed);
        if (i < STEPS / 3)
            add(0, LEVELS, 30);
    }
    by_site_finish(&sites);
    const struct by_site_totals *t = sites.sites;
    double ranks[MIXED + 1];
    for (unsigned i = LEAK; i <= MIXED; i++)
        ranks[i] = by_site_growth_rank((double)t[i].growth_bytes, (double)t[i].freed_blocks);
    assert_int_equal(t[LEAK].freed_blocks, 0);
    assert_int_equal(t[CACHE].freed_blocks, STEPS / 500);
    assert_true(t[CACHE].growth_bytes > 2 * t[LEAK].growth_bytes);
    assert_true(ranks[LEAK] > ranks[CACHE]);
    assert_true(ranks[CACHE] > ranks[LEVELS]);
    assert_true(ranks[MIXED] > ranks[LEAK]);
}

static void test_blocks_that_a_thread_replaces(void **state)
{
    enum { SITE = 1, OTHER };
    (void)state;
    sites.count_uses = true;
    uint32_t first = add(0, SITE, 100), second = add(0, SITE, 200);
    drop(first);
    uint32_t third = add(0, SITE, 800);
    drop(second);
    uint32_t fourth = add(0, SITE, 3204); // more than four times as large
    drop(third);
    uint32_t fifth = add(0, SITE, 3204);
    drop(fourth);
    drop(fifth); // the thread has not allocated since its last free
    uint32_t theirs = add(1, SITE, 100);
    add(0, SITE, 200);
    drop(theirs);
    uint32_t sixth = add(0, SITE, 100);
    add(0, OTHER, 200);
    drop(sixth);
    const struct site_use *use = &sites.uses.sites[SITE];
    assert_int_equal(use->freed, 7);
    assert_int_equal(use->remote, 1);
    assert_int_equal(use->replaced, 4);
    assert_int_equal(use->regrown.blocks, 2);
    assert_int_equal(use->regrown.bytes, 100 + 200);
}

static void test_blocks_that_live_briefly(void **state)
{
    enum { SITE = 1, OTHER };
    (void)state;
    sites.count_uses = true;
    for (unsigned events = SITE_USES_SHORT_EVENTS; events <= SITE_USES_SHORT_EVENTS + 1; events++) {
        uint32_t slot = add(0, SITE, 100);
        for (unsigned i = 1; i < events; i++)
            add(0, OTHER, 100);
        drop(slot);
    }
    assert_int_equal(sites.uses.sites[SITE].freed, 2);
    assert_int_equal(sites.uses.sites[SITE].short_lived, 1);
}

// A realloc does not count as a free.
static void test_resized_blocks_are_not_freed(void **state)
{
    struct workload_op op = {.kind = HT_REALLOC, .size = 20, .value = 1};
    (void)state;
    op.slot = add(0, 1, 10);
    assert_int_equal(by_site_op(&sites, 0, &op), 0);
    assert_int_equal(sites.sites[1].freed_blocks, 0);
    assert_int_equal(sites.sites[1].live_bytes, 20);
    op.flags = WORKLOAD_FREED;
    assert_int_equal(by_site_op(&sites, 0, &op), 0);
    assert_int_equal(sites.sites[1].freed_blocks, 1);
}

static void test_short_runs_have_no_more_growth_than_is_live(void **state)
{
    (void)state;
    by_site_finish(&sites);
    for (int i = 0; i < 3; i++)
        add(0, 1, 50);
    by_site_finish(&sites);
    assert_true(sites.sites[1].growth_bytes <= 150);
}

// Counts blocks that are allocated in the span and still live at its end, even if they are freed
// later.
static void test_span_by_site_thread_and_size(void **state)
{
    (void)state;
    sites.span = (struct by_site_span){
        .wanted = true, .from = {SLICE_AT_MARK, 0, "warm"}, .to = {SLICE_AT_EVENT, 9, NULL}};
    uint32_t before = add(0, 1, 100), resized = add(0, 1, 8); // events 0, 1
    mark("cold");                                             // event 2
    mark("warm");                                             // event 3
    add(1, 1, 20);                                            // event 4
    uint32_t kept = add(2, 2, 300), freed = add(2, 2, 5);     // events 5, 6
    drop(freed);                                              // event 7
    struct workload_op grow = {.kind = HT_REALLOC, .slot = resized, .size = 70, .value = 3};
    assert_int_equal(by_site_op(&sites, 1, &grow), 0); // event 8
    drop(kept);                                        // event 9
    add(1, 1, 9000);
    drop(before);
    by_site_finish(&sites);
    const struct by_site_span *s = &sites.span;
    assert_true(s->begun && s->over);
    assert_int_equal(s->all.blocks, 3);
    assert_int_equal(s->all.bytes, 390);
    assert_int_equal(sites.sites[1].span_bytes, 20);
    assert_int_equal(sites.sites[2].span_bytes, 300);
    assert_int_equal(sites.sites[2].span_blocks, 1);
    assert_int_equal(sites.sites[3].span_bytes, 70);
    assert_int_equal(s->n_threads, 3);
    assert_int_equal(s->threads[1].blocks, 2);
    assert_int_equal(s->threads[2].bytes, 300);
    assert_int_equal(s->sizes[usage_size_class(300)].bytes, 300);
    assert_int_equal(s->sizes[usage_size_class(5)].blocks, 0);
}

static void test_a_span_that_is_not_reached(void **state)
{
    (void)state;
    sites.span = (struct by_site_span){.wanted = true, .from = {SLICE_AT_STAMP, 1000, NULL}};
    add(0, 1, 100);
    by_site_finish(&sites);
    assert_false(sites.span.begun);
    assert_int_equal(sites.sites[1].span_blocks, 0);
}

static void test_a_span_without_events(void **state)
{
    (void)state;
    sites.span = (struct by_site_span){
        .wanted = true, .from = {SLICE_AT_EVENT, 1, NULL}, .to = {SLICE_AT_EVENT, 1, NULL}};
    for (unsigned i = 0; i < 3; i++)
        add(0, 1, 100);
    by_site_finish(&sites);
    assert_true(sites.span.begun && sites.span.over);
    assert_int_equal(sites.span.all.blocks, 0);
    assert_int_equal(sites.sites[1].span_blocks, 0);
}

// Compares the totals of each site after each event, and the contribution of each block, with
// separate counts.
static void test_flows_and_parts_are_of_each_op(void **state)
{
    enum { EVENTS = 5000, SITES = 4, THREADS = 3 };
    static struct {
        uint64_t live, bytes, calls;
    } after[EVENTS + 1][SITES];
    static struct {
        uint64_t size, site, thread, at;
        bool live;
    } blocks[EVENTS];
    uint64_t lived[BY_SITE_LIVES] = {0}, freed = 0;
    uint32_t random = 1, slot = 0;
    (void)state;
    sites.detailed = true;
    for (int e = 0; e < EVENTS; e++) {
        memcpy(after[e + 1], after[e], sizeof after[e]);
        random = random * 1103515245 + 12345;
        uint32_t victim = slot ? (random >> 8) % slot : 0;
        if (e % 3 == 2 && blocks[victim].live) {
            unsigned life = 0;
            while (life < BY_SITE_LIVES - 1 &&
                   (uint64_t)e + 1 - blocks[victim].at > by_site_lives_events[life])
                life++;
            lived[life]++;
            freed++;
            blocks[victim].live = false;
            after[e + 1][blocks[victim].site].live -= blocks[victim].size;
            drop(victim);
            continue;
        }
        uint32_t site = (random >> 4) % SITES, size = 1 + (random >> 12) % 300,
                 thread = (random >> 20) % THREADS;
        slot = add(thread, site, size) + 1;
        blocks[slot - 1].size = size;
        blocks[slot - 1].site = site;
        blocks[slot - 1].thread = thread;
        blocks[slot - 1].at = (uint64_t)e + 1;
        blocks[slot - 1].live = true;
        after[e + 1][site].live += size;
        after[e + 1][site].bytes += size;
        after[e + 1][site].calls++;
    }
    by_site_finish(&sites);
    assert_true(sites.n_bins > BY_SITE_BINS / 4);
    for (size_t bin = 0; bin < sites.n_bins; bin++) {
        for (size_t site = 0; site < SITES; site++) {
            assert_int_equal(sites.levels[site][bin], after[bin * sites.bin_events][site].live);
            assert_int_equal(sites.flows[site].bytes[bin],
                             after[bin * sites.bin_events][site].bytes);
            assert_int_equal(sites.flows[site].calls[bin],
                             after[bin * sites.bin_events][site].calls);
        }
    }
    assert_true(freed > 100);
    for (size_t i = 0; i < sites.n_parts; i++) {
        const struct by_site_part *p = &sites.parts[i];
        uint64_t live = 0, all = 0, out = 0;
        for (uint32_t k = 0; k < slot; k++) {
            bool mine = blocks[k].site == p->site && blocks[k].thread == p->thread &&
                        usage_size_class(blocks[k].size) == p->size_class;
            all += mine;
            live += mine && blocks[k].live ? blocks[k].size : 0;
        }
        assert_int_equal(p->all.blocks, all);
        assert_int_equal(p->live.bytes, live);
        for (size_t life = 0; life < BY_SITE_LIVES; life++) {
            out += p->freed[life].blocks;
            lived[life] -= p->freed[life].blocks;
        }
        assert_int_equal(all, out + p->live.blocks);
    }
    for (size_t life = 0; life < BY_SITE_LIVES; life++)
        assert_int_equal(lived[life], 0);
}

// Blocks allocated before the first call site keep their allocation time.
static void test_lifetimes_begin_before_the_first_site(void **state)
{
    enum { START = 1000000000 };
    struct usage_sums *sums = calloc(1, sizeof *sums);
    struct usage before;
    struct workload_op op = {.kind = HT_MALLOC, .size = 8, .stamp = START + 100};
    (void)state;
    assert_non_null(sums);
    usage_init(&before, sums, START, 1);
    assert_int_equal(usage_run(&before, 0, &op, 1), 0);
    sites.detailed = true;
    sites.ns_per_stamp = 1;
    assert_int_equal(by_site_begin(&sites, &before), 0);
    op = (struct workload_op){.kind = HT_FREE, .stamp = START + 100 + 20000};
    assert_int_equal(by_site_op(&sites, 0, &op), 0);
    assert_int_equal(sites.n_parts, 1);
    assert_int_equal(sites.parts[0].freed[1].blocks, 1); // over 10 µs, up to 1 ms
    usage_release(&before);
    free(sums);
}

// Compares the figures of pools with a separate count of their blocks.
static void pools_are_the_sum_of_their_blocks(void **state)
{
    enum { POOLS = 5, POOL_SITES = 4, MAX_BLOCKS = 2000 };
    static struct {
        uint32_t pool, site;
        uint64_t bytes;
    } live[MAX_BLOCKS];
    (void)state;
    for (uint64_t sample_bytes = 0; sample_bytes <= 512; sample_bytes += 512) {
        struct by_site pooled = {.of_pools = true, .sample_bytes = sample_bytes},
                       single = {.sample_bytes = sample_bytes};
        size_t n = 0;
        uint64_t seed = 7;
        for (unsigned step = 0; step < 20000; step++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            unsigned what = seed >> 33 & 63;
            struct workload_op op = {.slot = WORKLOAD_NO_SLOT, .align = 1 + (seed >> 40) % POOLS};
            if (what == 0) {
                op.kind = HT_POOL_RESET;
                for (size_t i = 0; i < n;) {
                    if (live[i].pool != op.align) {
                        i++;
                        continue;
                    }
                    by_site_remove(&single, live[i].site, live[i].bytes);
                    live[i] = live[--n];
                }
            } else if (what < 16 && n) {
                size_t i = (seed >> 45) % n;
                op = (struct workload_op){.slot = WORKLOAD_NO_SLOT,
                                          .kind = HT_POOL_FREE,
                                          .align = live[i].pool,
                                          .value = live[i].site,
                                          .size = live[i].bytes};
                by_site_remove(&single, live[i].site, live[i].bytes);
                live[i] = live[--n];
            } else if (n < MAX_BLOCKS) {
                op.kind = HT_POOL_ALLOC;
                op.size = 1 + (seed >> 50) % 1000;
                op.value = 1 + (seed >> 60) % POOL_SITES;
                op.flags = what == 63 ? WORKLOAD_FAILED : 0;
                if (!op.flags) {
                    live[n].pool = (uint32_t)op.align;
                    live[n].site = (uint32_t)op.value;
                    live[n++].bytes = op.size;
                    assert_int_equal(by_site_add(&single, (uint32_t)op.value, op.size, false), 0);
                }
            } else {
                continue;
            }
            assert_int_equal(by_site_op(&pooled, 0, &op), 0);
        }
        by_site_finish(&pooled);
        by_site_finish(&single);
        assert_int_equal(pooled.n_sites, single.n_sites);
        assert_int_equal(pooled.peak_bytes, single.peak_bytes);
        for (size_t i = 0; i < pooled.n_sites; i++) {
            const struct by_site_totals *a = &pooled.sites[i], *b = &single.sites[i];
            assert_int_equal(a->calls, b->calls);
            assert_int_equal(a->bytes, b->bytes);
            assert_int_equal(a->peak_bytes, b->peak_bytes);
            assert_int_equal(a->live_blocks, b->live_blocks);
            assert_int_equal(a->live_bytes, b->live_bytes);
            assert_true(a->live.variance - b->live.variance < 1 &&
                        b->live.variance - a->live.variance < 1);
        }
        assert_true(pooled.sites[1].freed_blocks > 100);
        by_site_release(&pooled);
        by_site_release(&single);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pools_are_the_sum_of_their_blocks),
    cmocka_unit_test_setup_teardown(test_a_leak_grows_and_a_burst_does_not, empty, release),
    cmocka_unit_test_setup_teardown(test_growth_in_a_part_of_the_run, empty, release),
    cmocka_unit_test_setup_teardown(test_the_order_by_growth, empty, release),
    cmocka_unit_test_setup_teardown(test_blocks_that_a_thread_replaces, empty, release),
    cmocka_unit_test_setup_teardown(test_blocks_that_live_briefly, empty, release),
    cmocka_unit_test_setup_teardown(test_resized_blocks_are_not_freed, empty, release),
    cmocka_unit_test_setup_teardown(test_short_runs_have_no_more_growth_than_is_live, empty,
                                    release),
    cmocka_unit_test_setup_teardown(test_span_by_site_thread_and_size, empty, release),
    cmocka_unit_test_setup_teardown(test_a_span_that_is_not_reached, empty, release),
    cmocka_unit_test_setup_teardown(test_a_span_without_events, empty, release),
    cmocka_unit_test_setup_teardown(test_flows_and_parts_are_of_each_op, empty, release),
    cmocka_unit_test_setup_teardown(test_lifetimes_begin_before_the_first_site, empty, release),
};

UNIT_MAIN(tests)
