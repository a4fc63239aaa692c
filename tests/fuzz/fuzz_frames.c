// Fuzzes files of frames byte for byte: the frame reader with both magics, and salvage.
#include "base/frame.h"
#include "trace/salvage.h"

#include "fuzz.h"

static void read_frames(struct input *in, uint32_t magic)
{
    struct err e = {0};
    struct frame_reader r;
    struct frame f;
    uint64_t skipped;
    frame_reader_init(&r, in, magic, 1);
    // More frames may follow after damage.
    for (unsigned i = 0; i < 1000; i++) {
        int rc = frame_next(&r, &f, &e);
        if (rc == 0 || (rc < 0 && frame_resync(&r, &skipped, &e) <= 0))
            break;
    }
    frame_reader_release(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in;
    struct output out;
    struct trace_salvaged salvaged;
    struct err e = {0};
    if (!n)
        return 0;
    fuzz_input(&in, data, n);
    read_frames(&in, FRAME_MAGIC_TRACE);
    input_seek(&in, 0, &e);
    read_frames(&in, FRAME_MAGIC_WORKLOAD);
    input_seek(&in, 0, &e);
    fuzz_output(&out);
    trace_salvage(&in, &out, &salvaged, &e);
    output_close(&out, true, NULL);
    input_close(&in);
    return 0;
}
