// Tests imports of files with several processes: to a trace, to the workload of one process, and to
// one workload per process. Also tests the notes on skipped events.
#include "convert/peaks.h"
#include "formats/import_file.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char two_processes[] =
    "{\"kind\":\"malloc\",\"pid\":5,\"tid\":5,\"size\":32,\"result\":\"0x1000\"}\n"
    "{\"kind\":\"malloc\",\"pid\":6,\"tid\":6,\"size\":64,\"result\":\"0x1000\"}\n"
    "{\"kind\":\"free\",\"pid\":5,\"tid\":5,\"ptr\":\"0x1000\"}\n";

// Arguments of watch.note, watch.chosen and files.written.
static char notes[10][300];
static unsigned n_notes, n_chosen;
static uint32_t chosen_pid;
static struct workload_summary written[4];
static char written_paths[4][100];
static unsigned n_written;

static void take_note(const char *text)
{
    assert_true(n_notes < 10);
    snprintf(notes[n_notes++], sizeof notes[0], "%s", text);
}

static void take_choice(const struct trace_reader *r, uint32_t process, size_t n,
                        const struct peaks *peaks)
{
    assert_int_equal(n, 2);
    if (peaks->n)
        assert_int_equal(peaks->items[0].process, process);
    chosen_pid = r->processes[process]->pid;
    n_chosen++;
}

static void take_written(const char *path, uint64_t bytes, const struct workload_summary *s)
{
    assert_true(bytes > 0 && n_written < 4);
    snprintf(written_paths[n_written], sizeof written_paths[0], "%s", path);
    written[n_written++] = *s;
}

static const struct convert_watch watch = {.note = take_note, .chosen = take_choice};

static struct import_settings settings_for(const char *format)
{
    n_notes = n_written = n_chosen = 0;
    return (struct import_settings){.format = formats_find(format),
                                    .convert = {.level = 1, .watch = &watch}};
}

static struct input input_of_bytes(const char *bytes, size_t n)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return (struct input){.fd = fd, .owns_fd = true, .name = "input", .size_bytes = n};
}

static struct input input_of(const char *text)
{
    return input_of_bytes(text, strlen(text));
}

static int one_of(struct input in, const struct import_settings *s,
                  struct workload_summary *summary, struct err *e)
{
    struct output out;
    *e = (struct err){0};
    assert_int_equal(output_open_unnamed(&out, e), 0);
    int rc = import_one(&in, &out, s, summary, e);
    output_close(&out, false, NULL);
    input_close(&in);
    return rc;
}

static int one(const char *text, const struct import_settings *s, struct workload_summary *summary,
               struct err *e)
{
    return one_of(input_of(text), s, summary, e);
}

static void one_process_is_that_with_the_highest_peak_or_the_wanted_one(void **unused)
{
    (void)unused;
    struct workload_summary s;
    struct err e;
    struct import_settings how = settings_for("json");
    assert_int_equal(one(two_processes, &how, &s, &e), 0);
    assert_int_equal(s.events, 1);
    assert_int_equal(s.peak_live_bytes, 64);
    assert_int_equal(n_chosen, 1);
    assert_int_equal(chosen_pid, 6);
    how.convert.pid = 5;
    assert_int_equal(one(two_processes, &how, &s, &e), 0);
    assert_int_equal(s.events, 2);
    assert_int_equal(s.peak_live_bytes, 32);
    how.convert.pid = 7;
    assert_int_equal(one(two_processes, &how, &s, &e), -ENOENT);
    assert_non_null(strstr(e.text, "process 7"));
}

