#include "record/flight/part.h"

#include "base/buf.h"
#include "trace/fields.h"
#include "trace/renumber.h"

#include <errno.h>
#include <stdlib.h>

enum {
    // Time by which the listed blocks' stamp precedes the pending records. If a thread is preempted
    // between reading the clock and writing its record, the record still follows the block that it
    // frees.
    LATE_NS = 100000000,
};

static int ignore_ops(void *context, const struct workload_thread_op *ops, size_t n)
{
    (void)context, (void)ops, (void)n;
    return 0;
}

// Releases a process that has ended. Otherwise, a recording over several days could accumulate many
// processes.
static int forget_process(void *context, const struct order_counts *counts,
                          const struct workload_sites *sites)
{
    (void)counts, (void)sites;
    trace_process_forget(context);
    return 0;
}

int part_choose_process(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    (void)context;
    *sink = (struct convert_sink){.ops = {.context = (void *)p, .ops = ignore_ops},
                                  .done = forget_process};
    return 1;
}

const struct convert_options part_follow = {
    .choose = part_choose_process, .find_forks = true, .fork_ns = PART_FORK_NS};

static int grow_tables(struct part *part, size_t n)
{
    if (HT_GROW(&part->numbers, &part->numbers_capacity, n) < 0 ||
        HT_GROW(&part->processes, &part->processes_capacity, n) < 0)
        return -ENOMEM;
    for (; part->known < n; part->known++) {
        part->numbers[part->known] = RENUMBER_NONE;
        part->processes[part->known] = (struct part_process){0};
    }
    return 0;
}

// Lowers the watermark below the pending records of a process, and counts late events.
static int settle_process(void *context, const struct convert_unfinished *p)
{
    struct part *part = context;
    const struct snapshot_facts f = snapshot_facts_of(p->order);
    part->watermark = f.stamp <= part->watermark ? f.stamp - 1 : part->watermark;
    part->late += f.late;
    return 0;
}

// Sets the watermark of a segment. All events up to the watermark have been written.
static int settle(struct part *part)
{
    uint64_t before = part->watermark;
    part->watermark = convert_passed(part->from->converter);
    part->late = 0;
    int rc = convert_visit(part->from->converter, settle_process, part);
    part->watermark = part->watermark > before ? part->watermark : before;
    return rc < 0 ? err_no_memory(part->e, part->writer.frames.out->name) : 0;
}

static int number_process(void *context, const struct convert_unfinished *p)
{
    struct part *part = context;
    const struct snapshot_facts f = snapshot_facts_of(p->order);
    part->start = f.stamp < part->start ? f.stamp : part->start;
    part->numbers[p->number] = part->n++;
    part->processes[p->number].shift = f.inherited_modules;
    return 0;
}

static int number_processes(struct part *part)
{
    const struct trace_session *s = &part->from->reader->session;
    uint64_t late = trace_stamps(s, LATE_NS);
    part->passed = convert_passed(part->from->converter);
    part->start = part->watermark = convert_watermark(part->from->converter);
    int rc = grow_tables(part, part->from->reader->n_processes);
    rc = rc ?: convert_visit(part->from->converter, number_process, part);
    part->start = part->start > late && part->start - late > s->start_stamp ? part->start - late
                                                                            : s->start_stamp;
    return rc < 0 ? err_no_memory(part->e, part->writer.frames.out->name) : 0;
}

static int write_session(struct part *part)
{
    const struct part_start *from = part->from;
    struct trace_session s = from->reader->session;
    s.segment = from->segment;
    s.recording_ns = s.realtime_ns;
    s.realtime_ns += trace_stamp_ns(&s, part->start);
    s.start_stamp = part->start;
    s.dumped = from->dumped ? strdup(from->dumped) : NULL;
    int rc = s.dumped || !from->dumped ? trace_write_session(&part->writer, &s, part->e)
                                       : err_no_memory(part->e, part->writer.frames.out->name);
    free(s.dumped);
    return rc;
}

// Writes the PROCESS frame. If a child's blocks already include its parent's blocks, omits the
// parent from the frame, so that readers do not copy the blocks a second time.
static int write_process(void *context, const struct convert_unfinished *p)
{
    struct part *part = context;
    struct trace_process of = *part->from->reader->processes[p->number];
    of.number = part->numbers[p->number];
    of.inherited_modules = part->processes[p->number].shift;
    if (!p->waits) {
        of.forked_from = 0;
        of.forked_from_start = of.fork_stamp = 0;
    }
    return trace_write_process(&part->writer, &of, part->e)
               ?: snapshot_write_names(&part->writer, of.number, p->order, part->e);
}

