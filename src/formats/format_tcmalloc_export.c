// Writes the raw trace of gperftools' wip-malloc-tracing. Calls come in a total order, and so the buffers stand: each has
// the calls of a thread up to one of another thread.
#include "base/buf.h"
#include "base/bytes.h"
#include "base/varint.h"
#include "formats/format_tcmalloc.h"

#include <errno.h>
#include <stdlib.h>

enum {
    TOKENS_A_RANGE = 1024,   // a thread numbers its allocations in ranges of so many
    MAX_BUFFER_BYTES = 4096, // of a thread's events
    NO_TIME_STEP = 1, // without timestamps, each call is so many units of time after the one before
};

// What the deltas of a thread's events are to.
struct tcmalloc_writer {
    uint64_t size_units, freed, next_token;
    unsigned tokens_left; // of its range
};

// The number of trailing zero bits of the first byte is the length less one; a zero byte announces 8 bytes.
static uint8_t *put_number(uint8_t *to, uint64_t v)
{
    unsigned bytes = v ? ((unsigned)(63 - __builtin_clzll(v))) / 7 + 1 : 1;
    uint8_t word[8];
    if (bytes >= TCMALLOC_NUMBER_BYTES) {
        *to = 0;
        put_u64(to + 1, v);
        return to + TCMALLOC_NUMBER_BYTES;
    }
    put_u64(word, v << bytes | 1ull << (bytes - 1));
    memcpy(to, word, bytes);
    return to + bytes;
}

static int no_memory(struct export *x)
{
    return err_set(x->e, -ENOMEM, "%s: out of memory", x->out.out->name);
}

static uint64_t thread_id(uint32_t thread)
{
    return thread + 1ull;
}

static void flush(struct export *x)
{
    struct tcmalloc_export *t = x->state;
    if (!t->events.size)
        return;
    uint8_t *to = export_buffer_reserve(&x->out, 3 * (size_t)TCMALLOC_NUMBER_BYTES);
    to = put_number(to, thread_id(t->thread) << TCMALLOC_TYPE_BITS | TCMALLOC_BUFFER);
    to = put_number(to, t->ts);
    to = put_number(to, t->events.size);
    export_buffer_commit(&x->out, to);
    export_buffer_put(&x->out, t->events.data, t->events.size);
    t->events.size = 0;
}

// An event of the buffer: its numbers, and whether it has the second one.
static int put_event(struct export *x, uint64_t first, bool two, uint64_t second)
{
    struct tcmalloc_export *t = x->state;
    if (buf_reserve(&t->events, 2 * (size_t)TCMALLOC_NUMBER_BYTES) < 0)
        return no_memory(x);
    uint8_t *to = put_number(t->events.data + t->events.size, first);
    to = two ? put_number(to, second) : to;
    t->events.size = (size_t)(to - t->events.data);
    return 0;
}

// The thread's next token, as that of the block.
static int give_token(struct export *x, struct tcmalloc_writer *w, uint64_t block)
{
    struct tcmalloc_export *t = x->state;
    int rc = 0;
    if (HT_EXTEND(&t->tokens, &t->n_tokens, &t->tokens_capacity, block + 1) < 0)
        return no_memory(x);
    if (!w->tokens_left) {
        w->next_token = t->next_token;
        w->tokens_left = TOKENS_A_RANGE;
        t->next_token += TOKENS_A_RANGE;
        rc = put_event(x, w->next_token << TCMALLOC_TYPE_BITS | TCMALLOC_TOKENS, true, t->ts);
    }
    t->tokens[block] = w->next_token++;
    w->tokens_left--;
    return rc;
}

// The change of the size, modulo what the bits above a type hold.
static uint64_t size_change(struct tcmalloc_writer *w, uint64_t bytes)
{
    uint64_t units = bytes / TCMALLOC_SIZE_UNIT + (bytes % TCMALLOC_SIZE_UNIT != 0);
    uint64_t change = zigzag_put((int64_t)(units - w->size_units));
    w->size_units = units;
    return change;
}

static uint64_t freed_change(const struct export *x, struct tcmalloc_writer *w, uint64_t block)
{
    const struct tcmalloc_export *t = x->state;
    uint64_t token = block < t->n_tokens ? t->tokens[block] : 0;
    uint64_t change = zigzag_put((int64_t)(token - w->freed));
    w->freed = token;
    return change;
}

static int put_call(struct export *x, struct tcmalloc_writer *w, const struct event *ev)
{
    uint64_t freed = ev->ptr ? freed_change(x, w, ev->ptr) : 0;
    if (ev->kind == HT_FREE)
        return put_event(x, freed << TCMALLOC_TYPE_BITS | TCMALLOC_FREE, false, 0);
    int rc = give_token(x, w, ev->result);
    if (rc < 0)
        return rc;
    // A realloc of 0 bytes would only free.
    uint64_t size = size_change(w, ev->kind == HT_REALLOC && ev->ptr && !ev->size ? 1 : ev->size);
    if (ev->kind == HT_REALLOC && ev->ptr)
        return put_event(x, size << TCMALLOC_LONG_TYPE_BITS | TCMALLOC_REALLOC, true, freed);
    if (ev->kind == HT_MEMALIGN)
        return put_event(x, size << TCMALLOC_LONG_TYPE_BITS | TCMALLOC_MEMALIGN, true,
                         export_power_of_two(ev->align));
    return put_event(x, size << TCMALLOC_TYPE_BITS | TCMALLOC_MALLOC, false, 0);
}

static void put_death(struct export *x, uint32_t thread)
{
    struct tcmalloc_export *t = x->state;
    flush(x);
    uint8_t *to = export_buffer_reserve(&x->out, 2 * (size_t)TCMALLOC_NUMBER_BYTES);
    to = put_number(to, thread_id(thread) << TCMALLOC_LONG_TYPE_BITS | TCMALLOC_DEATH);
    to = put_number(to, t->ts);
    export_buffer_commit(&x->out, to);
    t->threads[thread] = (struct tcmalloc_writer){0};
}

int tcmalloc_begin(struct export *x)
{
    uint8_t *to = export_buffer_reserve(&x->out, 4);
    put_u32(to, TCMALLOC_MAGIC);
    export_buffer_commit(&x->out, to + 4);
    return 0;
}

int tcmalloc_put(struct export *x, const struct export_call *c)
{
    struct tcmalloc_export *t = x->state;
    if (HT_EXTEND(&t->threads, &t->n, &t->capacity, c->thread + 1ull) < 0)
        return no_memory(x);
    if (t->thread != c->thread || t->events.size >= MAX_BUFFER_BYTES)
        flush(x);
    t->thread = c->thread;
    t->calls += NO_TIME_STEP;
    t->ts = (x->facts.has_stamps ? c->ev.stamp >> TCMALLOC_CPU_BITS : t->calls)
            << TCMALLOC_CPU_BITS;
    if (c->ev.kind != HT_THREAD_END)
        return put_call(x, &t->threads[c->thread], &c->ev);
    put_death(x, c->thread);
    return 0;
}

int tcmalloc_end(struct export *x)
{
    flush(x);
    uint8_t *to = export_buffer_reserve(&x->out, TCMALLOC_NUMBER_BYTES);
    export_buffer_commit(&x->out, put_number(to, TCMALLOC_END));
    return 0;
}

void tcmalloc_release(struct export *x)
{
    struct tcmalloc_export *t = x->state;
    free(t->threads);
    free(t->tokens);
    buf_release(&t->events);
}
