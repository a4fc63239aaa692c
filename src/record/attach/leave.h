// Steps the threads of a stopped process out of code that they must not be in.
#ifndef HEAPTAPE_ATTACH_LEAVE_H
#define HEAPTAPE_ATTACH_LEAVE_H

#include "capture/spool/attach.h"
#include "record/attach/tracees.h"

struct leave_what {
    uint64_t state_offset; // of struct spool_thread, from the thread pointer
    uint32_t busy; // bits of its `busy`: SPOOL_THREAD_WRITING, or UINT32_MAX for a whole wrapper
    struct remote_range library; // code of libheaptape.so
    bool malloc;                 // also the code of glibc's malloc
};

// Moves all threads, stopped, out of the code in `in`. Returns their registers in order, freed by
// the caller; NULL if out of memory, or if a thread could not leave in time or waits in the kernel
// (some may then run).
struct user_regs_struct *leave_all(struct tracees *t, const struct leave_what *in,
                                   uint64_t most_ns);

#endif
