#include "commands/trace_file.h"

#include "convert/convert.h"

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

int trace_file_take(struct trace_file *t, struct input *in, bool twice, struct err *e)
{
    *t = (struct trace_file){.in = *in};
    *in = (struct input){.fd = -1};
    int rc = twice ? input_make_seekable(&t->in, e) : 0;
    return rc < 0 ? rc : open_reader(t, e);
}

int trace_file_open(struct trace_file *t, const char *path, bool twice, struct err *e)
{
    struct input in;
    *t = (struct trace_file){.in = {.fd = -1}};
    int rc = input_open(&in, path, e);
    return rc < 0 ? rc : trace_file_take(t, &in, twice, e);
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

int trace_file_tail(struct trace_file *t, struct err *e)
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

// By the counts at the end of the file. False when there are none, or a pid has no events: reading on finds the words for
// it.
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

static int choose(struct trace_file *t, uint32_t pid, uint32_t *process, struct err *e)
{
    uint64_t *records, most = 0;
    int rc = convert_survey(&t->reader, &records, e);
    for (size_t i = 0; rc == 0 && i < t->reader.n_processes; i++) {
        if ((pid && t->reader.processes[i]->pid != pid) || records[i] <= most)
            continue;
        most = records[i];
        *process = (uint32_t)i;
    }
    free(records);
    return rc == 0 && !most ? no_process(t, pid, e) : rc;
}

int trace_file_choose(struct trace_file *t, uint32_t pid, uint32_t *process, size_t *of, struct err *e)
{
    int rc = trace_file_tail(t, e);
    *of = t->tail.n;
    if (rc == 0 && !choose_by_counts(t, pid, process)) {
        rc = choose(t, pid, process, e);
        *of = t->reader.n_processes;
    }
    return rc == 0 ? trace_file_rewind(t, e) : rc;
}
