#include "base/sort.h"

#include "unit.h"

struct item {
    double share;
    uint32_t number;
    uint64_t bytes;
};

static void items_are_ordered_by_the_first_key_that_differs(void **state)
{
    (void)state;
    struct item all[] = {
        {0.5, 3, 1}, {0.5, 1, 1ull << 40}, {-1, 2, 1ull << 40}, {0.5, 1, 1ull << 41}, {0.25, 2, 0}};
    const struct item expected[] = {
        {-1, 2, 1ull << 40}, {0.25, 2, 0}, {0.5, 1, 1ull << 41}, {0.5, 1, 1ull << 40}, {0.5, 3, 1}};
    HT_SORT(all, 5, SORT_UP(struct item, share), SORT_UP(struct item, number),
            SORT_DOWN(struct item, bytes));
    for (unsigned i = 0; i < 5; i++) {
        assert_true(all[i].share == expected[i].share);
        assert_int_equal(all[i].number, expected[i].number);
        assert_int_equal(all[i].bytes, expected[i].bytes);
    }
}

static void an_empty_array_may_be_null(void **state)
{
    (void)state;
    struct item *none = NULL;
    HT_SORT(none, 0, SORT_DOWN(struct item, share));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_ordered_by_the_first_key_that_differs),
        cmocka_unit_test(an_empty_array_may_be_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
