// Tests that a fork child starts with the blocks that were live in its parent, wherever the frames
// of the two processes are in the trace.
#include "convert/process.h"
#include "trace/codec.h"
#include "trace/writer.h"
#include "workload/file.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PROCESSES = 8 };

static char trace[64], notes[400];
static struct workload_summary summaries[MAX_PROCESSES];
static unsigned preexisting_sites[MAX_PROCESSES];

static void keep_note(const char *text)
{
    snprintf(notes + strlen(notes), sizeof notes - strlen(notes), "%s\n", text);
}

static void put(struct trace_writer *w, uint32_t process, uint64_t watermark,
                const struct event *events, unsigned n)
{
    uint64_t words[256] = {0};
    struct err e = {0};
    uint32_t at = 0;
    for (unsigned i = 0; i < n; i++) {
        if (events[i].notes[HT_NOTE_SITE])
            words[at++] = codec_note(HT_NOTE_SITE, events[i].notes[HT_NOTE_SITE]);
        at += codec_put_long(words + at, &events[i]);
    }
    struct trace_segment s = {.process = process, .tid = 1, .n_words = at, .words = words};
    assert_int_equal(trace_write_batch(w, watermark, &s, 1, &e), 0);
}

#define PUT(w, process, watermark, ...)                                                            \
    do {                                                                                           \
        const struct event events[] = {__VA_ARGS__};                                               \
        put(w, process, watermark, events, sizeof events / sizeof *events);                        \
    } while (0)
#define MALLOC(at, bytes, address)                                                                 \
    {                                                                                              \
        .kind = HT_MALLOC, .stamp = (at), .size = (bytes), .result = (address)                     \
    }
#define FREE(at, address)                                                                          \
    {                                                                                              \
        .kind = HT_FREE, .stamp = (at), .ptr = (address)                                           \
    }

static void put_process(struct trace_writer *w, const struct trace_process *p)
{
    struct err e = {0};
    assert_int_equal(trace_write_process(w, p, &e), 0);
}

static void put_end(struct trace_writer *w, uint32_t process)
{
    struct err e = {0};
    assert_int_equal(
        trace_write_process_end(w, &(struct trace_process){.number = process, .end_stamp = 1}, &e),
        0);
}

static void begin(struct trace_writer *w, struct output *out)
{
    struct err e = {0};
    assert_int_equal(output_open(out, trace, OUTPUT_FORCE, &e), 0);
    trace_writer_init(w, out, FRAME_CODEC_NONE, 0);
    assert_int_equal(trace_write_session(w, &(struct trace_session){.clock_hz = 1000000}, &e), 0);
}

static void end(struct trace_writer *w, struct output *out)
{
    struct err e = {0};
    assert_int_equal(trace_write_end(w, 1000000, 0, &e), 0);
    trace_writer_release(w);
    assert_int_equal(output_close(out, true, &e), 0);
}

static int keep_summary(void *context, const struct trace_process *p, struct input *in,
                        struct err *e)
{
    struct workload_file w;
    const struct workload_op *op;
    uint32_t thread;
    (void)context;
    assert_int_equal(workload_file_adopt(&w, in, e), 0);
    preexisting_sites[p->number] = 0;
    while (workload_next_op(w.reader, &thread, &op, e) > 0)
        preexisting_sites[p->number] += op->kind == HT_PREEXISTING && op->value >> 8;
    assert_int_equal(e->text[0], 0);
    summaries[p->number] = *workload_reader_summary(w.reader);
    workload_file_close(&w);
    return 0;
}

static void convert_all(void)
{
    struct err e = {0};
    struct file f;
    const struct convert_watch watch = {.note = keep_note};
    notes[0] = 0;
    memset(summaries, 0, sizeof summaries);
    assert_int_equal(file_open(&f, trace, FILE_TRACE | FILE_TWICE, &e), 0);
    assert_int_equal(convert_each(&f.trace, &(struct convert_files){.read = keep_summary},
                                  &(struct convert_settings){.level = 1, .watch = &watch}, &e),
                     0);
    file_close(&f);
}

// A process must be converted to the same workload whether it is converted alone or with other
// processes.
static void one_is_the_same(uint32_t pid, uint32_t number)
{
    struct err e = {0};
    struct file f;
    struct output out;
    struct workload_summary s;
    assert_int_equal(file_open(&f, trace, FILE_TRACE | FILE_TWICE, &e), 0);
    assert_int_equal(output_open_unnamed(&out, &e), 0);
    assert_int_equal(
        convert_one(&f.trace, &out, &(struct convert_settings){.pid = pid, .level = 1}, &s, &e), 0);
    assert_int_equal(s.preexisting_blocks, summaries[number].preexisting_blocks);
    assert_int_equal(s.preexisting_bytes, summaries[number].preexisting_bytes);
    assert_int_equal(s.peak_live_bytes, summaries[number].peak_live_bytes);
    assert_int_equal(s.unmatched_frees, summaries[number].unmatched_frees);
    output_close(&out, false, NULL);
    file_close(&f);
}

