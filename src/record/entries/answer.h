// Plans for objects that define an allocator, in programs that run under heaptape.
#pragma once

#include "capture/spool/attach.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// A process that waits for a plan, and the process's descriptor of the object's file.
struct entries_request {
    pid_t pid;
    int fd;
};

// Report on the functions that the plans redirect.
struct entries_report {
    const struct spool_wrap *wrap; // functions of --wrap to find, or NULL
    uint32_t named;                // bits 1 << index of the --wrap functions that were found
    char refused[400]; // "NAME in FILE: REASON" of a function that cannot be redirected, or ""
};

struct entries_answers {
    int dir_fd; // session directory
    struct entries_report *report;
    // File of the program that the recorder starts, or 0. Addresses of --wrap refer to this file.
    struct {
        dev_t device;
        ino_t inode;
    } program;
    pthread_mutex_t mutex; // held while a plan is made
    pthread_t thread;      // makes a plan after an exec
    bool has_thread;
    _Atomic bool busy; // the thread uses `fd` and `path`
    int fd;
    char path[PATH_MAX];
};

// Set dir_fd before the first plan.
void entries_answers_init(struct entries_answers *a, struct entries_report *report);

// Waits for the thread. Call before the directory is closed.
void entries_answers_release(struct entries_answers *a);

// Writes the plan of the object to the session directory (entries_name_file), unless the file
// exists. Omits an allocator if one of its functions cannot be redirected, because a recording of
// only some functions would be wrong. The file is empty if no allocator remains.
void entries_answer(struct entries_answers *a, struct entries_request request);

// Sets the program that the recorder starts. If the file is a large executable, or the user named
// functions, writes the file's plan before a process asks for the plan.
void entries_answer_program(struct entries_answers *a, const char *path);

// If the process runs a large executable, writes its plan in another thread, unless that thread is
// busy. Call from one thread only.
void entries_answer_exec(struct entries_answers *a, pid_t pid);
