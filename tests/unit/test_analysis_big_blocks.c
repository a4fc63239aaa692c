// Tests the measured use of large blocks.
#include "analysis/big_blocks.h"
#include "unit.h"

enum { KIB = 1024, SIZE = 64 * KIB };

static struct big_blocks blocks;
static struct samples_residency known;
static struct site_use uses[2];

static void add_op(uint8_t kind, uint64_t size, uint8_t flags)
{
    const struct workload_op op = {
        .kind = kind, .size = size, .count = 1, .value = 1, .flags = flags};
    assert_int_equal(big_blocks_op(&blocks, 3, &op), 0);
}

// Measures a block of 64 KiB from malloc or calloc.
static struct big_blocks_use measure(uint8_t kind, uint32_t used, uint32_t resident)
{
    struct big_blocks_use all = {0};
    struct site_uses sites = {.sites = uses, .n_sites = 2};
    const struct workload_residency r = {.thread = 3, .used = used, .resident = resident};
    uses[1] = (struct site_use){0};
    add_op(kind, SIZE, 0);
    assert_int_equal(samples_residency_add(&known, &r), 0);
    samples_residency_sort(&known);
    big_blocks_measure(&blocks, &known, &all, &sites);
    assert_int_equal(all.bytes, SIZE);
    big_blocks_release(&blocks);
    samples_residency_release(&known);
    return all;
}

static void expect(struct big_blocks_use all, uint64_t measured, uint64_t unused)
{
    assert_int_equal(all.measured, measured);
    assert_int_equal(all.unused, unused);
    assert_int_equal(uses[1].big_measured, measured);
    assert_int_equal(uses[1].big_unused, unused);
}

// Adjacent blocks may have used part of the first and the last page.
static void whole_unused_pages(void **state)
{
    (void)state;
    expect(measure(HT_MALLOC, 0, 0), SIZE, SIZE - 8 * KIB);
    expect(measure(HT_MALLOC, 20, 20), SIZE, SIZE - 28 * KIB);
    expect(measure(HT_MALLOC, 56, 56), SIZE, 0);
    expect(measure(HT_MALLOC, 64, 64), SIZE, 0);
}

// A replay ignores these measurements.
static void unusable_measurements(void **state)
{
    (void)state;
    expect(measure(HT_MALLOC, 65, 65), 0, 0);
    expect(measure(HT_MALLOC, 20, 24), 0, 0);
    // The kernel's zero page is resident in blocks from calloc.
    expect(measure(HT_CALLOC, 20, 24), SIZE, SIZE - 28 * KIB);
}

static void which_blocks(void **state)
{
    (void)state;
    struct big_blocks_use all = {0};
    struct site_uses sites = {.sites = uses, .n_sites = 2};
    add_op(HT_MALLOC, HT_BIG_BYTES - 1, 0);
    add_op(HT_MALLOC, HT_BIG_BYTES, 0);
    add_op(HT_REALLOC, HT_BIG_BYTES + 1, 0);
    add_op(HT_FREE, 0, 0);
    add_op(HT_PREEXISTING, HT_BIG_BYTES + 2, WORKLOAD_SIZE_UNKNOWN);
    assert_int_equal(blocks.n, 2);
    assert_int_equal(blocks.items[0].op, 1);
    assert_int_equal(blocks.items[1].op, 2);
    big_blocks_measure(&blocks, &known, &all, &sites);
    assert_int_equal(all.bytes, 2 * HT_BIG_BYTES + 1);
    assert_int_equal(all.measured, 0);
    big_blocks_release(&blocks);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(whole_unused_pages),
    cmocka_unit_test(unusable_measurements),
    cmocka_unit_test(which_blocks),
};

UNIT_MAIN(tests)
