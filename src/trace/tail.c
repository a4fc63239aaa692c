#include "trace/tail.h"

#include "base/frame.h"
#include "base/tlv.h"
#include "base/varint.h"
#include "trace/trace.h"

#include <errno.h>
#include <stdlib.h>

// An END frame larger than this is not found. The size suffices for the counts of a few thousand
// processes.
enum { TAIL_BYTES = 65536 };

static int get_counts(const struct tlv *f, struct trace_tail *t)
{
    const uint8_t *at = f->bytes, *end = at + f->size;
    size_t capacity = 0;
    while (at < end) {
        uint64_t v[3];
        for (unsigned i = 0; i < 3; i++) {
            if (!varint_next(&at, end, &v[i])) {
                trace_tail_release(t);
                return 0;
            }
        }
        if (HT_APPEND(&t->counts, &t->n, &capacity,
                      (struct trace_count){(uint32_t)v[0], (uint32_t)v[1], v[2]}) < 0)
            return -ENOMEM;
    }
    return 0;
}

// Reads a frame. If the frame is END, sets *is_end and fills in *t. Returns 0 or -ENOMEM.
static int read_frame(struct frame_reader *frames, bool *is_end, struct trace_tail *t)
{
    struct frame f;
    struct tlv field;
    struct err ignored;
    int rc = frame_next(frames, &f, &ignored);
    *is_end = rc > 0 && f.type == TRACE_END;
    if (!*is_end)
        return 0;
    const uint8_t *at = f.data;
    uint64_t hz = 0;
    while ((rc = tlv_next(&at, f.data + f.size, &field)) > 0) {
        if (field.tag == TRACE_F_CLOCK_HZ)
            hz = field.number;
        if (field.tag == TRACE_F_PROCESS_EVENTS && !t->counts && get_counts(&field, t) < 0)
            return -ENOMEM;
    }
    t->clock_hz = hz;
    return 0;
}

void trace_tail_release(struct trace_tail *t)
{
    free(t->counts);
    *t = (struct trace_tail){0};
}

int trace_read_tail(struct input *in, struct trace_tail *t, struct err *e)
{
    struct frame_reader frames;
    uint64_t skipped;
    bool is_end = false;
    *t = (struct trace_tail){0};
    int rc = input_seek(in, in->size_bytes > TAIL_BYTES ? in->size_bytes - TAIL_BYTES : 0, e);
    if (rc < 0)
        return rc;
    frame_reader_init(&frames, in, FRAME_MAGIC_TRACE, TRACE_VERSION);
    // If other bytes look like a frame header, the search stops there and the totals are unknown.
    while (rc >= 0 && !is_end && (rc = frame_resync(&frames, &skipped, e)) > 0)
        rc = read_frame(&frames, &is_end, t);
    frame_reader_release(&frames);
    if (rc < 0 || !is_end)
        trace_tail_release(t);
    return rc == -ENOMEM ? err_no_memory(e, in->name) : rc < 0 ? rc : is_end;
}
