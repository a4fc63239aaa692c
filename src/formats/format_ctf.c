// The Common Trace Format, version 1.8 (diamon.org/ctf): a folder with the text `metadata` and a binary stream a thread,
// for babeltrace2, Trace Compass and their like. Integers are little-endian and aligned to bytes.
#include "base/buf.h"
#include "base/map.h"
#include "formats/ctf_metadata.h"
#include "formats/export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PACKET_BYTES = 1 << 15,  // a packet is written when it holds as many
    PENDING_BYTES = 1 << 25, // and all are when they hold as many together: many threads that do little
};

struct stream {
    uint32_t pid, thread, tid;
    uint64_t begin_ns, last_ns;
    struct buf packet; // the one under work, from its header on; empty: none
};

struct ctf {
    struct map by_thread; // pid, thread → place in streams + 1
    struct stream **streams;
    size_t n, capacity;
    size_t pending; // bytes in packets
};

static int no_memory(struct export *x)
{
    return err_set(x->e, -ENOMEM, "%s: out of memory", x->folder);
}

static int open_in(struct export *x, const char *name, int flags)
{
    char *path;
    if (asprintf(&path, "%s/%s", x->folder, name) < 0)
        return no_memory(x);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
    int rc = fd < 0 ? err_set_errno(x->e, "%s: cannot create", path) : fd;
    free(path);
    return rc;
}

static int write_to(struct export *x, const char *name, int flags, const struct buf *bytes)
{
    int fd = open_in(x, name, flags);
    if (fd < 0)
        return fd;
    struct output out = {.fd = fd, .owns_fd = true, .name = name};
    int rc = output_write(&out, bytes->data, bytes->size, x->e);
    int closed = output_close(&out, true, x->e);
    return rc < 0 ? rc : closed;
}

static int begin_ctf(struct export *x)
{
    struct buf text = {0};
    int rc = ctf_metadata(&text, x->facts.realtime_ns);
    if (rc == 0)
        rc = write_to(x, "metadata", O_TRUNC, &text);
    else
        rc = no_memory(x);
    buf_release(&text);
    return rc;
}

static struct stream *stream_new(struct ctf *f, const struct call *c, uint64_t key)
{
    struct stream *s;
    if (HT_GROW(&f->streams, &f->capacity, f->n + 1) < 0 || !(s = calloc(1, sizeof *s)))
        return NULL;
    *s = (struct stream){.pid = c->pid, .thread = c->thread, .tid = c->tid};
    f->streams[f->n++] = s;
    return map_put(&f->by_thread, key, f->n) < 0 ? NULL : s;
}

static struct stream *stream_of(struct ctf *f, const struct call *c)
{
    uint64_t key = (uint64_t)c->pid << 32 | c->thread;
    uint64_t at = map_get(&f->by_thread, key);
    return at ? f->streams[at - 1] : stream_new(f, c, key);
}

static int begin_packet(struct stream *s)
{
    int rc = buf_resize(&s->packet, CTF_PACKET_HEADER_BYTES);
    s->begin_ns = s->last_ns;
    return rc;
}

// A stream's file is open only while a packet is written: there may be more threads than a process may have open files.
static int write_packet(struct export *x, struct stream *s)
{
    struct ctf *f = x->state;
    char name[64];
    if (!s->packet.size)
        return 0;
    const struct ctf_packet p = {s->begin_ns, s->last_ns, s->packet.size, s->pid, s->tid};
    ctf_packet_header(s->packet.data, &p);
    snprintf(name, sizeof name, "stream_%u_%u", s->pid, s->thread);
    int rc = write_to(x, name, O_APPEND, &s->packet);
    f->pending -= s->packet.size;
    s->packet.size = 0;
    return rc;
}

static int write_all(struct export *x)
{
    struct ctf *f = x->state;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < f->n; i++) {
        rc = write_packet(x, f->streams[i]);
        buf_release(&f->streams[i]->packet);
    }
    return rc;
}

static int put_ctf(struct export *x, const struct call *c)
{
    struct ctf *f = x->state;
    struct stream *s = stream_of(f, c);
    struct event ev = c->ev;
    if (!s)
        return no_memory(x);
    ev.ptr = export_address(x, ev.ptr);
    ev.result = export_address(x, ev.result);
    // The order of a stream's events is that of their stamps.
    s->last_ns = ev.stamp > s->last_ns ? ev.stamp : s->last_ns;
    ev.stamp = s->last_ns;
    size_t had = s->packet.size;
    if ((!had && begin_packet(s) < 0) || buf_reserve(&s->packet, CTF_EVENT_MAX_BYTES) < 0)
        return no_memory(x);
    s->packet.size += ctf_event(s->packet.data + s->packet.size, &ev);
    f->pending += s->packet.size - had;
    int rc = 0;
    if (s->packet.size >= PACKET_BYTES || ev.kind == HT_THREAD_END)
        rc = write_packet(x, s);
    if (ev.kind == HT_THREAD_END)
        buf_release(&s->packet);
    return rc == 0 && f->pending > PENDING_BYTES ? write_all(x) : rc;
}

static void release_ctf(struct export *x)
{
    struct ctf *f = x->state;
    for (size_t i = 0; i < f->n; i++) {
        buf_release(&f->streams[i]->packet);
        free(f->streams[i]);
    }
    free(f->streams);
    map_release(&f->by_thread);
}

const struct format format_ctf = {
    .name = "ctf",
    .holds = FORMAT_HOLDS_STAMPS | FORMAT_HOLDS_PIDS | FORMAT_HOLDS_TIDS | FORMAT_HOLDS_FAILED | FORMAT_HOLDS_FREED |
             FORMAT_HOLDS_NULL | FORMAT_HOLDS_ADDRESSES,
    .folder = true,
    .state_bytes = sizeof(struct ctf),
    .begin = begin_ctf,
    .put = put_ctf,
    .end = write_all,
    .release = release_ctf,
};
