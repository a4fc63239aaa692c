#include "trace/file.h"

#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int open_reader(struct trace_file *t, struct err *e)
{
    int rc = trace_reader_open(&t->reader, &t->in, e);
    t->open = rc == 0;
    if (rc == 0 && t->tail.clock_hz)
        t->reader.session.clock_hz = t->tail.clock_hz;
    return rc;
}

int trace_file_adopt(struct trace_file *t, struct input *in, bool twice, struct err *e)
{
    *t = (struct trace_file){.in = *in};
    *in = (struct input){.fd = -1};
    int rc = twice ? input_make_seekable(&t->in, e) : 0;
    return rc < 0 ? rc : open_reader(t, e);
}

void trace_file_close(struct trace_file *t)
{
    if (t->open)
        trace_reader_close(&t->reader);
    trace_tail_release(&t->tail);
    input_close(&t->in);
    t->open = false;
}

int trace_file_rewind(struct trace_file *t, struct err *e)
{
    if (t->open)
        trace_reader_close(&t->reader);
    t->open = false;
    int rc = input_seek(&t->in, 0, e);
    return rc < 0 ? rc : open_reader(t, e);
}

int trace_file_read_tail(struct trace_file *t, struct err *e)
{
    if (t->tail_read || !t->in.size_bytes)
        return 0;
    int rc = trace_read_tail(&t->in, &t->tail, e);
    t->tail_read = rc >= 0;
    return rc < 0 ? rc : trace_file_rewind(t, e);
}

// The pids of the first processes, for a message.
static int no_process(const struct trace_file *t, uint32_t pid, struct err *e)
{
    char pids[200] = "";
    size_t n = 0;
    for (size_t i = 0; i < t->reader.n_processes && n < sizeof pids - 32; i++)
        n += (size_t)snprintf(pids + n, sizeof pids - n, "%s%u", i ? ", " : "", t->reader.processes[i]->pid);
    if (!pid || !n)
        return err_set(e, -ENOENT, "%s: the trace contains no events", t->in.name);
    return err_set(e, -ENOENT, "%s: the trace contains no events of process %u; it contains processes %s", t->in.name,
                   pid, pids);
}

// By the counts at the end of the file. False if there are none, or none for the pid: reading through finds the message.
static bool choose_by_counts(const struct trace_file *t, uint32_t pid, uint32_t *process)
{
    uint64_t most = 0;
    for (size_t i = 0; i < t->tail.n; i++) {
        const struct trace_count *c = &t->tail.counts[i];
        if ((pid && c->pid != pid) || c->events <= most)
            continue;
        most = c->events;
        *process = c->process;
    }
    return most > 0;
}

// The records of each process by its number, in an array of r->n_processes that the caller frees. Reads all of the trace; one
// that is cut off up to there.
static int count_records(struct trace_reader *r, uint64_t **records, struct err *e)
{
    struct trace_item item;
    size_t capacity = 0;
    int rc;
    *records = NULL;
    while ((rc = trace_next(r, &item, e)) > 0) {
        size_t had = capacity;
        if (HT_GROW(records, &capacity, r->n_processes) < 0)
            return err_set(e, -ENOMEM, "%s: out of memory", r->in->name);
        if (capacity > had)
            memset(*records + had, 0, (capacity - had) * sizeof **records);
        for (size_t i = 0; i < item.n_segments; i++)
            (*records)[item.segments[i].process] += item.segments[i].n_records;
    }
    if (rc == -ENODATA)
        *e = (struct err){0};
    return rc == -ENODATA ? 0 : rc;
}

static int choose_by_reading(struct trace_file *t, uint32_t pid, uint32_t *process, struct err *e)
{
    uint64_t *records, most = 0;
    int rc = count_records(&t->reader, &records, e);
    for (size_t i = 0; rc == 0 && i < t->reader.n_processes; i++) {
        if ((pid && t->reader.processes[i]->pid != pid) || records[i] <= most)
            continue;
        most = records[i];
        *process = (uint32_t)i;
    }
    free(records);
    return rc == 0 && !most ? no_process(t, pid, e) : rc;
}

int trace_file_choose(struct trace_file *t, uint32_t pid, uint32_t *process, size_t *n, struct err *e)
{
    int rc = trace_file_read_tail(t, e);
    *n = t->tail.n;
    if (rc == 0 && !choose_by_counts(t, pid, process)) {
        rc = choose_by_reading(t, pid, process, e);
        *n = t->reader.n_processes;
    }
    return rc == 0 ? trace_file_rewind(t, e) : rc;
}
