// Processes that ran below the recorder and are not recorded, and why.
//
// The kernel reports all of them (record/processes/tree.h) where it may. Elsewhere /proc is searched every now and then: by whose
// children they are, and by the session in their environment; a process that lives for less than that is not seen.
#ifndef HEAPTAPE_RECORD_UNRECORDED_H
#define HEAPTAPE_RECORD_UNRECORDED_H

#include "record/drain/drain.h"
#include "record/processes/limit.h"
#include "record/record.h"

struct tree;

// How a process is to be recorded.
struct unrecorded_how {
    const char *dir;     // of the session
    const char *library; // libheaptape.so, absolute
    const char *follow;  // as struct record_settings has it
};

enum { UNRECORDED_WHY_BYTES = 160 };

// What there is to be seen of a process.
struct unrecorded_look {
    char name[SPOOL_NAME_BYTES]; // "": it was gone
    char
        why[UNRECORDED_WHY_BYTES]; // why the library cannot be in it; "": nothing speaks against it
    bool gone;                     // it ended before all was seen
    uint64_t device, inode;        // of its file; inode 0: unknown
    bool followed;
    struct limit
        limit; // a resource limit that may have kept the library from being loaded or started
};

// Looks at a process that has just executed a program, or later.
void unrecorded_look_at(struct unrecorded_look *look, pid_t pid, const struct unrecorded_how *how);

struct unrecorded {
    struct unrecorded_how how;
    struct tree *tree; // NULL: the kernel reports nothing, and /proc is searched
    uint64_t next_ns;  // not before
    struct unrecorded_process *items;
    size_t n, capacity;
    unsigned long long forks; // of the machine, at the last look
    unsigned look;            // their number
    pid_t outer_pid; // of the recorder in /proc, where that is of another pid namespace; else 0
    unsigned due;    // looks, until something forks again
};

// Before the program is started (`attached`: or of one that runs, its pid). What `how` points to is borrowed.
void unrecorded_begin(struct unrecorded *u, const struct unrecorded_how *how, enum clock_kind clock,
                      pid_t attached);

// Does a process live that belongs to the session, whether it has a spool or not? `except`: a process that is known to
// live and does not count; 0: none. False also where that cannot be known.
bool unrecorded_has_survivors(const struct unrecorded *u, pid_t except);

// Looks at what has changed, if that is long enough ago. `program`: whose children are looked for. Between two calls the
// recorder has looked for new spools.
void unrecorded_look(struct unrecorded *u, pid_t program);

// A spool was found.
void unrecorded_spool(struct unrecorded *u, const struct drain_spool *s);

// Forgets the processes that have a spool.
void unrecorded_match(struct unrecorded *u, const struct drain *c);

struct unrecorded_clock {
    uint64_t now; // a stamp
    uint64_t stamp_hz;
};

// When all spools have been found: fills in what was missed, and what says so itself beside its user's reserves. 0 or -ENOMEM.
int unrecorded_finish(struct unrecorded *u, const struct drain *c, struct unrecorded_clock clock,
                      struct trace_unrecorded *to);

// Adds the calls of processes that could not make a spool to what is lost. Any program of the user can write there.
void unrecorded_count(const struct drain_reserves *n, struct record_result *result);

void unrecorded_release(struct unrecorded *u);

#endif
