#include "replay/plan/saved.h"
#include "base/buf.h"
#include "replay/plan/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define SAVED_MAGIC 0x31766173706874ull // "thpsav1"

// The saved members of struct plan. The arrays follow this struct.
struct saved_tail {
    struct plan_facts facts;
    uint64_t words; // size of the plan's own file in words
    uint64_t n_streams, n_recorded, n_points, n_samples;
};

// The saved members of struct plan_stream. If `first` is 0, the thread has no ops.
struct saved_stream {
    uint64_t first, ops, n_segments, counted_events, live_change;
    struct plan_span span;
};

// Last bytes of the file.
struct saved_trailer {
    uint64_t magic;
    struct plan_key key;
    uint64_t words_at, words_hash, tail_at, tail_hash;
    uint64_t hash; // XXH3 of the preceding members
};

// Arrays that follow a struct saved_tail.
struct saved_arrays {
    struct saved_stream *streams;
    struct plan_recorded_sample *recorded;
    struct plan_live_point *points;
    struct plan_window *windows;
    uint64_t *samples;
};

static int put_stream(struct buf *b, const struct plan_stream *s)
{
    struct saved_stream saved = {0};
    if (s && s->first)
        saved = (struct saved_stream){.first = s->first,
                                      .ops = s->ops,
                                      .n_segments = s->n_segments,
                                      .counted_events = s->counted_events,
                                      .live_change = (uint64_t)s->live_change,
                                      .span = s->span};
    return buf_put(b, &saved, sizeof saved);
}

static int put_tail(struct buf *b, const struct plan *p)
{
    struct saved_tail t = {.facts = p->facts,
                           .words = p->memory.used,
                           .n_streams = p->n_streams,
                           .n_recorded = p->n_recorded,
                           .n_points = p->n_points,
                           .n_samples = p->facts.streamed ? p->facts.samples : 0};
    int rc = buf_put(b, &t, sizeof t);
    for (size_t i = 0; rc == 0 && i < p->n_streams; i++)
        rc = put_stream(b, p->streams[i]);
    rc = rc
             ?: buf_put(b, p->recorded, p->n_recorded * sizeof *p->recorded)
             ?: buf_put(b, p->points, p->n_points * sizeof *p->points)
             ?: buf_put(b, p->windows, p->facts.windows * sizeof *p->windows);
    return rc < 0 ? rc : buf_put(b, p->samples, t.n_samples * sizeof *p->samples);
}

int plan_save(const struct plan *p, const struct plan_key *key, struct output *out, struct err *e)
{
    static const char zeros[PLAN_FILE_STEP];
    struct buf tail = {0};
    struct saved_trailer t = {.magic = SAVED_MAGIC, .key = *key};
    uint64_t bytes = p->memory.used * 8, padding = -out->offset % PLAN_FILE_STEP;
    int rc = put_tail(&tail, p) < 0 ? err_no_memory(e, NULL) : 0;
    if (rc == 0 && padding)
        rc = output_write(out, zeros, padding, e);
    t.words_at = out->offset;
    t.words_hash = XXH3_64bits(p->memory.words, bytes);
    t.tail_at = t.words_at + bytes;
    t.tail_hash = XXH3_64bits(tail.data, tail.size);
    t.hash = XXH3_64bits(&t, offsetof(struct saved_trailer, hash));
    rc = rc
             ?: output_write(out, p->memory.words, bytes, e)
             ?: output_write(out, tail.data, tail.size, e)
             ?: output_write(out, &t, sizeof t, e);
    buf_release(&tail);
    return rc;
}

static int refuse_saved(const char *name, const char *what, struct err *e)
{
    return err_set(e, -EBADMSG, "%s: its saved plan: %s", name, what);
}

// A file with a saved plan, and its trailer.
struct saved_file {
    const char *name;
    int fd;
    uint64_t end; // offset of the trailer
    struct saved_trailer trailer;
};

// Reads the trailer. Returns false if the file cannot be read or is too short.
static bool get_trailer(struct saved_file *f)
{
    struct stat st;
    const size_t n = sizeof f->trailer;
    if (fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)n)
        return false;
    f->end = (uint64_t)st.st_size - n;
    return pread(f->fd, &f->trailer, n, (off_t)f->end) == (ssize_t)n;
}

