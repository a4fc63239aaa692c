// Fuzzes plans of workloads whose frames have correct checksums. The last two bytes select the
// settings. Finished plans are played (play.h).
#include "replay/plan/plan.h"

#include "play.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct err e = {0};
    struct input in;
    struct workload_reader *r;
    struct plan *p;
    unsigned how = n > 1 ? data[n - 1] | data[n - 2] << 8 : 0;
    const struct plan_settings settings = {
        .memory_bytes = 1 << 22,
        .streamed = how & 1,
        .one_thread = how & 2,
        .snapshots = how & 4,
        .snapshot_after_ops = how >> 8,
        .stats_every = how & 8 ? 3 : 0,
        .trim_every = how & 16 ? 5 : 0,
        .ns_per_stamp = how & 32 ? 0.5 : 0,
    };
    fuzz_frames(&in, FRAME_MAGIC_WORKLOAD, data, n);
    if (workload_reader_open(&r, &in, &e) == 0) {
        if (plan_new(&p, "fuzz", &settings, &e) == 0) {
            if (plan_read(p, r, NULL, &e) == 0 && !settings.streamed)
                play_plan(p, true);
            plan_free(p);
        }
        workload_reader_close(r);
    }
    input_close(&in);
    return 0;
}
