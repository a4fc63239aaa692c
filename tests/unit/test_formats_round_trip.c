// Tests every format that can be read and written. If a workload is exported and imported again,
// the result must contain all calls that the format can hold.
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

// Converts the process `pid`, or the process with the highest peak if `pid` is 0. Returns a file
// descriptor.
static int convert(const char *trace, uint32_t pid)
{
    struct err e = {0};
    struct input in;
    struct trace_file t;
    struct workload_summary summary;
    struct output out = {.fd = memfd_create("converted", MFD_CLOEXEC), .name = "converted"};
    const struct convert_settings s = {.pid = pid, .level = 1};
    assert_int_equal(input_open(&in, trace, &e), 0);
    assert_int_equal(trace_file_adopt(&t, &in, true, &e), 0);
    assert_int_equal(convert_one(&t, &out, &s, &summary, &e), 0);
    trace_file_close(&t);
    return out.fd;
}

static void check_trace(const char *trace, const char *name)
{
    char path[64];
    int fd = convert(trace, 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    check_formats(path, name);
    close(fd);
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

// Tests workloads that were imported from real files.
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

enum { PROCESSES = 3, THREADS = 2, BLOCKS = 8, CALLS = 3000 };

// Writes random calls of several processes, which use the same addresses. With `earlier`, half of
// the blocks were allocated before the recording; the calls are then far apart, because the free of
// an unknown block waits for 1 ms for an allocation that it may belong to.
static void write_calls(FILE *to, bool earlier)
{
    const unsigned step_ns = earlier ? 1100000 : 100;
    bool live[PROCESSES][BLOCKS] = {{0}};
    uint64_t seed = 1;
    for (unsigned p = 0; p < PROCESSES; p++) {
        for (unsigned k = 0; k < BLOCKS; k++)
            live[p][k] = earlier && k % 2;
    }
    for (unsigned i = 0; i < CALLS; i++) {
        uint64_t number = unit_random(&seed);
        unsigned p = number % PROCESSES, thread = number >> 8 & 1, k = number >> 16 & (BLOCKS - 1);
        unsigned size = number >> 24 & 0xffff, address = 0x10000 + (k << 8);
        fprintf(to, "{\"pid\":%u,\"tid\":%u,\"time_ns\":%llu,", 10 + p, 10 + p + 100 * thread,
                1000 + 1ull * step_ns * i);
        if (live[p][k] && number >> 40 & 1)
            fprintf(to, "\"kind\":\"realloc\",\"ptr\":\"%#x\",\"size\":%u,\"result\":\"%#x\"}\n",
                    address, size + 1, address);
        else if (live[p][k])
            fprintf(to, "\"kind\":\"free\",\"ptr\":\"%#x\"}\n", address);
        else if (number >> 40 & 1)
            fprintf(to, "\"kind\":\"calloc\",\"count\":3,\"size\":%u,\"result\":\"%#x\"}\n", size,
                    address);
        else
            fprintf(to, "\"kind\":\"malloc\",\"size\":%u,\"result\":\"%#x\"}\n", size, address);
        live[p][k] = !live[p][k] || (number >> 40 & 1);
    }
}

static void check_several_processes(bool earlier)
{
    struct err e = {0};
    struct input in = {.fd = memfd_create("json", MFD_CLOEXEC), .owns_fd = true, .name = "json"};
    struct output out = {.fd = memfd_create("trace", MFD_CLOEXEC), .name = "trace"};
    const struct import_settings s = {.format = formats_find("json"), .convert = {.level = 1}};
    char trace[64], workload[64];
    unsigned formats_compared = 0;
    FILE *to = fdopen(dup(in.fd), "w");
    write_calls(to, earlier);
    in.size_bytes = (uint64_t)ftell(to);
    fclose(to);
    lseek(in.fd, 0, SEEK_SET);
    assert_int_equal(import_trace(&in, &out, &s, &e), 0);
    input_close(&in);
    snprintf(trace, sizeof trace, "/proc/self/fd/%d", out.fd);
    for (const struct format *const *f = formats; *f; f++) {
        // A munged log does not contain frees of blocks that it does not allocate.
        bool drops = earlier && strcmp((*f)->name, "logalloc-munged") == 0;
        if (!formats_is_read(*f) || !(*f)->export.put || drops ||
            !((*f)->export.holds & FORMAT_HOLDS_PIDS))
            continue;
        for (uint32_t pid = 10; pid < 10 + PROCESSES; pid++) {
            int fd = convert(trace, pid);
            snprintf(workload, sizeof workload, "/proc/self/fd/%d", fd);
            int rc = round_trip_process(trace, workload, pid, *f, &e);
            if (rc != 0)
                print_message("process %u: %s (%d)\n", pid, e.text, rc);
            assert_int_equal(rc, 0);
            close(fd);
        }
        formats_compared++;
    }
    assert_true(formats_compared >= 2);
    close(out.fd);
}

static void test_several_processes(void **unused)
{
    (void)unused;
    check_several_processes(false);
}

static void test_several_processes_with_earlier_blocks(void **unused)
{
    (void)unused;
    check_several_processes(true);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_golden),
    cmocka_unit_test(test_foreign),
    cmocka_unit_test(test_several_processes),
    cmocka_unit_test(test_several_processes_with_earlier_blocks),
};

UNIT_MAIN(tests)
