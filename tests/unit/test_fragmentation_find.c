#include "analysis/memory/fragmentation.h"
#include "unit.h"

enum { PAGE = 4096, AT = 16 * PAGE };

static struct fragmentation found;

static void find(struct fragmentation_block *blocks, const uint64_t *addresses, size_t n)
{
    const struct fragmentation_heap h = {
        .event = 100, .page_bytes = PAGE, .blocks = blocks, .n = n};
    for (size_t i = 0; i < n; i++) {
        blocks[i].address = addresses[i];
        blocks[i].bytes = blocks[i].size;
    }
    fragmentation_release(&found);
    assert_int_equal(fragmentation_find(&found, &h), 0);
    fragmentation_sort(&found);
}

static void expect(uint64_t pages, uint64_t sparse, uint64_t stranded)
{
    assert_int_equal(found.pages, pages);
    assert_int_equal(found.sparse_pages, sparse);
    assert_int_equal(found.stranded_bytes, stranded);
}

static void test_pages(void **state)
{
    (void)state;
    find((struct fragmentation_block[]){{.size = 100}}, (uint64_t[]){AT + 50}, 1);
    expect(1, 1, PAGE - 100);
    // Half a page counts as sparse.
    find((struct fragmentation_block[]){{.size = PAGE / 2}}, (uint64_t[]){AT}, 1);
    expect(1, 0, 0);
    // The block has 10 bytes in one page and 90 bytes in the next.
    find((struct fragmentation_block[]){{.size = 100}}, (uint64_t[]){AT - 10}, 1);
    expect(2, 2, 2 * PAGE - 100);
    // Only the last page of a large block is sparse.
    find((struct fragmentation_block[]){{.size = 5 * PAGE + 1}}, (uint64_t[]){AT}, 1);
    expect(6, 1, PAGE - 1);
    find((struct fragmentation_block[]){{.size = 5 * PAGE}}, (uint64_t[]){AT}, 1);
    expect(5, 0, 0);
    // A block of 0 bytes occupies one page, except at address 0.
    find((struct fragmentation_block[]){{.size = 0}}, (uint64_t[]){AT}, 1);
    expect(1, 1, PAGE - 1);
    assert_int_equal(found.live_bytes, 0);
    find((struct fragmentation_block[]){{.size = 0}}, (uint64_t[]){0}, 1);
    expect(0, 0, 0);
    assert_int_equal(found.blocks, 0);
}

// Three blocks share a page. Their sizes do not divide the page evenly, and rounding must not lose
// bytes.
static void test_shares(void **state)
{
    (void)state;
    struct fragmentation_block blocks[] = {{.size = 7, .thread = 1, .allocated_at = 99},
                                           {.size = 13, .thread = 2, .allocated_at = 89},
                                           {.size = 1, .thread = 3, .allocated_at = 0}};
    find(blocks, (uint64_t[]){AT + 64, AT, AT + 128}, 3);
    expect(1, 1, PAGE - 21);
    const struct fragmentation_groups *g = &found.by[FRAGMENTATION_BY_THREAD];
    uint64_t sum = 0;
    assert_int_equal(g->n, 3);
    for (size_t i = 0; i < g->n; i++) {
        uint64_t exact = (PAGE - 21) * g->groups[i].live_bytes / 21;
        assert_true(g->groups[i].stranded_bytes >= exact &&
                    g->groups[i].stranded_bytes <= exact + 1);
        assert_int_equal(g->groups[i].sparse_pages, 1);
        sum += g->groups[i].stranded_bytes;
    }
    assert_int_equal(sum, PAGE - 21);
    assert_int_equal(g->groups[0].key, 2); // the thread that pins most is first
    g = &found.by[FRAGMENTATION_BY_AGE];
    assert_int_equal(g->n, 2); // ages of 0, 10 and 99 calls
    assert_int_equal(g->groups[0].blocks, 1);
    assert_int_equal(g->groups[1].blocks, 2);
    assert_int_equal(g->groups[1].sparse_pages, 1);
}

static void test_from_before(void **state)
{
    (void)state;
    find((struct fragmentation_block[]){{.size = 8, .allocated_at = FRAGMENTATION_BEFORE_START}},
         (uint64_t[]){AT}, 1);
    assert_int_equal(found.by[FRAGMENTATION_BY_THREAD].groups[0].key, FRAGMENTATION_UNKNOWN);
    assert_int_equal(found.by[FRAGMENTATION_BY_AGE].groups[0].key, 2); // all 100 calls
}

// Results that a correct allocator never returns must not corrupt the counts.
static void test_wrong_allocator(void **state)
{
    (void)state;
    struct fragmentation_block blocks[] = {
        {.size = 3 * PAGE}, {.size = 5}, {.size = 100}, {.size = 100}};
    find(blocks, (uint64_t[]){AT, AT + 10, AT, UINT64_MAX - 5}, 4);
    assert_int_equal(found.blocks, 4);
    assert_true(found.stranded_bytes <= found.sparse_pages * PAGE);
}

static void test_ranges(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1, 2, 3, 4, 1ull << 40, UINT64_MAX};
    uint64_t range[2];
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        find((struct fragmentation_block[]){{.size = sizes[i]}}, (uint64_t[]){1}, 1);
        fragmentation_size_range(found.by[FRAGMENTATION_BY_SIZE].groups[0].key, range);
        assert_true(range[0] <= sizes[i] && sizes[i] <= range[1]);
        assert_int_equal(range[0] ? range[1] - range[0] + 1 : 1, range[0] ? range[0] : 1);
    }
    fragmentation_age_range(0, range);
    assert_true(range[0] == 0 && range[1] == 9);
    fragmentation_age_range(3, range);
    assert_true(range[0] == 1000 && range[1] == 9999);
    fragmentation_age_range(19, range);
    assert_true(range[0] == 10000000000000000000ull && range[1] == UINT64_MAX);
}

static bool is_not_third(const void *context, uint64_t page)
{
    (void)context;
    return page != AT / PAGE + 2;
}

static void test_pages_that_do_not_count(void **state)
{
    (void)state;
    struct fragmentation_block blocks[] = {{AT, 8, 8}, {AT + PAGE, 8, 8}, {AT + 2 * PAGE, 8, 8}};
    const struct fragmentation_heap h = {
        .page_bytes = PAGE, .blocks = blocks, .n = 3, .counts = is_not_third};
    fragmentation_release(&found);
    assert_int_equal(fragmentation_find(&found, &h), 0);
    expect(3, 2, 2 * (PAGE - 8));
}

static int release(void **state)
{
    (void)state;
    fragmentation_release(&found);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),       cmocka_unit_test(test_shares),
        cmocka_unit_test(test_from_before), cmocka_unit_test(test_wrong_allocator),
        cmocka_unit_test(test_ranges),      cmocka_unit_test(test_pages_that_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
