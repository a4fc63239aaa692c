// Fuzzes the drain with a hostile program: a valid spool, and patches to the spool and the session
// between two drains. The recorder must write a valid trace.
#include "base/frame.h"
#include "convert/walk.h"
#include "record/drain/drain.h"
#include "record/drain/encoder.h"
#include "record/drain/facts.h"

#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CHUNKS = 8, SPOOL_BYTES = SPOOL_HEADER_BYTES + CHUNKS * SPOOL_CHUNK_BYTES, MAX_DRAINS = 16 };

// Targets of a patch. A patch consists of its target (1 byte), the number of its bytes, the
// position (2 bytes), and the bytes.
enum patched {
    PATCH_HEADER,
    PATCH_CHUNK,
    PATCH_WORDS,
    PATCH_SESSION,
    PATCH_TRUNCATE,
    DRAIN,
    PATCHES
};

// State of the program that writes to the spool.
struct program {
    struct spool_session *session;
    char *spool;
    int fd, reserves;
};

struct recording {
    struct drain drain;
    struct encoder *encoder;
    struct output out;
    struct trace_session session;
    uint32_t announced;
    bool in_batch;
};

static void need(bool ok)
{
    if (!ok)
        abort();
}

static void *map_file(int dir, const char *name, int flags, size_t bytes, int *fd)
{
    *fd = openat(dir, name, O_RDWR | O_CLOEXEC | flags, 0600);
    need(*fd >= 0 && (!flags || ftruncate(*fd, (off_t)bytes) == 0));
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    need(at != MAP_FAILED);
    return at;
}

// Creates a spool like capture does, with one chunk in use.
static void program_begin(struct program *p, const struct drain *d)
{
    int session;
    char name[64];
    p->session = map_file(d->dir_fd, SPOOL_SESSION_FILE, 0, sizeof *p->session, &session);
    close(session);
    p->spool = map_file(d->dir_fd, "1-0" SPOOL_FILE_SUFFIX, O_CREAT | O_EXCL, SPOOL_BYTES, &p->fd);
    struct spool_header *h = (struct spool_header *)p->spool;
    struct spool_chunk *c = (struct spool_chunk *)(p->spool + SPOOL_HEADER_BYTES);
    h->pid = 1;
    h->max_chunks = CHUNKS;
    h->fresh_chunks = 2;
    h->status = SPOOL_RUNNING;
    c->state = SPOOL_CHUNK_OWNED;
    c->base0 = 8;
    h->magic = SPOOL_MAGIC;
    snprintf(name, sizeof name, SPOOL_RESERVES_FILE "%lu", (unsigned long)geteuid());
    p->reserves = openat(d->dir_fd, name, O_RDWR | O_CLOEXEC);
    need(p->reserves >= 0);
}

// Unmaps the memory of the program. Does not access it, because a patch may have truncated the
// files.
static void program_end(struct program *p)
{
    munmap(p->spool, SPOOL_BYTES);
    munmap(p->session, sizeof *p->session);
    close(p->fd);
    close(p->reserves);
}

static void write_at(int fd, const uint8_t *data, size_t n, size_t at, size_t limit)
{
    if (at < limit)
        need(pwrite(fd, data, n < limit - at ? n : limit - at, (off_t)at) >= 0);
}

static void patch(struct program *p, enum patched what, unsigned at, const uint8_t *data, size_t n)
{
    size_t chunk = SPOOL_HEADER_BYTES + (size_t)(at >> 8) % CHUNKS * SPOOL_CHUNK_BYTES;
    char *session = (char *)p->session + at;
    switch (what) {
    case PATCH_HEADER:
        write_at(p->fd, data, n, at, SPOOL_HEADER_BYTES);
        break;
    case PATCH_CHUNK:
        write_at(p->fd, data, n, chunk + (at & 63), SPOOL_BYTES);
        break;
    case PATCH_WORDS:
        write_at(p->fd, data, n, chunk + SPOOL_CHUNK_HEADER_BYTES + (at & 255) * sizeof(uint64_t),
                 SPOOL_BYTES);
        break;
    case PATCH_SESSION:
        if (at < sizeof *p->session)
            memcpy(session, data, n < sizeof *p->session - at ? n : sizeof *p->session - at);
        // Other targets patch the user's reserves: the start of the file, and the header of the
        // first reserve.
        else
            write_at(p->reserves, data, n, (at - sizeof *p->session) * 4, 2 * SPOOL_RESERVES_BYTES);
        break;
    case PATCH_TRUNCATE:
        need(ftruncate(p->fd, (off_t)at * 16) == 0);
        break;
    case DRAIN:
    case PATCHES:
        break;
    }
}

