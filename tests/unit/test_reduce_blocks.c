// Tests the groups of blocks.
#include "experiments/reduce/blocks.h"

#include "unit.h"

static void groups_are_numbered_by_their_ops(void **state)
{
    struct reduce_block items[] = {
        {.thread = 7, .site = 1, .ops = 2},
        {.thread = 9, .site = 2, .ops = 2},
        {.thread = 9, .site = 1, .ops = 1},
        {.thread = 3, .site = 1, .ops = 9},
    };
    const struct reduce_blocks b = {.items = items, .n = 4};
    uint32_t group_of[4];
    (void)state;
    assert_int_equal(reduce_blocks_group(&b, REDUCE_BY_THREAD, group_of), 3);
    assert_memory_equal(group_of, ((uint32_t[]){2, 1, 1, 0}), sizeof group_of);
    assert_int_equal(reduce_blocks_group(&b, REDUCE_BY_SITE, group_of), 2);
    assert_memory_equal(group_of, ((uint32_t[]){0, 1, 0, 0}), sizeof group_of);
    assert_int_equal(reduce_blocks_group(&b, REDUCE_BY_CLASS, group_of), 1);
    assert_int_equal(reduce_blocks_group(&b, REDUCE_ALONE, group_of), 4);
    assert_memory_equal(group_of, ((uint32_t[]){0, 1, 2, 3}), sizeof group_of);
}

static void without_blocks(void **state)
{
    uint32_t group_of[1];
    (void)state;
    for (enum reduce_dimension d = 0; d < REDUCE_DIMENSIONS; d++)
        assert_int_equal(reduce_blocks_group(&(struct reduce_blocks){0}, d, group_of), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(groups_are_numbered_by_their_ops),
    cmocka_unit_test(without_blocks),
};

UNIT_MAIN(tests)
