#include "report/top/follow.h"

#include "base/buf.h"
#include "base/clock.h"
#include "workload/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int count_call(void *context, const struct walk_call *c)
{
    struct follow *f = context;
    return live_call(f->lives[c->process->number], c);
}

static int note_sample(void *context, const struct trace_sample *s)
{
    struct follow *f = context;
    f->lives[s->process]->rss_bytes = s->rss_bytes;
    return 0;
}

static int end_process(void *context, const struct trace_process *p)
{
    struct follow *f = context;
    live_end(f->lives[p->number]);
    return 0;
}

static void release_counts(struct follow *f)
{
    walk_free(f->walk);
    if (f->walk)
        trace_reader_close(&f->reader);
    for (size_t i = 0; i < f->n_lives; i++)
        live_free(f->lives[i]);
    free(f->lives);
    *f = (struct follow){.in = f->in};
}

// Stores the first bytes of the file. Returns false, and stores nothing, if the file no longer
// begins with the bytes that were stored before. In that case the recording was reset, even if the
// file is now longer than the part that was read.
static bool update_head(struct follow *f)
{
    uint8_t head[FOLLOW_HEAD_BYTES];
    ssize_t n = pread(f->in.fd, head, sizeof head, 0);
    if (n < 0)
        return true;
    if ((size_t)n < f->head_bytes || memcmp(head, f->head, f->head_bytes) != 0)
        return false;
    memcpy(f->head, head, (size_t)n);
    f->head_bytes = (size_t)n;
    return true;
}

static int open_reader(struct follow *f, struct err *e)
{
    f->head_bytes = 0;
    update_head(f);
    int rc = trace_reader_open(&f->reader, &f->in, e);
    if (rc < 0)
        return rc;
    f->how = (struct walk_options){.call = count_call,
                                   .sample = note_sample,
                                   .ended = end_process,
                                   .halves = true,
                                   .context = f};
    f->walk = walk_new(&f->reader, &f->how);
    if (f->walk)
        return 0;
    trace_reader_close(&f->reader);
    return err_no_memory(e, f->in.name);
}

int follow_open(struct follow *f, const char *path, struct err *e)
{
    *f = (struct follow){0};
    int rc = input_open(&f->in, path, e),
        kind = rc < 0 ? 0 : file_sniff(&f->in, FILE_TRACE | FILE_AGGREGATE, e);
    if (kind == FILE_AGGREGATE) {
        input_close(&f->in);
        f->in.name = f->path = path;
        return follow_read_aggregate(f, e);
    }
    rc = kind < 0 ? kind : rc;
    if (rc == 0 && !f->in.size_bytes)
        rc = err_set(e, -ESPIPE, "%s: is not a regular file", f->in.name);
    return rc < 0 ? rc : open_reader(f, e);
}

void follow_close(struct follow *f)
{
    file_stat_release(&f->counts);
    release_counts(f);
    input_close(&f->in);
}

static int add_process(struct follow *f, const struct trace_process *p)
{
    if (HT_GROW(&f->lives, &f->capacity, f->n_lives + 1) < 0)
        return -ENOMEM;
    f->lives[f->n_lives] = live_new(&f->reader.session, p);
    return f->lives[f->n_lives++] ? 0 : -ENOMEM;
}

static int count_item(struct follow *f, const struct trace_item *item)
{
    int rc = 0;
    if (item->type == TRACE_PROCESS)
        rc = add_process(f, item->process);
    else if (item->type == TRACE_NAMES)
        rc = live_names(f->lives[item->process->number], item->names, item->names_bytes);
    else if (item->type == TRACE_EVENTS && item->watermark > f->stamp)
        f->stamp = item->watermark;
    else if (item->type == TRACE_END && item->end_stamp)
        f->stamp = item->end_stamp;
    if (item->type == TRACE_END && item->clock_hz)
        f->reader.session.clock_hz = item->clock_hz;
    f->settled = false;
    return rc < 0 ? rc : walk_feed(f->walk, item);
}

// The kernel grants a read lease only if no process has the file open for writing. If a process
// opens the file while the lease is held, the kernel breaks the lease.
bool follow_is_written(const struct follow *f)
{
    const struct input *in = &f->in;
    if (fcntl(in->fd, F_SETLEASE, F_RDLCK) < 0)
        return true;
    fcntl(in->fd, F_SETLEASE, F_UNLCK);
    return false;
}

// Called when the whole file has been read. If no batch was read since the last call, counts the
// calls that wait for a later batch.
static int reach_end(struct follow *f, bool nothing_new)
{
    bool over = f->reader.saw_end || (nothing_new && !follow_is_written(f));
    f->state = f->reader.saw_end    ? FOLLOW_ENDED
               : over && f->settled ? FOLLOW_CUT_OFF
                                    : FOLLOW_WAITING;
    if (f->settled || !(over || nothing_new))
        return 0;
    f->settled = true;
    return walk_settle(f->walk);
}

// Starts over after the recording was reset (heaptape ctl). Returns 1 if the file has its first
// frame, 0 if not, or a negative errno.
static int start_again(struct follow *f, uint64_t size_bytes, struct err *e)
{
    release_counts(f);
    f->state = FOLLOW_WAITING;
    int rc = input_seek(&f->in, 0, e);
    if (rc < 0 || size_bytes == 0)
        return rc;
    rc = open_reader(f, e);
    return rc == -ENODATA ? 0 : rc < 0 ? rc : 1;
}

static int read_frames(struct follow *f, uint64_t until_ns, struct err *e)
{
    struct trace_item item;
    bool nothing_new = true;
    for (;;) {
        uint64_t at = f->in.offset;
        int rc = trace_next(&f->reader, &item, e);
        if (rc == 0 || rc == -ENODATA) {
            // The last frame may be incomplete: read it again next time.
            rc = input_seek(&f->in, at, e);
            return rc < 0 ? rc : reach_end(f, nothing_new);
        }
        if (rc > 0)
            rc = count_item(f, &item);
        if (rc < 0)
            return rc;
        nothing_new = false;
        f->state = FOLLOW_READING;
        if (clock_monotonic_ns() >= until_ns)
            return 0;
    }
}

int follow_read(struct follow *f, uint64_t until_ns, struct err *e)
{
    struct stat st;
    if (f->state == FOLLOW_ENDED || f->state == FOLLOW_CUT_OFF)
        return 0;
    if (f->path)
        return follow_read_aggregate(f, e);
    if (fstat(f->in.fd, &st) < 0)
        return err_set_errno(e, "%s", f->in.name);
    int rc = 1;
    f->in.size_bytes = (uint64_t)st.st_size;
    if (!f->walk || f->in.size_bytes < f->in.offset || !update_head(f))
        rc = start_again(f, f->in.size_bytes, e);
    if (rc > 0)
        rc = read_frames(f, until_ns, e);
    // The recording may be reset while its frames are read.
    if (rc < 0 && rc != -ENOMEM && f->walk && !update_head(f))
        rc = start_again(f, f->in.size_bytes, e);
    return rc == -ENOMEM ? err_no_memory(e, f->in.name) : rc < 0 ? rc : 0;
}

uint64_t follow_time_ns(const struct follow *f)
{
    return f->path   ? f->counts.duration_ns
           : f->walk ? trace_stamp_ns(&f->reader.session, f->stamp)
                     : 0;
}
