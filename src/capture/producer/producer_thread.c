// Threads of a traced process: state, start and exit.
#include "capture/producer/producer_private.h"
#include "capture/unwind/unwind.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
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
        struct producer_thread *t = producer_thread_at((uint32_t)top - 1);
        // May be stale if another thread was faster: then the tag differs and the exchange fails.
        uint64_t next = __atomic_load_n(&t->next, __ATOMIC_RELAXED) | ((top >> 32) + 1) << 32;
        if (atomic_compare_exchange_weak_explicit(&p->free_thread, &top, next, memory_order_acquire,
                                                  memory_order_acquire))
            return t;
    }
    return NULL;
}

static bool map_pool(uint32_t step)
{
    void *_Atomic *to = (void *_Atomic *)&producer_inherited.pool[step];
    return producer_map_wiped(to, PRODUCER_POOL_STEP * sizeof(struct producer_thread));
}

static struct producer_thread *alloc_fresh(struct producer_process *p)
{
    uint32_t fresh = atomic_load_explicit(&p->fresh_threads, memory_order_relaxed);
    do {
        if (fresh >= PRODUCER_MAX_THREADS || !map_pool(fresh / PRODUCER_POOL_STEP)) {
            atomic_store_explicit(&p->full, 1, memory_order_relaxed);
            return NULL;
        }
    } while (!atomic_compare_exchange_weak_explicit(&p->fresh_threads, &fresh, fresh + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    struct producer_thread *t = producer_thread_at(fresh);
    t->index = fresh;
    return t;
}

// Returns true if a thread without a state cannot get one. Its events then cost no system calls.
static bool is_full(const struct producer_process *p)
{
    return atomic_load_explicit(&p->full, memory_order_relaxed) &&
           !(uint32_t)atomic_load_explicit(&p->free_thread, memory_order_relaxed);
}

struct producer_thread *producer_thread_alloc(struct producer_process *p)
{
    struct producer_thread *t = pop_ended(p);
    t = t || is_full(p) ? t : alloc_fresh(p);
    if (!t)
        return NULL;
    // The cached rules are valid for any thread that runs the code; the cached frames are not.
    if (t->unwind)
        unwind_drop_frames(t->unwind);
    *t = (struct producer_thread){
        .unwind = t->unwind,
        .index = t->index,
        .number = atomic_fetch_add_explicit(&p->header->threads_numbered, 1, memory_order_relaxed),
        .parent = HT_NO_THREAD,
    };
    return t;
}

void producer_thread_release(struct producer_process *p, struct producer_thread *t)
{
    uint32_t link = t->index + 1;
    t->start = NULL;
    uint64_t top = atomic_load_explicit(&p->free_thread, memory_order_relaxed), new_top;
    do {
        __atomic_store_n(&t->next, (uint32_t)top, __ATOMIC_RELAXED);
        new_top = link | ((top >> 32) + 1) << 32;
    } while (!atomic_compare_exchange_weak_explicit(&p->free_thread, &top, new_top,
                                                    memory_order_release, memory_order_relaxed));
}

static void push_ending(struct producer_process *p, struct producer_thread *t)
{
    uint32_t top = atomic_load_explicit(&p->ending, memory_order_relaxed);
    do
        t->next = top;
    while (!atomic_compare_exchange_weak_explicit(&p->ending, &top, t->index + 1,
                                                  memory_order_release, memory_order_relaxed));
}

// Until the kernel has removed a thread, only the thread itself writes to its streams.
static bool has_exited(const struct producer_thread *t)
{
    return syscall(SYS_tgkill, producer_inherited.pid, t->tid, 0) != 0 && errno == ESRCH;
}

static void finish_thread(struct producer_process *p, struct producer_thread *t)
{
    producer_stream_end(p, t, &t->streams[0]);
    producer_stream_close(p, &t->streams[0]);
    producer_stream_close(p, &t->streams[1]);
    t->live = 0;
    atomic_fetch_sub_explicit(&p->header->threads_live, 1, memory_order_relaxed);
    producer_thread_release(p, t);
}

void producer_thread_reap(struct producer_process *p)
{
    if (!atomic_load_explicit(&p->ending, memory_order_relaxed))
        return;
    uint32_t link = atomic_exchange_explicit(&p->ending, 0, memory_order_acquire);
    while (link) {
        struct producer_thread *t = producer_thread_at(link - 1);
        link = t->next;
        if (has_exited(t))
            finish_thread(p, t);
        else
            push_ending(p, t);
    }
}

// Destructor of the key, called once per round of destructors. The last round is not the end:
// afterwards the C library frees its own blocks of the thread. Therefore the thread is only
// appended to a list, and other threads check whether it has exited.
static void on_key_round(void *value)
{
    if (++producer_tls.rounds < PTHREAD_DESTRUCTOR_ITERATIONS &&
        pthread_setspecific(producer_inherited.end_key, value) == 0)
        return;
    uint64_t mask = producer_signals_block();
    struct producer_process *p =
        atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    struct producer_thread *t = producer_tls.thread;
    uint32_t was = producer_enter(PRODUCER_WRITING);
    if (t->live && !t->ending && !t->forbidden &&
        atomic_load_explicit(&p->state, memory_order_acquire) == PRODUCER_RUNNING) {
        producer_thread_reap(p);
        t->ending = 1;
        syscall(SYS_prctl, PR_GET_NAME, t->name, 0, 0, 0);
        producer_stream_force_slow(p, &t->streams[0]);
        push_ending(p, t);
    }
    producer_leave(was);
    producer_signals_restore(mask);
}

static void arm_key(void)
{
    if (producer_inherited.end_key_made)
        pthread_setspecific(producer_inherited.end_key, &producer_inherited);
}

void producer_thread_make_key(void)
{
    pthread_key_t key;
    if (!producer_inherited.end_key_made && pthread_key_create(&key, on_key_round) == 0) {
        producer_inherited.end_key = key;
        producer_inherited.end_key_made = 1;
    }
}

// Makes `t` the state of the calling thread. Signals are blocked.
static void start_thread(struct producer_process *p, struct producer_thread *t)
{
    t->tid = (uint32_t)syscall(SYS_gettid);
    t->live = 1;
    if (p->slow)
        t->streams[0].fast_epoch = t->streams[1].fast_epoch = PRODUCER_NO_EPOCH;
    atomic_fetch_add_explicit(&p->header->threads_live, 1, memory_order_relaxed);
    producer_tls.thread = t;
    producer_tls.stack_left = 0; // makes the next allocation check whether stacks are recorded
    arm_key();
    // The main thread, or the first thread of a fork child, started with the process.
    if (t->number == 0)
        return;
    const struct event ev = {.kind = HT_THREAD_START, .value = t->parent};
    producer_stream_put(p, t, &t->streams[0], &ev);
}

struct producer_thread *producer_thread_ready(struct producer_process *p)
{
    struct producer_thread *t = producer_tls.thread;
    if (p && t->live)
        return t;
    if (p && is_full(p))
        return NULL;
    uint64_t mask = producer_signals_block();
    t = NULL;
    p = producer_process_ready();
    if (p) {
        // A handler may have run before the signals were blocked.
        t = producer_tls.thread->live ? producer_tls.thread : producer_thread_alloc(p);
        if (t && !t->live)
            start_thread(p, t);
    }
    producer_signals_restore(mask);
    return t;
}

struct producer_thread *producer_thread_create(void *(*start)(void *), void *arg)
{
    const struct producer_thread *self = NULL;
    uint32_t was = producer_enter(PRODUCER_WRITING);
    struct producer_process *p =
        atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    if (!p || atomic_load_explicit(&p->state, memory_order_acquire) != PRODUCER_OFF)
        self = producer_thread_ready(p);
    p = atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    if (self)
        producer_thread_reap(p);
    struct producer_thread *t = self ? producer_thread_alloc(p) : NULL;
    struct event ev = {.kind = HT_THREAD_CREATE};
    if (t) {
        t->parent = self->number;
        t->start = start;
        t->arg = arg;
        ev.value = t->number;
    }
    producer_leave(was);
    // From here on the state cannot be unmapped: producer_clear fails while a created thread has
    // not started.
    if (t)
        producer_record(&ev, NULL);
    return t;
}

void producer_thread_begin(struct producer_thread *t)
{
    uint64_t mask = producer_signals_block();
    uint32_t was = producer_enter(PRODUCER_WRITING);
    struct producer_process *p = producer_process_ready();
    t->start = NULL;
    if (p && t != producer_tls.thread)
        start_thread(p, t);
    producer_leave(was);
    producer_signals_restore(mask);
}

void producer_thread_cancel(struct producer_thread *t)
{
    struct producer_process *p =
        atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    producer_thread_release(p, t);
}

void producer_finish(void)
{
    uint64_t mask = producer_signals_block();
    uint32_t was = producer_enter(PRODUCER_WRITING);
    struct producer_process *p =
        atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    struct producer_thread *t = producer_tls.thread;
    bool recording = p && atomic_load_explicit(&p->state, memory_order_acquire) == PRODUCER_RUNNING;
    if (recording)
        producer_thread_reap(p);
    if (recording && p->measures && t->live && !t->muted && !t->forbidden &&
        !(was & PRODUCER_WRITING))
        producer_residency_finish(p, t, &t->streams[0]);
    if (recording && p->measures && !producer_inherited.sandbox)
        producer_read_file("/proc/self/statm", p->header->end_statm,
                           sizeof p->header->end_statm - 1);
    if (recording && !producer_inherited.sandbox)
        atomic_store_explicit(&p->header->end_cpu_ns, producer_cpu_ns(), memory_order_relaxed);
    producer_leave(was);
    producer_signals_restore(mask);
}

void producer_disable(bool process)
{
    int saved_errno = errno;
    uint64_t mask = producer_signals_block();
    uint32_t was = producer_enter(PRODUCER_WRITING);
    struct producer_process *p =
        atomic_load_explicit(&producer_inherited.process, memory_order_acquire);
    struct producer_thread *t = was & PRODUCER_WRITING ? NULL : producer_thread_ready(p);
    if (t) {
        producer_stream_close(p, &t->streams[0]);
        producer_stream_close(p, &t->streams[1]);
        t->forbidden = 1;
        if (process)
            producer_process_off(producer_inherited.process,
                                 "the program has forbidden itself the time-stamp counter");
    }
    producer_leave(was);
    producer_signals_restore(mask);
    errno = saved_errno;
}

void producer_enable(void)
{
    uint32_t was = producer_enter(PRODUCER_WRITING);
    if (producer_tls.thread->live)
        producer_tls.thread->forbidden = 0;
    producer_leave(was);
}

void producer_exit(void)
{
    if (!producer_inherited.sandbox)
        producer_finish();
}

void producer_start(void)
{
    uint64_t mask = producer_signals_block();
    uint32_t was = producer_enter(PRODUCER_WRITING);
    producer_process_ready();
    producer_leave(was);
    producer_signals_restore(mask);
}

bool producer_thread_any_unstarted(const struct producer_process *p)
{
    uint32_t n = atomic_load(&p->fresh_threads);
    for (uint32_t i = 0; i < n; i++) {
        const struct producer_thread *t = producer_thread_at(i);
        if (!t->live && t->start)
            return true;
    }
    return false;
}

void producer_thread_drop_all(struct producer_process *p)
{
    struct producer_inherited *in = &producer_inherited;
    uint32_t n = atomic_load(&p->fresh_threads);
    for (uint32_t i = 0; i < n; i++) {
        struct producer_thread *t = producer_thread_at(i);
        if (t->unwind)
            producer_munmap(t->unwind, sizeof *t->unwind);
    }
    for (uint32_t step = 0; step < PRODUCER_MAX_THREADS / PRODUCER_POOL_STEP; step++) {
        void *pool = atomic_exchange(&in->pool[step], NULL);
        if (pool && step > 0)
            producer_munmap(pool, PRODUCER_POOL_STEP * sizeof(struct producer_thread));
    }
}
