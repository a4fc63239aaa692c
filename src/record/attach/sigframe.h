// Code and a signal frame in a process. A thread that makes calls for heaptape returns to the
// program through them, without a tracer. If heaptape is killed, the thread finishes its current
// call and then restores its registers. Each machine has a file (sigframe_x86_64.c,
// sigframe_aarch64.c).
#pragma once

#include "record/attach/machine.h"

enum { SIGFRAME_BYTES = 20480 }; // memory for the frame, a multiple of the page size

struct sigframe {
    // Code that makes a system call and then loads all registers that the call changes. The frame
    // is not used.
    uint64_t call;
    // Return address of called functions. The code there restores errno and all registers from the
    // frame, with the system call sigreturn, which ends at `returned`.
    uint64_t back, returned;
};

// Writes the code. A thread that executes the code continues with these registers and this signal
// mask, and restarts the system call that was interrupted, if any. Returns 0 or a negative errno.
int sigframe_begin(struct sigframe *f, const struct remote *r,
                   const struct machine_registers *registers, uint64_t mask, struct err *e);

// Writes the frame to `at`, which is aligned to a page, and sets `back`.
bool sigframe_write(struct sigframe *f, const struct remote *r, uint64_t at,
                    const struct machine_registers *registers, uint64_t mask,
                    const struct machine_vectors *vectors);

// Makes the code at `back` store this value of errno.
bool sigframe_keep_errno(const struct sigframe *f, const struct remote *r, uint64_t at, int value);

// Changes the address at which the thread continues. `frame` is 0 if there is no frame.
bool sigframe_set_pc(const struct sigframe *f, const struct remote *r, uint64_t frame, uint64_t pc);

// Removes the code.
void sigframe_end(struct sigframe *f, const struct remote *r);
