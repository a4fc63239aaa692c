// Thread exits. The destructor of a thread-specific key detects an exit, and other threads record
// it.
#include "capture/producer/producer_private.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

void producer_watch_threads(void)
{
    producer_inherited.foreign = true;
}

static void push_ending(struct producer_process *p, struct producer_thread *t)
{
    uint32_t top = atomic_load_explicit(&p->ending, memory_order_relaxed);
    do
        t->next = top;
    while (!atomic_compare_exchange_weak_explicit(&p->ending, &top, t->index + 1,
                                                  memory_order_release, memory_order_relaxed));
}

void producer_thread_list(struct producer_process *p, struct producer_thread *t)
{
    if (t->listed)
        return;
    t->listed = 1;
    push_ending(p, t);
}

// Returns true if the kernel has removed the thread. Until then, only the thread itself may write
// to its streams.
static bool has_exited(const struct producer_thread *t)
{
    int saved_errno = errno;
    bool exited = syscall(SYS_tgkill, producer_inherited.pid, t->tid, 0) != 0 && errno == ESRCH;
    errno = saved_errno;
    return exited;
}

static void finish_thread(struct producer_process *p, struct producer_thread *t)
{
    if (!t->ending)
        producer_stream_force_slow(p, &t->streams[0]); // the time of the last event is unknown
    producer_stream_end(&(struct producer_writer){p, t, &t->streams[0]});
    producer_stream_close(p, &t->streams[0]);
    producer_stream_close(p, &t->streams[1]);
    t->live = 0;
    atomic_fetch_sub_explicit(&p->header->threads_live, 1, memory_order_relaxed);
    producer_thread_release(p, t);
}

void producer_thread_reap(struct producer_process *p)
{
    if (!atomic_load_explicit(&p->ending, memory_order_relaxed) || producer_inherited.filtered)
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

// Detects the exit after the last round of destructors. The thread is still running, and the C
// library frees its per-thread blocks. Therefore only appends the thread to a list, and other
// threads check whether the thread has exited.
static void await_exit(struct producer_process *p, struct producer_thread *t)
{
    producer_thread_reap(p);
    t->ending = 1;
    syscall(SYS_prctl, PR_GET_NAME, t->name, 0, 0, 0);
    producer_stream_force_slow(p, &t->streams[0]);
    producer_thread_list(p, t);
}

// A filter may forbid the check whether a thread has exited, so the thread returns its state
// itself. Its later calls are not recorded.
static void finish_filtered(struct producer_process *p, struct producer_thread *t)
{
    finish_thread(p, t);
    producer_tls.thread = (struct producer_thread *)&producer_no_thread;
}

bool producer_thread_has_finished(void)
{
    return producer_inherited.filtered && producer_tls.rounds >= PTHREAD_DESTRUCTOR_ITERATIONS;
}

// Destructor of the key, called once per round of destructors.
static void on_key_round(void *value)
{
    if (++producer_tls.rounds < PTHREAD_DESTRUCTOR_ITERATIONS &&
        pthread_setspecific(producer_inherited.end_key, value) == 0)
        return;
    uint64_t mask = producer_signals_block();
    struct producer_process *p = producer_current();
    struct producer_thread *t = producer_tls.thread;
    uint32_t was = producer_enter(PRODUCER_WRITING);
    if (t->live && !t->ending && !t->forbidden && producer_has_state(p, PRODUCER_RUNNING))
        (producer_inherited.filtered ? finish_filtered : await_exit)(p, t);
    producer_leave(was);
    producer_signals_restore(mask);
}

void producer_thread_arm_key(void)
{
    if (producer_inherited.end_key_made)
        pthread_setspecific(producer_inherited.end_key, &producer_inherited);
}

// A C library loaded by dlmopen numbers its keys independently, but stores their values in the same
// array of each thread. To avoid confusion with that library's keys, this key has a number that few
// programs reach. The number is below 32, because the values of the first 32 keys need no memory.
// The key is also deleted and created again several times: glibc counts how often each key number
// has been created, and ignores a value that was stored under a different count.
void producer_thread_make_key(void)
{
    enum { LAST = 31, TIMES = 8 };
    pthread_key_t keys[LAST + 1];
    unsigned n = 0;
    if (producer_inherited.end_key_made)
        return;
    while (n <= LAST && pthread_key_create(&keys[n], on_key_round) == 0 && keys[n++] < LAST)
        continue;
    if (!n)
        return;
    pthread_key_t *key = &keys[--n];
    bool made = true;
    for (unsigned i = 1; i < TIMES && made; i++)
        made = pthread_key_delete(*key) == 0 && pthread_key_create(key, on_key_round) == 0;
    producer_inherited.end_key = *key;
    producer_inherited.end_key_made = made;
    while (n)
        pthread_key_delete(keys[--n]);
}
