// Reads frames that have correct checksums and wrong contents. The error names the fault.
#include "trace/columns.h"
#include "trace/reader.h"
#include "trace/writer.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct row {
    const char *text;
    enum trace_frame type;
    size_t n;                       // size of the payload
    uint8_t start[4], at, at_value; // first bytes, and the value of one byte after them
    unsigned times;                 // number of equal frames
    enum trace_frame before;        // a frame with an empty payload before these frames, or 0
} rows[] = {
    {"there is a second session frame", .type = TRACE_SESSION, .times = 1},
    {"a process number is out of order", .type = TRACE_PROCESS, .times = 1},
    {"a process end refers to an unknown process", .type = TRACE_PROCESS_END, .times = 1},
    {"names of code refer to an unknown process", .type = TRACE_NAMES, .times = 1},
    {"a page map refers to an unknown process", .type = TRACE_PAGES, .times = 1},
    {"there is a second frame of unrecorded processes", .type = TRACE_UNRECORDED, .times = 2},
    {"a frame follows the end frame", .type = TRACE_UNRECORDED, .times = 1, .before = TRACE_END},
    {"the number of samples is invalid", TRACE_SAMPLES, 1, {9}, .times = 1},
    {"a sample is cut off", TRACE_SAMPLES, 5, {1}, 4, 0x80, .times = 1},
    {"a sample refers to an unknown process", TRACE_SAMPLES, 5, {1, 9}, .times = 1},
    {"bytes follow the samples", TRACE_SAMPLES, 2, {0}, .times = 1},
    {"an events frame is too short", TRACE_EVENTS, EVENTS_HEADER_BYTES - 1, .times = 1},
    {"the number of segments is invalid", TRACE_EVENTS, EVENTS_HEADER_BYTES, {0}, 20, 1, 1},
    {"a segment refers to an unknown process",
     TRACE_EVENTS,
     EVENTS_HEADER_BYTES + EVENTS_SEGMENT_BYTES,
     {0},
     20,
     1,
     1},
};

static const char *refused(const struct row *row)
{
    static struct err e;
    struct output out;
    struct input in;
    struct trace_writer w;
    struct trace_reader r;
    struct trace_item item;
    char path[] = "/tmp/heaptape-refused.XXXXXX";
    uint8_t payload[EVENTS_HEADER_BYTES + EVENTS_SEGMENT_BYTES] = {0};
    memcpy(payload, row->start, sizeof row->start);
    if (row->at)
        payload[row->at] = row->at_value;
    e.text[0] = 0;
    close(mkstemp(path));
    assert_int_equal(output_open(&out, path, OUTPUT_FORCE, &e), 0);
    trace_writer_init(&w, &out, FRAME_CODEC_NONE, 0);
    assert_int_equal(trace_write_session(&w, &(struct trace_session){.clock_hz = 1000}, &e), 0);
    if (row->before)
        assert_int_equal(frame_write(&w.frames, row->before, "", 0, &e), 0);
    for (unsigned i = 0; i < row->times; i++)
        assert_int_equal(frame_write(&w.frames, row->type, payload, row->n, &e), 0);
    trace_writer_release(&w);
    assert_int_equal(output_close(&out, true, &e), 0);
    assert_int_equal(input_open(&in, path, &e), 0);
    assert_int_equal(trace_reader_open(&r, &in, &e), 0);
    while (trace_next(&r, &item, &e) > 0)
        ;
    trace_reader_close(&r);
    input_close(&in);
    unlink(path);
    return e.text;
}

static void test_errors_name_the_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = refused(&rows[i]);
        if (!strstr(text, rows[i].text))
            fail_msg("expected '%s', not '%s'", rows[i].text, text);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_errors_name_the_fault),
};

UNIT_MAIN(tests)
