// Threads of a traced process: their state, births and ends.
#include "spool/producer_private.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

uint64_t producer_signals_block(void)
{
    uint64_t all = UINT64_MAX, mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof mask);
    return mask;
}

void producer_signals_restore(uint64_t mask)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
}

static struct producer_thread *pop_ended(struct producer_process *p)
{
    uint64_t top = atomic_load_explicit(&p->free_thread, memory_order_acquire);
    while ((uint32_t)top) {
        struct producer_thread *t = &p->threads[(uint32_t)top - 1];
        // May be stale when another thread was faster: then the tag differs and the exchange fails.
        uint64_t next = __atomic_load_n(&t->next_free, __ATOMIC_RELAXED) | ((top >> 32) + 1) << 32;
        if (atomic_compare_exchange_weak_explicit(&p->free_thread, &top, next, memory_order_acquire,
                                                  memory_order_acquire))
            return t;
    }
    return NULL;
}

struct producer_thread *producer_thread_take(struct producer_process *p)
{
    struct producer_thread *t = pop_ended(p);
    if (!t) {
        uint32_t fresh = atomic_load_explicit(&p->fresh_threads, memory_order_relaxed);
        do {
            if (fresh >= PRODUCER_MAX_THREADS)
                return NULL;
        } while (!atomic_compare_exchange_weak_explicit(&p->fresh_threads, &fresh, fresh + 1, memory_order_relaxed,
                                                        memory_order_relaxed));
        t = &p->threads[fresh];
    }
    *t = (struct producer_thread){
        .number = atomic_fetch_add_explicit(&p->header->threads_born, 1, memory_order_relaxed),
        .parent = PRODUCER_UNBORN,
    };
    return t;
}

void producer_thread_give(struct producer_process *p, struct producer_thread *t)
{
    uint32_t link = (uint32_t)(t - p->threads) + 1;
    uint64_t top = atomic_load_explicit(&p->free_thread, memory_order_relaxed), new_top;
    do {
        __atomic_store_n(&t->next_free, (uint32_t)top, __ATOMIC_RELAXED);
        new_top = link | ((top >> 32) + 1) << 32;
    } while (!atomic_compare_exchange_weak_explicit(&p->free_thread, &top, new_top, memory_order_release,
                                                    memory_order_relaxed));
}

// The key's destructor, called in each of the rounds in which a thread's keys are destroyed: the end is the last one,
// because other destructors may allocate up to then. What comes even later (the C library frees its own after the keys)
// is recorded as a tiny thread of its own.
static void at_round(void *value)
{
    pthread_key_t key = producer_inherited.end_key;
    if (++producer_tls.rounds < PTHREAD_DESTRUCTOR_ITERATIONS && pthread_setspecific(key, value) == 0)
        return;
    uint64_t mask = producer_signals_block();
    struct producer_process *p = atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    struct producer_thread *t = producer_tls.thread;
    uint32_t was = producer_enter(PRODUCER_WRITING);
    if (t->live && atomic_load_explicit(&p->state, memory_order_acquire) == PRODUCER_RUNNING)
        producer_thread_end(p, t);
    producer_leave(was);
    producer_signals_restore(mask);
}

static void arm_end(void)
{
    if (producer_inherited.end_key_made && !producer_tls.ended)
        pthread_setspecific(producer_inherited.end_key, &producer_inherited);
}

void producer_thread_make_key(void)
{
    pthread_key_t key;
    if (!producer_inherited.end_key_made && pthread_key_create(&key, at_round) == 0) {
        producer_inherited.end_key = key;
        producer_inherited.end_key_made = 1;
    }
}

// Makes `t` the calling thread's state. Signals are blocked.
static void begin(struct producer_process *p, struct producer_thread *t)
{
    t->tid = (uint32_t)syscall(SYS_gettid);
    t->live = 1;
    atomic_fetch_add_explicit(&p->header->threads_live, 1, memory_order_relaxed);
    producer_tls.thread = t;
    arm_end();
    // The main thread, or the one that a fork child begins with, was born with the process.
    if (t->number == 0)
        return;
    const struct event ev = {.kind = HT_THREAD_START, .value = t->parent};
    producer_lane_put(p, t, &t->lanes[0], &ev);
}

struct producer_thread *producer_thread_ready(struct producer_process *p)
{
    struct producer_thread *t = producer_tls.thread;
    if (p && t->live)
        return t;
    uint64_t mask = producer_signals_block();
    t = NULL;
    p = producer_process_ready();
    if (p) {
        // A handler may have been here before the signals were blocked.
        t = producer_tls.thread->live ? producer_tls.thread : producer_thread_take(p);
        if (t && !t->live)
            begin(p, t);
    }
    producer_signals_restore(mask);
    return t;
}

void producer_thread_end(struct producer_process *p, struct producer_thread *t)
{
    const struct event ev = {.kind = HT_THREAD_END};
    producer_lane_put(p, t, &t->lanes[0], &ev);
    producer_lane_close(&t->lanes[0]);
    producer_lane_close(&t->lanes[1]);
    t->live = 0;
    producer_tls.thread = (struct producer_thread *)&producer_no_thread;
    producer_tls.ended = 1;
    atomic_fetch_sub_explicit(&p->header->threads_live, 1, memory_order_relaxed);
    producer_thread_give(p, t);
}

struct producer_thread *producer_thread_create(void *(*start)(void *), void *arg)
{
    const struct producer_thread *self = NULL;
    uint32_t was = producer_enter(PRODUCER_WRITING);
    struct producer_process *p = atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    if (!p || atomic_load_explicit(&p->state, memory_order_acquire) != PRODUCER_OFF)
        self = producer_thread_ready(p);
    p = atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    struct producer_thread *t = self ? producer_thread_take(p) : NULL;
    producer_leave(was);
    if (!t)
        return NULL;
    t->parent = self->number;
    t->start = start;
    t->arg = arg;
    const struct event ev = {.kind = HT_THREAD_CREATE, .value = t->number};
    producer_record(&ev, NULL);
    return t;
}

void producer_thread_begin(struct producer_thread *t)
{
    uint64_t mask = producer_signals_block();
    uint32_t was = producer_enter(PRODUCER_WRITING);
    struct producer_process *p = producer_process_ready();
    if (p && t != producer_tls.thread)
        begin(p, t);
    producer_leave(was);
    producer_signals_restore(mask);
}

void producer_thread_unborn(struct producer_thread *t)
{
    struct producer_process *p = atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    producer_thread_give(p, t);
}

void producer_start(void)
{
    uint64_t mask = producer_signals_block();
    uint32_t was = producer_enter(PRODUCER_WRITING);
    producer_process_ready();
    producer_leave(was);
    producer_signals_restore(mask);
}
