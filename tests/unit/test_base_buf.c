#include "base/buf.h"

#include "unit.h"

#include <errno.h>

static void put_appends(void **state)
{
    struct buf b = {0};
    for (unsigned i = 0; i < 10000; i++) {
        if (i & 1)
            assert_int_equal(buf_put_u8(&b, (uint8_t)i), 0);
        else
            assert_int_equal(buf_put(&b, &(uint8_t){(uint8_t)i}, 1), 0);
    }
    assert_int_equal(b.size, 10000);
    for (unsigned i = 0; i < 10000; i++)
        assert_int_equal(b.data[i], (uint8_t)i);
    buf_release(&b);
    assert_null(b.data);
    assert_int_equal(b.size + b.capacity, 0);
    (void)state;
}

static void resize_keeps_content(void **state)
{
    struct buf b = {0};
    buf_put(&b, "abc", 3);
    assert_int_equal(buf_resize(&b, 100000), 0);
    assert_int_equal(b.size, 100000);
    assert_memory_equal(b.data, "abc", 3);
    assert_int_equal(buf_resize(&b, 1), 0);
    assert_int_equal(b.size, 1);
    buf_release(&b);
    (void)state;
}

static void reserve_that_overflows_changes_nothing(void **state)
{
    struct buf b = {0};
    buf_put(&b, "abc", 3);
    assert_int_equal(buf_reserve(&b, SIZE_MAX), -ENOMEM);
    assert_int_equal(buf_reserve(&b, SIZE_MAX - 2), -ENOMEM);
    assert_int_equal(b.size, 3);
    assert_memory_equal(b.data, "abc", 3);
    buf_release(&b);
    (void)state;
}

static void size_mul_checks(void **state)
{
    size_t r = 42;
    assert_int_equal(size_mul(SIZE_MAX, 2, &r), -EOVERFLOW);
    assert_int_equal(r, 42);
    assert_int_equal(size_mul(SIZE_MAX / 2, 2, &r), 0);
    assert_true(r == SIZE_MAX - 1);
    assert_int_equal(size_mul(0, SIZE_MAX, &r), 0);
    assert_int_equal(r, 0);
    (void)state;
}

static void array_reserve_grows(void **state)
{
    uint64_t *items = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 5000; i++) {
        assert_int_equal(HT_GROW(&items, &capacity, i + 1), 0);
        assert_true(capacity > i);
        items[i] = i;
    }
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(items[i], i);
    assert_int_equal(HT_GROW(&items, &capacity, SIZE_MAX / 4), -ENOMEM);
    assert_int_equal(items[4999], 4999);
    free(items);
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(put_appends),
    cmocka_unit_test(resize_keeps_content),
    cmocka_unit_test(reserve_that_overflows_changes_nothing),
    cmocka_unit_test(size_mul_checks),
    cmocka_unit_test(array_reserve_grows),
};
UNIT_MAIN(tests)