static int write_blocks(void *context, const struct convert_unfinished *p)
{
    struct part *part = context;
    part->snapshot.process = part->numbers[p->number];
    part->snapshot.pid = part->from->reader->processes[p->number]->pid;
    return snapshot_write(&part->snapshot, p->number, p->order, p->notes, part->e);
}

int part_begin(struct part *part, const struct part_start *from, struct output *out, struct err *e)
{
    *part = (struct part){.from = from, .e = e};
    trace_writer_init(&part->writer, out, from->codec, from->level);
    int rc = number_processes(part) ?: write_session(part);
    rc = rc ?: convert_visit(from->converter, write_process, part);
    part->snapshot.writer = &part->writer;
    part->snapshot.stamp = part->start;
    part->snapshot.in_order = from->segment;
    rc = rc ?: trace_batch_begin(&part->writer, e);
    rc = rc ?: convert_visit(from->converter, write_blocks, part);
    if (rc == 0 && from->segment) {
        part->watermark = 0;
        rc = settle(part);
    }
    part->watermark = part->watermark > part->start ? part->watermark : part->start;
    return rc < 0 ? rc : trace_batch_end(&part->writer, part->watermark, e);
}

static int end_batch(struct part *part, uint64_t watermark)
{
    part->watermark = watermark > part->watermark ? watermark : part->watermark;
    part->in_batch = false;
    return trace_batch_end(&part->writer, part->watermark, part->e);
}

// Returns the stamp at which a child inherited its parent's blocks.
static uint64_t fork_stamp(const struct trace_process *p)
{
    return p->fork_stamp ? p->fork_stamp : p->start_stamp;
}

// Writes a child whose fork precedes the segment, with a list of the blocks that it inherited.
static int write_listed(struct part *part, const struct trace_process *p,
                        const struct convert_unfinished *from)
{
    struct trace_process of = *p;
    of.number = part->numbers[p->number];
    of.listed_from = p->forked_from;
    of.listed_from_start = p->forked_from_start;
    of.listed_fork_stamp = p->fork_stamp;
    of.forked_from = 0;
    of.forked_from_start = of.fork_stamp = 0;
    of.inherited_modules = part->processes[p->number].shift =
        snapshot_facts_of(from->order).inherited_modules;
    int rc = trace_write_process(&part->writer, &of, part->e);
    rc = rc ?: trace_batch_begin(&part->writer, part->e);
    part->snapshot.stamp = fork_stamp(p);
    rc = rc ?: write_blocks(part, from);
    return rc < 0 ? rc : trace_batch_end(&part->writer, part->watermark, part->e);
}

static int write_new(void *context, const struct convert_unfinished *from)
{
    struct part *part = context;
    const struct trace_process *p = part->from->reader->processes[from->number];
    if (p->forked_from && !from->waits && fork_stamp(p) < part->passed &&
        !snapshot_facts_of(from->order).is_empty)
        return write_listed(part, p, from);
    struct trace_process of = *p;
    of.number = part->numbers[p->number];
    return trace_write_process(&part->writer, &of, part->e);
}

static int put_process(struct part *part, const struct trace_process *p)
{
    if (grow_tables(part, p->number + 1ull) < 0)
        return err_no_memory(part->e, part->writer.frames.out->name);
    part->numbers[p->number] = part->n++;
    return convert_visit_one(part->from->converter, p->number, write_new, part);
}

static int put_events(struct part *part, const struct trace_item *item)
{
    int rc = part->in_batch ? 0 : trace_batch_begin(&part->writer, part->e);
    part->in_batch = true;
    for (size_t i = 0; rc == 0 && i < item->n_segments; i++) {
        struct trace_segment s = item->segments[i];
        s.first_word = snapshot_first_word(&part->snapshot, &s);
        s.process = part->numbers[s.process];
        if (s.process != RENUMBER_NONE)
            rc = trace_batch_add(&part->writer, &s, part->e);
    }
    return rc == 0 && item->batch_ends ? end_batch(part, item->watermark) : rc;
}

