// Tests every format that can be read and written: an import of an export contains the calls that
// the format can hold.
#include "formats/import_file.h"

#include "round_trip.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_formats(const char *path, const char *name)
{
    unsigned failed = 0;
    for (const struct format *const *f = formats; *f; f++) {
        struct err e = {0};
        if (!formats_is_read(*f) || !(*f)->export.put)
            continue;
        int rc = round_trip(path, *f, true, &e);
        if (rc != 0)
            print_message("%s: %s (%d)\n", name, e.text, rc);
        failed += rc != 0;
    }
    assert_int_equal(failed, 0);
}

static void check_trace(const char *trace, const char *name)
{
    struct err e = {0};
    struct input in;
    struct trace_file t;
    struct workload_summary summary;
    struct output out = {.fd = memfd_create("converted", MFD_CLOEXEC), .name = "converted"};
    const struct convert_settings s = {.level = 1};
    char path[64];
    assert_int_equal(input_open(&in, trace, &e), 0);
    assert_int_equal(trace_file_adopt(&t, &in, true, &e), 0);
    assert_int_equal(convert_one(&t, &out, &s, &summary, &e), 0);
    trace_file_close(&t);
    snprintf(path, sizeof path, "/proc/self/fd/%d", out.fd);
    check_formats(path, name);
    close(out.fd);
}

static void test_golden(void **unused)
{
    static const char *const names[] = {"workload-1.htw", "trace-1.ht",  "stacks-1.ht",
                                        "stacks-2.ht",    "stacks-3.ht", "pages-1.ht"};
    const char *source = getenv("HEAPTAPE_SOURCE");
    (void)unused;
    for (size_t i = 0; source && i < sizeof names / sizeof *names; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/tests/golden/%s", source, names[i]);
        if (strcmp(strrchr(names[i], '.'), ".ht") == 0)
            check_trace(path, names[i]);
        else
            check_formats(path, names[i]);
    }
}

// Workloads that were imported from real files.
static void test_foreign(void **unused)
{
    static const char *const files[][2] = {{"tcmalloc", "three.lz4"},
                                           {"wl", "api.wl"},
                                           {"wl", "mt2.wl"},
                                           {"wl", "synth2x.wl"},
                                           {"mtrace", "api.mtrace"},
                                           {"mtrace", "mt2.mtrace"},
                                           {"mtrace", "synth2x.mtrace"},
                                           {"heaptrack", "small.heaptrack.zst"},
                                           {"heaptrack", "small.heaptrack.raw.zst"}};
    const char *source = getenv("HEAPTAPE_SOURCE");
    (void)unused;
    for (size_t i = 0; source && i < sizeof files / sizeof *files; i++) {
        char path[4096];
        struct err e = {0};
        struct input in;
        struct workload_summary summary;
        struct output out = {.fd = memfd_create("imported", MFD_CLOEXEC), .name = "imported"};
        const struct import_settings s = {.format = formats_find(files[i][0]),
                                          .convert = {.level = 1}};
        snprintf(path, sizeof path, "%s/tests/foreign/%s", source, files[i][1]);
        assert_int_equal(input_open(&in, path, &e), 0);
        assert_int_equal(import_one(&in, &out, &s, &summary, &e), 0);
        input_close(&in);
        snprintf(path, sizeof path, "/proc/self/fd/%d", out.fd);
        check_formats(path, files[i][1]);
        close(out.fd);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_golden),
    cmocka_unit_test(test_foreign),
};

UNIT_MAIN(tests)
