// Both sides of a streamed plan in heaptape: the ring of windows that a plan writes its ops to, and the decoder thread
// that fills it for the player.
#include "plan/streaming.h"
#include "base/clock.h"
#include "plan/build.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MIN_WINDOW_WORDS = 2048,
    // Big enough that a thread far ahead of the others seldom waits for them.
    MAX_WINDOW_WORDS = 4 << 20,
    WINDOW_STEP_WORDS = 512,
};

// Half of the memory allowed is for the ring.
static uint64_t window_words(uint64_t memory_bytes)
{
    uint64_t words = memory_bytes / 2 / PLAN_WINDOWS / 8 / WINDOW_STEP_WORDS * WINDOW_STEP_WORDS;
    if (words > MAX_WINDOW_WORDS)
        return MAX_WINDOW_WORDS;
    return words < MIN_WINDOW_WORDS ? MIN_WINDOW_WORDS : words;
}

int plan_ring_new(struct plan *p, struct err *e)
{
    uint64_t words = window_words(p->settings.memory_bytes);
    p->facts.window_bytes = words * 8;
    if (p->scanned)
        return 0;
    p->scratch = calloc(words, 8);
    if (!p->scratch)
        return plan_no_memory(e);
    plan_memory_init_ring(&p->ring, p->scratch, 1, words, 1);
    return 0;
}

struct streaming {
    const struct plan *scanned;
    const struct streaming_source *source;
    struct plan *plan; // the second pass
    int fd;
    struct plan_streaming *head;
    size_t bytes;
    pthread_t thread;
    bool started;
    _Atomic bool stopped; // the player has ended
    _Atomic bool done;    // there is nothing left to decode
    uint64_t idle_ns;
    int rc;
    struct err e;
};

// The player is another process, so these futexes are not private.
static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void set_ready(struct streaming *s)
{
    if (!atomic_exchange(&s->head->ready, 1))
        futex_wake(&s->head->ready);
}

// Hands the window to the threads that have ops in it, which are m->open.
static void hand_over(struct streaming *s, const struct plan_memory *m)
{
    atomic_store(&s->head->left[m->window % PLAN_WINDOWS], (uint32_t)m->n_open);
    for (size_t i = 0; i < m->n_open; i++) {
        const struct plan_stream *stream = m->open[i];
        struct plan_streaming_thread *t = &s->head->threads[stream->number];
        uint64_t n = stream->n_segments - 1;
        t->segments[n % PLAN_WINDOWS] = stream->segments[n % PLAN_WINDOWS].first;
        // Pairs with player_next_segment(): either the thread sees this segment, or this sees that the thread sleeps.
        atomic_store(&t->filled, (uint32_t)stream->n_segments);
        if (atomic_exchange(&t->sleeps, 0))
            futex_wake(&t->filled);
    }
}

// Waits until all threads have left the window that is to be filled next. 0, or -ECANCELED when the player has ended.
static int wait_for_free_space(struct streaming *s, const struct plan_memory *m)
{
    struct plan_streaming *head = s->head;
    _Atomic uint32_t *left = &head->left[(m->window + 1) % PLAN_WINDOWS];
    if (atomic_load(left) == 0)
        return 0;
    uint64_t since = clock_monotonic_ns();
    set_ready(s);
    // Pairs with player_leave_window() and streaming_stop().
    atomic_store(&head->decoder_sleeps, 1);
    for (;;) {
        uint32_t freed = atomic_load(&head->freed);
        if (atomic_load(left) == 0 || atomic_load(&s->stopped))
            break;
        futex_wait(&head->freed, freed);
    }
    atomic_store(&head->decoder_sleeps, 0);
    s->idle_ns += clock_monotonic_ns() - since;
    return atomic_load(&s->stopped) ? -ECANCELED : 0;
}

int plan_next_window(struct plan *p, struct err *e)
{
    int rc = 0;
    plan_memory_close_window(&p->ring);
    if (p->streaming) {
        hand_over(p->streaming, &p->ring);
        rc = wait_for_free_space(p->streaming, &p->ring);
    }
    if (rc < 0)
        return err_set(e, rc, "the player has ended");
    plan_memory_next_window(&p->ring);
    return 0;
}

int plan_stop_if_complete(struct plan *p, struct plan_stream *s, struct err *e)
{
    const struct plan *was = p->scanned;
    if (s->number >= was->n_streams || !was->streams[s->number] || s->ops > was->streams[s->number]->ops)
        return err_set(e, -EBADMSG, "%s: has changed while it was replayed", p->name);
    return s->ops == was->streams[s->number]->ops ? plan_stop_stream(p, s, e) : 0;
}

