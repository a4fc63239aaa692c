// Fuzzes traces whose frames have correct checksums: the reader, the converter of all processes
// with the writer and statistics, the walk of dump, and salvage.
#include "base/frame.h"
#include "convert/addressed.h"
#include "convert/convert.h"
#include "convert/walk.h"
#include "trace/salvage.h"
#include "workload/summary.h"
#include "workload/writer.h"

#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>

struct sink {
    struct output out;
    struct workload_writer *writer;
    struct summary_counter stats;
    struct sink *next;
};

static struct sink *sinks;

// Aborts if the writer rejects an op, because the order must emit only valid ops.
static int put_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    struct sink *s = context;
    struct err e = {0};
    int rc = summary_ops(&s->stats, ops, n);
    if (rc == 0 && workload_write_ops(s->writer, ops, n, &e) == -EINVAL)
        abort();
    return rc;
}

static int choose(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    struct sink *s = calloc(1, sizeof *s);
    struct err e = {0};
    (void)context;
    (void)p;
    if (!s)
        return -ENOMEM;
    fuzz_output(&s->out);
    summary_init(&s->stats);
    s->writer = workload_writer_new(&s->out, 1);
    s->next = sinks;
    sinks = s;
    workload_write_header(
        s->writer, &(struct workload_header){.has_stamps = true, .clock_hz = 1000000000}, &e);
    *sink = (struct convert_sink){.ops = {.context = s, .ops = put_ops}};
    return 1;
}

static void release_sinks(void)
{
    while (sinks) {
        struct sink *s = sinks;
        sinks = s->next;
        workload_writer_free(s->writer);
        summary_release(&s->stats);
        output_close(&s->out, true, NULL);
        free(s);
    }
}

static void convert(struct input *in)
{
    struct err e = {0};
    struct trace_reader r;
    struct convert_result result;
    const struct convert_options how = {.choose = choose};
    if (trace_reader_open(&r, in, &e) == 0) {
        convert_run(&r, &how, &result, &e);
        trace_reader_close(&r);
    }
    release_sinks();
}

static int take_call(void *context, const struct walk_call *call)
{
    uint64_t *sum = context;
    for (uint32_t i = 0; i < call->event->text_bytes; i++)
        *sum += (unsigned char)call->event->text[i];
    return 0;
}

static void walk(struct input *in)
{
    struct err e = {0}, cut;
    struct trace_reader r;
    uint64_t sum = 0;
    const struct walk_options how = {.call = take_call, .context = &sum};
    if (trace_reader_open(&r, in, &e) == 0) {
        walk_run(&r, &how, &cut, &e);
        trace_reader_close(&r);
    }
}

// A process and its live blocks, which are identified by address.
struct lines {
    struct addressed calls;
    struct map live; // live blocks after the calls printed so far
    struct lines *next;
};

static struct lines *all_lines;

static int put_line(void *context, const struct addressed_call *c)
{
    struct lines *l = context;
    unsigned class = event_infos[c->ev.kind].class;
    bool is_block = class == HT_CLASS_ALLOC || class == HT_CLASS_FREE || class == HT_CLASS_RESIZE;
    if (!is_block || c->failed)
        return 0;
    if (c->ev.ptr && !c->earlier && !map_get(&l->live, c->ev.ptr))
        abort();
    if (c->ev.ptr)
        map_remove(&l->live, c->ev.ptr);
    if (c->ev.result && map_get(&l->live, c->ev.result))
        abort();
    return c->ev.result ? map_put(&l->live, c->ev.result, 1) : 0;
}

static int choose_lines(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    struct lines *l = calloc(1, sizeof *l);
    (void)context;
    (void)p;
    if (!l)
        return -ENOMEM;
    *l = (struct lines){.calls = {.put = put_line, .context = l}, .next = all_lines};
    all_lines = l;
    *sink = (struct convert_sink){.ops = {.context = &l->calls, .calls = addressed_add}};
    return 1;
}

static void lines(struct input *in)
{
    struct err e = {0};
    struct trace_reader r;
    struct convert_result result;
    const struct convert_options how = {.choose = choose_lines};
    int rc = trace_reader_open(&r, in, &e);
    if (rc == 0) {
        rc = convert_run(&r, &how, &result, &e);
        trace_reader_close(&r);
    }
    while (all_lines) {
        struct lines *l = all_lines;
        all_lines = l->next;
        if (rc == 0 && addressed_finish(&l->calls) == -EBADMSG)
            abort();
        addressed_release(&l->calls);
        map_release(&l->live);
        free(l);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in;
    fuzz_frames(&in, FRAME_MAGIC_TRACE, data, n);
    convert(&in);
    input_seek(&in, 0, NULL);
    walk(&in);
    input_seek(&in, 0, NULL);
    lines(&in);
    input_close(&in);
    return 0;
}
