// Tests merging the files of several workloads.
#include "workload/merged.h"
#include "workload/writer.h"

#include "unit.h"

// Opens a workload with `blocks` allocations, one per microsecond from `start` on. Its summary
// counts one repaired event.
static void open_source(struct workload_file *w, uint64_t start, unsigned blocks, bool has_stamps)
{
    struct output out;
    struct input in;
    struct workload_output to = {0};
    struct err e = {0};
    const struct workload_header h = {
        .clock_hz = 1000000000, .has_stamps = has_stamps, .start_stamp = start};
    assert_int_equal(output_open_unnamed(&out, &e), 0);
    assert_int_equal(workload_output_begin(&to, &out, 1, &h, &e), 0);
    for (unsigned i = 0; i < blocks; i++) {
        const struct workload_op op = {
            .kind = HT_MALLOC, .slot = i, .size = 8, .stamp = start + 1000 * i};
        assert_int_equal(workload_output_op(&to, 0, &op, &e), 0);
    }
    struct workload_summary s = workload_output_summary(&to);
    s.order_repaired = 1;
    assert_int_equal(workload_write_end(to.writer, &s, &e), 0);
    workload_output_release(&to);
    assert_int_equal(input_from_output(&in, &out, "w", &e), 0);
    assert_int_equal(workload_file_adopt(w, &in, &e), 0);
}

// Merges a workload of 3 blocks and a workload of 5 blocks. The second workload begins `offset_ns`
// after the first.
static struct workload_summary merge(uint64_t offset_ns, bool has_stamps)
{
    struct workload_file in[2], result;
    struct input bytes;
    struct output out;
    struct workload_summary s, read;
    struct err e = {0};
    const uint64_t offsets_ns[] = {0, offset_ns};
    open_source(&in[0], 100000, 3, true);
    open_source(&in[1], 900000, 5, has_stamps);
    assert_int_equal(output_open_unnamed(&out, &e), 0);
    assert_int_equal(
        merged_files_write(&(struct merged_files){in, offsets_ns, 2, 1, NULL}, &out, &s, &e), 0);
    assert_int_equal(input_from_output(&bytes, &out, "merged", &e), 0);
    assert_int_equal(workload_file_adopt(&result, &bytes, &e), 0);
    assert_int_equal(workload_read_summary(result.reader, &read, &e), 0);
    assert_memory_equal(&read.by_kind, &s.by_kind, sizeof s.by_kind);
    assert_int_equal(workload_reader_header(result.reader)->has_stamps, has_stamps);
    workload_file_close(&result);
    for (int i = 0; i < 2; i++)
        workload_file_close(&in[i]);
    return s;
}

static void side_by_side(void **state)
{
    struct workload_summary s = merge(0, true);
    assert_int_equal(s.events, 8);
    assert_int_equal(s.threads, 2);
    assert_int_equal(s.slots, 8);
    assert_int_equal(s.order_repaired, 2);
    assert_int_equal(s.last_stamp - s.first_stamp, 4000);
    (void)state;
}

static void one_later(void **state)
{
    struct workload_summary s = merge(1000000, true);
    assert_int_equal(s.events, 8);
    assert_int_equal(s.last_stamp - s.first_stamp, 1004000);
    (void)state;
}

static void without_stamps(void **state)
{
    struct workload_summary s = merge(0, false);
    assert_int_equal(s.events, 8);
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(side_by_side),
    cmocka_unit_test(one_later),
    cmocka_unit_test(without_stamps),
};

UNIT_MAIN(tests)
