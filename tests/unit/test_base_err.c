#include "base/err.h"

#include "unit.h"

#include <errno.h>
#include <string.h>

static void sets_text_and_returns_code(void **state)
{
    struct err e = {0};
    assert_int_equal(err_set(&e, -EINVAL, "%s: byte %d", "a.ht", 7), -EINVAL);
    assert_string_equal(e.text, "a.ht: byte 7");
    (void)state;
}

static void first_text_wins(void **state)
{
    struct err e = {0};
    err_set(&e, -EINVAL, "first");
    assert_int_equal(err_set(&e, -EIO, "second"), -EIO);
    assert_string_equal(e.text, "first");
    (void)state;
}

static void errno_is_appended(void **state)
{
    struct err e = {0};
    errno = ENOSPC;
    assert_int_equal(err_set_errno(&e, "cannot write %s", "x"), -ENOSPC);
    assert_string_equal(e.text, "cannot write x: No space left on device");
    (void)state;
}

static void no_errno_is_an_io_error(void **state)
{
    errno = 0;
    assert_int_equal(err_set_errno(NULL, "x"), -EIO);
    (void)state;
}

static void failed_allocation_names_the_file(void **state)
{
    struct err e = {0};
    assert_int_equal(err_no_memory(&e, "a.ht"), -ENOMEM);
    assert_string_equal(e.text, "a.ht: out of memory");
    memset(&e, 0, sizeof e);
    assert_int_equal(err_no_memory(&e, NULL), -ENOMEM);
    assert_string_equal(e.text, "out of memory");
    (void)state;
}

static void long_text_is_cut_and_terminated(void **state)
{
    struct err e = {0};
    char big[4096];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    err_set(&e, -EINVAL, "%s", big);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    memset(&e, 0, sizeof e);
    errno = ENOENT;
    err_set_errno(&e, "%s", big);
    assert_true(memchr(e.text, 0, sizeof e.text) != NULL);
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sets_text_and_returns_code),
    cmocka_unit_test(first_text_wins),
    cmocka_unit_test(errno_is_appended),
    cmocka_unit_test(no_errno_is_an_io_error),
    cmocka_unit_test(failed_allocation_names_the_file),
    cmocka_unit_test(long_text_is_cut_and_terminated),
};
UNIT_MAIN(tests)
