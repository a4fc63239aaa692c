// The calls of a process by their addresses, in an order of lines in which each address is allocated, freed, allocated:
// for formats that name blocks by addresses and have one line a call.
//
// The order's ops say which block each call means. But an allocation of an address may come before the line of the
// realloc that freed it, which stands at its end, or before the free whose stamp it precedes. It waits for that line, and
// with it wait its thread and all that depends on it, as long as it takes (docs/design/convert.md).
#ifndef HEAPTAPE_CONVERT_ADDRESSED_H
#define HEAPTAPE_CONVERT_ADDRESSED_H

#include "base/map.h"
#include "convert/order/order.h"

struct addressed_call {
    struct event ev;      // with addresses; its text is borrowed until the call returns
    uint32_t thread, tid; // as in the trace
    bool failed;          // nothing was allocated or freed
    bool earlier;         // the block at ev.ptr is from before the recording
    bool added;           // a free that was not recorded: the address is allocated again
};

struct addressed_thread;
struct addressed_ticket;
struct addressed_wait;

// All zero but for put and context is the beginning.
struct addressed {
    int (*put)(void *context,
               const struct addressed_call *c); // 0 or a negative errno, which ends all
    void *context;
    uint64_t broken; // allocations of addresses that nothing had freed: a free was added

    // Inside.
    struct map live;   // by address: its block's slot + 1
    struct map queues; // by address: its first ticket and its last one
    struct addressed_ticket *tickets;
    size_t n_tickets, tickets_capacity;
    uint32_t free_ticket;              // + 1; 0: none
    struct addressed_thread **threads; // by the workload's numbers
    size_t n_threads, capacity;
    uint64_t arrived, held; // ops
    struct addressed_wait
        *waits; // those that waited, in the order in which they came: from waits[first_wait] on
    size_t first_wait, n_waits, waits_capacity;
};

// Ops of the order, for order_sink.calls; `context` is the struct. 0 or a negative errno.
int addressed_take(void *context, const struct workload_thread_op *ops,
                   const struct order_call *calls, size_t n);

// Nothing more comes. 0 or a negative errno.
int addressed_finish(struct addressed *a);
void addressed_release(struct addressed *a);

#endif