static int read_trailer(struct saved_file *f, const struct plan_key *key, struct err *e)
{
    const struct saved_trailer *t = &f->trailer;
    if (!get_trailer(f))
        return refuse_saved(f->name, "cut off", e);
    if (t->magic != SAVED_MAGIC || t->hash != XXH3_64bits(t, offsetof(struct saved_trailer, hash)))
        return refuse_saved(f->name, "no trailer", e);
    if (key && memcmp(key, &t->key, sizeof *key) != 0)
        return refuse_saved(f->name, "of another workload", e);
    if (t->words_at % PLAN_FILE_STEP || t->words_at > t->tail_at || t->tail_at > f->end ||
        f->end - t->tail_at < sizeof(struct saved_tail))
        return refuse_saved(f->name, "wrong sizes", e);
    return 0;
}

// Returns the next n elements in the tail, or NULL if the tail is too short.
static void *next_array(const uint8_t **at, const uint8_t *end, uint64_t n, size_t size)
{
    void *array = (void *)(uintptr_t)*at;
    if (n > (size_t)(end - *at) / size)
        return NULL;
    *at += n * size;
    return array;
}

static bool split_tail(const struct saved_tail *t, const uint8_t *at, const uint8_t *end,
                       struct saved_arrays *a)
{
    return (a->streams = next_array(&at, end, t->n_streams, sizeof *a->streams)) &&
           (a->recorded = next_array(&at, end, t->n_recorded, sizeof *a->recorded)) &&
           (a->points = next_array(&at, end, t->n_points, sizeof *a->points)) &&
           (a->windows = next_array(&at, end, t->facts.windows, sizeof *a->windows)) &&
           (a->samples = next_array(&at, end, t->n_samples, sizeof *a->samples)) && at == end;
}

// Returns a copy of an array, which may be empty, or NULL when out of memory.
static void *copy_array(const void *array, size_t n, size_t size)
{
    void *copy = calloc(n + 1, size);
    if (copy)
        memcpy(copy, array, n * size);
    return copy;
}

static int load_streams(struct plan *p, const struct saved_stream *saved, struct err *e)
{
    p->streams = calloc(p->n_streams + 1, sizeof(struct plan_stream *));
    for (size_t i = 0; p->streams && i < p->n_streams; i++) {
        if (!saved[i].first)
            continue;
        struct plan_stream *s = p->streams[i] = calloc(1, sizeof *s);
        if (!s)
            return err_no_memory(e, NULL);
        *s = (struct plan_stream){.memory = &p->memory,
                                  .number = (uint32_t)i,
                                  .first = saved[i].first,
                                  .ops = saved[i].ops,
                                  .n_segments = saved[i].n_segments,
                                  .counted_events = saved[i].counted_events,
                                  .live_change = (int64_t)saved[i].live_change,
                                  .span = saved[i].span};
    }
    return p->streams ? 0 : err_no_memory(e, NULL);
}

// Returns true if all four bytes are valid bool values.
static bool are_flags(const void *a, const void *b, const void *c, const void *d)
{
    return ((*(const uint8_t *)a | *(const uint8_t *)b | *(const uint8_t *)c |
             *(const uint8_t *)d) &
            ~1) == 0;
}

static int load_tail(struct plan *p, const uint8_t *tail, size_t n, struct err *e)
{
    struct saved_tail t;
    struct saved_arrays a;
    const struct plan_facts *f = &((const struct saved_tail *)tail)->facts;
    if (!are_flags(&f->one_thread, &f->touch_zeroed, &f->streamed, &f->unproved))
        return refuse_saved(p->name, "wrong flags", e);
    memcpy(&t, tail, sizeof t);
    if (!split_tail(&t, tail + sizeof t, tail + n, &a) || t.n_streams > PLAN_MAX_THREADS ||
        (t.n_samples && t.n_samples != t.facts.samples))
        return refuse_saved(p->name, "wrong counts", e);
    p->facts = t.facts;
    p->n_streams = t.n_streams;
    p->n_recorded = p->n_passed = t.n_recorded;
    p->n_points = t.n_points;
    p->memory.used = p->memory.limit = p->memory.in_file = t.words;
    p->recorded = copy_array(a.recorded, t.n_recorded, sizeof *a.recorded);
    p->points = copy_array(a.points, t.n_points, sizeof *a.points);
    p->windows = copy_array(a.windows, t.facts.windows, sizeof *a.windows);
    p->samples = copy_array(a.samples, t.n_samples, sizeof *a.samples);
    p->n_samples = t.n_samples;
    if (!p->recorded || !p->points || !p->windows || !p->samples)
        return err_no_memory(e, NULL);
    return load_streams(p, a.streams, e);
}

