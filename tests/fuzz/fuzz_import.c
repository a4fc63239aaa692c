// Files of other tools: the first byte says which format, the rest is the file.
#include "formats/import.h"

#include "fuzz.h"

static int begin(void *context, const struct trace_session *s, bool has_times)
{
    (void)context;
    (void)s;
    (void)has_times;
    return 0;
}

static int put_process(void *context, const struct trace_process *p)
{
    (void)context;
    (void)p;
    return 0;
}

static int put_round(void *context, struct trace_segment *segments, size_t n, uint64_t watermark)
{
    (void)context;
    (void)segments;
    (void)n;
    (void)watermark;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t n_formats = 0;
    struct err e = {0};
    struct input in;
    while (formats[n_formats])
        n_formats++;
    if (n < 2)
        return 0;
    const struct format *f = formats[data[0] % n_formats];
    if (!f->import)
        return 0;
    struct import im = {.format = f, .keep_going = data[0] & 0x80, .sink = {NULL, begin, put_process, put_round}};
    fuzz_input(&in, data + 1, n - 1);
    import_run(&im, &in, &e);
    import_release(&im);
    input_close(&in);
    return 0;
}
