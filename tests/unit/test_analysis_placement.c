// Tests the bounds on the memory of a workload, by exhaustive search on small cases.
#include "analysis/placement.h"
#include "analysis/placement_arena.h"
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCKS = 6, GRANULE = PLACEMENT_GRANULE, PAGE = 4096 };

static void must(int rc)
{
    assert_int_equal(rc, 0);
}

// A block that is live from `birth` up to, and not including, `death`.
struct interval {
    uint32_t birth, death, granules;
};

static struct placement_bounds bounds_of(const struct interval *blocks, size_t n, uint32_t end,
                                         const struct placement_settings *settings)
{
    struct placement_search p;
    struct placement_bounds b;
    struct err e = {0};
    placement_init(&p, settings);
    for (uint32_t t = 0; t < end; t++) {
        for (uint32_t i = 0; i < n; i++) {
            if (blocks[i].death == t)
                must(placement_free(&p, i, &e));
        }
        for (uint32_t i = 0; i < n; i++) {
            if (blocks[i].birth == t)
                must(placement_put(&p, i, blocks[i].granules * GRANULE, &e));
        }
    }
    must(placement_find(&p, &b, &e));
    placement_release(&p);
    return b;
}

// Places the blocks from number `i` on at every free address up to `limit` in turn. Returns true if
// all blocks fit.
static bool search(const struct interval *blocks, uint32_t *at, size_t n, size_t i, uint32_t limit)
{
    if (i == n)
        return true;
    for (at[i] = 0; at[i] + blocks[i].granules <= limit; at[i]++) {
        bool fits = true;
        for (size_t k = 0; fits && k < i; k++) {
            bool together = blocks[k].birth < blocks[i].death && blocks[i].birth < blocks[k].death;
            fits = !together || at[k] + blocks[k].granules <= at[i] ||
                   at[i] + blocks[i].granules <= at[k];
        }
        if (fits && search(blocks, at, n, i + 1, limit))
            return true;
    }
    return false;
}

static uint32_t optimum_of(const struct interval *blocks, size_t n)
{
    uint32_t at[MAX_BLOCKS], limit = 1;
    while (!search(blocks, at, n, 0, limit))
        limit++;
    return limit;
}

static uint32_t random_below(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*seed >> 33) % n;
}

// The bounds enclose the optimum. The placement found is optimal in most cases, and never far off.
static void compares_with_exhaustive_search(void **state)
{
    enum { CASES = 400, END = 8 };
    uint64_t seed = 7;
    unsigned optimal = 0;
    (void)state;
    for (unsigned c = 0; c < CASES; c++) {
        struct interval blocks[MAX_BLOCKS];
        for (unsigned i = 0; i < MAX_BLOCKS; i++) {
            uint32_t birth = random_below(&seed, END - 1);
            blocks[i] = (struct interval){birth, birth + 1 + random_below(&seed, END - birth - 1),
                                          1 + random_below(&seed, 4)};
        }
        struct placement_bounds b =
            bounds_of(blocks, MAX_BLOCKS, END, &(struct placement_settings){.range_only = true});
        uint64_t optimum = optimum_of(blocks, MAX_BLOCKS) * (uint64_t)GRANULE;
        assert_true(b.lower_bytes <= optimum && optimum <= b.found_bytes);
        assert_true(2 * b.found_bytes <= 3 * optimum);
        optimal += b.found_bytes == optimum;
    }
    assert_true(optimal >= CASES * 8 / 10);
}

// The program allocates short-lived blocks between blocks that are live at the peak. Placed next to
// each other, the freed short-lived blocks would leave holes. The search places the blocks of the
// peak in a separate range, which has no holes.
static void blocks_live_at_the_peak_have_no_holes(void **state)
{
    enum { PAIRS = 2000 };
    struct placement_search p;
    struct placement_bounds b;
    struct err e = {0};
    (void)state;
    placement_init(&p, NULL);
    for (uint32_t i = 0; i < 2 * PAIRS; i++)
        must(placement_put(&p, i, i % 2 ? 112 : 16, &e));
    for (uint32_t i = 1; i < 2 * PAIRS; i += 2)
        must(placement_free(&p, i, &e));
    for (uint32_t i = 0; i < 100; i++)
        must(placement_put(&p, 2 * i + 1, PAGE, &e));
    must(placement_find(&p, &b, &e));
    placement_release(&p);
    assert_int_equal(b.lower_bytes, PAIRS * 16 + 100 * PAGE);
    assert_true(b.found_bytes <= b.lower_bytes + 2 * PAGE);
}

static void rounds_sizes_and_returns_free_pages(void **state)
{
    struct placement_search p;
    struct placement_bounds b;
    struct err e = {0};
    (void)state;
    placement_init(&p, NULL);
    must(placement_put(&p, 0, 0, &e));
    must(placement_put(&p, 1, 17, &e));
    must(placement_find(&p, &b, &e));
    assert_true(b.lower_bytes == 3 * GRANULE && b.found_bytes == PAGE && b.blocks == 2);
    // A block of 100 pages is freed before another block of 100 pages is allocated, so at most 101
    // pages are live at the same time.
    must(placement_put(&p, 2, 100 * PAGE, &e));
    must(placement_free(&p, 2, &e));
    must(placement_put(&p, 3, 100 * PAGE, &e));
    must(placement_find(&p, &b, &e));
    assert_true(b.found_bytes >= 100 * PAGE && b.found_bytes <= 102 * PAGE);
    placement_release(&p);
}

