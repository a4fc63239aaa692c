// Steps the threads of a process out of code in which they must not be when something is done while they all stand.
#ifndef HEAPTAPE_ATTACH_LEAVE_H
#define HEAPTAPE_ATTACH_LEAVE_H

#include "capture/spool/attach.h"
#include "record/attach/tracees.h"

struct leave_what {
    uint64_t state_offset; // of struct spool_thread, from the thread pointer
    uint32_t busy; // bits of its `busy`: SPOOL_THREAD_WRITING, or UINT32_MAX for all of a wrapper
    struct remote_range library; // its code
    bool malloc;                 // and the allocator's, which is glibc's
};

// Of all threads, which stand. Takes most_ns at most. Returns their registers, in the order of the threads, to be freed. NULL: one
// could not leave in time, or waits in the kernel; then some may run. Or no memory is left.
struct user_regs_struct *leave_all(struct tracees *t, const struct leave_what *in,
                                   uint64_t most_ns);

#endif
