#include "plan/ops.h"
#include "unit.h"

#include <stdbool.h>

static void test_fields_of_a_word(void **state)
{
    (void)state;
    static const uint64_t places[] = {0, 1, 0x123456, 0xffffff}, sizes[] = {0, 1, 0x12345678, 0xffffffff};
    for (unsigned op = 0; op < PLAN_OP_LIMIT; op++) {
        for (unsigned i = 0; i < 16; i++) {
            uint64_t word = plan_word((enum plan_op)op, places[i % 4], sizes[i / 4]);
            for (unsigned publish = 0; publish < 2; publish++, word |= PLAN_PUBLISH) {
                assert_int_equal(plan_op_of(word), op);
                assert_int_equal(plan_place_of(word), places[i % 4]);
                assert_int_equal(plan_size_of(word), sizes[i / 4]);
            }
        }
    }
}

// Every op fits where room is made for it, and a wide one takes what the narrow one does and two words more.
static void test_lengths(void **state)
{
    (void)state;
    for (unsigned op = 0; op < PLAN_OP_LIMIT; op++) {
        uint64_t narrow = plan_word((enum plan_op)op, 1, 1), wide = plan_word(PLAN_WIDE, op, 0);
        if (op == PLAN_WIDE)
            continue;
        assert_int_equal(plan_op_words(narrow), 1 + plan_extra_words((enum plan_op)op));
        assert_int_equal(plan_op_words(wide), plan_op_words(narrow) + 2);
        assert_int_equal(plan_op_words(wide | PLAN_PUBLISH), plan_op_words(wide));
        assert_true(plan_op_words(wide) <= PLAN_MAX_OP_WORDS);
    }
}

static void test_extra_words_of_calls(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        enum event_class class = (enum event_class)event_infos[kind].class;
        bool is_call = class == HT_CLASS_ALLOC || class == HT_CLASS_FREE;
        if (is_call && kind != HT_PREEXISTING)
            assert_int_equal(plan_extra_words((enum plan_op)kind), (event_infos[kind].fields & HT_F_ALIGN) != 0);
    }
    assert_int_equal(plan_extra_words(PLAN_REALLOC), 1);
    assert_int_equal(plan_extra_words(PLAN_REALLOC_NEW), 0);
    assert_int_equal(plan_extra_words(PLAN_REALLOC_FREE), 0);
    assert_int_equal(plan_extra_words(PLAN_REALLOCARRAY), 2);
    assert_int_equal(plan_extra_words(PLAN_REALLOCARRAY_NEW), 1);
    assert_int_equal(plan_extra_words(PLAN_CALLOC_MANY), 1);
    assert_int_equal(plan_extra_words(PLAN_PREEXISTING), 2);
}

// What the workload numbers is numbered, so that its op numbers lead to words.
static void test_numbered(void **state)
{
    (void)state;
    static const uint8_t own[] = {PLAN_STOP,   PLAN_WAIT, PLAN_SAMPLE, PLAN_COUNT, PLAN_STATS, PLAN_TRIM,
                                  PLAN_SWITCH, PLAN_PACE, PLAN_JUMP,   PLAN_MORE,  PLAN_HOLD};
    for (unsigned op = 0; op < PLAN_OP_LIMIT; op++) {
        bool is_own = false;
        for (unsigned i = 0; i < sizeof own; i++)
            is_own |= op == own[i];
        assert_int_equal(plan_is_numbered((enum plan_op)op), !is_own);
        // No kind of event has the number of one of the plan's own.
        assert_true(op >= HT_KIND_LIMIT || !is_own || !event_infos[op].name);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_fields_of_a_word),
    cmocka_unit_test(test_lengths),
    cmocka_unit_test(test_extra_words_of_calls),
    cmocka_unit_test(test_numbered),
};

UNIT_MAIN(tests)
