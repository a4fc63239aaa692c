#include "trace/join.h"

#include "base/map.h"
#include "trace/fields.h"
#include "trace/reader.h"
#include "trace/renumber.h"
#include "trace/writer.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Added to offsets: a map cannot store 0, and an offset may be negative.
#define SHIFT_BIAS (1ull << 63)

struct piece {
    char *path;
    uint64_t number, recording_ns;
};

// A process of the joined trace.
struct joined {
    uint32_t pid;
    uint64_t start_stamp;
    bool ended;
    // Start of the first segment that contains the process; 0 if the process was recorded from its
    // start.
    uint64_t recorded_from;
    struct trace_process last; // fields of PROCESS_END in the process's last segment
};

struct join {
    const char *path;
    struct piece *pieces;
    size_t n_pieces, pieces_capacity;
    struct joined *processes;
    size_t n_processes, processes_capacity;
    struct map by_start; // maps start_stamp and pid of a process to its index plus 1
    // Maps a stream of the joined trace to the number of its words so far plus 1.
    struct map ends;
    struct trace_writer writer;
    // Current segment.
    struct trace_reader reader;
    // Indexed by process of the segment: number of the process in the joined trace.
    uint32_t *numbers;
    size_t n_numbers, numbers_capacity;
    // Maps a stream of the joined trace to SHIFT_BIAS plus an offset, which is added to word
    // indices.
    struct map shifts;
    bool repeats; // the next batch is omitted, because it only lists blocks and repeats records
    bool in_batch;
    uint64_t watermark;
    uint64_t first_watermark; // watermark of the first batch; UINT64_MAX until the batch has ended
    bool continues;           // another segment follows
    uint64_t end_stamp, clock_hz;
    bool saw_end;
    struct err *e;
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static int add_piece(struct join *j, const char *name)
{
    struct trace_reader r;
    struct input in;
    struct piece *p = NULL;
    if (HT_GROW(&j->pieces, &j->pieces_capacity, j->n_pieces + 1) == 0)
        p = &j->pieces[j->n_pieces];
    if (!p || asprintf(&p->path, "%s/%s", j->path, name) < 0)
        return err_no_memory(j->e, j->path);
    j->n_pieces++;
    int rc = input_open_regular(&in, p->path, j->e);
    if (rc < 0)
        return rc;
    rc = trace_reader_open(&r, &in, j->e);
    if (rc == 0) {
        p->number = r.session.segment;
        p->recording_ns = r.session.recording_ns;
        trace_reader_close(&r);
    }
    input_close(&in);
    return rc == 0 && !p->number
               ? err_set(j->e, -EPROTO, "%s: is not a segment of a recording", p->path)
               : rc;
}

static int compare_numbers(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int find_pieces(struct join *j)
{
    DIR *folder = opendir(j->path);
    if (!folder)
        return err_set_errno(j->e, "%s", j->path);
    int rc = 0;
    for (const struct dirent *d; rc == 0 && (d = readdir(folder));) {
        if (ends_with(d->d_name, ".ht") || ends_with(d->d_name, ".ht.part"))
            rc = add_piece(j, d->d_name);
    }
    closedir(folder);
    if (rc == 0 && !j->n_pieces)
        rc = err_set(j->e, -EISDIR, "%s: is a directory without segments of a recording (NAME.ht)",
                     j->path);
    if (rc < 0)
        return rc;
    qsort(j->pieces, j->n_pieces, sizeof *j->pieces, compare_numbers);
    for (size_t i = 1; i < j->n_pieces; i++) {
        const struct piece *p = &j->pieces[i];
        if (p->recording_ns != p[-1].recording_ns || p->number == p[-1].number)
            return err_set(j->e, -EBADMSG, "%s: belongs to another recording than %s", p->path,
                           p[-1].path);
        if (p->number != p[-1].number + 1)
            return err_set(j->e, -EBADMSG,
                           "%s: segment %llu of the recording is missing (move the later segments "
                           "to another directory to read them)",
                           j->path, (unsigned long long)p[-1].number + 1);
    }
    return 0;
}

// If the joined trace contains the fork that created the process, restores the parent, and omits
// the next batch, which lists the inherited blocks.
static void restore_parent(struct join *j, struct trace_process *p)
{
    uint64_t stamp = p->listed_fork_stamp ? p->listed_fork_stamp : p->start_stamp;
    if (p->listed_from && stamp >= j->first_watermark) {
        j->repeats = true;
        p->forked_from = (uint32_t)p->listed_from;
        p->forked_from_start = p->listed_from_start;
        p->fork_stamp = p->listed_fork_stamp;
        p->inherited_modules = 0;
    }
    p->listed_from = 0;
}

static int put_process(struct join *j, const struct trace_process *p)
{
    struct trace_process of = *p;
    uint64_t key = p->start_stamp << 22 ^ p->pid;
    size_t i = map_get(&j->by_start, key);
    if (HT_GROW(&j->numbers, &j->numbers_capacity, j->n_numbers + 1) < 0 ||
        HT_GROW(&j->processes, &j->processes_capacity, j->n_processes + 1) < 0)
        return err_no_memory(j->e, j->path);
    // Processes with the same key are found by a linear search.
    for (i -= i > 0; i < j->n_processes && (j->processes[i].pid != p->pid ||
                                            j->processes[i].start_stamp != p->start_stamp);)
        i = map_get(&j->by_start, key) ? i + 1 : j->n_processes;
    j->numbers[j->n_numbers++] = (uint32_t)i;
    if (i < j->n_processes)
        return 0;
    restore_parent(j, &of);
    j->processes[j->n_processes++] = (struct joined){.pid = p->pid, .start_stamp = p->start_stamp};
    if (!map_get(&j->by_start, key) && map_put(&j->by_start, key, i + 1) < 0)
        return err_no_memory(j->e, j->path);
    of.number = (uint32_t)i;
    return trace_write_process(&j->writer, &of, j->e);
}

// Skips words that the joined trace already contains. Sets the offset of their stream so that the
// next words of the stream continue the words in the joined trace.
static int skip_segment(struct join *j, const struct trace_segment *s)
{
    uint64_t key = trace_stream_key(s->process, s->thread, s->stream), end = map_get(&j->ends, key);
    uint64_t shift = (end ? end - 1 : 0) - (s->first_word + s->n_words);
    return map_put(&j->shifts, key, shift + SHIFT_BIAS) < 0 ? err_no_memory(j->e, j->path) : 0;
}

static int put_segment(struct join *j, struct trace_segment s)
{
    uint64_t key = trace_stream_key(s.process, s.thread, s.stream),
             shift = map_get(&j->shifts, key), end = map_get(&j->ends, key);
    if (!shift) {
        shift = (end ? end - 1 : 0) + SHIFT_BIAS;
        if (map_put(&j->shifts, key, shift) < 0)
            return err_no_memory(j->e, j->path);
    }
    s.first_word += shift - SHIFT_BIAS;
    int rc = trace_batch_add(&j->writer, &s, j->e);
    return rc == 0 && map_put(&j->ends, key, s.first_word + s.n_words + 1) < 0
               ? err_no_memory(j->e, j->path)
               : rc;
}

static int end_batch(struct join *j, uint64_t watermark)
{
    j->watermark = watermark > j->watermark ? watermark : j->watermark;
    if (j->first_watermark == UINT64_MAX)
        j->first_watermark = j->watermark;
    j->in_batch = false;
    return trace_batch_end(&j->writer, j->watermark, j->e);
}

static int put_events(struct join *j, const struct trace_item *item)
{
    int rc = j->in_batch || j->repeats ? 0 : trace_batch_begin(&j->writer, j->e);
    j->in_batch |= !j->repeats;
    for (size_t i = 0; rc == 0 && i < item->n_segments; i++) {
        struct trace_segment s = item->segments[i];
        s.process = j->numbers[s.process];
        rc = j->repeats ? skip_segment(j, &s) : put_segment(j, s);
    }
    if (rc == 0 && item->batch_ends && !j->repeats)
        rc = end_batch(j, item->watermark);
    j->repeats &= !item->batch_ends;
    return rc;
}

// Handles a PROCESS_END. If the process has exited, the frame contains its data for the whole
// recording. Otherwise, another segment may follow.
static int put_process_end(struct join *j, const struct trace_process *p)
{
    uint32_t number = j->numbers[p->number];
    struct joined *of = &j->processes[number];
    struct trace_process whole = {.number = number, .ended = 1};
    // The next segment repeats the PROCESS_END if some events had not been ordered yet.
    if (of->ended)
        return 0;
    trace_process_release(&of->last);
    if (!p->whole) {
        of->recorded_from = of->recorded_from ? of->recorded_from : p->recorded_from;
        of->last = (struct trace_process){
            .number = number, .ended = 1, .end_stamp = p->end_stamp, .recorded_to = p->recorded_to};
        return 0;
    }
    int rc = fields_get_process(p->whole, p->whole_bytes, &whole);
    whole.number = number;
    of->ended = true;
    rc = rc < 0 ? err_set(j->e, rc, "%s: the end of a process is invalid", j->reader.in->name)
                : trace_write_process_end(&j->writer, &whole, j->e);
    trace_process_release(&whole);
    return rc;
}

static int put_item(struct join *j, const struct trace_item *item)
{
    int rc = j->in_batch && item->type != TRACE_EVENTS ? end_batch(j, j->watermark) : 0;
    if (rc < 0)
        return rc;
    switch (item->type) {
    case TRACE_PROCESS:
        return put_process(j, item->process);
    case TRACE_EVENTS:
        return put_events(j, item);
    case TRACE_SAMPLES:
        return renumber_samples(&j->writer, item, j->numbers, j->e);
    case TRACE_NAMES:
        // In the joined trace, a forked child has only the modules that it loaded after the fork.
        return j->repeats ? 0
                          : renumber_names(&j->writer, item, j->numbers,
                                           -item->process->inherited_modules, j->e);
    case TRACE_PAGES:
        return renumber_pages(&j->writer, item, j->numbers, j->e);
    case TRACE_PROCESS_END:
        return put_process_end(j, item->process);
    case TRACE_END:
        j->saw_end = true;
        j->continues = item->continues;
        j->end_stamp = item->end_stamp;
        j->clock_hz = item->clock_hz;
        return 0;
    case TRACE_UNRECORDED:
        return trace_write_unrecorded(&j->writer, &j->reader.unrecorded, j->e);
    case TRACE_SESSION:
        break;
    }
    return 0;
}

static int put_piece(struct join *j, size_t i)
{
    struct input in;
    struct trace_item item;
    int rc = input_open_regular(&in, j->pieces[i].path, j->e);
    if (rc < 0)
        return rc;
    rc = trace_reader_open(&j->reader, &in, j->e);
    if (rc < 0) {
        input_close(&in);
        return rc;
    }
    j->n_numbers = 0;
    map_release(&j->shifts);
    j->repeats = i > 0;
    j->saw_end = false;
    struct trace_session whole = j->reader.session;
    whole.segment = whole.recording_ns = 0;
    if (i == 0)
        rc = trace_write_session(&j->writer, &whole, j->e);
    int read = 1;
    while (rc == 0 && (read = trace_next(&j->reader, &item, j->e)) > 0)
        rc = put_item(j, &item);
    // The last segment may be truncated or still being written.
    if (rc == 0 && read < 0 && (read != -ENODATA || i + 1 < j->n_pieces))
        rc = read;
    if (rc == 0 && !j->saw_end && i + 1 < j->n_pieces)
        rc = err_set(j->e, -EBADMSG, "%s: is cut off, and another segment follows",
                     j->pieces[i].path);
    if (rc == 0 && j->in_batch)
        rc = end_batch(j, j->watermark);
    trace_reader_close(&j->reader);
    input_close(&in);
    return rc;
}

// Writes the end of the trace. If the recording is still running, omits the end, so that the trace
// looks truncated.
static int put_end(struct join *j)
{
    int rc = 0;
    if (!j->saw_end || j->continues)
        return 0;
    for (size_t i = 0; rc == 0 && i < j->n_processes; i++) {
        struct joined *p = &j->processes[i];
        p->last.recorded_from = p->recorded_from;
        if (!p->ended)
            rc = trace_write_process_end(&j->writer, &p->last, j->e);
    }
    return rc < 0 ? rc : trace_write_end(&j->writer, j->end_stamp, j->clock_hz, j->e);
}

static int join_segments(struct join *j, struct output *out)
{
    enum { LEVEL = 1 };
    int rc = 0;
    trace_writer_init(&j->writer, out, FRAME_CODEC_LZ4, LEVEL);
    for (size_t i = 0; rc == 0 && i < j->n_pieces; i++)
        rc = put_piece(j, i);
    if (rc == 0)
        rc = put_end(j);
    trace_writer_release(&j->writer);
    return rc;
}

int trace_join(struct input *in, const char *path, struct err *e)
{
    struct join j = {.path = path, .first_watermark = UINT64_MAX, .e = e};
    struct output out;
    int rc = find_pieces(&j) ?: output_open_unnamed(&out, e);
    if (rc == 0) {
        rc = join_segments(&j, &out);
        if (rc == 0)
            rc = input_from_output(in, &out, path, e);
        else
            output_close(&out, false, NULL);
    }
    for (size_t i = 0; i < j.n_pieces; i++)
        free(j.pieces[i].path);
    for (size_t i = 0; i < j.n_processes; i++)
        trace_process_release(&j.processes[i].last);
    free(j.pieces);
    free(j.processes);
    free(j.numbers);
    map_release(&j.by_start);
    map_release(&j.ends);
    map_release(&j.shifts);
    return rc;
}
