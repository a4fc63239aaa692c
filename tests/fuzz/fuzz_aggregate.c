// Fuzzes aggregates whose frames have correct checksums.
#include "base/frame.h"
#include "record/aggregate/stat.h"

#include "fuzz.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[64];
    struct input in;
    struct file_stat s;
    struct err e = {0};
    fuzz_frames(&in, FRAME_MAGIC_AGGREGATE, data, n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", in.fd);
    if (aggregate_file_stat(&s, path, &(struct file_stat_settings){.part = FILE_STAT_SITES}, &e) ==
        0)
        file_stat_release(&s);
    input_close(&in);
    return 0;
}
