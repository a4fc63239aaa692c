#include "replay/plan_stream.h"
#include "base/buf.h"
#include "replay/plan_ops.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    FIRST_CHUNK_WORDS = 64, // 20,000 threads of a few calls each take 10 MB
    LAST_CHUNK_WORDS = 32768,
    FILE_STEP_WORDS = 1 << 20,
};

int plan_memory_init(struct plan_memory *m, uint64_t limit_bytes, struct err *e)
{
    *m = (struct plan_memory){.fd = -1, .limit = limit_bytes / 8};
    m->fd = memfd_create("heaptape-plan", MFD_CLOEXEC);
    if (m->fd < 0)
        return err_set_errno(e, "cannot make shared memory for the plan");
    void *at = mmap(NULL, m->limit * 8, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, m->fd, 0);
    if (at == MAP_FAILED)
        return err_set_errno(e, "cannot map the plan");
    m->words = at;
    return 0;
}

void plan_memory_release(struct plan_memory *m)
{
    if (m->words)
        munmap(m->words, m->limit * 8);
    if (m->fd >= 0)
        close(m->fd);
    *m = (struct plan_memory){.fd = -1};
}

static int grow_file(struct plan_memory *m, uint64_t want, struct err *e)
{
    uint64_t words = (want + FILE_STEP_WORDS - 1) / FILE_STEP_WORDS * FILE_STEP_WORDS;
    if (words > m->limit)
        words = m->limit;
    if (ftruncate(m->fd, (off_t)(words * 8)) < 0)
        return err_set_errno(e, "cannot grow the plan to %llu bytes", (unsigned long long)words * 8);
    m->in_file = words;
    return 0;
}

int plan_memory_take(struct plan_memory *m, uint64_t n, uint64_t *at, struct err *e)
{
    if (n > m->limit - m->used)
        return err_set(e, -E2BIG, "the plan does not fit into %llu MiB of memory; give more with --memory",
                       (unsigned long long)m->limit >> 17);
    if (m->used + n > m->in_file) {
        int rc = grow_file(m, m->used + n, e);
        if (rc < 0)
            return rc;
    }
    *at = m->used;
    m->used += n;
    return 0;
}

void plan_stream_release(struct plan_stream *s)
{
    free(s->index);
    place_owner_release(&s->places);
    *s = (struct plan_stream){0};
}

// The last word of a chunk is kept for the jump, or for the STOP.
static int add_chunk(struct plan_memory *m, struct plan_stream *s, struct err *e)
{
    uint64_t at, words = s->chunk_words ? s->chunk_words * 2 : FIRST_CHUNK_WORDS;
    if (words > LAST_CHUNK_WORDS)
        words = LAST_CHUNK_WORDS;
    int rc = plan_memory_take(m, words, &at, e);
    if (rc < 0)
        return rc;
    if (s->first)
        m->words[s->next] = (uint64_t)PLAN_JUMP | at << 8;
    else
        s->first = at;
    s->next = at;
    s->end = at + words - 1;
    s->chunk_words = words;
    return 0;
}

int plan_stream_room(struct plan_memory *m, struct plan_stream *s, unsigned n, uint64_t **w, struct err *e)
{
    if (s->end - s->next < n) {
        int rc = add_chunk(m, s, e);
        if (rc < 0)
            return rc;
    }
    *w = m->words + s->next;
    return 0;
}

int plan_stream_number(struct plan_stream *s, unsigned n)
{
    if (s->ops % PLAN_INDEX_OPS == 0) {
        if (array_reserve((void **)&s->index, &s->index_capacity, s->indexed + 1, sizeof *s->index) < 0)
            return -ENOMEM;
        s->index[s->indexed++] = s->next;
    }
    s->ops++;
    s->next += n;
    return 0;
}

void plan_stream_publish(struct plan_memory *m, const struct plan_stream *s, uint64_t op, uint64_t *position)
{
    uint64_t at = s->index[op / PLAN_INDEX_OPS], left = op % PLAN_INDEX_OPS;
    for (;;) {
        uint64_t word = m->words[at];
        enum plan_op code = plan_op_of(word);
        if (code == PLAN_JUMP) {
            at = word >> 8;
            continue;
        }
        if (plan_is_numbered(code) && left-- == 0)
            break;
        at += plan_op_words(word);
    }
    m->words[at] |= PLAN_PUBLISH;
    *position = at + plan_op_words(m->words[at]);
}

uint64_t plan_stream_op_at(const struct plan_memory *m, const struct plan_stream *s, uint64_t position)
{
    size_t i = 0;
    while (i + 1 < s->indexed && s->index[i + 1] < position)
        i++;
    uint64_t op = i * PLAN_INDEX_OPS, at = s->indexed ? s->index[i] : position;
    while (at < position && op < s->ops) {
        uint64_t word = m->words[at];
        if (plan_op_of(word) == PLAN_JUMP) {
            at = word >> 8;
            continue;
        }
        at += plan_op_words(word);
        if (plan_is_numbered(plan_op_of(word)) && at < position)
            op++;
    }
    return op;
}
