// What two threads that work one after the other on the same things share: places in a ring, filled by one and emptied by
// the other. Which thing stands in a place is theirs; the ring says whose it is.
#ifndef HEAPTAPE_BASE_RING_H
#define HEAPTAPE_BASE_RING_H

#include <pthread.h>
#include <stdbool.h>

struct ring {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned n, filled, emptied; // places; how many times one was filled and emptied
    bool over, stopped;          // nothing more is filled; nothing more is emptied
};

void ring_init(struct ring *r, unsigned n);
void ring_release(struct ring *r);

// Waits for an empty place and gives its number; -1 once stopped. ring_fill hands it over.
int ring_wait_empty(struct ring *r);
void ring_fill(struct ring *r);

// Waits for a full place and gives its number; -1 when all are empty and nothing more comes. ring_empty gives it back.
int ring_wait_full(struct ring *r);
void ring_empty(struct ring *r);

// Waits until all places are empty, or the ring is stopped.
void ring_drain(struct ring *r);

// The filling side fills nothing more. The emptying side empties nothing more.
void ring_over(struct ring *r);
void ring_stop(struct ring *r);

// Processors that this process may run on: with one only, threads that hand work on gain nothing.
unsigned ring_cpus(void);

#endif
