// Checks the confidence intervals of sampled sums by sampling allocations with known sums.
#include "analysis/estimate.h"
#include "unit.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { SITES = 120, RATE = 1 << 19 };

static uint64_t state = 1;

static double uniform(void)
{
    uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

// Returns the size of block `i` of a site. A block is 16 bytes to a few MiB long. The total
// size of the blocks of a site is 5 KiB to 500 MiB.
static uint64_t size_of(unsigned site, unsigned i)
{
    uint64_t least = 16ull << (site % 12);
    return least + least * (i * 7919u % 1000) / 100;
}

static unsigned blocks_of(unsigned site)
{
    uint64_t bytes = 5000ull << (site / 7), n = bytes / (size_of(site, 0) * 6);
    return n > 40000 ? 40000 : n ? (unsigned)n : 1;
}

static unsigned runs(void)
{
    const char *wanted = getenv("HEAPTAPE_TEST_SAMPLES");
    return wanted ? (unsigned)atoi(wanted) : 20;
}

static void test_intervals_hold_the_truth(void **unused)
{
    (void)unused;
    unsigned shown = 0, held = 0, small = 0, small_held = 0;
    double sum_truth = 0, sum = 0;
    for (unsigned run = 0; run < runs(); run++) {
        for (unsigned site = 0; site < SITES; site++) {
            struct estimate e = {0};
            uint64_t truth = 0;
            for (unsigned i = 0; i < blocks_of(site); i++) {
                uint64_t size = size_of(site, i);
                truth += size;
                if (uniform() < -expm1(-(double)size / RATE))
                    estimate_add(&e, size, RATE);
            }
            sum_truth += (double)truth;
            sum += e.bytes;
            if (!e.sampled_blocks)
                continue;
            struct estimate_range r = estimate_bytes(&e, RATE);
            bool holds = r.low <= truth && truth <= r.high;
            shown++;
            held += holds;
            small += truth < RATE;
            small_held += holds && truth < RATE;
        }
    }
    print_message(
        "%u of %u intervals hold the truth; of small sites %u of %u; sums %.4f of the truth\n",
        held, shown, small_held, small, sum / sum_truth);
    assert_true(held >= shown * 0.95);
    assert_true(small > 20 && small_held >= small * 0.95);
    assert_true(fabs(sum / sum_truth - 1) < 0.02);
}

// Fails if the intervals are so wide that they always contain the true sum.
static void test_intervals_are_narrow(void **unused)
{
    (void)unused;
    struct estimate e = {0};
    for (int i = 0; i < 400; i++)
        estimate_add(&e, 1000, RATE);
    struct estimate_range r = estimate_bytes(&e, RATE);
    assert_true((double)r.low > e.bytes * 0.88 && (double)r.high < e.bytes * 1.13);
    // If all blocks are sampled with certainty, the sum is exact.
    e = (struct estimate){0};
    estimate_add(&e, (uint64_t)RATE << 10, RATE);
    r = estimate_bytes(&e, RATE);
    assert_int_equal(r.low, (uint64_t)RATE << 10);
    assert_int_equal(r.high, (uint64_t)RATE << 10);
}

static void test_removing(void **unused)
{
    (void)unused;
    struct estimate e = {0};
    for (unsigned i = 0; i < 1000; i++)
        estimate_add(&e, 100 + i, RATE);
    for (unsigned i = 0; i < 1000; i++)
        estimate_remove(&e, 100 + i, RATE);
    assert_true(e.bytes == 0 && e.variance == 0 && e.blocks == 0 && e.sampled_bytes == 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_intervals_hold_the_truth),
    cmocka_unit_test(test_intervals_are_narrow),
    cmocka_unit_test(test_removing),
};

UNIT_MAIN(tests)
