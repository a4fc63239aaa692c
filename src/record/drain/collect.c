// Writes the trace of a session that was recorded without a recorder.
#include "base/buf.h"
#include "record/drain/drain_private.h"
#include "record/drain/facts.h"
#include "record/record.h"
#include "trace/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SLICE_CHUNKS = 16,
    SLACK = 64, // in units of 10 ns: the processor may reorder stamps by this amount
};

static int check_folder(const struct drain *c, struct err *e)
{
    struct stat st;
    if (fstat(c->dir_fd, &st) < 0)
        return err_set_errno(e, "%s", c->dir);
    if (spool_folder_is_safe(&st, geteuid()))
        return 0;
    if (st.st_uid != geteuid())
        return err_set(e, -EACCES, "%s: belongs to another user: run heaptape as user %ld", c->dir,
                       (long)st.st_uid);
    return err_set(e, -EACCES, "%s: other users can write to it: use mode 700", c->dir);
}

static int open_session(struct drain *c, struct err *e)
{
    struct stat st;
    int inner = stale_find_session(c->dir_fd);
    if (inner >= 0)
        dup3(inner, c->dir_fd, O_CLOEXEC);
    proc_file_close(inner);
    if (check_folder(c, e) < 0)
        return -EACCES;
    int fd = openat(c->dir_fd, SPOOL_SESSION_FILE, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_set(e, -errno, "%s: contains no recording: %s/%s: %s", c->dir, c->dir,
                       SPOOL_SESSION_FILE, strerror(errno));
    void *p = MAP_FAILED;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)sizeof *c->session)
        p = mmap(NULL, sizeof *c->session, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    // If the recorder was killed, the lock is free, so the rest of its session can also be
    // collected.
    bool locked = p != MAP_FAILED && stale_lock(fd) < 0;
    close(fd);
    if (p == MAP_FAILED)
        return err_set(e, -EBADMSG, "%s/%s: is not a session file", c->dir, SPOOL_SESSION_FILE);
    c->session = p;
    c->flags = c->session->flags;
    c->guard = guard_new(p, sizeof *c->session);
    if (!c->guard)
        return err_no_memory(e, NULL);
    if (c->session->magic != SPOOL_SESSION_MAGIC || c->session->stamp_shift != CODEC_STAMP_SHIFT)
        return err_set(e, -EBADMSG, "%s/%s: is not a session file of this version of heaptape",
                       c->dir, SPOOL_SESSION_FILE);
    if (locked)
        return err_set(e, -EBUSY, "%s: a recorder uses this directory", c->dir);
    return 0;
}

static int check_spools(struct drain *c, struct err *e)
{
    for (size_t i = 0; i < c->n_spools; i++) {
        struct drain_spool *s = c->spools[i];
        bool alone = c->flags & SPOOL_NO_RECORDER;
        if (alone && !s->dead && atomic_load(&s->header->control.state) != SPOOL_STOPPED)
            return err_set(e, -EBUSY,
                           "%s: process %ld is still running; stop it with 'heaptape ctl %ld stop'",
                           c->dir, (long)s->visible_pid, (long)s->visible_pid);
        s->dead = true;
    }
    return 0;
}

// Opens a session that was recorded without a recorder, and all spools of the session. Returns 0,
// -EBUSY if a process of the session is still recording, or another negative errno.
static int open_finished(struct drain *c, const char *dir, struct err *e)
{
    *c = (struct drain){.lock_fd = -1, .spare_fds = {-1, -1}, .attached = true, .pending = true};
    guard_install();
    c->dir = strdup(dir);
    c->copy = malloc(sizeof(uint64_t) * SPOOL_CHUNK_WORDS);
    c->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = c->dir && c->copy ? 0 : err_no_memory(e, NULL);
    if (rc == 0 && c->dir_fd < 0)
        rc = err_set_errno(e, "%s", dir);
    rc = rc ?: check_folder(c, e) ?: open_session(c, e) ?: drain_discover(c, e);
    return rc < 0 ? rc : check_spools(c, e);
}

struct drain_slice {
    uint64_t stamp; // first stamp in the chunk
    struct drain_spool *spool;
    struct drain_candidate chunk;
};

struct drain_slices {
    struct drain_slice *items;
    size_t n, capacity;
};

static uint64_t first_stamp(const struct drain *c, const struct drain_spool *s,
                            const struct drain_candidate *k)
{
    struct codec_state state = {k->epoch0, k->base0};
    struct event ev = {0};
    // Decode a copy, because the program may still be running and change the chunk.
    memcpy(c->copy, s->chunks[k->index].words, k->used * sizeof *c->copy);
    for (uint32_t at = 0, used; at < k->used && !ev.kind; at += used) {
        used = codec_get(&state, c->copy + at, k->used - at, &ev);
        if (!used)
            break;
    }
    return ev.kind ? ev.stamp : state.epoch << CODEC_STAMP_BITS;
}

static int add_spool(struct drain *c, struct drain_spool *s, struct drain_slices *all)
{
    int64_t n = drain_scan(c, s);
    if (s->broken)
        return 0;
    if (n < 0 || drain_read_changes(s) == -ENOMEM ||
        HT_GROW(&all->items, &all->capacity, all->n + (size_t)n) < 0)
        return -ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        const struct drain_candidate *k = &c->candidates[i];
        struct drain_slice *slice = &all->items[all->n++];
        *slice = (struct drain_slice){.stamp = first_stamp(c, s, k), .spool = s, .chunk = *k};
        // Keep the chunks of a stream in order, even if their stamps are not in order.
        const struct drain_slice *before = slice - 1;
        if (i > 0 && before->chunk.thread == k->thread && before->chunk.stream == k->stream &&
            before->stamp > slice->stamp)
            slice->stamp = before->stamp;
    }
    return 0;
}

