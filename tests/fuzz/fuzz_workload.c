// Fuzzes workloads whose frames have correct checksums: the reader, slices, merging, statistics.
#include "base/frame.h"
#include "workload/merged.h"
#include "workload/slice.h"
#include "workload/summary.h"
#include "workload/writer.h"

#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>

struct sink {
    struct output out;
    struct workload_writer *writer;
};

static void sink_begin(struct sink *s, const struct workload_header *h)
{
    struct err e = {0};
    fuzz_output(&s->out);
    s->writer = workload_writer_new(&s->out, 1);
    workload_write_header(s->writer, h, &e);
}

static void sink_end(struct sink *s)
{
    workload_writer_free(s->writer);
    output_close(&s->out, true, NULL);
}

static int put_op(void *context, uint32_t thread, const struct workload_op *op)
{
    struct sink *s = context;
    struct err e = {0};
    return workload_write_op(s->writer, thread, op, &e);
}

static void read_all(struct workload_reader *r)
{
    struct err e = {0};
    struct summary_counter stats;
    const struct workload_op *op;
    uint32_t thread;
    summary_init(&stats);
    while (workload_next_op(r, &thread, &op, &e) > 0)
        summary_op(&stats, thread, op);
    summary_release(&stats);
}

// Slices the workload. `how` selects the part that remains.
static void slice_all(struct workload_reader *r, unsigned how)
{
    static const struct slice_range threads[] = {{0, 0}, {2, 5}};
    struct sink to;
    struct err e = {0};
    const struct workload_op *op;
    uint32_t thread;
    const struct workload_header *h = workload_reader_header(r);
    struct slice_options o = {.from = {SLICE_AT_EVENT, how & 15, NULL},
                              .threads = how & 64 ? threads : NULL,
                              .n_threads = 2,
                              .has_stamps = h->has_stamps,
                              .rebase = how & 32};
    sink_begin(&to, h);
    struct slice *s = slice_new(&o, &(struct slice_sink){&to, put_op});
    while (workload_next_op(r, &thread, &op, &e) > 0 && slice_op(s, thread, op) == 0) {
    }
    slice_finish(s);
    slice_free(s);
    sink_end(&to);
}

static void merge_all(struct workload_reader *a, struct workload_reader *b)
{
    struct merged_input inputs[] = {{a, 0}, {b, 1000}};
    struct sink to;
    struct err e = {0};
    const struct workload_op *op;
    uint32_t thread;
    struct merged *m = merged_new(inputs, 2);
    sink_begin(&to, merged_header(m));
    while (merged_next(m, &thread, &op, &e) > 0 && put_op(&to, thread, op) == 0) {
    }
    merged_free(m);
    sink_end(&to);
}

static struct workload_reader *open_again(struct input *in)
{
    struct err e = {0};
    struct workload_reader *r = NULL;
    input_seek(in, 0, &e);
    return workload_reader_open(&r, in, &e) == 0 ? r : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in, second;
    unsigned how = n ? data[n - 1] : 0;
    fuzz_frames(&in, FRAME_MAGIC_WORKLOAD, data, n);
    struct workload_reader *r = open_again(&in);
    if (r) {
        read_all(r);
        workload_reader_close(r);
        r = open_again(&in);
        slice_all(r, how);
        workload_reader_close(r);
        fuzz_frames(&second, FRAME_MAGIC_WORKLOAD, data, n);
        struct workload_reader *other = open_again(&second);
        r = open_again(&in);
        merge_all(r, other);
        workload_reader_close(r);
        workload_reader_close(other);
        input_close(&second);
    }
    input_close(&in);
    return 0;
}