// Writes a trace in which the first event of the child follows the end of the parent, both in the
// trace and in time.
static void make_late_child(uint64_t fork_stamp)
{
    struct output out;
    struct trace_writer w;
    begin(&w, &out);
    put_process(&w, &(struct trace_process){.number = 0, .pid = 100, .start_stamp = 10});
    PUT(&w, 0, 1000,
        {.kind = HT_STACK, .stamp = 11, .value = 77, .text = "codecode", .text_bytes = 8},
        {.kind = HT_MALLOC, .stamp = 20, .size = 1, .result = 0x1000, .notes[HT_NOTE_SITE] = 77},
        MALLOC(30, 20, 0x2000), MALLOC(40, 300, 0x3000), FREE(50, 0x1000), FREE(51, 0x2000),
        MALLOC(52, 4000, 0x1000));
    put_end(&w, 0);
    put_end(&w, 0); // a repeated end has no effect
    put_process(&w, &(struct trace_process){.number = 1,
                                            .pid = 101,
                                            .start_stamp = 60,
                                            .forked_from = 100,
                                            .forked_from_start = fork_stamp ? 10 : 0,
                                            .fork_stamp = fork_stamp});
    PUT(&w, 1, 2000, FREE(70, 0x1000), MALLOC(71, 50000, 0x1000), FREE(72, 0x3000));
    put_end(&w, 1);
    end(&w, &out);
}

static void a_child_after_its_parents_end(void **state)
{
    (void)state;
    make_late_child(45);
    convert_all();
    assert_string_equal(notes, "");
    assert_int_equal(summaries[0].preexisting_blocks, 0);
    assert_int_equal(summaries[0].peak_live_bytes, 4300);
    assert_int_equal(summaries[1].preexisting_blocks, 3);
    assert_int_equal(summaries[1].preexisting_bytes, 321);
    assert_int_equal(summaries[1].events, 3);
    assert_int_equal(summaries[1].requested_bytes, 50000);
    assert_int_equal(summaries[1].unmatched_frees, 0);
    assert_int_equal(summaries[1].live_at_end_bytes, 50020);
    assert_int_equal(summaries[1].first_stamp, 45);
    assert_int_equal(preexisting_sites[1], 1);
    one_is_the_same(101, 1);
}

static void the_time_of_the_fork_is_not_known(void **state)
{
    (void)state;
    make_late_child(0);
    convert_all();
    assert_non_null(strstr(notes, "the time of 1 of 1 forks was not recorded"));
    assert_int_equal(summaries[1].preexisting_blocks, 2);
    assert_int_equal(summaries[1].preexisting_bytes, 4300);
    assert_int_equal(summaries[1].unmatched_frees, 0);
    one_is_the_same(101, 1);
}

static int drop_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    (void)context, (void)ops, (void)n;
    return 0;
}

static int choose_all(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    (void)context, (void)p;
    *sink = (struct convert_sink){.ops = {.ops = drop_ops}};
    return 1;
}

static int count_end(void *context, uint32_t process)
{
    ((unsigned *)context)[process]++;
    return 0;
}

// The parent is kept for children that have not appeared yet.
static void the_end_of_a_process_is_reported_once(void **state)
{
    (void)state;
    unsigned ends[MAX_PROCESSES] = {0};
    struct input in;
    struct trace_reader r;
    struct convert_result result = {0};
    struct err e = {0};
    const struct convert_options how = {.choose = choose_all,
                                        .ended = count_end,
                                        .context = ends,
                                        .find_forks = true,
                                        .fork_ns = 1000000000};
    make_late_child(45);
    assert_int_equal(input_open(&in, trace, &e), 0);
    assert_int_equal(trace_reader_open(&r, &in, &e), 0);
    assert_int_equal(convert_run(&r, &how, &result, &e), 0);
    assert_int_equal(ends[0], 1);
    assert_int_equal(ends[1], 1);
    trace_reader_close(&r);
    input_close(&in);
}

static int count_preexisting(void *context, const struct workload_thread_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *(unsigned *)context += ops[i].op.kind == HT_PREEXISTING;
    return 0;
}

// Counts the preexisting blocks of the child only.
static int choose_child(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    *sink = (struct convert_sink){
        .ops = {.context = context, .ops = p->pid == 101 ? count_preexisting : drop_ops}};
    return 1;
}