static int new_second_pass(struct streaming *s, struct err *e)
{
    const struct plan *was = s->scanned;
    int rc = plan_new_as(&s->plan, was->name, &was->settings, was, e);
    if (rc < 0)
        return rc;
    uint64_t *words = (uint64_t *)((char *)s->head + was->facts.streaming_bytes);
    s->plan->streaming = s;
    plan_memory_init_ring(&s->plan->ring, words, plan_ring_at(was), was->facts.window_bytes / 8, PLAN_WINDOWS);
    return 0;
}

// When all ops have been added. -EBADMSG when they were not those of the first pass.
static int finish_second_pass(struct plan *p, struct err *e)
{
    for (size_t i = 0; i < p->scanned->n_streams; i++) {
        const struct plan_stream *was = p->scanned->streams[i];
        const struct plan_stream *is = i < p->n_streams ? p->streams[i] : NULL;
        if (was && was->ops && (!is || !is->stopped))
            return err_set(e, -EBADMSG, "%s: has changed while it was replayed", p->name);
    }
    plan_memory_close_window(&p->ring);
    hand_over(p->streaming, &p->ring);
    return 0;
}

static void report_failure(struct streaming *s)
{
    atomic_store(&s->head->failed, 1);
    for (size_t i = 0; i < s->scanned->n_streams; i++) {
        struct plan_streaming_thread *t = &s->head->threads[i];
        atomic_fetch_add(&t->filled, 1); // wakes the thread, which then looks at `failed`
        futex_wake(&t->filled);
    }
}

static void *decode(void *arg)
{
    struct streaming *s = arg;
    struct workload_reader *r;
    s->rc = s->source->rewind(s->source->context, &r, &s->e);
    if (s->rc == 0)
        s->rc = plan_read_ops(s->plan, r, NULL, &s->e);
    if (s->rc == 0)
        s->rc = finish_second_pass(s->plan, &s->e);
    if (s->rc < 0)
        report_failure(s);
    set_ready(s);
    atomic_store(&s->done, true);
    return NULL;
}

static int map_streaming(struct streaming *s, struct err *e)
{
    const struct plan_facts *facts = &s->scanned->facts;
    // One more page, because the player prefetches beyond the end.
    s->bytes = facts->streaming_bytes + facts->window_bytes * PLAN_WINDOWS + 4096;
    s->fd = memfd_create("heaptape-stream", MFD_CLOEXEC);
    if (s->fd < 0 || ftruncate(s->fd, (off_t)s->bytes) < 0)
        return err_set_errno(e, "cannot create shared memory to stream the plan");
    void *at = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (at == MAP_FAILED)
        return err_set_errno(e, "cannot map the memory to stream the plan");
    s->head = at;
    return 0;
}

static int start_thread(struct streaming *s, struct err *e)
{
    sigset_t all, old;
    // The main thread handles signals.
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&s->thread, NULL, decode, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return err_set(e, -rc, "cannot start the thread that decodes the workload");
    s->started = true;
    return 0;
}

int streaming_start(struct streaming **out, const struct plan *p, const struct streaming_source *source, struct err *e)
{
    struct streaming *s = calloc(1, sizeof *s);
    if (!s)
        return plan_no_memory(e);
    s->fd = -1;
    s->scanned = p;
    s->source = source;
    int rc = map_streaming(s, e);
    if (rc == 0)
        rc = new_second_pass(s, e);
    if (rc == 0)
        rc = start_thread(s, e);
    if (rc < 0) {
        streaming_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

int streaming_fd(const struct streaming *s)
{
    return s->fd;
}

int streaming_stop(struct streaming *s, struct err *e)
{
    atomic_store(&s->stopped, true);
    atomic_fetch_add(&s->head->freed, 1);
    futex_wake(&s->head->freed);
    pthread_join(s->thread, NULL);
    s->started = false;
    if (s->rc == 0 || s->rc == -ECANCELED)
        return 0;
    *e = s->e;
    return s->rc;
}

uint64_t streaming_idle_ns(const struct streaming *s)
{
    return s->idle_ns;
}

bool streaming_decodes(const struct streaming *s)
{
    return !atomic_load(&s->done) && !atomic_load(&s->head->decoder_sleeps);
}

uint64_t streaming_op_at(const struct streaming *s, uint32_t thread, uint64_t position)
{
    return plan_op_at(s->plan, thread, position);
}

void streaming_free(struct streaming *s)
{
    if (!s)
        return;
    if (s->started)
        streaming_stop(s, &s->e);
    plan_free(s->plan);
    if (s->head)
        munmap(s->head, s->bytes);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}
