// Tests the conversion of the processes of a trace: one process to an output, each process to its
// own file, and a process that is opened as a workload.
#include "convert/open.h"
#include "trace/codec.h"
#include "trace/writer.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[64], trace[96];
static char notes[400], written[400];

static void keep_note(const char *text)
{
    snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "%s\n", text);
}

static void keep_written(const char *path, uint64_t bytes, const struct workload_summary *s)
{
    assert_true(bytes > 0);
    snprintf(written + strlen(written), sizeof written - strlen(written), "%s %llu\n",
             path + strlen(folder) + 1, (unsigned long long)s->events);
}

static uint32_t chosen;
static struct peak peak;

static void keep_choice(const struct trace_reader *r, uint32_t process, size_t n,
                        const struct peaks *peaks)
{
    assert_int_equal(n, 3);
    assert_true(peaks->n == 0 ||
                (peaks->n == 3 && r->processes[process]->pid == peaks->items[0].pid));
    chosen = process;
    if (peaks->n)
        peak = peaks->items[0];
}

static const struct convert_watch watch = {
    .note = keep_note, .warn = keep_note, .chosen = keep_choice};

// Adds `n` allocations of the process. If `freed` is not 0, also adds a free of this address.
static void put_events(struct trace_writer *w, uint32_t process, unsigned n, uint64_t freed)
{
    uint64_t words[64] = {0};
    struct err e = {0};
    uint32_t at = 0;
    for (unsigned i = 1; i <= n; i++)
        at += codec_put_long(
            words + at,
            &(struct event){.kind = HT_MALLOC, .stamp = i, .size = 8, .result = 0x1000ull * i});
    if (freed)
        at += codec_put_long(words + at,
                             &(struct event){.kind = HT_FREE, .stamp = n + 1, .ptr = freed});
    struct trace_segment s = {.process = process, .tid = 1, .n_words = at, .words = words};
    assert_int_equal(trace_write_batch(w, 100 * (process + 1), &s, 1, &e), 0);
}

// Writes process 100 with two events, process 200 with four events, and a second process 200 with
// one event. If `end` is false, the trace is truncated.
static void make_trace(uint64_t freed, bool end)
{
    struct output out;
    struct trace_writer w;
    struct err e = {0};
    static const uint32_t pids[] = {100, 200, 200};
    char argv[] = "second";
    assert_int_equal(output_open(&out, trace, OUTPUT_FORCE, &e), 0);
    trace_writer_init(&w, &out, FRAME_CODEC_NONE, 0);
    assert_int_equal(trace_write_session(&w, &(struct trace_session){.clock_hz = 1000000000}, &e),
                     0);
    for (uint32_t i = 0; i < 3; i++) {
        const struct trace_process p = {.number = i,
                                        .pid = pids[i],
                                        .argv = i ? argv : NULL,
                                        .argv_bytes = i ? sizeof argv : 0};
        assert_int_equal(trace_write_process(&w, &p, &e), 0);
        put_events(&w, i, i == 0 ? 1 : i == 1 ? 4 : 1, i == 0 ? freed : 0);
    }
    if (end)
        assert_int_equal(trace_write_end(&w, 1000, 0, &e), 0);
    trace_writer_release(&w);
    assert_int_equal(output_close(&out, true, &e), 0);
    notes[0] = written[0] = 0;
}

// Writes a trace of two processes. Process 100 allocates 40 blocks of 8 bytes. With `keeps`, all
// blocks stay live; otherwise, each is freed before the next allocation. Process 200 has two blocks
// of 50 bytes.
static void make_unequal_trace(bool keeps)
{
    struct output out;
    struct trace_writer w;
    struct err e = {0};
    uint64_t words[2][400] = {0};
    uint32_t at[2] = {0};
    assert_int_equal(output_open(&out, trace, OUTPUT_FORCE, &e), 0);
    trace_writer_init(&w, &out, FRAME_CODEC_NONE, 0);
    assert_int_equal(trace_write_session(&w, &(struct trace_session){.clock_hz = 1000000000}, &e),
                     0);
    for (unsigned i = 1; i <= 40; i++) {
        struct event made = {.kind = HT_MALLOC, .stamp = 2 * i, .size = 8, .result = 0x1000ull * i};
        struct event freed = {.kind = HT_FREE, .stamp = 2 * i + 1, .ptr = 0x1000ull * i};
        at[0] += codec_put_long(words[0] + at[0], &made);
        at[0] += keeps ? 0 : codec_put_long(words[0] + at[0], &freed);
        made.size = 50;
        at[1] += i <= 2 ? codec_put_long(words[1] + at[1], &made) : 0;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct trace_process p = {.number = i, .pid = 100 * (i + 1)};
        struct trace_segment s = {.process = i, .tid = 1, .n_words = at[i], .words = words[i]};
        assert_int_equal(trace_write_process(&w, &p, &e), 0);
        assert_int_equal(trace_write_batch(&w, 100 * (i + 1), &s, 1, &e), 0);
    }
    assert_int_equal(trace_write_end(&w, 1000, 0, &e), 0);
    trace_writer_release(&w);
    assert_int_equal(output_close(&out, true, &e), 0);
}

