#include "record/flight/dump.h"

#include "record/flight/part.h"

// Writes the frames in the ring. Reads them with a second reader, which shares the processes of the
// first reader.
static int write_ring(struct part *p, const struct flight_ring *ring, struct trace_reader *again,
                      struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < ring->n; i++) {
        const struct ring_frame *from = flight_ring_at(ring, i);
        struct frame f = from->frame;
        struct trace_item item;
        rc = frame_reader_unpack(&again->frames, &from->stored, &f, e);
        if (rc > 0)
            rc = trace_read_frame(again, &f, &item, e);
        if (rc > 0)
            rc = part_item(p, &item);
    }
    return rc < 0 ? rc : 0;
}

int dump_write(const struct dump_source *from, struct output *out, struct dump_result *result,
               struct err *e)
{
    const struct part_start start = {.reader = from->reader,
                                     .converter = from->converter,
                                     .dumped = from->reason,
                                     .codec = FRAME_CODEC_ZSTD,
                                     .level = 1};
    const struct trace_session *s = &from->reader->session;
    struct part p;
    struct trace_reader again = {.in = from->reader->in,
                                 .session = *s,
                                 .processes = from->reader->processes,
                                 .n_processes = from->reader->n_processes};
    frame_reader_init(&again.frames, from->reader->in, FRAME_MAGIC_TRACE, TRACE_VERSION);
    int rc = part_begin(&p, &start, out, e);
    if (rc == 0)
        rc = write_ring(&p, from->ring, &again, e);
    if (rc == 0)
        rc = part_end(&p, again.saw_unrecorded ? &again.unrecorded : NULL, false);
    uint64_t end = p.end_stamp ? p.end_stamp : p.watermark;
    *result = (struct dump_result){.events = p.writer.events - p.snapshot.blocks,
                                   .blocks = p.snapshot.blocks,
                                   .ns = trace_stamp_ns(s, end) - trace_stamp_ns(s, p.start)};
    // The first reader owns the processes.
    again.processes = NULL;
    again.n_processes = 0;
    again.session = (struct trace_session){0};
    trace_reader_close(&again);
    part_release(&p);
    return rc;
}