// A realloc in place needs at most the bigger of the two sizes. A realloc that moves the block
// needs both sizes at the same time.
static void resizes(void **state)
{
    struct placement_search p;
    struct placement_bounds b;
    struct err e = {0};
    (void)state;
    placement_init(&p, &(struct placement_settings){.range_only = true});
    must(placement_put(&p, 0, 4 * GRANULE, &e));
    must(placement_put(&p, 0, 8 * GRANULE, &e));
    must(placement_put(&p, 0, 2 * GRANULE, &e));
    must(placement_find(&p, &b, &e));
    assert_true(b.lower_bytes == 8 * GRANULE && b.found_bytes == 8 * GRANULE);
    must(placement_put(&p, 1, GRANULE, &e));
    must(placement_put(&p, 0, 8 * GRANULE, &e));
    must(placement_find(&p, &b, &e));
    assert_true(b.lower_bytes == 9 * GRANULE && b.found_bytes > 9 * GRANULE);
    placement_release(&p);
}

static void preexisting_blocks_are_live_from_the_start(void **state)
{
    struct placement_search p;
    struct placement_bounds b;
    struct err e = {0};
    (void)state;
    placement_init(&p, NULL);
    must(placement_put(&p, 0, 1 << 20, &e));
    must(placement_free(&p, 0, &e));
    must(placement_put_preexisting(&p, 1, 1 << 20, &e));
    must(placement_free(&p, 1, &e));
    must(placement_put(&p, 0, 1 << 20, &e));
    must(placement_find(&p, &b, &e));
    assert_true(b.lower_bytes == 2 << 20 && b.found_bytes == 2 << 20);
    placement_release(&p);
}

// Events in a temporary file give the same result as events in memory.
static void long_workloads_are_kept_in_a_file(void **state)
{
    struct placement_bounds b[2];
    struct err e = {0};
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        struct placement_search p;
        uint64_t seed = 3;
        placement_init(&p, &(struct placement_settings){.buffer_events = k ? 100 : 0});
        for (uint32_t i = 0; i < 20000; i++) {
            uint32_t slot = random_below(&seed, 500);
            must(random_below(&seed, 2) ? placement_free(&p, slot, &e)
                                        : placement_put(&p, slot, random_below(&seed, 9000), &e));
        }
        assert_true(k ? p.events.in_file > 10000 : !p.events.in_file);
        must(placement_find(&p, &b[k], &e));
        placement_release(&p);
    }
    assert_memory_equal(&b[0], &b[1], sizeof b[0]);
    assert_true(b[0].lower_bytes <= b[0].found_bytes &&
                b[0].found_bytes < b[0].lower_bytes + b[0].lower_bytes / 4);
}

static void refuses_a_block_that_is_too_big(void **state)
{
    struct placement_search p;
    struct err e = {0};
    (void)state;
    placement_init(&p, NULL);
    assert_int_equal(placement_put(&p, 0, UINT64_MAX, &e), -EFBIG);
    placement_release(&p);
}

// Each granule of the arena belongs to at most one block, and a block is placed in the lowest run
// that is long enough.
static void arena_against_a_plain_array(void **state)
{
    enum { GRANULES = 1 << 17, BLOCKS = 300, MAX_GRANULES = 700 };
    static bool used[GRANULES];
    struct {
        uint64_t at;
        uint32_t n;
    } blocks[BLOCKS] = {0};
    struct placement_arena a = {0};
    uint64_t seed = 1;
    (void)state;
    memset(used, 0, sizeof used);
    for (unsigned step = 0; step < 5000; step++) {
        uint32_t i = random_below(&seed, BLOCKS);
        if (blocks[i].n) {
            placement_arena_free(&a, blocks[i].at, blocks[i].n);
            memset(used + blocks[i].at, 0, blocks[i].n);
            blocks[i].n = 0;
            continue;
        }
        uint32_t n = 1 + random_below(&seed, random_below(&seed, 3) ? 20 : MAX_GRANULES), run = 0;
        uint64_t lowest = 0;
        for (; run < n; lowest++)
            run = used[lowest] ? 0 : run + 1;
        must(placement_arena_put(&a, n, &blocks[i].at));
        assert_int_equal(blocks[i].at, lowest - n);
        blocks[i].n = n;
        memset(used + blocks[i].at, 1, n);
    }
    uint64_t pages = 0, end = 0;
    for (size_t page = 0; page < GRANULES / PLACEMENT_ARENA_PAGE_GRANULES; page++)
        pages += memchr(used + page * PLACEMENT_ARENA_PAGE_GRANULES, 1,
                        PLACEMENT_ARENA_PAGE_GRANULES) != NULL;
    for (size_t i = 0; i < GRANULES; i++)
        end = used[i] ? i + 1 : end;
    assert_int_equal(a.used_pages, pages);
    assert_int_equal(placement_arena_end(&a), end);
    placement_arena_release(&a);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(compares_with_exhaustive_search),
    cmocka_unit_test(blocks_live_at_the_peak_have_no_holes),
    cmocka_unit_test(rounds_sizes_and_returns_free_pages),
    cmocka_unit_test(resizes),
    cmocka_unit_test(preexisting_blocks_are_live_from_the_start),
    cmocka_unit_test(long_workloads_are_kept_in_a_file),
    cmocka_unit_test(refuses_a_block_that_is_too_big),
    cmocka_unit_test(arena_against_a_plain_array),
};

UNIT_MAIN(tests)
