#include "flight/dump.h"

#include "flight/snapshot.h"
#include "trace/fields.h"
#include "trace/pages.h"

#include <errno.h>
#include <stdlib.h>

enum {
    NONE = 0xffffffff,
    // A record is written a moment after its stamp was taken. One whose thread was interrupted for so long in between stands
    // behind the blocks that it may free.
    LATE_NS = 100000000,
    LEVEL = 1, // of zstd
};

struct dump_work {
    const struct dump_source *from;
    struct trace_writer *writer;
    struct snapshot snapshot;
    struct trace_reader again; // of the frames in the ring: shares the processes of the other reader
    uint32_t *numbers;         // by number in the recording: in the dump, or NONE
    uint32_t *shifts;          // … how much later the module numbers come in it
    bool *ended;               // …
    uint32_t n;                // processes in the dump
    bool in_batch;
    uint64_t start, watermark; // stamps: where the dump begins, and of the last batch
    uint64_t end_stamp, clock_hz;
    struct err *e;
};

static int no_memory(struct dump_work *d)
{
    return err_set(d->e, -ENOMEM, "%s: out of memory", d->writer->frames.out->name);
}

static uint64_t to_stamps(const struct trace_session *s, uint64_t ns)
{
    return (uint64_t)((unsigned __int128)ns * s->clock_hz / 1000000000u) >> s->stamp_shift;
}

static int number_process(void *context, const struct convert_open *p)
{
    struct dump_work *d = context;
    uint64_t stamp = snapshot_stamp(p->order);
    d->start = stamp < d->start ? stamp : d->start;
    d->numbers[p->number] = d->n++;
    d->shifts[p->number] = snapshot_inherited_modules(p->order);
    return 0;
}

// The stamp at which the dump begins, and the new numbers of its processes.
static int begin(struct dump_work *d)
{
    const struct trace_session *s = &d->from->reader->session;
    size_t n = d->from->reader->n_processes;
    d->start = d->watermark = convert_watermark(d->from->converter);
    d->numbers = malloc((n + 1) * sizeof *d->numbers);
    d->shifts = calloc(n + 1, sizeof *d->shifts);
    d->ended = calloc(n + 1, sizeof *d->ended);
    if (!d->numbers || !d->shifts || !d->ended)
        return no_memory(d);
    memset(d->numbers, 0xff, n * sizeof *d->numbers);
    int rc = convert_visit(d->from->converter, number_process, d);
    uint64_t late = to_stamps(s, LATE_NS);
    d->start = d->start > late && d->start - late > s->start_stamp ? d->start - late : s->start_stamp;
    return rc < 0 ? no_memory(d) : 0;
}

static int write_session(struct dump_work *d)
{
    struct trace_session s = d->from->reader->session;
    s.realtime_ns += trace_stamp_ns(&s, d->start);
    s.start_stamp = d->start;
    s.dumped = strdup(d->from->reason);
    int rc = s.dumped ? trace_write_session(d->writer, &s, d->e) : no_memory(d);
    free(s.dumped);
    return rc;
}

// A process that has its parent's blocks already is nobody's child in the dump: it would get them a second time.
static int write_process(void *context, const struct convert_open *p)
{
    struct dump_work *d = context;
    struct trace_process of = *d->from->reader->processes[p->number];
    of.number = d->numbers[p->number];
    if (!p->waits) {
        of.forked_from = 0;
        of.forked_from_start = of.fork_stamp = 0;
    }
    int rc = trace_write_process(d->writer, &of, d->e);
    return rc < 0 ? rc : snapshot_write_names(d->writer, of.number, p->order, d->e);
}

static int write_blocks(void *context, const struct convert_open *p)
{
    struct dump_work *d = context;
    d->snapshot.process = d->numbers[p->number];
    d->snapshot.pid = d->from->reader->processes[p->number]->pid;
    return snapshot_write(&d->snapshot, p->number, p->order, p->notes, d->e);
}

