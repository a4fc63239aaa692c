// Processes below the recorder that are not recorded, and the reasons.
//
// If permitted, the kernel reports all processes (record/unrecorded/tree.h). Otherwise /proc is
// searched periodically for descendants of the program and for processes with the session in their
// environment. This method misses short-lived processes.
#pragma once

#include "record/drain/drain.h"
#include "record/processes/limit.h"
#include "record/record.h"

struct tree;

// Settings that decide whether a process is recorded.
struct unrecorded_how {
    const char *dir;
    const char *library; // absolute path of libheaptape.so
    const char *follow;  // as in struct record_settings
    bool attached;       // heaptape attached to the first process
    // If the kernel reports processes: called in another thread when a process has executed a
    // program that can be recorded.
    void (*executed)(void *context, pid_t pid);
    void *context;
};

enum { UNRECORDED_WHY_BYTES = 160 };

struct unrecorded_image {
    char name[SPOOL_NAME_BYTES]; // "" if the process had ended
    // Why the library cannot be in the process, or "" if unknown.
    char why[UNRECORDED_WHY_BYTES];
    bool gone;              // the process ended before everything was read
    uint64_t device, inode; // of the executable; inode is 0 if unknown
    uint32_t own_pid;       // pid in the process's own namespace, or 0 if unknown
    bool followed;
    struct limit limit; // limit that may prevent loading or starting the library
};

// Inspects a process after it has executed a program.
void unrecorded_inspect(struct unrecorded_image *to, pid_t pid, const struct unrecorded_how *how);

struct unrecorded {
    struct unrecorded_how how;
    struct tree *tree; // NULL if the kernel sends no events; /proc is then searched
    uint64_t next_ns;  // earliest time of the next search
    struct unrecorded_process *items;
    size_t n, capacity;
    unsigned long long forks; // forks on the machine at the last search
    unsigned searches;
    pid_t outer_pid; // the recorder's pid in /proc if /proc belongs to another namespace, else 0
    struct running_child *running; // children that were running before heaptape attached
    size_t n_running;
    unsigned due; // number of searches left if no process forks
};

// Call before the program is started. `attached` is the running process to record instead, or 0.
// Borrows the pointers in `how`.
void unrecorded_begin(struct unrecorded *u, const struct unrecorded_how *how, enum clock_kind clock,
                      pid_t attached);

// Returns true if a process of the session is alive, with or without a spool. Returns false if
// unknown. `except` is a process to ignore, or 0.
bool unrecorded_has_survivors(const struct unrecorded *u, pid_t except);

// Searches for descendants of `program` if a search is due. Call after each search for spools.
void unrecorded_search(struct unrecorded *u, pid_t program);

void unrecorded_add_spool(struct unrecorded *u, const struct drain_spool *s);

// Removes the processes that have a spool.
void unrecorded_match(struct unrecorded *u, const struct drain *c);

struct unrecorded_clock {
    uint64_t now; // stamp
    uint64_t stamp_hz;
};

// Call after all spools are found. Adds the missed processes and the processes that reported
// themselves. Returns 0, or -ENOMEM.
int unrecorded_finish(struct unrecorded *u, const struct drain *c, struct unrecorded_clock clock,
                      struct trace_unrecorded *to);

// Adds the calls of processes without a spool to the losses. Any program of the user can write
// these counts.
void unrecorded_count(const struct drain_reserves *n, struct trace_balance *b);

void unrecorded_release(struct unrecorded *u);
