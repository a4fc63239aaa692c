// Ring buffer between two threads. A producer fills its entries, and a consumer empties them. The
// ring passes only the numbers of entries; the caller owns the contents.
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct ring {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned n, filled, emptied; // number of entries; how often entries were filled and emptied
    bool over, stopped;          // the producer has ended; the consumer has ended
};

void ring_init(struct ring *r, unsigned n);
void ring_release(struct ring *r);

// Blocks until an entry is empty. Returns its number, or -1 after ring_stop. ring_fill passes the
// entry to the consumer.
int ring_wait_empty(struct ring *r);
void ring_fill(struct ring *r);

// Blocks until an entry is full. Returns its number, or -1 if all entries are empty after
// ring_over. ring_empty returns the entry to the producer.
int ring_wait_full(struct ring *r);
void ring_empty(struct ring *r);

// Blocks until all entries are empty or ring_stop is called.
void ring_drain(struct ring *r);

// End the producer's side (ring_over) and the consumer's side (ring_stop).
void ring_over(struct ring *r);
void ring_stop(struct ring *r);

// Returns the number of CPUs in the process's affinity mask. A pipeline does not help on a single
// CPU.
unsigned ring_cpus(void);