static int by_stamp(const void *a, const void *b)
{
    const struct drain_slice *x = a, *y = b;
    if (x->stamp != y->stamp)
        return x->stamp < y->stamp ? -1 : 1;
    if (x->spool != y->spool)
        return x->spool->number < y->spool->number ? -1 : 1;
    return x->chunk.first_word < y->chunk.first_word ? -1
                                                     : x->chunk.first_word > y->chunk.first_word;
}

struct collector {
    struct drain drain;
    struct trace_writer writer;
    struct record_result *result;
    uint64_t *last_epochs; // by process number
    bool in_batch;
};

static int write_session(struct collector *c, struct err *e)
{
    struct trace_session facts;
    const struct spool_session *session = c->drain.session;
    enum clock_kind clock =
        session->clock_kind <= CLOCK_KIND_CNTVCT ? (enum clock_kind)session->clock_kind : 0;
    if (facts_session(&facts, clock, (char *[]){NULL}) < 0)
        return err_no_memory(e, NULL);
    facts.clock_hz = clock_hz(clock);
    facts.start_stamp = session->start_stamp;
    facts.stack_sample_bytes = session->depth ? session->sample_bytes : 0;
    facts.realtime_ns = session->realtime_ns;
    int rc = trace_write_session(&c->writer, &facts, e);
    trace_session_release(&facts);
    return rc;
}

static int write_processes(struct collector *c, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < c->drain.n_spools && rc == 0; i++) {
        struct trace_process p;
        if (facts_process(&p, c->drain.spools[i]) < 0)
            return err_no_memory(e, NULL);
        rc = trace_write_process(&c->writer, &p, e);
        trace_process_release(&p);
        c->result->processes++;
    }
    return rc;
}

static int write_ends(struct collector *c, struct err *e)
{
    int rc = 0;
    uint64_t end = c->drain.session->start_stamp;
    for (size_t i = 0; i < c->drain.n_spools && rc == 0; i++) {
        struct trace_process p;
        if (facts_process(&p, c->drain.spools[i]) < 0)
            return err_no_memory(e, NULL);
        // The exit of the process was not observed, so use the end of its last epoch.
        if (!p.end_stamp)
            p.end_stamp =
                c->last_epochs[i] ? (c->last_epochs[i] + 1) << CODEC_STAMP_BITS : p.start_stamp;
        facts_window(&p, c->drain.spools[i]);
        end = p.end_stamp > end ? p.end_stamp : end;
        facts_add(c->result, &p);
        rc = trace_write_process_end(&c->writer, &p, e);
        trace_process_release(&p);
    }
    return rc < 0 ? rc : trace_write_end(&c->writer, end, 0, e);
}

static int write_segment(void *ctx, struct drain_spool *s, struct trace_segment *g, struct err *e)
{
    struct collector *c = ctx;
    int rc = c->in_batch ? 0 : trace_batch_begin(&c->writer, e);
    c->in_batch = true;
    rc = rc ?: trace_batch_add(&c->writer, g, e);
    if (rc == 0 && g->epoch_end > c->last_epochs[s->number])
        c->last_epochs[s->number] = g->epoch_end;
    return rc;
}

static int end_batch(struct collector *c, uint64_t watermark, struct err *e)
{
    if (!c->in_batch)
        return 0;
    c->in_batch = false;
    c->result->batches++;
    return trace_batch_end(&c->writer, watermark, e);
}

// Writes the chunks in slices of time, each as a batch.
static int write_chunks(struct collector *c, struct err *e)
{
    const struct drain_sink sink = {.ctx = c, .segment = write_segment};
    struct drain_slices all = {0};
    int rc = 0;
    for (size_t i = 0; i < c->drain.n_spools && rc == 0; i++)
        rc = add_spool(&c->drain, c->drain.spools[i], &all);
    if (rc < 0)
        err_no_memory(e, NULL);
    if (all.n > 1)
        qsort(all.items, all.n, sizeof *all.items, by_stamp);
    for (size_t i = 0; i < all.n && rc == 0; i++) {
        rc = drain_pass_chunk(&c->drain, all.items[i].spool, &all.items[i].chunk, &sink, e);
        bool last = i + 1 == all.n;
        if (rc == 0 && (last || i % SLICE_CHUNKS == SLICE_CHUNKS - 1)) {
            uint64_t next = last ? all.items[i].stamp : all.items[i + 1].stamp;
            rc = end_batch(c, next > SLACK ? next - SLACK : 0, e);
        }
    }
    free(all.items);
    return rc;
}

int record_collect(const char *dir, const struct record_settings *settings, struct output *out,
                   struct record_result *result, struct err *e)
{
    struct collector c = {.result = result};
    *result = (struct record_result){0};
    trace_writer_init(&c.writer, out, settings->codec, settings->level);
    int rc = open_finished(&c.drain, dir, e);
    c.last_epochs = calloc(c.drain.n_spools + 1, sizeof *c.last_epochs);
    if (rc == 0 && !c.last_epochs)
        rc = err_no_memory(e, NULL);
    rc = rc ?: write_session(&c, e) ?: write_processes(&c, e) ?: write_chunks(&c, e);
    rc = rc ?: write_ends(&c, e);
    result->events = c.writer.events;
    trace_writer_release(&c.writer);
    free(c.last_epochs);
    drain_close(&c.drain);
    return rc;
}
