#include "replay/plan/streams.h"
#include "base/buf.h"
#include "replay/plan/ops.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 // Linux 5.14
#endif

enum {
    FIRST_CHUNK_WORDS = 64, // with this size, 20,000 threads with a few calls each use 10 MB
    MAX_CHUNK_WORDS = 32768,
    MAX_CHUNK_SHARE = 64, // at most 1/MAX_CHUNK_SHARE of a window
    FILE_STEP_WORDS = 1 << 20,
};

int plan_memory_init(struct plan_memory *m, uint64_t limit_bytes, struct err *e)
{
    *m = (struct plan_memory){.fd = -1, .limit = limit_bytes / 8};
    m->fd = memfd_create("heaptape-plan", MFD_CLOEXEC);
    if (m->fd < 0)
        return err_set_errno(e, "cannot create shared memory for the plan");
    return 0;
}

void plan_memory_init_windows(struct plan_memory *m, uint64_t *words, uint64_t window_words)
{
    *m = (struct plan_memory){
        .fd = -1, .words = words, .words_at = PLAN_FIRST_WINDOW, .window_words = window_words};
    m->used = m->words_at;
    m->limit = m->used + window_words;
}

void plan_memory_release(struct plan_memory *m)
{
    if (m->fd >= 0) {
        if (m->words)
            munmap(m->words, m->in_file * 8);
        close(m->fd);
    }
    free(m->open);
    *m = (struct plan_memory){.fd = -1};
}

