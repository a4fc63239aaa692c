// The threads of another process under ptrace(2). The functions leave the threads running unless
// their comments say otherwise.
#pragma once

#include "record/attach/machine.h"

// A breakpoint. It is in shared memory, so that another process can remove it if this process dies.
struct attach_breakpoint {
    uint64_t at;
    uint8_t original[MACHINE_BREAKPOINT_BYTES];
    volatile uint8_t planted;
};

enum tracee_state {
    TRACEE_RUNS,
    TRACEE_STOPPED,
    TRACEE_LISTENS, // in a group-stop
    TRACEE_CHILD,   // a new process that is stopped but not yet reported by its parent
};

struct tracee {
    pid_t tid;
    enum tracee_state state;
    bool interrupted; // a stop was requested
    bool steps;       // the SIGTRAP of a single step is pending
    bool calls;       // stops at each system call
    // The thread blocks SIGTRAP. The kernel unblocks it at a breakpoint or step.
    bool blocks_trap;
};

struct tracees {
    struct remote *remote;
    struct tracee *all;
    size_t n, capacity;
    struct attach_breakpoint *entry; // at the entry of malloc
    bool wanted;                     // re-insert `entry` when no vfork child shares the memory
    unsigned vforks;                 // number of children that share the memory
    bool gone;                       // the process has ended or called exec
};

enum tracees_event {
    TRACEES_NOTHING,
    // A thread is stopped at `entry`. Its program counter has been reset to `entry`.
    TRACEES_AT_ENTRY,
    TRACEES_AT_SYSCALL, // a thread whose `calls` is set begins or ends a system call
    TRACEES_STOPPED,    // a thread stopped on request
};

// Attaches to all threads without stopping them. Returns 0, or a negative errno.
int tracees_seize(struct tracees *t, struct remote *r, struct attach_breakpoint *entry,
                  struct err *e);

// Removes the breakpoint and detaches from all threads.
void tracees_release(struct tracees *t);

bool tracees_plant(struct tracees *t, struct attach_breakpoint *b, uint64_t at);
void tracees_lift(struct tracees *t, struct attach_breakpoint *b);

// Handles a pending event of any thread. Sets *who to the index of the thread that stopped.
enum tracees_event tracees_next(struct tracees *t, size_t *who);

// Resumes a stopped thread.
void tracees_continue(struct tracees *t, size_t who);

// Resumes a thread that is stopped at a system call, until the kernel has finished the call. Then
// the thread stops (TRACEES_STOPPED) without having executed an instruction.
void tracees_finish_syscall(struct tracees *t, size_t who);

// Resumes a thread stopped at `entry`, past the breakpoint.
void tracees_step_over(struct tracees *t, size_t who);

void tracees_interrupt(struct tracees *t, size_t who);

// Stops and resumes each thread once. Afterwards, all system calls that began before attaching have
// ended. Returns false on timeout.
bool tracees_pass_all(struct tracees *t, uint64_t most_ns);

// Stops all threads. Returns false on timeout.
bool tracees_stop_all(struct tracees *t, uint64_t most_ns);

// Resumes all stopped threads except number `except`.
void tracees_continue_all(struct tracees *t, size_t except);
