// Turns ordered ops back into calls with addresses, arranged so that every address alternates
// between allocated and free. This is needed for formats that identify blocks by address and have
// one line per call.
//
// The order may emit the allocation of an address before the realloc or free that releases the
// address. One reason is that a realloc is emitted when it ends; another is that the stamps of
// allocations may be early. Such an allocation is held back until the address is free, together
// with its thread and all ops that depend on it (docs/design/convert.md).
#pragma once

#include "base/map.h"
#include "convert/order/order.h"

struct addressed_call {
    struct event ev;      // with addresses; text is borrowed until the callback returns
    uint32_t thread, tid; // numbered as in the trace
    bool failed;          // the call neither allocated nor freed anything
    bool earlier;         // the block at ev.ptr existed before the recording
    // The recording lacks this free, which was inserted because the address was allocated again.
    bool added;
};

struct addressed_thread;
struct addressed_ticket;
struct addressed_wait;

// Set `put` and `context`, and zero the other members.
struct addressed {
    // Receives the next call. Returns 0, or a negative errno, which ends the conversion.
    int (*put)(void *context, const struct addressed_call *c);
    void *context;
    uint64_t broken; // number of inserted frees

    // Private.
    struct map live;   // maps an address to the slot of its block plus 1
    struct map queues; // maps an address to its first and its last ticket
    struct addressed_ticket *tickets;
    size_t n_tickets, tickets_capacity;
    uint32_t free_ticket;              // index of the first unused ticket plus 1, or 0
    struct addressed_thread **threads; // indexed by thread number in the workload
    size_t n_threads, capacity;
    uint64_t arrived, held;       // number of ops that have arrived, and number of ops held
    struct addressed_wait *waits; // held ops in order of arrival, starting at waits[first_wait]
    size_t first_wait, n_waits, waits_capacity;
};

// Implements order_sink.calls; `context` is a struct addressed. Returns 0, or a negative errno.
int addressed_add(void *context, const struct workload_thread_op *ops,
                  const struct order_call *calls, size_t n);

// Emits all ops that are still held. Returns 0, or a negative errno.
int addressed_finish(struct addressed *a);
void addressed_release(struct addressed *a);
