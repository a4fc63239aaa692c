#include "base/pages.h"

#include "unit.h"

#include <errno.h>
#include <stdint.h>

static void arrays_grow_with_what_they_hold(void **state)
{
    uint64_t *items = NULL;
    size_t capacity = 0;
    // Grows through sizes below, at and above a huge page.
    for (size_t want = 1; want < 3000000; want = want * 3 + 1) {
        size_t had = capacity;
        assert_int_equal(HT_PAGES_GROW(&items, &capacity, want), 0);
        assert_true(capacity >= want && capacity >= had);
        for (size_t i = 0; i < had; i++)
            assert_true(items[i] == ~i);
        for (size_t i = had; i < capacity; i++) {
            assert_true(items[i] == 0);
            items[i] = ~i;
        }
    }
    pages_array_free(items, capacity, sizeof *items);
    (void)state;
}

static void too_much_is_refused_and_nothing_is_lost(void **state)
{
    uint64_t *items = NULL;
    size_t capacity = 0;
    assert_int_equal(HT_PAGES_GROW(&items, &capacity, 10), 0);
    size_t had = capacity;
    items[9] = 7;
    assert_int_equal(HT_PAGES_GROW(&items, &capacity, SIZE_MAX / 4), -ENOMEM);
    assert_int_equal(HT_PAGES_GROW(&items, &capacity, SIZE_MAX / 32), -ENOMEM);
    assert_int_equal(capacity, had);
    assert_int_equal(items[9], 7);
    pages_array_free(items, capacity, sizeof *items);
    assert_null(pages_new(SIZE_MAX - 100));
    pages_free(NULL, 0);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_grow_with_what_they_hold),
        cmocka_unit_test(too_much_is_refused_and_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
