#include "plan_op_name.h"
#include "replay/plan/ops.h"
#include "unit.h"

#include <stdbool.h>

static void check(bool ok, unsigned op, const char *what)
{
    if (!ok)
        fail_msg("op %s (%u): %s", plan_op_name(op), op, what);
}

static void test_fields_of_a_word(void **state)
{
    (void)state;
    static const uint64_t entries[] = {0, 1, 0x123456, 0xffffff},
                          sizes[] = {0, 1, 0x12345678, 0xffffffff};
    for (unsigned op = 0; op < PLAN_OP_LIMIT; op++) {
        for (unsigned i = 0; i < 16; i++) {
            uint64_t word = plan_word((enum plan_op)op, entries[i % 4], sizes[i / 4]);
            for (unsigned publish = 0; publish < 2; publish++, word |= PLAN_PUBLISH) {
                check(plan_op_of(word) == op, op, "is read as another op");
                check(plan_entry_of(word) == entries[i % 4], op, "entry differs");
                check(plan_size_of(word) == sizes[i / 4], op, "size differs");
            }
        }
    }
}

// Every op fits into its reserved space. A wide op has two words more than the narrow op.
static void test_lengths(void **state)
{
    (void)state;
    for (unsigned op = 0; op < PLAN_OP_LIMIT; op++) {
        uint64_t narrow = plan_word((enum plan_op)op, 1, 1), wide = plan_word(PLAN_WIDE, op, 0);
        if (op == PLAN_WIDE)
            continue;
        check(plan_op_words(narrow) == 1u + plan_op_info(op).words, op, "narrow length");
        check(plan_op_words(wide) == plan_op_words(narrow) + 2, op, "wide length");
        check(plan_op_words(wide | PLAN_PUBLISH) == plan_op_words(wide), op,
              "length depends on PUBLISH");
        check(plan_op_words(wide) <= PLAN_MAX_OP_WORDS, op, "is longer than PLAN_MAX_OP_WORDS");
    }
}

static void test_extra_words_of_calls(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        enum event_class class = (enum event_class)event_infos[kind].class;
        bool is_call = class == HT_CLASS_ALLOC || class == HT_CLASS_FREE;
        if (is_call && kind != HT_PREEXISTING)
            check(plan_op_info(kind).words == ((event_infos[kind].fields & HT_F_ALIGN) != 0), kind,
                  "extra words");
    }
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        enum plan_op null_op = plan_op_for_null(kind);
        if (event_infos[kind].class == HT_CLASS_RESIZE)
            check(plan_op_info(null_op).kind == kind && (unsigned)null_op != kind, kind,
                  "op for NULL");
        else
            check(null_op == PLAN_STOP, kind, "has an op for NULL");
    }
    assert_int_equal(plan_op_info(PLAN_REALLOC).words, 1);
    assert_int_equal(plan_op_info(PLAN_REALLOC_NEW).words, 0);
    assert_int_equal(plan_op_info(PLAN_REALLOC_FREE).words, 0);
    assert_int_equal(plan_op_info(PLAN_REALLOCARRAY).words, 2);
    assert_int_equal(plan_op_info(PLAN_REALLOCARRAY_NEW).words, 1);
    assert_int_equal(plan_op_info(PLAN_CALLOC_MANY).words, 1);
    assert_int_equal(plan_op_info(PLAN_PREEXISTING).words, 2);
}

// Each call has an op number, and op numbers map to words.
static void test_calls_are_numbered(void **state)
{
    (void)state;
    for (unsigned op = 0; op < PLAN_OP_LIMIT; op++)
        check(!plan_op_info(op).kind || plan_op_info(op).is_numbered, op,
              "is a call without a number");
    assert_int_equal(plan_op_info(PLAN_MALLOC).kind, HT_MALLOC);
    assert_int_equal(plan_op_info(PLAN_REALLOC_NEW).kind, HT_REALLOC);
    assert_int_equal(plan_op_info(PLAN_WAIT).kind, 0);
    assert_true(plan_op_info(PLAN_MALLOC).is_numbered && plan_op_info(PLAN_SKIPPED).is_numbered &&
                plan_op_info(PLAN_WIDE).is_numbered && plan_op_info(PLAN_START_THREAD).is_numbered);
    assert_false(plan_op_info(PLAN_STOP).is_numbered ||
                 plan_op_info(PLAN_NEXT_SEGMENT).is_numbered ||
                 plan_op_info(PLAN_JUMP).is_numbered || plan_op_info(PLAN_WAIT).is_numbered);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_fields_of_a_word),
    cmocka_unit_test(test_lengths),
    cmocka_unit_test(test_extra_words_of_calls),
    cmocka_unit_test(test_calls_are_numbered),
};

UNIT_MAIN(tests)
