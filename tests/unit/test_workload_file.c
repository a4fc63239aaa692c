// Tests the detection of file kinds and the messages for wrong kinds.
#include "trace/writer.h"
#include "workload/file.h"
#include "workload/writer.h"

#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ANY = FILE_TRACE | FILE_WORKLOAD };

// Returns an input with these bytes.
static struct input input_of(const void *bytes, size_t n)
{
    struct input in = {
        .fd = memfd_create("file", 0), .owns_fd = true, .name = "f", .size_bytes = n};
    assert_int_equal(write(in.fd, bytes, n), n);
    assert_int_equal(lseek(in.fd, 0, SEEK_SET), 0);
    return in;
}

static void sniffs(const void *bytes, size_t n, unsigned accept, int want, const char *text)
{
    struct input in = input_of(bytes, n);
    struct err e = {0};
    uint8_t first = 0;
    assert_int_equal(file_sniff(&in, accept, &e), want);
    assert_string_equal(e.text, text);
    // The detection must not consume bytes.
    if (n) {
        assert_int_equal(input_read(&in, &first, 1, &e), 1);
        assert_int_equal(first, *(const uint8_t *)bytes);
    }
    input_close(&in);
}

static void the_first_bytes_decide(void **state)
{
    (void)state;
    sniffs("HTr1....", 8, ANY, FILE_TRACE, "");
    sniffs("HTr1", 4, ANY, FILE_TRACE, "");
    sniffs("HTw1....", 8, ANY, FILE_WORKLOAD, "");
    sniffs("{\"a\": 1}", 8, ANY | FILE_JSON, FILE_JSON, "");
    sniffs(" \r\n\t{}", 6, ANY | FILE_JSON, FILE_JSON, "");
}

static void another_kind_is_refused(void **state)
{
    const char neither[] = "f: is not a heaptape trace or workload, at byte 0";
    const char none[] = "f: is not a heaptape trace, workload or JSON document, at byte 0";
    (void)state;
    sniffs("HTr", 3, ANY, -EPROTO, neither);
    sniffs("text", 4, ANY, -EPROTO, neither);
    sniffs("{}", 2, ANY, -EPROTO, neither);
    sniffs("\0{}", 3, ANY | FILE_JSON, -EPROTO, none);
    sniffs("   ", 3, ANY | FILE_JSON, -EPROTO, none);
    sniffs("", 0, ANY, -ENODATA, "f: is empty");
    sniffs("HTw1....", 8, FILE_TRACE, -EPROTO, "f: is a workload, expected a trace");
    sniffs("text", 4, FILE_TRACE, -EPROTO, "f: is not a heaptape trace, at byte 0");
}

// Writes a file of the given kind to `path`.
static void make(const char *path, unsigned kind)
{
    struct output out;
    struct err e = {0};
    assert_int_equal(output_open(&out, path, 0, &e), 0);
    if (kind == FILE_TRACE) {
        struct trace_writer w;
        trace_writer_init(&w, &out, FRAME_CODEC_NONE, 0);
        assert_int_equal(trace_write_session(&w, &(struct trace_session){.clock_hz = 1000}, &e), 0);
        assert_int_equal(trace_write_end(&w, 0, 0, &e), 0);
        trace_writer_release(&w);
    } else if (kind == FILE_WORKLOAD) {
        struct workload_output w;
        struct workload_op op = {.kind = HT_MALLOC, .size = 8};
        assert_int_equal(
            workload_output_begin(&w, &out, 1, &(struct workload_header){.pid = 7}, &e), 0);
        assert_int_equal(workload_output_op(&w, 0, &op, &e), 0);
        struct workload_summary s = workload_output_summary(&w);
        assert_int_equal(workload_write_end(w.writer, &s, &e), 0);
        workload_output_release(&w);
    } else
        assert_int_equal(output_write(&out, "{}", 2, &e), 0);
    assert_int_equal(output_close(&out, true, &e), 0);
}

static void each_kind_is_opened(void **state)
{
    char path[] = "/tmp/heaptape-file-XXXXXX";
    struct file f;
    struct err e = {0};
    (void)state;
    close(mkstemp(path));
    for (unsigned kind = FILE_TRACE; kind <= FILE_JSON; kind *= 2) {
        unlink(path);
        make(path, kind);
        assert_int_equal(file_open(&f, path, ANY | FILE_JSON | FILE_TWICE, &e), 0);
        assert_int_equal(f.kind, kind);
        assert_true(file_input(&f)->size_bytes > 0);
        assert_string_equal(file_input(&f)->name, path);
        file_close(&f);
        assert_int_equal(file_open(&f, path, ANY & ~kind, &e), -EPROTO);
        file_close(&f);
        e = (struct err){0};
    }
    unlink(path);
    assert_int_equal(file_open(&f, path, ANY, &e), -ENOENT);
    file_close(&f);
}

static void a_workload_is_read_twice(void **state)
{
    char path[] = "/tmp/heaptape-file-XXXXXX";
    struct file f;
    struct err e = {0};
    const struct workload_op *op;
    uint32_t thread;
    (void)state;
    close(mkstemp(path));
    unlink(path);
    make(path, FILE_WORKLOAD);
    assert_int_equal(file_open(&f, path, FILE_WORKLOAD, &e), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(workload_next_op(f.workload.reader, &thread, &op, &e), 1);
        assert_int_equal(op->size, 8);
        assert_int_equal(workload_next_op(f.workload.reader, &thread, &op, &e), 0);
        assert_int_equal(workload_file_rewind(&f.workload, &e), 0);
    }
    file_close(&f);
    unlink(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_first_bytes_decide),
    cmocka_unit_test(another_kind_is_refused),
    cmocka_unit_test(each_kind_is_opened),
    cmocka_unit_test(a_workload_is_read_twice),
};

UNIT_MAIN(tests)
