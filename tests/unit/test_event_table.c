#include "trace/event/event.h"

#include "unit.h"

#include <string.h>

#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...) wire,
static const int wires[] = {HT_EVENT_TABLE(HT_X)};
#undef HT_X
enum { ROWS = sizeof wires / sizeof *wires };

static const struct event_info *row(int i)
{
    return &event_infos[wires[i]];
}

static void numbers_names_and_symbols_are_unique(void **state)
{
    for (int i = 0; i < ROWS; i++) {
        assert_in_range(wires[i], 4, HT_KIND_LIMIT - 1);
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(wires[i], wires[j]);
            assert_string_not_equal(row(i)->name, row(j)->name);
            if (row(i)->symbol[0])
                assert_string_not_equal(row(i)->symbol, row(j)->symbol);
        }
    }
    (void)state;
}

static void one_word_forms_are_kinds_whose_number_is_a_tag(void **state)
{
    for (int i = 0; i < ROWS; i++) {
        const struct event_info *info = row(i);
        if (info->form == HT_FORM_NONE)
            continue;
        assert_in_range(wires[i], 4, HT_FIRST_NOTE - 1);
        if (info->form == HT_FORM_SIZED)
            assert_true(info->fields & HT_F_SIZE);
        else
            assert_int_equal(info->fields, HT_F_PTR);
    }
    (void)state;
}

// Deallocations must be stamped before the call, and allocations after the call, because the order
// of a trace relies on this.
static void stamps_follow_the_class(void **state)
{
    for (int i = 0; i < ROWS; i++) {
        const struct event_info *info = row(i);
        switch (info->class) {
        case HT_CLASS_ALLOC:
            assert_true(info->fields & HT_F_RESULT);
            assert_int_equal(info->stamp,
                             wires[i] == HT_PREEXISTING ? HT_STAMP_BEFORE : HT_STAMP_AFTER);
            break;
        case HT_CLASS_FREE:
        case HT_CLASS_HALF:
            assert_true(info->fields & HT_F_PTR);
            assert_int_equal(info->stamp, HT_STAMP_BEFORE);
            break;
        case HT_CLASS_RESIZE:
            assert_int_equal(info->fields & (HT_F_PTR | HT_F_RESULT), HT_F_PTR | HT_F_RESULT);
            assert_int_equal(info->stamp, HT_STAMP_BOTH);
            break;
        default:
            break;
        }
    }
    (void)state;
}

static void names_are_found(void **state)
{
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(event_kind_by_name(row(i)->name), wires[i]);
    assert_int_equal(event_kind_by_name("mallocx"), -1);
    assert_int_equal(event_kind_by_name(""), -1);
    (void)state;
}

static void requested_bytes_saturate(void **state)
{
    assert_int_equal(event_requested(HT_MALLOC, 10, 7), 10);
    assert_int_equal(event_requested(HT_CALLOC, 10, 7), 70);
    assert_true(event_requested(HT_CALLOC, SIZE_MAX, 2) == UINT64_MAX);
    assert_true(event_counts(HT_MALLOC));
    assert_false(event_counts(HT_REALLOC_BEGIN));
    assert_false(event_counts(HT_LOST));
    assert_false(event_counts(0));
    (void)state;
}

static void check_argument(enum event_kind kind, unsigned field, const char *name, bool is_signed)
{
    const struct event_argument a = event_argument(kind, field);
    assert_true(event_infos[kind].fields & field);
    if (strcmp(a.name, name) != 0 || a.is_signed != is_signed)
        fail_msg("%s: argument %s, signed %d, expected %s, signed %d", event_infos[kind].name,
                 a.name, a.is_signed, name, is_signed);
}

static void arguments_have_their_names_and_signs(void **state)
{
    check_argument(HT_MALLOPT, HT_F_COUNT, "param", true);
    check_argument(HT_MALLOPT, HT_F_VALUE, "value", true);
    check_argument(HT_SBRK, HT_F_VALUE, "increment", true);
    check_argument(HT_MREMAP, HT_F_SIZE, "old_size", false);
    check_argument(HT_MREMAP, HT_F_COUNT, "new_size", false);
    check_argument(HT_CALLOC, HT_F_COUNT, "count", false);
    check_argument(HT_CALLOC, HT_F_SIZE, "size", false);
    check_argument(HT_POSIX_MEMALIGN, HT_F_ALIGN, "align", false);
    check_argument(HT_MALLOC_TRIM, HT_F_VALUE, "pad", false);
    // Kinds that allocate or free do not name their arguments. Other kinds name only fields that
    // they have, and they always name the value.
    for (int i = 0; i < ROWS; i++) {
        const struct event_arguments *own = &event_arguments[wires[i]];
        bool any = own->size.name || own->count.name || own->value.name;
        assert_false(any && row(i)->class <= HT_CLASS_RESIZE);
        assert_false(own->size.name && !(row(i)->fields & HT_F_SIZE));
        assert_false(own->count.name && !(row(i)->fields & HT_F_COUNT));
        assert_int_equal(!own->value.name, !(row(i)->fields & HT_F_VALUE));
    }
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_names_and_symbols_are_unique),
    cmocka_unit_test(one_word_forms_are_kinds_whose_number_is_a_tag),
    cmocka_unit_test(stamps_follow_the_class),
    cmocka_unit_test(names_are_found),
    cmocka_unit_test(arguments_have_their_names_and_signs),
    cmocka_unit_test(requested_bytes_saturate),
};
UNIT_MAIN(tests)
