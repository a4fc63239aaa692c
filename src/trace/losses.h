// Facts about missing data that are stored for each process of a trace, collected over all
// processes.
#ifndef HEAPTAPE_TRACE_LOSSES_H
#define HEAPTAPE_TRACE_LOSSES_H

#include "trace/trace.h"

// A fact that applies to some processes.
struct trace_fact {
    uint32_t processes; // number of these processes; 0: the other fields are unset
    uint32_t pid;       // pid of the first of these processes
    char program[64];   // name of the first process's executable
    char text[200];
};

struct trace_losses {
    uint64_t lost_records; // sum over the processes; struct trace_balance has other losses
    struct trace_fact off; // processes in which recording turned itself off, and why
    // processes that call another malloc than the library's, and the object that defines it
    struct trace_fact bypassed;
    // Objects of all processes whose calls of malloc bypass the library, without duplicates, each
    // terminated by NUL. Objects that do not fit are dropped.
    char deepbound[2048];
    uint32_t deepbound_bytes;
};

// Adds a process that has ended.
void trace_losses_add(struct trace_losses *l, const struct trace_process *p);

#endif
