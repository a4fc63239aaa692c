// Missing data. A trace stores the losses of each process; struct trace_losses collects them over
// all processes.
#pragma once

#include "trace/trace.h"

// A loss that occurred in some processes.
struct trace_fact {
    uint32_t processes; // number of these processes; if 0, the other fields are unset
    uint32_t pid;       // pid of the first of these processes
    char program[64];   // name of the first process's executable
    char text[200];
};

struct trace_losses {
    uint64_t lost_records; // sum over the processes; struct trace_balance has other losses
    // Processes in which recording turned itself off. The text is the reason.
    struct trace_fact off;
    // Processes whose calls reach another malloc instead of libheaptape.so's. The text names the
    // object that defines this malloc.
    struct trace_fact bypassed;
    // Processes with TRACE_F_WITHOUT_UNITS. The text is empty.
    struct trace_fact without_units;
    // Objects whose calls of malloc bypass the library. Collected from all processes without
    // duplicates, each terminated by NUL. Objects that do not fit are dropped.
    char deepbound[2048];
    uint32_t deepbound_bytes;
};

// Adds a process that has ended.
void trace_losses_add(struct trace_losses *l, const struct trace_process *p);
