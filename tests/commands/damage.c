// damage FILE: flips every bit of a small trace or workload, and truncates the file at every byte.
// Each variant is read and, if it is a trace, converted. It must be rejected with a one-line error
// that names the file, or have the same result as the intact file. The result of a truncated trace
// may be incomplete if the trace is reported as truncated. Prints the number of variants with each
// outcome.
#include "base/frame.h"
#include "convert/convert.h"
#include "workload/reader.h"

#include "fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct outcome {
    int rc;
    bool cut_off;
    uint64_t ops, digest;
    struct err e;
};

static void take_op(struct outcome *o, uint32_t thread, const struct workload_op *op)
{
    const uint64_t facts[] = {thread,    op->kind, op->size,  op->count, op->align,
                              op->value, op->slot, op->stamp, op->error};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        o->digest = (o->digest ^ facts[i]) * 0x100000001b3u;
    for (uint32_t i = 0; i < op->text_bytes; i++)
        o->digest = (o->digest ^ (uint8_t)op->text[i]) * 0x100000001b3u;
    o->ops++;
}

static int put_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        take_op(context, ops[i].thread, &ops[i].op);
    return 0;
}

static int choose(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    (void)p;
    *sink = (struct convert_sink){.ops = {.context = context, .ops = put_ops}};
    return 1;
}

static void convert(struct input *in, struct outcome *o)
{
    struct trace_reader r;
    struct convert_result result = {0};
    const struct convert_options how = {.choose = choose, .context = o};
    o->rc = trace_reader_open(&r, in, &o->e);
    if (o->rc < 0)
        return;
    o->rc = convert_run(&r, &how, &result, &o->e);
    o->cut_off = result.cut_off;
    trace_reader_close(&r);
}

static void read_workload(struct input *in, struct outcome *o)
{
    struct workload_reader *r;
    const struct workload_op *op;
    uint32_t thread;
    o->rc = workload_reader_open(&r, in, &o->e);
    if (o->rc < 0)
        return;
    while ((o->rc = workload_next_op(r, &thread, &op, &o->e)) > 0)
        take_op(o, thread, op);
    workload_reader_close(r);
}

static struct outcome read_bytes(const uint8_t *bytes, size_t n, bool is_trace)
{
    struct outcome o = {0};
    struct input in;
    fuzz_input(&in, bytes, n);
    (is_trace ? convert : read_workload)(&in, &o);
    input_close(&in);
    return o;
}

// Returns true if the file was rejected with a proper message.
static bool refused(const struct outcome *o)
{
    return o->rc < 0 && strncmp(o->e.text, "fuzz: ", 6) == 0 && !strchr(o->e.text, '\n');
}

static _Noreturn void fail(const char *what, size_t at, const struct outcome *o)
{
    printf("%s %zu: %d, %llu ops, %s\n", what, at, o->rc, (unsigned long long)o->ops, o->e.text);
    exit(1);
}

int main(int argc, char **argv)
{
    static uint8_t bytes[1 << 16];
    FILE *f = argc > 1 ? fopen(argv[1], "rbe") : NULL;
    size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0, refusals = 0, same = 0, less = 0;
    bool is_trace = frame_magic_at(bytes, n, FRAME_MAGIC_TRACE);
    struct outcome whole = read_bytes(bytes, n, is_trace);
    if (!n || whole.rc < 0 || !whole.ops)
        fail("whole", n, &whole);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        struct outcome o = read_bytes(bytes, n, is_trace);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (refused(&o))
            refusals++;
        else if (o.rc >= 0 && o.digest == whole.digest && !o.cut_off)
            same++;
        else
            fail("bit", bit, &o);
    }
    for (size_t size = 1; size < n; size++) {
        struct outcome o = read_bytes(bytes, size, is_trace);
        if (refused(&o))
            refusals++;
        else if (is_trace && o.rc >= 0 && o.cut_off && o.ops <= whole.ops)
            less++;
        else
            fail("cut off at", size, &o);
    }
    printf("%zu refused, %zu the same, %zu cut off\n", refusals, same, less);
    fclose(f);
    return 0;
}