// All that stands before the frames of the ring.
static int write_start(struct dump_work *d)
{
    int rc = write_session(d);
    if (rc == 0)
        rc = convert_visit(d->from->converter, write_process, d);
    d->snapshot.writer = d->writer;
    d->snapshot.stamp = d->start;
    if (rc == 0)
        rc = trace_batch_begin(d->writer, d->e);
    if (rc == 0)
        rc = convert_visit(d->from->converter, write_blocks, d);
    d->watermark = d->watermark > d->start ? d->watermark : d->start;
    return rc < 0 ? rc : trace_batch_end(d->writer, d->watermark, d->e);
}

static int end_batch(struct dump_work *d, uint64_t watermark)
{
    d->watermark = watermark > d->watermark ? watermark : d->watermark;
    d->in_batch = false;
    return trace_batch_end(d->writer, d->watermark, d->e);
}

static int copy_events(struct dump_work *d, const struct trace_item *item)
{
    int rc = d->in_batch ? 0 : trace_batch_begin(d->writer, d->e);
    d->in_batch = true;
    for (size_t i = 0; rc == 0 && i < item->n_segments; i++) {
        struct trace_segment s = item->segments[i];
        s.first_word = snapshot_first_word(&d->snapshot, &s);
        s.process = d->numbers[s.process];
        if (s.process != NONE)
            rc = trace_batch_add(d->writer, &s, d->e);
    }
    return rc == 0 && item->batch_ends ? end_batch(d, item->watermark) : rc;
}

static int copy_samples(struct dump_work *d, const struct trace_item *item)
{
    struct trace_sample *samples = malloc((item->n_samples + 1) * sizeof *samples);
    size_t n = 0;
    for (size_t i = 0; samples && i < item->n_samples; i++) {
        samples[n] = item->samples[i];
        samples[n].process = d->numbers[item->samples[i].process];
        n += samples[n].process != NONE;
    }
    int rc = samples ? trace_write_samples(d->writer, samples, n, d->e) : no_memory(d);
    free(samples);
    return rc;
}

static int copy_names(struct dump_work *d, const struct trace_item *item)
{
    struct names as_read = {0}, names = {0};
    uint32_t process;
    int rc = names_get(item->names, item->names_bytes, &as_read, &process);
    if (rc == 0)
        rc = names_copy(&names, &as_read, d->shifts[process]);
    rc = rc < 0 ? no_memory(d) : trace_write_names(d->writer, d->numbers[process], &names, d->e);
    names_release(&as_read);
    names_release(&names);
    return rc;
}

static int copy_pages(struct dump_work *d, const struct trace_item *item)
{
    struct trace_pages pages = {0};
    struct buf b = {0};
    int rc = trace_pages_get(item->pages, item->pages_bytes, &pages);
    pages.process = d->numbers[item->process->number];
    if (rc == 0)
        rc = trace_pages_put(&b, &pages);
    rc = rc < 0 ? no_memory(d) : trace_write_pages(d->writer, b.data, b.size, d->e);
    trace_pages_release(&pages);
    buf_release(&b);
    return rc;
}

// What the recording knows of the whole process is true of the dump only where it says when, or what happened at the end.
static int write_end_of(struct dump_work *d, const struct trace_process *p)
{
    struct trace_process of = *p;
    uint64_t from = p->recorded_to ? p->recorded_from : p->start_stamp;
    of.number = d->numbers[p->number];
    of.recorded_to = p->recorded_to || p->ended ? p->recorded_to : d->watermark;
    of.recorded_from = from > d->start ? from : d->start;
    if (!of.recorded_to && p->start_stamp < d->start)
        of.recorded_to = p->end_stamp;
    of.end_stamp = p->ended ? p->end_stamp : d->watermark;
    of.cpu_ns = of.recording_ticks = of.call_min_ticks = of.call_max_ticks = 0;
    of.waits = of.wait_ns = of.lost_records = 0;
    d->ended[p->number] = true;
    return trace_write_process_end(d->writer, &of, d->e);
}

