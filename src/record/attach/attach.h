// Starts and ends the recording of a running process, by making it load libheaptape.so with
// ptrace(2).
//
// One thread is stopped at a place where it holds no lock: at the entry of malloc, or waiting in a
// system call. This thread makes the calls on a separate stack and then continues where it was
// stopped. During the calls, the other threads are stopped for a few milliseconds. A child of the
// recorder controls the threads while the recorder drains. If the child is killed, the thread
// restores itself (docs/design/capture.md).
#pragma once

#include "base/err.h"
#include "capture/spool/attach.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct attach_result {
    uint32_t threads;
    uint64_t paused_ns; // longest time that a thread was stopped
    uint64_t listed_blocks, listed_bytes;
    uint64_t call_ns; // time spent in the calls of attach_call
    // Reason why the blocks are not listed, or "" if they are listed or were not requested.
    char not_listed[200];
    // Why some functions are recorded through the loader's tables, or "" if all functions are
    // redirected.
    char not_redirected[200];
    // Why the executable's allocator is not recorded, or "". Set only if the program calls this
    // allocator directly, not through dynamic symbols.
    char not_recorded[200];
}; // Initialize to zero. paused_ns is the maximum over all calls with this result.

struct attach_how {
    const char *library;            // path of libheaptape.so in the recorder's file system
    const char *session_dir;        // path in the process's file system
    bool list_blocks;               // record glibc's live blocks
    const struct spool_wrap *names; // names of additional functions to wrap, or NULL
};

// Callbacks of attach_begin and attach_end. May be NULL.
struct attach_meanwhile {
    void (*call)(void *context); // called repeatedly during waits
    void *context;
    // Held during forks, or NULL. Threads that allocate memory must also hold it, so that no lock
    // of AddressSanitizer's allocator stays locked in the child.
    pthread_mutex_t *allocating;
};

// Time limit of a call that waits for a lock in the process. Tests shorten it.
extern uint64_t attach_call_ns;

// Starts recording into a session. If the recorder of an earlier recording has died, first ends
// that recording. Returns 0, or a negative errno with the process unchanged: -ESRCH, -EPERM,
// -EACCES, -ENOTSUP (cannot be attached to), -EBUSY (no thread reached a safe place in time), -EIO
// (a called function waited for a lock for too long), -EPROTO (the library could not join the
// session).
int attach_begin(pid_t pid, const struct attach_how *how, const struct attach_meanwhile *meanwhile,
                 struct attach_result *result, struct err *e);

// Ends a recording. The process then calls malloc directly; the idle library remains in it. If
// `owner` is not 0, ends only a recording whose recorder is `owner` or has died. Returns 0, or a
// negative errno like attach_begin. Returns -ENOENT if heaptape was never attached or the recording
// has another owner.
int attach_end(pid_t pid, pid_t owner, const struct attach_meanwhile *meanwhile,
               struct attach_result *result, struct err *e);

// Arguments of a function. `value` is a word in the process.
enum attach_form {
    ATTACH_NUMBER,   // f(number)
    ATTACH_PROPERTY, // f(text, &value)
    ATTACH_READ,     // f(text, &value, &size, NULL, 0), like mallctl
    ATTACH_WRITE,    // f(text, NULL, NULL, &value, size)
    ATTACH_RUN       // f(text, NULL, NULL, NULL, 0)
};

enum { ATTACH_CALLS = 12, ATTACH_TEXT_BYTES = 64 };

struct attach_call {
    const char *function;
    enum attach_form form;
    uint64_t number; // argument, or the value to write
    char text[ATTACH_TEXT_BYTES];
    uint64_t result, value; // result, and `value` after the call
};

// Calls up to ATTACH_CALLS functions in a thread of the process. The thread is stopped during the
// calls; the other threads run. Returns 0, or a negative errno with the process unchanged, like
// attach_begin. Also returns -ENOTSUP if the process lacks a function or has a seccomp filter.
int attach_call(pid_t pid, struct attach_call *calls, size_t n, struct attach_result *result,
                struct err *e);
