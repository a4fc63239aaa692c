// Manages the state of each thread. Handles the start of a thread, the exit of the process, and the
// end of the recording.
#include "capture/producer/producer_private.h"

#include <errno.h>
#include <sys/syscall.h>

// Makes `t` the state of the calling thread. Call with signals blocked.
static void start_thread(struct producer_process *p, struct producer_thread *t)
{
    t->tid = producer_thread_id();
    t->live = 1;
    if (p->slow)
        t->streams[0].fast_epoch = t->streams[1].fast_epoch = PRODUCER_NO_EPOCH;
    atomic_fetch_add_explicit(&p->header->threads_live, 1, memory_order_relaxed);
    producer_tls.thread = t;
    producer_tls.stack_left = 0; // makes the next allocation check whether stacks are recorded
    producer_thread_arm_key();
    producer_set_owner(t, atomic_load(&p->header->readings.sequence));
    if (p->clock != CLOCK_KIND_MONOTONIC)
        producer_begin_sparse(p, &t->streams[0], t->number == 0);
    // This is the main thread, or the first thread of a fork child, so it started with the process.
    if (t->number == 0)
        return;
    const struct event ev = {.kind = HT_THREAD_START, .value = t->parent};
    producer_stream_put(&(struct producer_writer){p, t, &t->streams[0]}, &ev);
}

struct producer_thread *producer_thread_ready(struct producer_process *p)
{
    struct producer_thread *t = producer_tls.thread;
    if (p && t->live)
        return t;
    if (p && (producer_thread_pool_is_full(p) || producer_thread_has_finished()))
        return NULL;
    uint64_t mask = producer_signals_block();
    t = NULL;
    p = producer_process_ready();
    if (p) {
        // A signal handler may have created the state before signals were blocked.
        t = producer_tls.thread->live ? producer_tls.thread : producer_thread_alloc(p);
        if (t && !t->live) {
            start_thread(p, t);
            if (producer_inherited.foreign && t->number)
                producer_thread_list(p, t);
        }
    }
    producer_signals_restore(mask);
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
    struct producer_process *p = producer_current();
    producer_thread_release(p, t);
}

static void read_status(struct producer_process *p)
{
    if (p->measures)
        producer_read_file("/proc/self/status", p->header->end_status,
                           sizeof p->header->end_status - 1);
    atomic_store_explicit(&p->header->end_cpu_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID),
                          memory_order_relaxed);
}

void producer_finish_last(void)
{
    if (producer_inherited.filtered)
        return;
    uint64_t mask = producer_signals_block();
    uint32_t was = producer_enter(PRODUCER_WRITING);
    struct producer_process *p = producer_current();
    if (producer_has_state(p, PRODUCER_RUNNING) && !producer_inherited.sandbox)
        read_status(p);
    producer_leave(was);
    producer_signals_restore(mask);
}

void producer_finish(void)
{
    if (producer_inherited.filtered)
        return;
    uint64_t mask = producer_signals_block();
    uint32_t was = producer_enter(PRODUCER_WRITING);
    struct producer_process *p = producer_current();
    struct producer_thread *t = producer_tls.thread;
    bool recording = producer_has_state(p, PRODUCER_RUNNING);
    if (recording)
        producer_thread_reap(p);
    if (recording && p->measures && t->live && !t->muted && !t->forbidden &&
        !(was & PRODUCER_WRITING))
        producer_residency_finish(&(struct producer_writer){p, t, &t->streams[0]});
    if (recording && !producer_inherited.sandbox)
        read_status(p);
    if (recording && p->measures && !producer_inherited.sandbox)
        atomic_store_explicit(&p->header->end_private_bytes, producer_private_bytes(),
                              memory_order_relaxed);
    producer_leave(was);
    producer_signals_restore(mask);
}

void producer_disable(bool process)
{
    int saved_errno = errno;
    uint64_t mask = producer_signals_block();
    uint32_t was = producer_enter(PRODUCER_WRITING);
    struct producer_process *p = producer_current();
    struct producer_thread *t = was & PRODUCER_WRITING ? NULL : producer_thread_ready(p);
    if (t) {
        producer_stream_close(p, &t->streams[0]);
        producer_stream_close(p, &t->streams[1]);
        t->forbidden = 1;
        if (process)
            producer_process_off(producer_inherited.process,
                                 "the program disabled the time-stamp counter");
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