static struct peak peaks[2];

static void keep_peaks(const struct trace_reader *r, uint32_t process, size_t n,
                       const struct peaks *p)
{
    (void)r;
    assert_int_equal(n, 2);
    assert_int_equal(p->n, 2);
    assert_int_equal(p->items[0].process, process);
    memcpy(peaks, p->items, sizeof peaks);
}

static int convert(const struct convert_settings *how, struct workload_summary *s, struct err *e)
{
    struct output out;
    struct file f;
    int rc = file_open(&f, trace, FILE_TRACE | FILE_TWICE, e);
    assert_int_equal(rc, 0);
    assert_int_equal(output_open_unnamed(&out, e), 0);
    rc = convert_one(&f.trace, &out, how, s, e);
    output_close(&out, false, NULL);
    file_close(&f);
    return rc;
}

static void the_process_with_the_highest_peak(void **state)
{
    struct workload_summary s;
    struct err e = {0};
    (void)state;
    make_trace(0x1000, true);
    assert_int_equal(convert(&(struct convert_settings){.level = 1, .watch = &watch}, &s, &e), 0);
    assert_int_equal(s.events, 4);
    assert_string_equal(notes, "");
    assert_int_equal(chosen, 1);
    assert_int_equal(peak.process, 1);
    assert_int_equal(peak.peak_bytes, 4 * 8);
    assert_int_equal(peak.end_blocks, 4);
}

// If one process makes nearly all calls, the choice must not require reading all of these calls,
// and must not depend on their number.
static void processes_with_unequal_counts(void **state)
{
    static const struct convert_watch watches = {.note = keep_note, .chosen = keep_peaks};
    struct workload_summary s;
    struct err e = {0};
    (void)state;
    make_unequal_trace(true);
    assert_int_equal(convert(&(struct convert_settings){.level = 1, .watch = &watches}, &s, &e), 0);
    assert_int_equal(s.events, 40);
    assert_int_equal(peaks[0].pid, 100);
    assert_int_equal(peaks[0].peak_bytes, 40 * 8);
    assert_int_equal(peaks[1].peak_bytes, 2 * 50);
    make_unequal_trace(false);
    assert_int_equal(convert(&(struct convert_settings){.level = 1, .watch = &watches}, &s, &e), 0);
    assert_int_equal(s.events, 2);
    assert_int_equal(peaks[0].pid, 200);
    assert_int_equal(peaks[0].peak_bytes, 2 * 50);
    assert_int_equal(peaks[1].pid, 100);
    assert_int_equal(peaks[1].peak_bytes, 8);
    assert_int_equal(peaks[1].events, 80);
}

static void the_process_asked_for(void **state)
{
    struct workload_summary s;
    struct err e = {0};
    (void)state;
    make_trace(0x1000, true);
    assert_int_equal(
        convert(&(struct convert_settings){.pid = 100, .level = 1, .strict = true}, &s, &e), 0);
    assert_int_equal(s.events, 2);
    assert_int_equal(convert(&(struct convert_settings){.pid = 300, .level = 1}, &s, &e), -ENOENT);
    assert_non_null(strstr(e.text, "no events of process 300; it contains processes 100, 200"));
}