static int grow_file(struct plan_memory *m, uint64_t want, struct err *e)
{
    uint64_t words = (want + FILE_STEP_WORDS - 1) / FILE_STEP_WORDS * FILE_STEP_WORDS;
    if (words > m->limit)
        words = m->limit;
    if (ftruncate(m->fd, (off_t)(words * 8)) < 0)
        return err_set_errno(e, "cannot grow the plan to %llu bytes",
                             (unsigned long long)words * 8);
    void *at = m->words ? mremap(m->words, m->in_file * 8, words * 8, MREMAP_MAYMOVE)
                        : mmap(NULL, words * 8, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    if (at == MAP_FAILED)
        return err_set_errno(e, "cannot map %llu bytes of the plan", (unsigned long long)words * 8);
    m->words = at;
    m->in_file = words;
    return 0;
}

int plan_memory_allocate(struct plan_memory *m, uint64_t n, uint64_t *at, struct err *e)
{
    if (n > m->limit - m->used && m->window_words)
        return -EAGAIN;
    if (n > m->limit - m->used)
        return err_set(e, -E2BIG,
                       "the plan does not fit into %llu KiB of memory (try a larger --memory)",
                       (unsigned long long)m->limit >> 7);
    if (!m->window_words && m->used + n > m->in_file) {
        int rc = grow_file(m, m->used + n, e);
        if (rc < 0)
            return rc;
    }
    *at = m->used;
    m->used += n;
    return 0;
}

static void end_segment(struct plan_stream *s)
{
    struct plan_segment *g = &s->segments[(s->n_segments - 1) % PLAN_WINDOWS];
    *plan_memory_at(s->memory, s->next++) = PLAN_NEXT_SEGMENT; // each chunk reserves this word
    g->end = s->next;
    s->open = false;
    s->next = s->end = s->chunk_words = 0;
    s->index_from = s->ops;
    s->indexed = 0;
}

void plan_memory_close_window(struct plan_memory *m)
{
    for (size_t i = 0; i < m->n_open; i++)
        end_segment(m->open[i]);
}

void plan_memory_next_window(struct plan_memory *m)
{
    m->n_open = 0;
    m->window++;
    m->used = m->words_at = PLAN_FIRST_WINDOW + m->window * m->window_words;
    m->limit = m->used + m->window_words;
}

void plan_stream_release(struct plan_stream *s)
{
    free(s->index);
    free(s->segments);
    slot_table_pool_release(&s->pool);
    *s = (struct plan_stream){0};
}

static uint64_t next_chunk_words(const struct plan_stream *s)
{
    const struct plan_memory *m = s->memory;
    uint64_t words = s->chunk_words ? s->chunk_words * 2 : FIRST_CHUNK_WORDS, max = MAX_CHUNK_WORDS;
    if (m->window_words && m->window_words / MAX_CHUNK_SHARE < max)
        max = m->window_words / MAX_CHUNK_SHARE;
    if (words > max)
        words = max;
    return words < FIRST_CHUNK_WORDS ? FIRST_CHUNK_WORDS : words;
}

static int begin_segment(struct plan_stream *s, uint64_t at, struct err *e)
{
    struct plan_memory *m = s->memory;
    if (m->window_words) {
        if (!s->segments)
            s->segments = calloc(PLAN_WINDOWS, sizeof *s->segments);
        if (!s->segments || HT_GROW(&m->open, &m->open_capacity, m->n_open + 1) < 0)
            return err_no_memory(e, NULL);
        m->open[m->n_open++] = s;
        s->segments[s->n_segments++ % PLAN_WINDOWS] =
            (struct plan_segment){.window = m->window, .first = at, .first_op = s->ops};
    }
    if (!s->first)
        s->first = at;
    s->open = true;
    return 0;
}

// Adds a chunk and reserves its last word for a JUMP, NEXT_SEGMENT or STOP.
static int add_chunk(struct plan_stream *s, struct err *e)
{
    uint64_t at, words = next_chunk_words(s);
    struct plan_memory *m = s->memory;
    int rc = plan_memory_allocate(m, words, &at, e);
    if (rc == 0 && !s->open)
        rc = begin_segment(s, at, e);
    else if (rc == 0)
        *plan_memory_at(m, s->next) = (uint64_t)PLAN_JUMP | (at - s->next - 1) << 8;
    if (rc < 0)
        return rc;
    // One call is cheaper than a page fault for each page. Kernels before 5.14 return an error.
    if (words == MAX_CHUNK_WORDS && !m->window_words)
        madvise((void *)((uintptr_t)(m->words + at) & -(uintptr_t)sysconf(_SC_PAGESIZE)), words * 8,
                MADV_POPULATE_WRITE);
    s->next = at;
    s->end = at + words - 1;
    s->chunk_words = words;
    return 0;
}

int plan_stream_reserve(struct plan_stream *s, unsigned n, uint64_t **w, struct err *e)
{
    if (s->end - s->next < n) {
        int rc = add_chunk(s, e);
        if (rc < 0)
            return rc;
    }
    *w = plan_memory_at(s->memory, s->next);
    return 0;
}

int plan_stream_number(struct plan_stream *s, unsigned n)
{
    if ((s->ops - s->index_from) % PLAN_INDEX_OPS == 0) {
        if (HT_GROW(&s->index, &s->index_capacity, s->indexed + 1) < 0)
            return -ENOMEM;
        s->index[s->indexed++] = s->next;
    }
    s->ops++;
    s->next += n;
    return 0;
}

// Returns the position at which the thread leaves the window that contains the op.
static uint64_t leaves_at(const struct plan_stream *s, uint64_t op)
{
    for (uint64_t i = s->n_segments; i-- > 0 && s->n_segments - i <= PLAN_WINDOWS;) {
        const struct plan_segment *g = &s->segments[i % PLAN_WINDOWS];
        if (op < g->first_op)
            continue;
        // Window w is filled only after all threads have left window w - PLAN_WINDOWS.
        return g->window + PLAN_WINDOWS <= s->memory->window ? 0 : g->end;
    }
    return 0;
}

uint64_t plan_stream_publish(const struct plan_stream *s, uint64_t op)
{
    if (op < s->index_from)
        return leaves_at(s, op);
    op -= s->index_from;
    uint64_t at = s->index[op / PLAN_INDEX_OPS], left = op % PLAN_INDEX_OPS;
    for (;;) {
        uint64_t word = *plan_memory_at(s->memory, at);
        enum plan_op code = plan_op_of(word);
        if (code == PLAN_JUMP) {
            at += 1 + (word >> 8);
            continue;
        }
        if (plan_op_info(code).is_numbered && left-- == 0)
            break;
        at += plan_op_words(word);
    }
    *plan_memory_at(s->memory, at) |= PLAN_PUBLISH;
    return at + plan_op_words(*plan_memory_at(s->memory, at));
}

uint64_t plan_memory_op_at(const struct plan_memory *m, uint64_t at, uint64_t op, uint64_t position)
{
    while (at < position) {
        uint64_t word = *plan_memory_at(m, at);
        enum plan_op code = plan_op_of(word);
        if (code == PLAN_STOP || code == PLAN_NEXT_SEGMENT)
            break;
        at += code == PLAN_JUMP ? 1 + (word >> 8) : plan_op_words(word);
        if (plan_op_info(code).is_numbered && at < position)
            op++;
    }
    return op;
}

uint64_t plan_stream_op_at(const struct plan_stream *s, uint64_t position)
{
    size_t i = 0;
    while (i + 1 < s->indexed && s->index[i + 1] < position)
        i++;
    if (!s->first)
        return 0;
    return plan_memory_op_at(s->memory, s->indexed ? s->index[i] : s->first, i * PLAN_INDEX_OPS,
                             position);
}
