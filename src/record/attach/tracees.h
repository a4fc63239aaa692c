// The threads of another process under ptrace(2): they run but for what happens here.
#ifndef HEAPTAPE_ATTACH_TRACEES_H
#define HEAPTAPE_ATTACH_TRACEES_H

#include "record/attach/remote.h"

#include <sys/user.h>

// A breakpoint. Shared with a process that removes it if this one dies.
struct attach_breakpoint {
    uint64_t at;
    uint8_t original;
    volatile uint8_t planted;
};

enum tracee_state {
    TRACEE_RUNS,
    TRACEE_STOPPED,
    TRACEE_LISTENS, // in a group-stop
    TRACEE_CHILD,   // a new process that stands, and whose parent has not reported it yet
};

struct tracee {
    pid_t tid;
    enum tracee_state state;
    bool interrupted; // a stop has been asked for
    bool steps;       // the SIGTRAP of a single step is to come
    bool blocks_trap; // it blocks SIGTRAP: the kernel takes that from it at a breakpoint or step
};

struct tracees {
    struct remote *remote;
    struct tracee *all;
    size_t n, capacity;
    struct attach_breakpoint *entry; // of malloc
    struct attach_breakpoint *trap;  // where called functions return to
    bool wanted;     // the breakpoint at the entry is to be there when nobody has to do without
    unsigned vforks; // children that share the memory
    bool gone;       // the process has ended, or executed another program
};

enum tracees_event {
    TRACEES_NOTHING,
    TRACEES_AT_ENTRY, // a thread has reached the breakpoint at the entry and stands before it
    TRACEES_AT_TRAP,
    TRACEES_STOPPED, // a thread has stopped as asked
};

// Attaches to all threads, which go on. 0, or a negative errno.
int tracees_seize(struct tracees *t, struct remote *r, struct attach_breakpoint breakpoints[2],
                  struct err *e);

// Detaches from all threads, after the breakpoints have been removed. They go on where they are.
void tracees_release(struct tracees *t);

// Inserts a breakpoint, or removes it.
bool tracees_plant(struct tracees *t, struct attach_breakpoint *b, uint64_t at);
void tracees_lift(struct tracees *t, struct attach_breakpoint *b);

// Takes the next event of any thread, if there is one; *who is the number of the thread that has stopped.
enum tracees_event tracees_next(struct tracees *t, size_t *who);

// Lets a stopped thread go on.
void tracees_continue(struct tracees *t, size_t who);

// Lets a thread that stands at the entry go on past it, and puts the breakpoint back in.
void tracees_step_over(struct tracees *t, size_t who);

// Lets a thread that stands execute one instruction, or begin a signal's handler. False: it did not in time, because it waits in
// the kernel, and runs; or it has ended, and the numbers of threads may be others.
bool tracees_step(struct tracees *t, size_t who, uint64_t most_ns);

// Asks a thread to stop; all of them.
void tracees_interrupt(struct tracees *t, size_t who);

// Has each thread stop for a moment and go on: what it was doing in the kernel when it was attached to is over. False: not in
// time.
bool tracees_pass_all(struct tracees *t, uint64_t most_ns);

// Stops all threads and waits until they stand. False: not in time.
bool tracees_stop_all(struct tracees *t, uint64_t most_ns);

// Lets all threads go on that have stopped, but `except`.
void tracees_continue_all(struct tracees *t, size_t except);

#endif
