#include "base/ring.h"

#include <sched.h>

void ring_init(struct ring *r, unsigned n)
{
    *r = (struct ring){.n = n};
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->moved, NULL);
}

void ring_release(struct ring *r)
{
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->moved);
}

int ring_wait_empty(struct ring *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->stopped && r->filled - r->emptied == r->n)
        pthread_cond_wait(&r->moved, &r->lock);
    int place = r->stopped ? -1 : (int)(r->filled % r->n);
    pthread_mutex_unlock(&r->lock);
    return place;
}

int ring_wait_full(struct ring *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->over && r->filled == r->emptied)
        pthread_cond_wait(&r->moved, &r->lock);
    int place = r->filled == r->emptied ? -1 : (int)(r->emptied % r->n);
    pthread_mutex_unlock(&r->lock);
    return place;
}

void ring_drain(struct ring *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->stopped && r->filled != r->emptied)
        pthread_cond_wait(&r->moved, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

// Changes the ring under its lock and wakes both threads.
#define MOVE(r, change)                                                                            \
    do {                                                                                           \
        pthread_mutex_lock(&(r)->lock);                                                            \
        change;                                                                                    \
        pthread_cond_broadcast(&(r)->moved);                                                       \
        pthread_mutex_unlock(&(r)->lock);                                                          \
    } while (0)

void ring_fill(struct ring *r)
{
    MOVE(r, r->filled++);
}

void ring_empty(struct ring *r)
{
    MOVE(r, r->emptied++);
}

void ring_over(struct ring *r)
{
    MOVE(r, r->over = true);
}

void ring_stop(struct ring *r)
{
    MOVE(r, r->stopped = true);
}

unsigned ring_cpus(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? (unsigned)n : 1;
}