// Writes the PROCESS_END frame without the totals, which count the whole process. A segment keeps
// the totals in `whole`, so that segments can be joined.
static int write_process_end(struct part *part, const struct trace_process *p, bool ended)
{
    struct trace_process of = *p;
    struct buf whole = {0};
    uint64_t from = p->recorded_to ? p->recorded_from : p->start_stamp;
    of.number = part->numbers[p->number];
    of.recorded_to = p->recorded_to || ended ? p->recorded_to : part->watermark;
    of.recorded_from = from > part->start ? from : part->start;
    if (!of.recorded_to && p->start_stamp < part->start)
        of.recorded_to = p->end_stamp;
    of.end_stamp = ended ? p->end_stamp : part->watermark;
    of.cpu_ns = of.recording_ticks = of.call_min_ticks = of.call_max_ticks = 0;
    of.waits = of.wait_ns = of.lost_records = 0;
    of.peak_rss_bytes = of.recording_growth_bytes = 0;
    part->processes[p->number].ended = true;
    int rc = part->from->segment && ended ? fields_put_process_end(&whole, p) : 0;
    of.whole = whole.data;
    of.whole_bytes = whole.size;
    rc = rc < 0 ? err_no_memory(part->e, part->writer.frames.out->name)
                : trace_write_process_end(&part->writer, &of, part->e);
    buf_release(&whole);
    return rc;
}

int part_item(struct part *part, const struct trace_item *item)
{
    int rc = part->in_batch && item->type != TRACE_EVENTS ? end_batch(part, part->watermark) : 0;
    if (rc == 0 && item->type == TRACE_PROCESS)
        return put_process(part, item->process);
    if (rc < 0 || (item->process && part->numbers[item->process->number] == RENUMBER_NONE))
        return rc;
    switch (item->type) {
    case TRACE_EVENTS:
        return put_events(part, item);
    case TRACE_SAMPLES:
        return renumber_samples(&part->writer, item, part->numbers, part->e);
    case TRACE_PROCESS_END:
        return write_process_end(part, item->process, true);
    case TRACE_NAMES:
        return renumber_names(&part->writer, item, part->numbers,
                              part->processes[item->process->number].shift, part->e);
    case TRACE_PAGES:
        return renumber_pages(&part->writer, item, part->numbers, part->e);
    case TRACE_END:
        part->end_stamp = item->end_stamp;
        part->clock_hz = item->clock_hz;
        return 0;
    case TRACE_SESSION:
    case TRACE_PROCESS:
    case TRACE_UNRECORDED:
        break;
    }
    return 0;
}

static int write_passed(void *context, const struct convert_unfinished *p)
{
    struct part *part = context;
    part->snapshot.process = part->numbers[p->number];
    return snapshot_write_passed(&part->snapshot, p->number, p->order, part->ends, part->e);
}

// Writes the emitted events of all processes as a batch.
static int write_batch(struct part *part)
{
    int rc = trace_batch_begin(&part->writer, part->e);
    rc = rc ?: convert_visit(part->from->converter, write_passed, part);
    return rc < 0 ? rc : trace_batch_end(&part->writer, part->watermark, part->e);
}

int part_put_passed(struct part *part)
{
    uint64_t before = part->watermark, late = part->late;
    int rc = settle(part);
    // First write an empty batch with the previous watermark. Events that are late for a reader of
    // the whole recording are then also late for a reader of this segment.
    if (rc == 0 && late != part->late)
        rc = trace_write_batch(&part->writer, before, NULL, 0, part->e);
    return rc < 0 ? rc : write_batch(part);
}

int part_put_rest(struct part *part)
{
    uint64_t last = convert_watermark(part->from->converter);
    part->watermark = last > part->watermark ? last : part->watermark;
    part->ends = true;
    return write_batch(part);
}

int part_put_end(struct part *part, uint32_t process)
{
    int rc = trace_batch_begin(&part->writer, part->e);
    rc = rc ?: convert_visit_one(part->from->converter, process, write_passed, part);
    rc = rc ?: trace_batch_end(&part->writer, part->watermark, part->e);
    return rc < 0 ? rc : write_process_end(part, part->from->reader->processes[process], true);
}

int part_end(struct part *part, const struct trace_unrecorded *unrecorded, bool continues)
{
    int rc = part->in_batch ? end_batch(part, part->watermark) : 0;
    for (size_t i = 0; rc == 0 && i < part->known; i++) {
        if (part->numbers[i] != RENUMBER_NONE && !part->processes[i].ended)
            rc = write_process_end(part, part->from->reader->processes[i],
                                   !continues && part->from->reader->processes[i]->ended);
    }
    if (rc == 0 && unrecorded)
        rc = trace_write_unrecorded(&part->writer, unrecorded, part->e);
    if (rc == 0 && continues)
        return trace_write_segment_end(&part->writer, part->watermark, part->e);
    uint64_t end = part->end_stamp ? part->end_stamp : part->watermark;
    return rc ?: trace_write_end(&part->writer, end, part->clock_hz, part->e);
}

void part_release(struct part *part)
{
    map_release(&part->snapshot.shifts);
    trace_writer_release(&part->writer);
    free(part->numbers);
    free(part->processes);
}
