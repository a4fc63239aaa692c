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

struct feed {
    const struct plan *scanned;
    const struct feed_source *source;
    struct plan *plan; // what is being fed
    struct plan_sink sink;
    int fd;
    struct plan_feed *head;
    size_t bytes;
    pthread_t thread;
    bool started;
    _Atomic bool unwanted; // the player is gone
    uint64_t idle_ns;
    int rc;
    struct err e;
};

// The player is another process, so these are no private futexes.
static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void say_ready(struct feed *f)
{
    if (!atomic_exchange(&f->head->ready, 1))
        futex_wake(&f->head->ready);
}

static void hand_over(void *context, const struct plan_memory *m)
{
    struct feed *f = context;
    atomic_store(&f->head->left[m->window % PLAN_WINDOWS], (uint32_t)m->n_open);
    for (size_t i = 0; i < m->n_open; i++) {
        const struct plan_stream *s = m->open[i];
        struct plan_feed_thread *t = &f->head->threads[s->number];
        uint64_t n = s->n_segments - 1;
        t->segments[n % PLAN_WINDOWS] = s->segments[n % PLAN_WINDOWS].first;
        // Pairs with player_more(): either the thread sees this segment, or we see that it sleeps.
        atomic_store(&t->filled, (uint32_t)s->n_segments);
        if (atomic_exchange(&t->sleeps, 0))
            futex_wake(&t->filled);
    }
}

static int wait_for_room(void *context, const struct plan_memory *m)
{
    struct feed *f = context;
    struct plan_feed *head = f->head;
    _Atomic uint32_t *left = &head->left[(m->window + 1) % PLAN_WINDOWS];
    if (atomic_load(left) == 0)
        return 0;
    uint64_t since = clock_monotonic_ns();
    say_ready(f);
    // Pairs with player_leave_window() and feed_stop().
    atomic_store(&head->reader_sleeps, 1);
    for (;;) {
        uint32_t freed = atomic_load(&head->freed);
        if (atomic_load(left) == 0 || atomic_load(&f->unwanted))
            break;
        futex_wait(&head->freed, freed);
    }
    atomic_store(&head->reader_sleeps, 0);
    f->idle_ns += clock_monotonic_ns() - since;
    return atomic_load(&f->unwanted) ? -ECANCELED : 0;
}

static void tell_of_failure(struct feed *f)
{
    atomic_store(&f->head->failed, 1);
    for (size_t i = 0; i < f->scanned->n_streams; i++) {
        struct plan_feed_thread *t = &f->head->threads[i];
        atomic_fetch_add(&t->filled, 1); // what is waited for has come, or not: `failed` tells
        futex_wake(&t->filled);
    }
}

static void *run(void *arg)
{
    struct feed *f = arg;
    struct workload_reader *r;
    f->rc = f->source->rewind(f->source->context, &r, &f->e);
    if (f->rc == 0)
        f->rc = plan_read_ops(f->plan, r, NULL, &f->e);
    if (f->rc == 0)
        f->rc = plan_finish_feeding(f->plan, &f->e);
    if (f->rc < 0)
        tell_of_failure(f);
    say_ready(f);
    return NULL;
}

static int map_feed(struct feed *f, struct err *e)
{
    const struct plan_facts *facts = &f->scanned->facts;
    // One page more: the player looks ahead.
    f->bytes = facts->feed_bytes + facts->window_bytes * PLAN_WINDOWS + 4096;
    f->fd = memfd_create("heaptape-feed", MFD_CLOEXEC);
    if (f->fd < 0 || ftruncate(f->fd, (off_t)f->bytes) < 0)
        return err_set_errno(e, "cannot make shared memory for the windows");
    void *at = mmap(NULL, f->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    if (at == MAP_FAILED)
        return err_set_errno(e, "cannot map the windows");
    f->head = at;
    return 0;
}

static int start_thread(struct feed *f, struct err *e)
{
    sigset_t all, old;
    // Signals are for the main thread.
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&f->thread, NULL, run, f);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return err_set(e, -rc, "cannot start a thread to read the workload");
    f->started = true;
    return 0;
}

int feed_start(struct feed **out, const struct plan *p, const struct feed_source *source, struct err *e)
{
    struct feed *f = calloc(1, sizeof *f);
    if (!f)
        return plan_no_memory(e);
    f->fd = -1;
    f->scanned = p;
    f->source = source;
    f->sink = (struct plan_sink){hand_over, wait_for_room, f};
    int rc = map_feed(f, e);
    if (rc == 0)
        rc = plan_new_feeding(&f->plan, p, (uint64_t *)((char *)f->head + p->facts.feed_bytes), &f->sink, e);
    if (rc == 0)
        rc = start_thread(f, e);
    if (rc < 0) {
        feed_free(f);
        return rc;
    }
    *out = f;
    return 0;
}

int feed_fd(const struct feed *f)
{
    return f->fd;
}

int feed_stop(struct feed *f, struct err *e)
{
    atomic_store(&f->unwanted, true);
    atomic_fetch_add(&f->head->freed, 1);
    futex_wake(&f->head->freed);
    pthread_join(f->thread, NULL);
    f->started = false;
    if (f->rc == 0 || f->rc == -ECANCELED)
        return 0;
    *e = f->e;
    return f->rc;
}

uint64_t feed_idle_ns(const struct feed *f)
{
    return f->idle_ns;
}

uint64_t feed_op_at(const struct feed *f, uint32_t thread, uint64_t position)
{
    return plan_op_at(f->plan, thread, position);
}

void feed_free(struct feed *f)
{
    if (!f)
        return;
    if (f->started)
        feed_stop(f, &f->e);
    plan_free(f->plan);
    if (f->head)
        munmap(f->head, f->bytes);
    if (f->fd >= 0)
        close(f->fd);
    free(f);
}
