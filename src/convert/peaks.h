// Computes each process's peak of live bytes in a trace, without ordering the events. This takes
// about half the time of a conversion. Memory use depends neither on the length of the trace nor on
// the number of live blocks.
#pragma once

#include "base/progress.h"
#include "trace/file.h"

struct peak {
    uint32_t process, pid;
    uint64_t events;
    // Requested bytes of the blocks that the process allocated, excluding blocks inherited at a
    // fork.
    uint64_t peak_bytes, end_bytes, end_blocks;
    // Largest growth of private memory since the first sample, or 0 if there are fewer than two
    // samples.
    uint64_t private_bytes;
};

struct peaks {
    struct peak *items; // highest peak first; owned
    size_t n;           // number of processes with events
    // `n` plus the number of processes that have only samples. These are at the end of `items`.
    size_t with_idle;
    // More than 2^18 blocks were live, so small blocks were sampled. The error of the peaks is 0.5
    // %.
    bool estimated;
    // Set by peaks_choose: the chosen process, and the number of processes with events.
    uint32_t chosen;
    size_t n_all;
};

// Reads the whole trace, so the reader has seen all processes afterwards. Counts only images with
// `pid`, or all images if `pid` is 0. `progress` may be NULL. Returns 0, or a negative errno with
// *e set. The caller must release *p in either case.
int peaks_count(struct peaks *p, struct trace_file *t, uint32_t pid, struct progress *progress,
                struct err *e);
void peaks_release(struct peaks *p);

// Chooses the process with the highest peak among the images with `pid`, or among all images if
// `pid` is 0. Rewinds the trace, which must have been opened for reading twice.
//
// If the end of the trace names a single candidate, the trace is not read and *p is empty.
// Otherwise, *p lists the processes. If the chosen process makes nearly all calls, its figures
// cover only the part of the trace that was read before the process was chosen. Returns 0, or a
// negative errno with *e set: -ENOENT if no process matches, with a message that lists the pids.
// The caller must release *p in either case.
int peaks_choose(struct peaks *p, struct trace_file *t, uint32_t pid, struct progress *progress,
                 struct err *e);