static void each_process_gets_a_file(void **unused)
{
    (void)unused;
    char folder[] = "/tmp/test_formats_import.XXXXXX", pattern[100];
    struct err e = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(pattern, sizeof pattern, "%s/out.htw", folder);
    const struct convert_files files = {pattern, OUTPUT_ASIDE, take_written};
    struct import_settings how = settings_for("json");
    struct input in = input_of(two_processes);
    assert_int_equal(import_each(&in, &files, &how, &e), 0);
    input_close(&in);
    assert_int_equal(n_written, 2);
    for (unsigned i = 0; i < n_written; i++) {
        bool five = strstr(written_paths[i], "out.5.htw");
        assert_true(five || strstr(written_paths[i], "out.6.htw"));
        assert_int_equal(written[i].events, five ? 2 : 1);
        assert_int_equal(unlink(written_paths[i]), 0);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void a_trace_has_all_processes(void **unused)
{
    (void)unused;
    struct err e = {0};
    struct output out;
    struct input in = input_of(two_processes), trace;
    struct trace_file t;
    struct import_settings how = settings_for("json");
    struct peaks peaks;
    assert_int_equal(output_open_unnamed(&out, &e), 0);
    assert_int_equal(import_trace(&in, &out, &how, &e), 0);
    input_close(&in);
    assert_int_equal(input_from_output(&trace, &out, "trace", &e), 0);
    assert_int_equal(trace_file_adopt(&t, &trace, true, &e), 0);
    assert_int_equal(peaks_count(&peaks, &t, 0, NULL, &e), 0);
    assert_int_equal(peaks.n, 2);
    peaks_release(&peaks);
    assert_true(t.reader.session.order_only);
    trace_file_close(&t);
}

// A file in a format with one process is converted directly. If a pid is specified, it is converted
// through a trace. Both results must be equal.
static void both_roads_make_the_same(void **unused)
{
    (void)unused;
    static const char text[] =
        "1: malloc 0x10 8\n2: malloc 0x20 16\n1: free 0x20\n2: thread_done 0x0\n";
    struct workload_summary direct, between;
    struct err e;
    struct import_settings how = settings_for("android");
    assert_int_equal(one(text, &how, &direct, &e), 0);
    how.convert.pid = 1;
    assert_int_equal(one(text, &how, &between, &e), 0);
    assert_int_equal(direct.events, 4);
    assert_int_equal(direct.threads, between.threads);
    assert_int_equal(direct.events, between.events);
    assert_int_equal(direct.peak_live_bytes, between.peak_live_bytes);
    assert_int_equal(n_notes, 0);
}

// Imports two events with these times in ns, and returns the difference of their stamps.
static uint64_t import_times(const char *first, const char *second)
{
    char text[300];
    struct workload_summary s;
    struct err e;
    struct import_settings how = settings_for("json");
    snprintf(text, sizeof text,
             "{\"kind\":\"malloc\",\"time_ns\":%s,\"pid\":5,\"tid\":5,\"size\":32,"
             "\"result\":\"0x1000\"}\n"
             "{\"kind\":\"free\",\"time_ns\":%s,\"pid\":5,\"tid\":5,\"ptr\":\"0x1000\"}\n",
             first, second);
    assert_int_equal(one(text, &how, &s, &e), 0);
    return s.last_stamp - s.first_stamp;
}

// An event that is not later than the previous event is 1 ns later.
static void times_increase(void **unused)
{
    (void)unused;
    assert_int_equal(import_times("7", "10"), 3);
    assert_int_equal(import_times("0", "2"), 2);
    assert_int_equal(import_times("7", "8"), 1);
    assert_int_equal(import_times("7", "7"), 1);
    assert_int_equal(import_times("7", "0"), 1);
    // 2^62 - 1 is the latest time.
    assert_int_equal(import_times("7", "4611686018427387903"), 4611686018427387896);
    assert_int_equal(import_times("7", "4611686018427387904"), 1);
}

static void skipped_events_are_noted(void **unused)
{
    (void)unused;
    static const char text[] = "1: malloc 0x10 8\n1: mallok\n1: free 0x10\n1: free\n";
    struct workload_summary s;
    struct err e;
    struct import_settings how = settings_for("android");
    assert_int_equal(one(text, &how, &s, &e), -EBADMSG);
    assert_non_null(strstr(e.text, "input: expected malloc"));
    assert_non_null(strstr(e.text, "in line 2"));
    assert_int_equal(n_notes, 0);
    how.keep_going = true;
    assert_int_equal(one(text, &how, &s, &e), 0);
    assert_int_equal(s.events, 2);
    assert_int_equal(n_notes, 3);
    assert_memory_equal(notes[0], "skipped: input: ", 16);
    assert_memory_equal(notes[2], "skipped 2 invalid records, the first: input: ", 45);
    how.convert.watch = NULL;
    assert_int_equal(one(text, &how, &s, &e), 0);
}

#define INPUT(text)  text, sizeof text - 1
#define TCMALLOC     "\xe4\x63\xbd\x6c"
#define TCMALLOC_ONE TCMALLOC "\x17\x01\x03"        // followed by a buffer of one byte, of thread 1
#define WL_ONE       "\x08\x01\x0a\x01\x0b\x07\x01" // followed by the stream of one thread
#define EIGHT        "\0\0\0\0\0\0\0\0"
#define SIXTEEN      EIGHT EIGHT

// The message names the expected input and its place.
static void invalid_input_is_named(void **unused)
{
    (void)unused;
    static const struct {
        const char *format, *bytes;
        size_t n;
        const char *text;
    } rows[] = {
        {"tcmalloc", INPUT("heap"),
         "input: expected the magic number of a gperftools trace (0x6cbd63e4) at byte 0"},
        {"tcmalloc", INPUT(""),
         "input: expected the magic number of a gperftools trace (0x6cbd63e4) at byte 0"},
        {"tcmalloc", INPUT("\xe4\x63\xbd"),
         "input: expected the magic number of a gperftools trace (0x6cbd63e4) at byte 0"},
        {"tcmalloc", INPUT(TCMALLOC),
         "input: expected an end record, found the end of the file at byte 4"},
        {"tcmalloc", INPUT(TCMALLOC "\x09"),
         "input: expected a buffer, thread death, barrier, text or end record, found type 4 at "
         "byte 4"},
        {"tcmalloc", INPUT(TCMALLOC_ONE "\x07"),
         "input: expected an event in a buffer, found type 3 at byte 7"},
        {"tcmalloc", INPUT(TCMALLOC_ONE "\x05"),
         "input: expected a complete event in a buffer at byte 7"},
        {"tcmalloc", INPUT(TCMALLOC_ONE "\x01"),
         "input: expected the token range of thread 1 before its first allocation at byte 7"},
        {"tcmalloc", INPUT(TCMALLOC_ONE), "input: cut off inside a buffer that begins at byte 7"},
        {"tcmalloc-replay", INPUT("\x08\0\0\0\0\0\0\0" SIXTEEN),
         "input: expected an instruction of type 0 to 7, found 8 at byte 0"},
        {"tcmalloc-replay", INPUT("\0\0\0\0\x40\0\0\0" SIXTEEN),
         "input: expected a register below 1073741824 at byte 0"},
        {"tcmalloc-replay", INPUT("\x05\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0" EIGHT),
         "input: expected a thread below 2^40 at byte 0"},
        {"wl", INPUT("heap"),
         "input: expected the header of a wl file (codes 8 to 11, then 1) at byte 0"},
        {"wl", INPUT("\x0b\x7f\x01"),
         "input: expected the offset of a thread's stream inside the file, found 127 at byte 0"},
        {"wl", INPUT("\x0a\x02\x01"),
         "input: expected the streams of 2 threads, found 0 at byte 2"},
        {"wl", INPUT(WL_ONE "\x63"), "input: expected an op, found code 99 at byte 7"},
        {"wl", INPUT(WL_ONE "\x02\x80"), "input: expected a complete op at byte 7"},
        {"wl", INPUT(WL_ONE "\x02\x05\x08"), "input: expected an index below 1, found 5 at byte 7"},
        {"wl", INPUT(WL_ONE "\x07\x09"), "input: expected a sync up to 0, found 9 at byte 7"},
        {"wl", INPUT(WL_ONE "\x02\x00\x08"),
         "input: cut off inside the stream of a thread that begins at byte 10"},
        {"android", INPUT("1: malloc 0x10 8 100 200\n1: free 0x10\n"),
         "input: expected start and end times, as in the previous lines in line 2"},
        {"android", INPUT("1: malloc 0x10 8\n1: free 0x10 100 200\n"),
         "input: expected no times, as in the previous lines in line 2"},
        {"android", INPUT("1: malloc 0x10 8\0\n"),
         "input: expected text, found a NUL byte in line 1"},
        {"heaptrack", INPUT("v x\n"),
         "input: expected the version of heaptrack, not a space in line 1"},
        {"heaptrack", INPUT("v 10500 3\n- \n"),
         "input: expected an allocation or an address, not the end of the line in line 2"},
        {"heaptrack", INPUT("+ 8 0\n"),
         "input: expected a size, the number of a call site, and an address, not the end of the "
         "line in line 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct import_settings how = settings_for(rows[i].format);
        struct workload_summary s;
        struct err e;
        assert_true(one_of(input_of_bytes(rows[i].bytes, rows[i].n), &how, &s, &e) < 0);
        assert_string_equal(e.text, rows[i].text);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_process_is_that_with_the_highest_peak_or_the_wanted_one),
    cmocka_unit_test(each_process_gets_a_file),
    cmocka_unit_test(a_trace_has_all_processes),
    cmocka_unit_test(both_roads_make_the_same),
    cmocka_unit_test(times_increase),
    cmocka_unit_test(skipped_events_are_noted),
    cmocka_unit_test(invalid_input_is_named),
};

UNIT_MAIN(tests)
