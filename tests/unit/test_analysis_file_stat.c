// Tests each optional part of a file's statistics on a workload with known ops.
#include "analysis/file_stat.h"
#include "trace/codec.h"
#include "trace/writer.h"
#include "workload/writer.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char path[] = "file-stat.htw";

static uint64_t stamp; // of the last op
// The start of the workload, and the recorded part if only a part was recorded.
static uint64_t start_stamp, recorded_from, recorded_to;

static void put(struct workload_output *w, uint8_t kind, uint32_t slot, uint64_t size,
                uint64_t site)
{
    struct workload_op op = {
        .kind = kind, .slot = slot, .size = size, .value = site, .stamp = stamp += 1000};
    struct err e = {0};
    assert_int_equal(workload_output_op(w, 0, &op, &e), 0);
}

// Writes a workload with three blocks, one of them freed. If `sites` is not NULL, two blocks have
// call sites.
static void write_workload(const struct workload_sites *sites)
{
    struct output out;
    struct err e = {0};
    struct workload_header h = {.clock_hz = 1000000000,
                                .has_stamps = true,
                                .start_stamp = start_stamp,
                                .pid = 77,
                                .exe = "/bin/x",
                                .argv = "x",
                                .argv_bytes = 2};
    struct workload_output w;
    stamp = 0;
    assert_int_equal(output_open(&out, path, OUTPUT_FORCE, &e), 0);
    assert_int_equal(workload_output_begin(&w, &out, 1, &h, &e), 0);
    put(&w, HT_MALLOC, 0, 1000, 0);
    put(&w, HT_MALLOC, 1, 50, sites ? 1 : 0);
    put(&w, HT_FREE, 0, 0, 0);
    put(&w, HT_MALLOC, 2, 8, sites ? 2 : 0);
    if (sites)
        workload_write_sites(w.writer, sites);
    struct workload_summary s = workload_output_summary(&w);
    s.recorded_from = recorded_from;
    s.recorded_to = recorded_to;
    assert_int_equal(workload_write_end(w.writer, &s, &e), 0);
    workload_output_release(&w);
    assert_int_equal(output_close(&out, true, &e), 0);
}

static void check_totals(const struct file_stat *s)
{
    assert_int_equal(s->kind, FILE_STAT_WORKLOAD);
    assert_int_equal(s->n_processes, 1);
    assert_int_equal(s->processes[0].pid, 77);
    assert_string_equal(s->processes[0].argv, "x");
    assert_int_equal(s->total.events, 4);
    assert_string_equal(s->cut.text, "");
}

static void totals_alone(void **state)
{
    struct file_stat s;
    struct err e = {0};
    (void)state;
    write_workload(NULL);
    assert_int_equal(file_stat(&s, path, FILE_STAT_BRIEF, NULL, &e), 0);
    check_totals(&s);
    assert_null(s.sums);
    assert_null(s.symbols);
    assert_int_equal(s.by_site.n_sites, 0);
    file_stat_release(&s);
}

static void usage_without_sites(void **state)
{
    struct file_stat s;
    struct err e = {0};
    (void)state;
    write_workload(NULL);
    assert_int_equal(file_stat(&s, path, FILE_STAT_ALL, NULL, &e), 0);
    check_totals(&s);
    assert_int_equal(s.sums->kinds[HT_MALLOC].bytes, 1058);
    assert_int_equal(s.usage.peak.bytes, 1050);
    assert_int_equal(s.usage.live.bytes, 58);
    assert_null(s.symbols);
    file_stat_release(&s);
}

static void check_sites(const struct by_site *b)
{
    assert_int_equal(b->n_sites, 3);
    assert_int_equal(b->peak_bytes, 1050);
    assert_int_equal(b->sites[0].peak_bytes, 1000);
    assert_int_equal(b->sites[0].live_bytes, 0);
    assert_int_equal(b->sites[1].peak_bytes, 50);
    assert_int_equal(b->sites[2].peak_bytes, 0);
    assert_int_equal(b->sites[2].live_bytes, 8);
}