static int copy_item(struct dump_work *d, const struct trace_item *item)
{
    int rc = d->in_batch && item->type != TRACE_EVENTS ? end_batch(d, d->watermark) : 0;
    if (rc < 0 || (item->process && d->numbers[item->process->number] == NONE))
        return rc;
    switch (item->type) {
    case TRACE_EVENTS:
        return copy_events(d, item);
    case TRACE_SAMPLES:
        return copy_samples(d, item);
    case TRACE_PROCESS_END:
        return write_end_of(d, item->process);
    case TRACE_NAMES:
        return copy_names(d, item);
    case TRACE_PAGES:
        return copy_pages(d, item);
    case TRACE_END:
        d->end_stamp = item->end_stamp;
        d->clock_hz = item->clock_hz;
        return 0;
    case TRACE_SESSION:
    case TRACE_PROCESS:
    case TRACE_UNRECORDED:
        break;
    }
    return 0;
}

static int copy_ring(struct dump_work *d)
{
    const struct flight_ring *ring = d->from->ring;
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < ring->n; i++) {
        const struct ring_frame *from = flight_ring_at(ring, i);
        struct frame f = from->frame;
        struct trace_item item;
        rc = frame_reader_unpack(&d->again.frames, &from->stored, &f, d->e);
        if (rc > 0)
            rc = trace_read_frame(&d->again, &f, &item, d->e);
        if (rc > 0)
            rc = copy_item(d, &item);
    }
    return rc < 0 ? rc : 0;
}

static int write_rest(struct dump_work *d)
{
    int rc = d->in_batch ? end_batch(d, d->watermark) : 0;
    for (size_t i = 0; rc == 0 && i < d->from->reader->n_processes; i++) {
        if (d->numbers[i] != NONE && !d->ended[i])
            rc = write_end_of(d, d->from->reader->processes[i]);
    }
    if (rc == 0 && d->again.saw_unrecorded)
        rc = trace_write_unrecorded(d->writer, &d->again.unrecorded, d->e);
    return rc < 0 ? rc : trace_write_end(d->writer, d->end_stamp ? d->end_stamp : d->watermark, d->clock_hz, d->e);
}

int dump_write(const struct dump_source *from, struct output *out, struct dump_result *result, struct err *e)
{
    struct trace_writer writer;
    struct dump_work d = {.from = from, .writer = &writer, .e = e};
    trace_writer_init(&writer, out, FRAME_CODEC_ZSTD, LEVEL);
    d.again = (struct trace_reader){.in = from->reader->in,
                                    .session = from->reader->session,
                                    .processes = from->reader->processes,
                                    .n_processes = from->reader->n_processes};
    frame_reader_init(&d.again.frames, from->reader->in, FRAME_MAGIC_TRACE, TRACE_VERSION);
    int rc = begin(&d);
    if (rc == 0)
        rc = write_start(&d);
    if (rc == 0)
        rc = copy_ring(&d);
    if (rc == 0)
        rc = write_rest(&d);
    uint64_t end = d.end_stamp ? d.end_stamp : d.watermark;
    *result = (struct dump_result){.events = writer.events - d.snapshot.blocks, .blocks = d.snapshot.blocks};
    result->ns = trace_stamp_ns(&from->reader->session, end) - trace_stamp_ns(&from->reader->session, d.start);
    // The processes and the session are the other reader's.
    d.again.processes = NULL;
    d.again.n_processes = 0;
    d.again.session = (struct trace_session){0};
    trace_reader_close(&d.again);
    snapshot_release(&d.snapshot);
    trace_writer_release(&writer);
    free(d.numbers);
    free(d.shifts);
    free(d.ended);
    return rc;
}
