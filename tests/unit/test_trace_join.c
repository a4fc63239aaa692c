// Tests which processes of two segments are the same process of the joined trace.
#include "trace/codec.h"
#include "trace/join.h"
#include "trace/reader.h"
#include "trace/writer.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The second process has the key of the first process in the table of processes. The third process
// reuses the pid of the first process.
enum { PROCESSES = 3 };
static const struct trace_process processes[PROCESSES] = {
    {.pid = 5, .start_stamp = 1},
    {.pid = 5 + (1 << 22), .start_stamp = 0},
    {.pid = 5, .start_stamp = 2},
};

static uint64_t stream_words[PROCESSES]; // words of each process in the segment so far

// Adds `n` allocations of process `number` of the segment as a batch.
static void put_batch(struct trace_writer *w, uint32_t number, uint64_t watermark, unsigned n)
{
    uint64_t words[32];
    struct trace_segment s = {
        .process = number, .tid = 1, .first_word = stream_words[number], .words = words};
    struct err e = {0};
    for (unsigned i = 0; i < n; i++)
        s.n_words += (uint32_t)codec_put_long(
            words + s.n_words,
            &(struct event){
                .kind = HT_MALLOC, .stamp = watermark - 1, .size = 8, .result = 0x1000ull * i});
    assert_int_equal(trace_write_batch(w, watermark, &s, 1, &e), 0);
    stream_words[number] += s.n_words;
}

// Writes a segment in which process i has i + 1 events. The segment lists the processes from
// number `first` on.
static void write_segment(const char *path, uint64_t number, unsigned first)
{
    struct output out;
    struct trace_writer w;
    struct err e = {0};
    const struct trace_session session = {
        .clock_hz = 1000000000, .segment = number, .recording_ns = 77};
    assert_int_equal(output_open(&out, path, OUTPUT_FORCE, &e), 0);
    memset(stream_words, 0, sizeof stream_words);
    trace_writer_init(&w, &out, FRAME_CODEC_NONE, 0);
    assert_int_equal(trace_write_session(&w, &session, &e), 0);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        struct trace_process p = processes[(first + i) % PROCESSES];
        p.number = i;
        assert_int_equal(trace_write_process(&w, &p, &e), 0);
    }
    // The first batch of the second segment repeats records, and the join omits it.
    if (number == 2)
        put_batch(&w, 0, 1000 * number, 5);
    for (uint32_t i = 0; i < PROCESSES; i++)
        put_batch(&w, i, 1000 * number + 10 * (i + 1), (first + i) % PROCESSES + 1);
    if (number == 1)
        assert_int_equal(trace_write_segment_end(&w, 2000, &e), 0);
    else
        assert_int_equal(trace_write_end(&w, 4000, 0, &e), 0);
    trace_writer_release(&w);
    assert_int_equal(output_close(&out, true, &e), 0);
}

static void count_events(struct input *in, uint64_t counts[PROCESSES], size_t *n)
{
    struct trace_reader r;
    struct trace_item item;
    struct err e = {0};
    int rc;
    assert_int_equal(trace_reader_open(&r, in, &e), 0);
    while ((rc = trace_next(&r, &item, &e)) > 0) {
        for (size_t i = 0; item.type == TRACE_EVENTS && i < item.n_segments; i++)
            counts[item.segments[i].process] += item.segments[i].n_records;
    }
    assert_int_equal(rc, 0);
    *n = r.n_processes;
    for (size_t i = 0; i < PROCESSES; i++) {
        assert_int_equal(r.processes[i]->pid, processes[i].pid);
        assert_int_equal(r.processes[i]->start_stamp, processes[i].start_stamp);
    }
    trace_reader_close(&r);
}

static void processes_by_pid_and_start(void **state)
{
    (void)state;
    char folder[] = "/tmp/heaptape-join-XXXXXX", paths[2][64];
    struct input in;
    struct err e = {0};
    uint64_t counts[PROCESSES] = {0};
    size_t n;
    assert_non_null(mkdtemp(folder));
    for (unsigned i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%u.ht", folder, i);
        write_segment(paths[i], i + 1, i);
    }
    assert_int_equal(trace_join(&in, folder, &e), 0);
    count_events(&in, counts, &n);
    input_close(&in);
    assert_int_equal(n, PROCESSES);
    for (unsigned i = 0; i < PROCESSES; i++)
        assert_int_equal(counts[i], 2 * (i + 1));
    for (unsigned i = 0; i < 2; i++)
        unlink(paths[i]);
    rmdir(folder);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(processes_by_pid_and_start),
};

UNIT_MAIN(tests)
