// Writes the trace that churn_mt would have on a machine with a CPU for each thread. The events of
// the threads alternate one by one, which a machine with fewer CPUs never records. usage:
// threads_trace FILE.ht THREADS ITERATIONS
#include "trace/codec.h"
#include "trace/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 10000,
    HANDED = 1024,
    CLASSES = 64,
    STEP_NS = 22,
    BATCH_NS = 2000000,
    WORDS = 1 << 20
};

struct block {
    uint64_t address;
    unsigned size;
};

// Free blocks of one size class, reused last in, first out as in a thread cache.
struct stack {
    uint64_t *at;
    size_t n, capacity;
};

struct thread {
    struct block slots[SLOTS], handed[HANDED]; // blocks passed to this thread
    unsigned head, tail;
    struct stack free[CLASSES];
    uint64_t random, clock, iterations, brk;
    struct codec_state state, fed;
    uint64_t words_before;
    uint64_t *words;
    size_t n_words;
};

static void check(int rc, const struct err *e)
{
    if (rc < 0) {
        fprintf(stderr, "threads_trace: %s\n", e->text);
        exit(1);
    }
}

static uint64_t next(struct thread *t)
{
    uint64_t x = t->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return t->random = x;
}

static unsigned pick(uint64_t r)
{
    unsigned low = 8u << __builtin_ctzll(r | 0x40), size = low + (unsigned)(r >> 20 & (low - 1));
    return size > 1000 ? 1000 : size;
}

static void put(struct thread *t, const struct event *ev)
{
    // Calls are 15 to 30 ns apart.
    t->clock += STEP_NS - 7 + next(t) % 16;
    t->n_words = (size_t)(codec_put(&t->state, t->words + t->n_words, t->clock, ev) - t->words);
}

static struct block allocate(struct thread *t, unsigned size)
{
    struct stack *s = &t->free[(size + 8 + 15) / 16];
    struct block b = {s->n ? s->at[--s->n] : (t->brk += (size + 8 + 15) / 16 * 16), size};
    put(t, &(struct event){.kind = HT_MALLOC, .size = size, .result = b.address});
    return b;
}

static void release(struct thread *t, struct block b)
{
    struct stack *s = &t->free[(b.size + 8 + 15) / 16];
    put(t, &(struct event){.kind = HT_FREE, .ptr = b.address});
    if (s->n == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 64;
        s->at = realloc(s->at, s->capacity * sizeof *s->at);
    }
    s->at[s->n++] = b.address;
}

// Simulates one iteration of churn_mt.
static void iterate(struct thread *t, struct thread *to)
{
    uint64_t r = next(t);
    struct block *slot = &t->slots[(r >> 40) * SLOTS >> 24];
    if (t != to && (r >> 12 & 255) < 51 && to->head - to->tail < HANDED)
        to->handed[to->head++ % HANDED] = *slot;
    else
        release(t, *slot);
    *slot = allocate(t, pick(r));
    if (t->tail != t->head)
        release(t, t->handed[t->tail++ % HANDED]);
    t->iterations--;
}

static void write_batch(struct trace_writer *w, struct thread *threads, unsigned n,
                        uint64_t watermark)
{
    struct err e = {0};
    check(trace_batch_begin(w, &e), &e);
    for (unsigned i = 0; i < n; i++) {
        struct thread *t = &threads[i];
        struct trace_segment s = {.thread = i,
                                  .tid = 100 + i,
                                  .first_word = t->words_before,
                                  .epoch0 = t->fed.epoch,
                                  .base0 = t->fed.base,
                                  .n_words = (uint32_t)t->n_words,
                                  .words = t->words};
        if (t->n_words)
            check(trace_batch_add(w, &s, &e), &e);
        t->words_before += t->n_words;
        t->n_words = 0;
        t->fed = t->state;
    }
    check(trace_batch_end(w, watermark, &e), &e);
}

// Returns the thread with the earliest clock, or NULL if all are done.
static struct thread *earliest(struct thread *threads, unsigned n)
{
    struct thread *best = NULL;
    for (unsigned i = 0; i < n; i++) {
        if (threads[i].iterations && (!best || threads[i].clock < best->clock))
            best = &threads[i];
    }
    return best;
}

int main(int argc, char **argv)
{
    struct output out;
    struct trace_writer w;
    struct err e = {0};
    struct thread *t;
    unsigned n = argc == 4 ? (unsigned)atoi(argv[2]) : 0;
    if (!n) {
        fprintf(stderr, "usage: threads_trace FILE.ht THREADS ITERATIONS\n");
        return 2;
    }
    struct thread *threads = calloc(n, sizeof *threads);
    for (unsigned i = 0; i < n; i++) {
        threads[i].random = 88172645463325252ull * (2 * i + 1) + i;
        threads[i].clock = 1000000 + i;
        threads[i].iterations = strtoull(argv[3], NULL, 0);
        threads[i].brk = 0x7f0000000000 + ((uint64_t)i << 26);
        threads[i].words = malloc(WORDS * sizeof(uint64_t));
        for (unsigned k = 0; k < SLOTS; k++)
            threads[i].slots[k] = allocate(&threads[i], pick(next(&threads[i])));
    }
    check(output_open(&out, argv[1], OUTPUT_FORCE, &e), &e);
    trace_writer_init(&w, &out, FRAME_CODEC_LZ4, 0);
    check(trace_write_session(&w, &(struct trace_session){.clock_hz = 1000000000}, &e), &e);
    check(trace_write_process(&w, &(struct trace_process){.pid = 100}, &e), &e);
    uint64_t watermark = 0;
    while ((t = earliest(threads, n))) {
        if (t->clock > watermark + BATCH_NS) {
            watermark = t->clock;
            write_batch(&w, threads, n, watermark);
        }
        iterate(t, &threads[(unsigned)(t - threads + 1) % n]);
    }
    write_batch(&w, threads, n, watermark);
    check(trace_write_end(&w, watermark + BATCH_NS, 0, &e), &e);
    trace_writer_release(&w);
    check(output_close(&out, true, &e), &e);
    return 0;
}