// Returns how many blocks the child inherits from its parent, which ends at the watermark 1000. The
// conversion has advanced to `limit` when the child appears. A child may appear for 500 stamps.
static unsigned inherited_blocks(uint64_t limit)
{
    enum { OTHER = 1, CHILD = 2 };
    struct output out;
    struct trace_writer w;
    begin(&w, &out);
    put_process(&w, &(struct trace_process){.number = 0, .pid = 100, .start_stamp = 10});
    put_process(&w, &(struct trace_process){.number = OTHER, .pid = 200, .start_stamp = 10});
    PUT(&w, 0, 1000, MALLOC(20, 1, 0x1000), MALLOC(30, 20, 0x2000));
    put_end(&w, 0);
    // A batch advances the conversion to the watermark of the previous batch.
    PUT(&w, OTHER, limit, MALLOC(1010, 1, 0x1000));
    PUT(&w, OTHER, 5000, MALLOC(1020, 1, 0x2000));
    put_process(&w, &(struct trace_process){.number = CHILD,
                                            .pid = 101,
                                            .start_stamp = 60,
                                            .forked_from = 100,
                                            .forked_from_start = 10,
                                            .fork_stamp = 45});
    PUT(&w, CHILD, 6000, MALLOC(5001, 1, 0x9000));
    put_end(&w, CHILD);
    end(&w, &out);

    unsigned blocks = 0;
    struct input in;
    struct trace_reader r;
    struct convert_result result = {0};
    struct err e = {0};
    const struct convert_options how = {
        .choose = choose_child, .context = &blocks, .find_forks = true, .fork_ns = 500000};
    assert_int_equal(input_open(&in, trace, &e), 0);
    assert_int_equal(trace_reader_open(&r, &in, &e), 0);
    assert_int_equal(convert_run(&r, &how, &result, &e), 0);
    trace_reader_close(&r);
    input_close(&in);
    return blocks;
}

static void a_parent_is_kept_for_a_time_after_its_end(void **state)
{
    (void)state;
    assert_int_equal(inherited_blocks(1499), 2);
    assert_int_equal(inherited_blocks(1500), 0);
}

// Several images share one pid. The child of the first image and the grandchild are read, and end,
// before their parents have events.
static void a_chain_among_images_of_one_pid(void **state)
{
    struct output out;
    struct trace_writer w;
    (void)state;
    begin(&w, &out);
    put_process(&w, &(struct trace_process){.number = 0, .pid = 100, .start_stamp = 10});
    put_process(&w, &(struct trace_process){.number = 1, .pid = 100, .start_stamp = 200});
    put_process(&w, &(struct trace_process){.number = 2,
                                            .pid = 101,
                                            .start_stamp = 60,
                                            .forked_from = 100,
                                            .forked_from_start = 10,
                                            .fork_stamp = 45});
    put_process(&w, &(struct trace_process){.number = 3,
                                            .pid = 102,
                                            .start_stamp = 90,
                                            .forked_from = 101,
                                            .forked_from_start = 60,
                                            .fork_stamp = 80});
    // Process 4 is forked from a process that is not in the trace.
    put_process(&w, &(struct trace_process){.number = 4,
                                            .pid = 103,
                                            .start_stamp = 90,
                                            .forked_from = 100,
                                            .forked_from_start = 11,
                                            .fork_stamp = 80});
    PUT(&w, 3, 15, FREE(91, 0x1000), FREE(92, 0x4000));
    put_end(&w, 3);
    PUT(&w, 4, 16, FREE(91, 0x1000));
    PUT(&w, 2, 17, FREE(61, 0x2000), MALLOC(62, 4, 0x4000), FREE(85, 0x1000));
    put_end(&w, 2);
    PUT(&w, 1, 18, MALLOC(201, 5, 0x5000));
    PUT(&w, 0, 1004, MALLOC(20, 1, 0x1000), MALLOC(30, 2, 0x2000), FREE(50, 0x1000),
        FREE(51, 0x2000));
    end(&w, &out);
    convert_all();
    assert_int_equal(summaries[0].live_at_end_blocks, 0);
    assert_int_equal(summaries[1].preexisting_blocks, 0);
    assert_int_equal(summaries[2].preexisting_bytes, 3);
    assert_int_equal(summaries[2].live_at_end_bytes, 4);
    assert_int_equal(summaries[3].preexisting_bytes, 5);
    assert_int_equal(summaries[3].live_at_end_bytes, 0);
    assert_int_equal(summaries[4].preexisting_blocks, 0);
    assert_int_equal(summaries[4].unmatched_frees, 1);
    one_is_the_same(102, 3);
    one_is_the_same(101, 2);
}

static int make_name(void **state)
{
    (void)state;
    strcpy(trace, "/tmp/heaptape-forks-XXXXXX");
    int fd = mkstemp(trace);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(trace);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_child_after_its_parents_end),
    cmocka_unit_test(the_end_of_a_process_is_reported_once),
    cmocka_unit_test(a_parent_is_kept_for_a_time_after_its_end),
    cmocka_unit_test(the_time_of_the_fork_is_not_known),
    cmocka_unit_test(a_chain_among_images_of_one_pid),
};

int main(void)
{
    return cmocka_run_group_tests(tests, make_name, remove_file);
}
