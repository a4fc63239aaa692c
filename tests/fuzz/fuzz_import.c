// Fuzzes files of other tools. The first line names the format, with " -k" for --keep-going; the
// rest is the file.
#include "formats/import.h"

#include "fuzz.h"

#include <string.h>

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

static int put_batch(void *context, struct trace_segment *segments, size_t n, uint64_t watermark)
{
    (void)context;
    (void)segments;
    (void)n;
    (void)watermark;
    return 0;
}

// Sets the format and keep_going from the first line and skips the line. Returns false if it is
// invalid.
static bool read_name(struct import *im, const uint8_t **data, size_t *n)
{
    char name[32];
    const uint8_t *newline = memchr(*data, '\n', *n < sizeof name ? *n : sizeof name);
    if (!newline)
        return false;
    size_t bytes = (size_t)(newline - *data);
    memcpy(name, *data, bytes);
    name[bytes] = 0;
    char *keep_going = strstr(name, " -k");
    if (keep_going)
        *keep_going = 0;
    im->keep_going = keep_going != NULL;
    im->format = formats_find(name);
    *data += bytes + 1;
    *n -= bytes + 1;
    return im->format && formats_is_read(im->format);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct err e = {0};
    struct input in;
    struct import im = {.sink = {NULL, begin, put_process, put_batch}};
    if (!read_name(&im, &data, &n) || !n)
        return -1; // tells libFuzzer to drop the input
    fuzz_input(&in, data, n);
    import_run(&im, &in, &e);
    import_release(&im);
    input_close(&in);
    return 0;
}