// The count by site starts after the first op. The usage already includes this op.
static void sites_are_the_same_alone(void **state)
{
    struct workload_sites sites = {0};
    struct file_stat s;
    struct err e = {0};
    (void)state;
    for (uint32_t number = 1; number <= 2; number++)
        assert_int_equal(workload_sites_define(&sites, number, "\1\2\3\4\5\6\7\0", 1), 0);
    write_workload(&sites);
    for (unsigned part = 0; part < 2; part++) {
        assert_int_equal(file_stat(&s, path, part ? FILE_STAT_SITES : FILE_STAT_ALL, NULL, &e), 0);
        check_totals(&s);
        check_sites(&s.by_site);
        assert_true((s.sums == NULL) == (part == 1));
        assert_non_null(s.symbols);
        file_stat_release(&s);
    }
    workload_sites_release(&sites);
}

static void a_file_that_is_cut_off(void **state)
{
    struct file_stat s;
    struct err e = {0};
    (void)state;
    write_workload(NULL);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    assert_int_equal(ftruncate(fileno(f), ftell(f) - 20), 0);
    fclose(f);
    assert_int_equal(file_stat(&s, path, FILE_STAT_ALL, NULL, &e), 0);
    assert_int_equal(s.total.events, 4);
    assert_non_null(strstr(s.cut.text, "cut off"));
    file_stat_release(&s);
    assert_int_equal(file_stat(&s, "nowhere.htw", FILE_STAT_ALL, NULL, &e), -ENOENT);
}

static uint64_t duration_of(uint64_t start, uint64_t from, uint64_t to)
{
    struct file_stat s;
    struct err e = {0};
    start_stamp = start;
    recorded_from = from;
    recorded_to = to;
    write_workload(NULL);
    start_stamp = recorded_from = recorded_to = 0;
    assert_int_equal(file_stat(&s, path, FILE_STAT_BRIEF, NULL, &e), 0);
    uint64_t ns = s.duration_ns;
    file_stat_release(&s);
    return ns;
}

// The ops have stamps from 1000 to 4000.
static void duration_of_a_workload(void **state)
{
    (void)state;
    assert_int_equal(duration_of(0, 0, 0), 3000);
    assert_int_equal(duration_of(400, 0, 0), 3600);
    assert_int_equal(duration_of(1001, 0, 0), 3000);
    assert_int_equal(duration_of(400, 1500, 3500), 2000);
    assert_int_equal(duration_of(400, 3500, 3500), 0);
    assert_int_equal(duration_of(400, 3500, 3000), 0);
}

enum { THREADS = 3 };