static void strict_fails_on_an_unknown_block(void **state)
{
    struct workload_summary s;
    struct err e = {0};
    (void)state;
    make_trace(0x9000, true);
    assert_int_equal(convert(&(struct convert_settings){.pid = 100, .level = 1}, &s, &e), 0);
    assert_int_equal(s.unmatched_frees, 1);
    assert_int_equal(
        convert(&(struct convert_settings){.pid = 100, .level = 1, .strict = true}, &s, &e),
        -EBADMSG);
    assert_non_null(
        strstr(e.text, "--strict: 1 free has no recorded allocation (first: 0x9000 in thread "));
}

static void a_cut_off_trace_is_noted(void **state)
{
    struct workload_summary s;
    struct err e = {0};
    (void)state;
    make_trace(0x1000, false);
    assert_int_equal(convert(&(struct convert_settings){.level = 1, .watch = &watch}, &s, &e), 0);
    assert_int_equal(s.events, 4);
    assert_non_null(strstr(notes, "the recording is cut off at byte "));
    assert_non_null(strstr(notes, "; converted the events up to that point\n"));
}

static int convert_to(const char *pattern, struct err *e)
{
    char path[160];
    struct file f;
    snprintf(path, sizeof path, "%s/%s", folder, pattern);
    const struct convert_files files = {path, 0, keep_written};
    assert_int_equal(file_open(&f, trace, FILE_TRACE, e), 0);
    int rc =
        convert_each(&f.trace, &files, &(struct convert_settings){.level = 1, .watch = &watch}, e);
    file_close(&f);
    return rc;
}

static uint64_t streamed_words; // words of the process's stream so far

// Adds `n` allocations of `size` bytes, or as many frees if `size` is 0, of blocks from number
// `first` on.
static void put_many(struct trace_writer *w, uint32_t process, uint64_t first, uint64_t n,
                     uint64_t size)
{
    enum { CALLS = 5000, CALL_WORDS = 4 };
    static uint64_t words[CALLS * CALL_WORDS];
    struct err e = {0};
    for (uint64_t i = 0; i < n;) {
        struct trace_segment s = {
            .process = process, .tid = 1, .first_word = streamed_words, .words = words};
        for (unsigned k = 0; k < CALLS && i < n; k++, i++) {
            uint64_t address = 0x10000 + 0x1000 * (first + i);
            const struct event ev =
                size
                    ? (struct event){.kind = HT_MALLOC, .stamp = 1, .size = size, .result = address}
                    : (struct event){.kind = HT_FREE, .stamp = 1, .ptr = address};
            s.n_words += (uint32_t)codec_put_long(words + s.n_words, &ev);
        }
        streamed_words += s.n_words;
        assert_int_equal(trace_write_batch(w, 2, &s, 1, &e), 0);
    }
}

enum { MANY = 1 << 18 }; // blocks that peaks_count tracks exactly

// Counts the peaks of two processes with `n` blocks of 8 bytes each. With `ends`, the first process
// ends before the second starts; otherwise, the first process has no blocks. The second process
// then allocates 1,000 blocks of 1,000 bytes, and frees half of its blocks of 8 bytes.
static void count_peaks(struct peaks *p, uint64_t n, bool ends)
{
    struct output out;
    struct trace_writer w;
    struct trace_file t;
    struct input in;
    struct err e = {0};
    assert_int_equal(output_open(&out, trace, OUTPUT_FORCE, &e), 0);
    trace_writer_init(&w, &out, FRAME_CODEC_NONE, 0);
    assert_int_equal(trace_write_session(&w, &(struct trace_session){.clock_hz = 1000000000}, &e),
                     0);
    for (uint32_t i = 0; i < 2; i++) {
        struct trace_process of = {.number = i, .pid = 100 + i};
        assert_int_equal(trace_write_process(&w, &of, &e), 0);
        streamed_words = 0;
        if (i || ends)
            put_many(&w, i, 0, n, 8);
        of.ended = 1;
        if (i == 0)
            assert_int_equal(trace_write_process_end(&w, &of, &e), 0);
    }
    put_many(&w, 1, n, 1000, 1000);
    put_many(&w, 1, 0, n / 2, 0);
    assert_int_equal(trace_write_end(&w, 3, 0, &e), 0);
    trace_writer_release(&w);
    assert_int_equal(output_close(&out, true, &e), 0);
    assert_int_equal(input_open(&in, trace, &e), 0);
    assert_int_equal(trace_file_adopt(&t, &in, false, &e), 0);
    assert_int_equal(peaks_count(p, &t, 0, NULL, &e), 0);
    trace_file_close(&t);
}