static uint64_t *room(void *context, uint32_t n_words, struct err *e)
{
    struct recording *r = context;
    if (!r->in_batch)
        need(encoder_begin_batch(r->encoder, e) == 0);
    r->in_batch = true;
    return encoder_room(r->encoder, n_words, e);
}

static int take_segment(void *context, struct drain_spool *s, struct trace_segment *g,
                        struct err *e)
{
    struct recording *r = context;
    struct encoder_seen seen = {0};
    int rc = encoder_put_segment(r->encoder, g, &seen, e);
    s->events += seen.events;
    return rc;
}

static void put_process(struct recording *r, const struct drain_spool *s, bool end)
{
    struct trace_process p;
    struct err e = {0};
    need(facts_process(&p, s) == 0);
    if (!end) {
        need(encoder_put_process(r->encoder, &p, &e) == 0);
        return;
    }
    facts_window(&p, s);
    need(encoder_put_process_end(r->encoder, &p, &e) == 0);
    trace_process_release(&p);
}

// Runs one pass of the recorder.
static void pass(struct recording *r)
{
    const struct drain_sink sink = {r, room, take_segment};
    struct err e = {0};
    need(drain_discover(&r->drain, &e) >= 0);
    for (; r->announced < r->drain.n_spools; r->announced++)
        put_process(r, r->drain.spools[r->announced], false);
    drain_check_ends(&r->drain);
    need(drain_drain(&r->drain, &sink, &e) == 0);
    for (size_t i = 0; i < r->drain.n_spools; i++) {
        drain_undrained(r->drain.spools[i]);
        drain_count_unmapped(&r->drain, r->drain.spools[i]);
    }
    drain_check_refused(&r->drain, false);
    drain_has_request(&r->drain, SPOOL_SYNC);
    drain_has_request(&r->drain, SPOOL_RESET);
    if (r->in_batch)
        need(encoder_end_batch(r->encoder, 0, &e) == 0);
    r->in_batch = false;
    need(encoder_write_all(r->encoder, &e) == 0);
}

static void recording_begin(struct recording *r)
{
    struct err e = {0};
    *r = (struct recording){.out = {.fd = memfd_create("trace", MFD_CLOEXEC), .name = "trace"}};
    need(drain_open(&r->drain, 0, CLOCK_KIND_MONOTONIC, "", &e) == 0);
    need(facts_session(&r->session, CLOCK_KIND_MONOTONIC, (char *[]){"fuzz", NULL}) == 0);
    r->encoder = encoder_new(&(struct encoder_settings){.out = &r->out,
                                                        .codec = FRAME_CODEC_NONE,
                                                        .session = &r->session},
                             &e);
    need(r->encoder != NULL);
}

static int take_call(void *context, const struct walk_call *call)
{
    (void)context, (void)call;
    return 0;
}

static void check_trace(struct recording *r)
{
    struct err e = {0}, cut = {0};
    struct trace_reader reader;
    const struct walk_options how = {.call = take_call};
    struct input in = {.fd = r->out.fd,
                       .owns_fd = true,
                       .name = "trace",
                       .size_bytes = (uint64_t)lseek(r->out.fd, 0, SEEK_END)};
    need(input_seek(&in, 0, &e) == 0);
    if (trace_reader_open(&reader, &in, &e) < 0 || walk_run(&reader, &how, &cut, &e) < 0 ||
        cut.text[0]) {
        fprintf(stderr, "%s%s\n", e.text, cut.text);
        abort();
    }
    trace_reader_close(&reader);
    input_close(&in);
}

static void recording_end(struct recording *r)
{
    struct err e = {0};
    for (size_t i = 0; i < r->drain.n_spools; i++)
        r->drain.spools[i]->dead = true;
    pass(r);
    for (size_t i = 0; i < r->drain.n_spools; i++)
        put_process(r, r->drain.spools[i], true);
    need(encoder_finish(r->encoder, &(struct trace_unrecorded){0}, 0, &e) == 0);
    encoder_free(r->encoder);
    drain_close(&r->drain);
    trace_session_release(&r->session);
    check_trace(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    enum { HEAD = 4 };
    struct recording r;
    struct program p;
    unsigned drains = 0;
    recording_begin(&r);
    program_begin(&p, &r.drain);
    while (n >= HEAD && drains < MAX_DRAINS) {
        enum patched what = data[0] % PATCHES;
        size_t bytes = data[1] < n - HEAD ? data[1] : n - HEAD;
        if (what == DRAIN) {
            pass(&r);
            drains++;
            bytes = 0;
        }
        patch(&p, what, data[2] | (unsigned)data[3] << 8, data + HEAD, bytes);
        data += HEAD + bytes;
        n -= HEAD + bytes;
    }
    recording_end(&r);
    program_end(&p);
    return 0;
}