// Writes a trace of two processes. A part of each was recorded if `to` is not 0. The first process
// has three threads. The end of the second thread has a name, and the recorder stores `names`.
static void write_trace(const uint64_t from[2], const uint64_t to[2], uint8_t *names, size_t n)
{
    struct output out;
    struct trace_writer w;
    struct err e = {0};
    const struct trace_session session = {.clock_hz = 1000000000, .start_stamp = 100};
    assert_int_equal(output_open(&out, path, OUTPUT_FORCE, &e), 0);
    trace_writer_init(&w, &out, FRAME_CODEC_NONE, 0);
    assert_int_equal(trace_write_session(&w, &session, &e), 0);
    for (uint32_t i = 0; i < 2; i++) {
        const struct trace_process p = {.number = i, .pid = 50 + i, .start_stamp = 100};
        assert_int_equal(trace_write_process(&w, &p, &e), 0);
    }
    struct trace_segment s[THREADS + 1];
    uint64_t words[THREADS + 1][32];
    for (uint32_t i = 0; i <= THREADS; i++) {
        struct event ev = {.kind = HT_MALLOC, .stamp = 1000, .size = 8, .result = 0x1000 * (i + 1)};
        s[i] = (struct trace_segment){.process = i == THREADS,
                                      .thread = i % THREADS,
                                      .tid = i == THREADS ? 90 : 50 + i,
                                      .words = words[i]};
        s[i].n_words = (uint32_t)codec_put_long(words[i], &ev);
        ev = (struct event){.kind = HT_THREAD_END, .stamp = 1001, .text = "own", .text_bytes = 3};
        if (i == 1)
            s[i].n_words += (uint32_t)codec_put_long(words[i] + s[i].n_words, &ev);
    }
    assert_int_equal(trace_write_batch(&w, 2000, s, THREADS + 1, &e), 0);
    for (uint32_t i = 0; i < 2; i++) {
        const struct trace_process p = {.number = i,
                                        .ended = 1,
                                        .end_stamp = 3000,
                                        .recorded_from = from[i],
                                        .recorded_to = to[i],
                                        .thread_names = i ? NULL : names,
                                        .thread_names_bytes = i ? 0 : (uint32_t)n};
        assert_int_equal(trace_write_process_end(&w, &p, &e), 0);
    }
    assert_int_equal(trace_write_end(&w, 5100, 0, &e), 0);
    trace_writer_release(&w);
    assert_int_equal(output_close(&out, true, &e), 0);
}

static uint64_t duration_of_parts(uint64_t from_0, uint64_t to_0, uint64_t from_1, uint64_t to_1)
{
    struct file_stat s;
    struct err e = {0};
    write_trace((const uint64_t[]){from_0, from_1}, (const uint64_t[]){to_0, to_1}, NULL, 0);
    assert_int_equal(file_stat(&s, path, FILE_STAT_BRIEF, NULL, &e), 0);
    uint64_t ns = s.duration_ns;
    file_stat_release(&s);
    return ns;
}

static void duration_of_a_trace(void **state)
{
    (void)state;
    assert_int_equal(duration_of_parts(0, 0, 0, 0), 5000);
    assert_int_equal(duration_of_parts(1000, 2000, 1500, 2500), 1500);
    assert_int_equal(duration_of_parts(1500, 2500, 1000, 2000), 1500);
    // One of the processes was recorded from the start to the end.
    assert_int_equal(duration_of_parts(1000, 2000, 0, 0), 5000);
    assert_int_equal(duration_of_parts(2000, 2000, 2000, 2000), 0);
}

static void names_that_the_recorder_stored(void **state)
{
    // PID and length of each name, and the name. The last name is cut off.
    uint8_t names[] = {50, 4, 'm', 'a', 'i', 'n', 51, 2, 'n', 'o', 52, 3, 'x'};
    struct file_stat s;
    struct err e = {0};
    (void)state;
    write_trace((const uint64_t[2]){0}, (const uint64_t[2]){0}, names, sizeof names);
    assert_int_equal(file_stat(&s, path, FILE_STAT_ALL, NULL, &e), 0);
    assert_int_equal(s.usage.n_threads, THREADS);
    uint64_t tids = 0;
    for (size_t i = 0; i < THREADS; i++) {
        const struct usage_thread *t = &s.usage.threads[i];
        tids += t->tid;
        assert_string_equal(t->name, t->tid == 50 ? "main" : t->tid == 51 ? "own" : "");
    }
    assert_int_equal(tids, 50 + 51 + 52);
    file_stat_release(&s);
}

static int remove_file(void **state)
{
    (void)state;
    remove(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_alone),
        cmocka_unit_test(usage_without_sites),
        cmocka_unit_test(sites_are_the_same_alone),
        cmocka_unit_test(a_file_that_is_cut_off),
        cmocka_unit_test(duration_of_a_workload),
        cmocka_unit_test(duration_of_a_trace),
        cmocka_unit_test(names_that_the_recorder_stored),
    };
    return cmocka_run_group_tests(tests, NULL, remove_file);
}
