// Tests the numbers of interned strings.
#include "base/intern.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

static void numbers_follow_the_first_use(void **state)
{
    enum { N = 10000 };
    static char texts[N][16];
    struct intern s = {0};
    bool is_new;
    (void)state;
    for (unsigned i = 0; i < N; i++) {
        snprintf(texts[i], sizeof texts[i], "text %u", i);
        assert_int_equal(intern_number(&s, texts[i], &is_new), i + 1);
        assert_true(is_new);
    }
    for (unsigned i = 0; i < N; i++) {
        char again[16];
        snprintf(again, sizeof again, "text %u", i);
        assert_int_equal(intern_number(&s, again, &is_new), i + 1);
        assert_false(is_new);
    }
    assert_int_equal(intern_number(&s, "", &is_new), N + 1);
    intern_release(&s);
    assert_int_equal(intern_number(&s, "", &is_new), 1);
    intern_release(&s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_follow_the_first_use),
};
UNIT_MAIN(tests)