// 3 % are more than 10 standard deviations of the estimate.
static void is_near(uint64_t value, uint64_t want)
{
    assert_in_range(value, want - want * 3 / 100, want + want * 3 / 100);
}

static void peaks_of_many_blocks(void **state)
{
    struct peaks p;
    (void)state;
    count_peaks(&p, MANY - 1000, false);
    assert_false(p.estimated);
    assert_int_equal(p.n, 1);
    assert_int_equal(p.items[0].peak_bytes, 8 * (MANY - 1000) + 1000000);
    assert_int_equal(p.items[0].end_bytes, 4 * (MANY - 1000) + 1000000);
    assert_int_equal(p.items[0].end_blocks, MANY / 2 - 500 + 1000);
    peaks_release(&p);
    for (uint64_t n = MANY; n <= 2 * MANY; n += MANY) {
        count_peaks(&p, n, false);
        assert_true(p.estimated);
        assert_int_equal(p.items[0].events, n + 1000 + n / 2);
        is_near(p.items[0].peak_bytes, 8 * n + 1000000);
        is_near(p.items[0].end_bytes, 4 * n + 1000000);
        is_near(p.items[0].end_blocks, n / 2 + 1000);
        peaks_release(&p);
    }
    // The blocks of a process that has ended are not tracked.
    uint64_t n = MANY / 2 + 10000;
    count_peaks(&p, n, true);
    assert_false(p.estimated);
    assert_int_equal(p.n, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(p.items[i].peak_bytes, 8 * n + (p.items[i].pid == 101 ? 1000000 : 0));
    peaks_release(&p);
}

static void remove_files(const char *const *names)
{
    char path[160];
    for (; *names; names++) {
        snprintf(path, sizeof path, "%s/%s", folder, *names);
        assert_int_equal(unlink(path), 0);
    }
}

static void each_process_has_a_file(void **state)
{
    struct err e = {0};
    (void)state;
    make_trace(0x1000, true);
    assert_int_equal(convert_to("a.htw", &e), 0);
    assert_string_equal(written, "a.100.htw 2\na.200.htw 4\na.200-2.htw 1\n");
    assert_string_equal(notes, "");
    assert_int_equal(convert_to("a.htw", &e), -EEXIST);
    remove_files((const char *const[]){"a.100.htw", "a.200.htw", "a.200-2.htw", NULL});
    written[0] = 0;
    assert_int_equal(convert_to("%p-b", &e), 0);
    assert_string_equal(written, "100-b 2\n200-b 4\n200-2-b 1\n");
    remove_files((const char *const[]){"100-b", "200-b", "200-2-b", NULL});
}

static void a_trace_is_opened_as_a_workload(void **state)
{
    struct workload_file w;
    struct err e = {0};
    const struct workload_op *op;
    uint32_t thread;
    (void)state;
    make_trace(0x1000, true);
    assert_int_equal(
        convert_open(&w, trace, &(struct convert_open_options){.pid = 100, .watch = &watch}, &e),
        0);
    assert_string_equal(notes, "");
    assert_int_equal(chosen, 0);
    for (int i = 0; i < 2; i++) {
        unsigned n = 0;
        while (workload_next_op(w.reader, &thread, &op, &e) > 0)
            n++;
        assert_int_equal(n, 2);
        assert_int_equal(workload_file_rewind(&w, &e), 0);
    }
    workload_file_close(&w);
    // The directory's contents are not segments of a recording.
    assert_int_equal(convert_open(&w, folder, &(struct convert_open_options){0}, &e), -EPROTO);
    workload_file_close(&w);
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/heaptape-convert-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(trace, sizeof trace, "%s/t.ht", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(trace);
    return rmdir(folder);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_process_with_the_highest_peak),
    cmocka_unit_test(processes_with_unequal_counts),
    cmocka_unit_test(peaks_of_many_blocks),
    cmocka_unit_test(the_process_asked_for),
    cmocka_unit_test(strict_fails_on_an_unknown_block),
    cmocka_unit_test(a_cut_off_trace_is_noted),
    cmocka_unit_test(each_process_has_a_file),
    cmocka_unit_test(a_trace_is_opened_as_a_workload),
};

int main(void)
{
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
