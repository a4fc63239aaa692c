// Tests the export of a trace of two processes: to one output, to one file per process, with events
// that the format cannot hold, and while the processes are recorded.
#include "formats/export.h"
#include "formats/export_file.h"
#include "formats/export_live.h"
#include "formats/import_file.h"

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char events[] =
    "{\"kind\":\"malloc\",\"pid\":5,\"tid\":5,\"time_ns\":1000,\"size\":32,\"result\":\"0x1000\"}\n"
    "{\"kind\":\"valloc\",\"pid\":6,\"tid\":6,\"time_ns\":2000,\"size\":64,\"result\":\"0x2000\"}\n"
    "{\"kind\":\"free\",\"pid\":5,\"tid\":5,\"time_ns\":3000,\"ptr\":\"0x1000\"}\n";

static char folder[] = "/tmp/test_formats_export.XXXXXX";
static char notes[10][300];
static unsigned n_notes;

static void take_note(const char *text)
{
    assert_true(n_notes < 10);
    snprintf(notes[n_notes++], sizeof notes[0], "%s", text);
}

static const struct convert_watch watch = {.note = take_note};

static const char *path_of(const char *name)
{
    static char paths[16][200];
    static unsigned at;
    char *path = paths[at++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

// Writes the trace to the directory.
static int set_up(void **unused)
{
    (void)unused;
    struct err e = {0};
    struct output out;
    struct import_settings how = {.format = formats_find("json"), .convert = {.level = 1}};
    struct input in = {.fd = memfd_create("test", MFD_CLOEXEC), .owns_fd = true, .name = "input"};
    assert_non_null(mkdtemp(folder));
    assert_int_equal(write(in.fd, events, strlen(events)), strlen(events));
    assert_int_equal(lseek(in.fd, 0, SEEK_SET), 0);
    assert_int_equal(output_open(&out, path_of("a.ht"), 0, &e), 0);
    assert_int_equal(import_trace(&in, &out, &how, &e), 0);
    assert_int_equal(output_close(&out, true, &e), 0);
    input_close(&in);
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    unlink(path_of("a.ht"));
    return rmdir(folder);
}

// Returns the contents of a file in the directory, and removes the file.
static char *take_file(const char *name)
{
    static char text[4096];
    int fd = open(path_of(name), O_RDONLY);
    assert_true(fd >= 0);
    ssize_t n = read(fd, text, sizeof text - 1);
    assert_true(n >= 0);
    text[n] = 0;
    close(fd);
    unlink(path_of(name));
    return text;
}

static struct export_settings settings_for(const char *format, const char *name)
{
    n_notes = 0;
    return (struct export_settings){
        .format = formats_find(format), .output = path_of(name), .stamps = true, .watch = &watch};
}

static void one_output_has_all_processes_that_the_format_can_hold(void **unused)
{
    (void)unused;
    struct err e = {0};
    struct export_settings s = settings_for("json", "out");
    assert_int_equal(export_file(path_of("a.ht"), &s, &e), 0);
    assert_int_equal(n_notes, 0);
    const char *text = take_file("out");
    assert_non_null(strstr(text, "\"pid\":5"));
    assert_non_null(strstr(text, "\"pid\":6"));
    s.pid = 6;
    assert_int_equal(export_file(path_of("a.ht"), &s, &e), 0);
    text = take_file("out");
    assert_null(strstr(text, "\"pid\":5"));
    assert_non_null(strstr(text, "\"pid\":6"));
}

static void a_format_of_one_process_gets_that_with_the_highest_peak(void **unused)
{
    (void)unused;
    struct err e = {0};
    struct export_settings s = settings_for("android", "out");
    assert_int_equal(export_file(path_of("a.ht"), &s, &e), 0);
    assert_string_equal(take_file("out"), "6: memalign 0x2000 4096 64 2000 2000\n");
    assert_int_equal(n_notes, 2);
    assert_memory_equal(notes[1], "android cannot store valloc", 27);
    assert_memory_equal(notes[0], "android holds one process", 25);
    s.pid = 5;
    s.force = true;
    assert_int_equal(export_file(path_of("a.ht"), &s, &e), 0);
    assert_string_equal(take_file("out"),
                        "5: malloc 0x1000 32 1000 1000\n5: free 0x1000 3000 3000\n");
    s.pid = 7;
    assert_int_equal(export_file(path_of("a.ht"), &s, &e), -ENOENT);
    assert_int_not_equal(access(path_of("out"), F_OK), 0);
}

static void a_place_for_the_pid_makes_a_file_per_process(void **unused)
{
    (void)unused;
    struct err e = {0};
    struct export_settings s = settings_for("android", "out.%p");
    s.stamps = false;
    assert_int_equal(export_file(path_of("a.ht"), &s, &e), 0);
    assert_string_equal(take_file("out.5"), "5: malloc 0x1000 32\n5: free 0x1000\n");
    assert_string_equal(take_file("out.6"), "6: memalign 0x2000 4096 64\n");
    // The note sums the losses of all processes.
    assert_int_equal(n_notes, 1);
    assert_string_equal(notes[0], "android cannot store valloc (1): written as memalign");
}

static void the_sum_has_the_losses_of_each_output(void **unused)
{
    (void)unused;
    struct export sum = {0}, one = {.format = formats_find("android")};
    for (unsigned i = 0; i < EXPORT_LOSSES; i++)
        one.losses[i] = i + 1;
    export_add_losses(&sum, &one);
    export_add_losses(&sum, &one);
    n_notes = 0;
    export_report_losses(&sum, take_note);
    assert_int_equal(n_notes, EXPORT_LOSSES);
    assert_string_equal(
        notes[0], "android cannot store usable sizes, call sites, allocators and paths: 2 dropped");
}

static void existing_outputs_stay(void **unused)
{
    (void)unused;
    struct err e = {0};
    struct export_settings s = settings_for("json", "out");
    int fd = open(path_of("out"), O_WRONLY | O_CREAT, 0666);
    assert_int_equal(write(fd, "mine", 4), 4);
    close(fd);
    assert_int_equal(export_file(path_of("a.ht"), &s, &e), -EEXIST);
    assert_string_equal(take_file("out"), "mine");
}

static int feed(struct output *to, struct err *e)
{
    char bytes[1 << 16];
    int fd = open(path_of("a.ht"), O_RDONLY);
    ssize_t n = read(fd, bytes, sizeof bytes);
    close(fd);
    assert_true(n > 0);
    return output_write(to, bytes, (size_t)n, e);
}

static void a_live_export_runs_beside_the_recorder(void **unused)
{
    (void)unused;
    struct err e = {0};
    struct output to;
    struct export_live live;
    struct export_settings s = settings_for("json", "out");
    s.live = true;
    assert_int_equal(export_live_start(&live, &s, &to, &e), 0);
    assert_int_equal(feed(&to, &e), 0);
    assert_int_equal(output_close(&to, true, &e), 0);
    assert_int_equal(export_live_finish(&live, EXPORT_LIVE_PATIENT, &e), 0);
    assert_non_null(strstr(take_file("out"), "\"kind\":\"valloc\""));
}

static void a_live_export_reports_its_failure(void **unused)
{
    (void)unused;
    struct err e = {0};
    struct output to;
    struct export_live live;
    struct export_settings s = settings_for("json", "out");
    s.live = true;
    assert_int_equal(export_live_start(&live, &s, &to, &e), 0);
    assert_int_equal(output_write(&to, "no trace, but long enough to be looked at", 41, &e), 0);
    assert_int_equal(output_close(&to, true, &e), 0);
    assert_true(export_live_finish(&live, EXPORT_LIVE_PATIENT, &e) < 0);
    assert_non_null(strstr(e.text, "(stdin)"));
    unlink(path_of("out"));
}

static void the_environment_names_the_log(void **unused)
{
    (void)unused;
    struct export_live_target t = {0};
    setenv("MALLOC_LOG", "log", 1);
    assert_int_equal(export_live_complete(&t), 0);
    assert_string_equal(t.output, "log");
    assert_true(t.append && t.format == formats_find("logalloc"));
    t = (struct export_live_target){.format = formats_find("mtrace")};
    assert_int_equal(export_live_complete(&t), 0);
    assert_string_equal(t.output, "/tmp/mtrace.out.%p");
    unsetenv("MALLOC_LOG");
    t = (struct export_live_target){0};
    assert_int_equal(export_live_complete(&t), 0);
    assert_string_equal(t.output, "heaptape.ht");
    assert_null(t.format);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_output_has_all_processes_that_the_format_can_hold),
        cmocka_unit_test(a_format_of_one_process_gets_that_with_the_highest_peak),
        cmocka_unit_test(a_place_for_the_pid_makes_a_file_per_process),
        cmocka_unit_test(the_sum_has_the_losses_of_each_output),
        cmocka_unit_test(existing_outputs_stay),
        cmocka_unit_test(a_live_export_runs_beside_the_recorder),
        cmocka_unit_test(a_live_export_reports_its_failure),
        cmocka_unit_test(the_environment_names_the_log),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
