// Moves the threads of a stopped process out of code that must not be interrupted.
#pragma once

#include "capture/spool/attach.h"
#include "record/attach/plans.h"
#include "record/attach/tracees.h"

struct leave_what {
    uint64_t state_offset; // offset of struct spool_thread from the thread pointer (glibc)
    uint64_t module;       // index of the library in musl's vectors, or 0
    // A thread must leave while any of these bits is set in spool_thread.busy. Set to
    // SPOOL_THREAD_WRITING, or to UINT32_MAX, which covers the whole time in a wrapper.
    uint32_t busy;
    struct remote_range library; // code of libheaptape.so
    bool malloc;                 // also leave the code of glibc's malloc
    const struct plans *plans;   // also leave the code of these areas; may be NULL
};

// Returns the address of the struct spool_thread of the thread with this thread pointer, or 0 if
// unknown.
uint64_t leave_state(const struct remote *r, const struct leave_what *in, uint64_t thread);

// Moves all threads, which must be stopped, out of the code described by `in`. Returns the
// registers of the threads in the order of t->all; the caller must free them. Returns NULL if out
// of memory, or if a thread could not leave in time or is waiting in the kernel. In these cases,
// some threads may be running.
struct machine_registers *leave_all(struct tracees *t, const struct leave_what *in,
                                    uint64_t most_ns);
