// seed FILE: prints the frames of a trace, workload or aggregate as a seed for fuzz_trace,
// fuzz_workload or fuzz_aggregate. Frames that are too long for the seed format are left out.
#include "base/frame.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    struct err e = {0};
    struct input in;
    struct frame_reader r;
    struct frame f;
    const uint8_t *bytes;
    if (argc < 2 || input_open(&in, argv[1], &e) < 0)
        return 1;
    ssize_t n = input_peek(&in, FRAME_HEADER_BYTES, &bytes, &e);
    static const uint32_t magics[] = {FRAME_MAGIC_TRACE, FRAME_MAGIC_AGGREGATE,
                                      FRAME_MAGIC_WORKLOAD};
    size_t kind = 0;
    while (kind < 2 && !(n > 0 && frame_magic_at(bytes, (size_t)n, magics[kind])))
        kind++;
    frame_reader_init(&r, &in, magics[kind], 1);
    while (frame_next(&r, &f, &e) > 0) {
        if (f.size >> 16)
            continue;
        putchar(f.type);
        putchar((int)(f.size & 0xff));
        putchar((int)(f.size >> 8));
        fwrite(f.data, 1, f.size, stdout);
    }
    frame_reader_release(&r);
    input_close(&in);
    return 0;
}
