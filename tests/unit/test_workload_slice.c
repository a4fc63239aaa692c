// Tests parts of workload files: their content, and invalid ranges.
#include "workload/slice.h"
#include "workload/writer.h"

#include "unit.h"

#include <errno.h>
#include <string.h>

enum { BLOCKS = 4 };

// Opens a workload that allocates blocks 0 to 3, sets a mark and frees the blocks: one event every
// microsecond from 100 µs on.
static void open_source(struct workload_file *w, bool has_stamps)
{
    struct output out;
    struct input in;
    struct workload_output to = {0};
    struct err e = {0};
    const struct workload_header h = {
        .clock_hz = 1000000000, .has_stamps = has_stamps, .start_stamp = 100000};
    struct workload_op op = {.stamp = 100000};
    assert_int_equal(output_open_unnamed(&out, &e), 0);
    assert_int_equal(workload_output_begin(&to, &out, 1, &h, &e), 0);
    for (unsigned i = 0; i < 2 * BLOCKS + 1; i++, op.stamp += 1000) {
        op.kind = i < BLOCKS ? HT_MALLOC : i == BLOCKS ? HT_MARK : HT_FREE;
        op.slot = i < BLOCKS ? i : i == BLOCKS ? WORKLOAD_NO_SLOT : i - BLOCKS - 1;
        op.size = i < BLOCKS ? 8 : 0;
        op.text = i == BLOCKS ? "warm" : NULL;
        op.text_bytes = i == BLOCKS ? 4 : 0;
        assert_int_equal(workload_output_op(&to, 0, &op, &e), 0);
    }
    const struct workload_summary s = workload_output_summary(&to);
    assert_int_equal(workload_write_end(to.writer, &s, &e), 0);
    workload_output_release(&to);
    assert_int_equal(input_from_output(&in, &out, "w", &e), 0);
    assert_int_equal(workload_file_adopt(w, &in, &e), 0);
}

// Extracts the part and reads it back. *s is the summary of its events.
static int slice(struct slice_options part, bool has_stamps, struct workload_summary *s,
                 struct err *e)
{
    struct workload_file w;
    struct output out;
    struct input in;
    struct slice_counts c;
    open_source(&w, has_stamps);
    assert_int_equal(output_open_unnamed(&out, e), 0);
    int rc = slice_file(&w, &out, &(struct slice_file_options){.part = part, .level = 1}, &c, e);
    workload_file_close(&w);
    if (rc < 0) {
        output_close(&out, false, NULL);
        return rc;
    }
    assert_int_equal(input_from_output(&in, &out, "part", e), 0);
    assert_int_equal(workload_file_adopt(&w, &in, e), 0);
    assert_int_equal(workload_read_summary(w.reader, s, e), 0);
    assert_int_equal(s->events, c.events);
    assert_int_equal(s->unmatched_frees + s->preexisting_blocks, c.preexisting);
    workload_file_close(&w);
    return 0;
}

static void by_events(void **state)
{
    struct workload_summary s;
    struct err e = {0};
    (void)state;
    assert_int_equal(
        slice((struct slice_options){{SLICE_AT_EVENT, 2, NULL}, {SLICE_AT_EVENT, 6, NULL}}, true,
              &s, &e),
        0);
    // The part contains two allocations, the mark and a free, and two preexisting blocks.
    assert_int_equal(s.events, 4);
    assert_int_equal(s.preexisting_blocks, 2);
    assert_int_equal(s.by_kind[HT_FREE], 1);
    assert_int_equal(s.first_stamp, 102000);
}

static void by_times_and_marks(void **state)
{
    struct workload_summary s;
    struct err e = {0};
    (void)state;
    // Times are in ns from the start.
    assert_int_equal(
        slice((struct slice_options){{SLICE_AT_TIME, 1000, NULL}, {SLICE_AT_MARK, 0, "warm"}}, true,
              &s, &e),
        0);
    assert_int_equal(s.events, 3);
    assert_int_equal(s.first_stamp, 101000);
    assert_int_equal(
        slice((struct slice_options){.from = {SLICE_AT_MARK, 0, "warm"}, .rebase = true}, true, &s,
              &e),
        0);
    assert_int_equal(s.events, 5);
    assert_int_equal(s.preexisting_blocks, 4);
    assert_int_equal(s.first_stamp, 100000);
}

static void invalid_parts(void **state)
{
    struct workload_summary s;
    struct err e = {0};
    (void)state;
    assert_int_equal(
        slice((struct slice_options){.from = {SLICE_AT_EVENT, 99, NULL}}, true, &s, &e), -ENODATA);
    assert_string_equal(e.text, "w: the part contains no events");
    e = (struct err){0};
    assert_int_equal(slice((struct slice_options){.to = {SLICE_AT_TIME, 5, NULL}}, false, &s, &e),
                     -EINVAL);
    assert_string_equal(e.text, "w: the workload has no timestamps and cannot be sliced by time");
}

static void by_blocks(void **state)
{
    const bool blocks[BLOCKS] = {true, false, false, true}, threads[] = {true};
    struct slice_choice choice = {blocks, BLOCKS, threads, 1, true};
    struct workload_summary s;
    struct err e = {0};
    (void)state;
    // The part contains all calls of two blocks, and the mark.
    assert_int_equal(slice((struct slice_options){.choice = &choice}, true, &s, &e), 0);
    assert_int_equal(s.events, 5);
    assert_int_equal(s.by_kind[HT_MALLOC], 2);
    assert_int_equal(s.by_kind[HT_FREE], 2);
    assert_int_equal(s.slots, 2);
    assert_int_equal(s.preexisting_blocks, 0);
    choice.others = false;
    choice.n_blocks = 1;
    assert_int_equal(slice((struct slice_options){.choice = &choice}, true, &s, &e), 0);
    assert_int_equal(s.events, 2);
    // With a span, the part contains the chosen blocks that are live at the start of the span.
    choice.n_blocks = BLOCKS;
    assert_int_equal(
        slice((struct slice_options){{SLICE_AT_EVENT, 2, NULL}, .choice = &choice}, true, &s, &e),
        0);
    assert_int_equal(s.events, 3);
    assert_int_equal(s.preexisting_blocks, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(by_blocks),
    cmocka_unit_test(by_events),
    cmocka_unit_test(by_times_and_marks),
    cmocka_unit_test(invalid_parts),
};

UNIT_MAIN(tests)
