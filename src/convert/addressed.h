// Turns the ops of an order back into calls with addresses, ordered so that every address
// alternates between allocated and free. Formats that name blocks by address and have one line per
// call need this.
//
// The order may emit the allocation of an address before the realloc or free that releases the
// address: a realloc is emitted where it ends, and stamps of allocations may be early. Such an
// allocation is held back, together with its thread and all ops that depend on it, until the
// address is free (docs/design/convert.md).
#ifndef HEAPTAPE_CONVERT_ADDRESSED_H
#define HEAPTAPE_CONVERT_ADDRESSED_H

#include "base/map.h"
#include "convert/order/order.h"

struct addressed_call {
    struct event ev;      // with addresses; text is borrowed until the call returns
    uint32_t thread, tid; // as in the trace
    bool failed;          // the call neither allocated nor freed
    bool earlier;         // the block at ev.ptr existed before the recording
    bool added;           // an unrecorded free: the address was allocated again
};

struct addressed_thread;
struct addressed_ticket;
struct addressed_wait;

// Initialize with zeros, `put` and `context`.
struct addressed {
    int (*put)(void *context,
               const struct addressed_call *c); // returns 0, or a negative errno, which ends all
    void *context;
    uint64_t broken; // unrecorded frees that were added

    // Private.
    struct map live;   // address → slot of its block + 1
    struct map queues; // address → first and last ticket
    struct addressed_ticket *tickets;
    size_t n_tickets, tickets_capacity;
    uint32_t free_ticket;              // index + 1, or 0
    struct addressed_thread **threads; // by thread number in the workload
    size_t n_threads, capacity;
    uint64_t arrived, held;       // ops
    struct addressed_wait *waits; // held ops in order of arrival, from waits[first_wait]
    size_t first_wait, n_waits, waits_capacity;
};

// order_sink.calls; `context` is a struct addressed. Returns 0, or a negative errno.
int addressed_add(void *context, const struct workload_thread_op *ops,
                  const struct order_call *calls, size_t n);

// Emits the ops that are still held. Returns 0, or a negative errno.
int addressed_finish(struct addressed *a);
void addressed_release(struct addressed *a);

#endif