static int read_tail(struct plan *p, const struct saved_file *f, struct err *e)
{
    size_t n = f->end - f->trailer.tail_at;
    uint8_t *tail = malloc(n);
    int rc = tail ? plan_read_at(p, tail, n, f->trailer.tail_at, e) : err_no_memory(e, NULL);
    if (rc == 0 && XXH3_64bits(tail, n) != f->trailer.tail_hash)
        rc = refuse_saved(p->name, "checksum mismatch", e);
    if (rc == 0)
        rc = load_tail(p, tail, n, e);
    free(tail);
    return rc;
}

static int map_words(struct plan *p, const struct saved_trailer *t, struct err *e)
{
    uint64_t bytes = t->tail_at - t->words_at;
    if (p->memory.used != bytes / 8 || bytes % 8 || bytes < sizeof(struct plan_header))
        return refuse_saved(p->name, "wrong number of words", e);
    if (bytes > p->memory_bytes)
        return err_set(e, -E2BIG, "%s: the plan does not fit into memory", p->name);
    void *at =
        mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, p->memory.fd, (off_t)t->words_at);
    if (at == MAP_FAILED)
        return err_set_errno(e, "%s: cannot map its saved plan", p->name);
    p->memory.words = at;
    p->facts.file_at = t->words_at;
    p->facts.own_bytes = bytes;
    if (XXH3_64bits(at, bytes) != t->words_hash)
        return refuse_saved(p->name, "checksum mismatch", e);
    return 0;
}

int plan_load(struct plan **out, const char *name, const struct plan_settings *settings,
              const struct plan_key *key, int fd, struct err *e)
{
    struct saved_file f = {.name = name, .fd = fd};
    struct plan *p = calloc(1, sizeof *p);
    if (!p)
        return err_no_memory(e, NULL);
    p->name = name;
    p->settings = *settings;
    p->settings.file = NULL;
    p->memory_bytes = settings->memory_bytes / (settings->streamed ? 2 : 1);
    p->memory.fd = fd;
    p->ring.fd = -1;
    int rc = read_trailer(&f, key, e) ?: read_tail(p, &f, e) ?: map_words(p, &f.trailer, e);
    if (rc == 0 && !plan_check(p))
        rc = refuse_saved(p->name, "invalid ops", e);
    if (rc < 0) {
        // On failure, the caller keeps the descriptor.
        if (p->memory.words)
            munmap(p->memory.words, p->memory.in_file * 8);
        p->memory.words = NULL;
        p->memory.fd = -1;
        plan_free(p);
        return rc;
    }
    *out = p;
    return 0;
}

bool plan_is_saved(int fd)
{
    struct saved_file f = {.fd = fd};
    return get_trailer(&f) && f.trailer.magic == SAVED_MAGIC;
}

static int refuse_bytes(const struct saved_file *f, const char *what, uint64_t at, struct err *e)
{
    return err_set(e, -EBADMSG, "%s: %s byte %llu", f->name, what, (unsigned long long)at);
}

// Verifies the checksums of the bytes of `f` before the trailer.
static int verify_checksums(const struct saved_file *f, const uint8_t *bytes, struct err *e)
{
    struct saved_tail tail;
    struct saved_arrays a;
    const struct saved_trailer *t = &f->trailer;
    const uint8_t *at = bytes + t->tail_at;
    if (XXH3_64bits(bytes + t->words_at, t->tail_at - t->words_at) != t->words_hash)
        return refuse_bytes(f, "checksum mismatch after", t->words_at, e);
    if (XXH3_64bits(at, f->end - t->tail_at) != t->tail_hash)
        return refuse_bytes(f, "checksum mismatch after", t->tail_at, e);
    memcpy(&tail, at, sizeof tail);
    if (!split_tail(&tail, at + sizeof tail, bytes + f->end, &a))
        return refuse_bytes(f, "wrong counts, at", t->tail_at, e);
    for (uint64_t i = 0; tail.facts.streamed && i < tail.facts.windows; i++) {
        const struct plan_window *w = &a.windows[i];
        if (w->at > t->words_at || w->words > (t->words_at - w->at) / 8 ||
            XXH3_64bits(bytes + w->at, w->words * 8) != w->hash)
            return refuse_bytes(f, "checksum mismatch after", w->at, e);
    }
    return 0;
}

int plan_verify(const char *name, int fd, struct err *e)
{
    struct saved_file f = {.name = name, .fd = fd};
    int rc = read_trailer(&f, NULL, e);
    if (rc < 0)
        return rc;
    void *bytes = mmap(NULL, f.end, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return err_set_errno(e, "%s", name);
    rc = verify_checksums(&f, bytes, e);
    munmap(bytes, f.end);
    return rc;
}
