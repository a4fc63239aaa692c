// Pool of thread states.
#include "capture/producer/producer_private.h"
#include "capture/unwind/unwind.h"

static struct producer_thread *pop_ended(struct producer_process *p)
{
    uint64_t top = atomic_load_explicit(&p->free_thread, memory_order_acquire);
    while ((uint32_t)top) {
        struct producer_thread *t = producer_thread_at((uint32_t)top - 1);
        // `next` may be stale if another thread has popped the state. Then the tag differs and the
        // exchange fails.
        uint64_t next = __atomic_load_n(&t->next, __ATOMIC_RELAXED) | ((top >> 32) + 1) << 32;
        if (atomic_compare_exchange_weak_explicit(&p->free_thread, &top, next, memory_order_acquire,
                                                  memory_order_acquire))
            return t;
    }
    return NULL;
}

// If system calls are filtered, maps nothing.
static bool map_pool(uint32_t step)
{
    void *_Atomic *to = (void *_Atomic *)&producer_inherited.pool[step];
    if (producer_inherited.filtered)
        return atomic_load_explicit(to, memory_order_acquire);
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

bool producer_thread_pool_is_full(const struct producer_process *p)
{
    return atomic_load_explicit(&p->full, memory_order_relaxed) &&
           !(uint32_t)atomic_load_explicit(&p->free_thread, memory_order_relaxed);
}

struct producer_thread *producer_thread_alloc(struct producer_process *p)
{
    struct producer_thread *t = pop_ended(p);
    t = t || producer_thread_pool_is_full(p) ? t : alloc_fresh(p);
    if (!t)
        return NULL;
    // Unlike the cached rules, the cached frames are valid only for the previous thread.
    if (t->unwind)
        unwind_drop_frames(t->unwind);
    *t = (struct producer_thread){
        .unwind = t->unwind,
        .index = t->index,
        .number = atomic_fetch_add_explicit(&p->header->threads_numbered, 1, memory_order_relaxed),
        .parent = HT_NO_THREAD,
    };
    // The program synchronizes its threads, so the first thread sees this bit before it records an
    // event that depends on the new thread.
    if (t->number)
        atomic_fetch_or(&p->header->readings.sequence, SPOOL_THREADS);
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
            producer_unmap_private(pool, PRODUCER_POOL_STEP * sizeof(struct producer_thread));
    }
}
