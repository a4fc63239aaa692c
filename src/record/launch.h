// Starts the program in its original environment, and forwards signals to it.
#pragma once

#include "record/drain/drain.h"
#include "record/record.h"

#include <sys/resource.h>

#include <sys/types.h>

struct record_launch {
    pid_t pid;
    bool reaped;
    int attached; // pidfd of a running program, or 0 if the recorder started the program
    int wait_status;
    // Highest RSS of the process, as the kernel counted it. 0 if unknown, if the process had child
    // processes, or if the value may be the RSS of heaptape before the exec.
    uint64_t peak_rss_bytes;
    int terminations; // number of termination requests received
    int signals; // number of signals that requested termination; SIGINT may count as two requests
    int last_signal;
    struct rlimit files; // original limit on file descriptors
};

// Installs signal handlers. SIGINT and SIGQUIT are left to the program, and SIGTERM and SIGHUP
// count as termination requests. After the program has ended, SIGINT and SIGQUIT count too.
// Signals from one sender within 0.1 s count once, and signals from the program do not count. After
// the second request, a write that takes longer than a second is cancelled (base/fio.h).
void record_launch_signals(void);

// Blocks the signals of record_launch_signals until record_unblock_signals.
void record_launch_block_signals(void);

// Makes each relevant signal increment *wakeups. NULL disables this.
void record_launch_wake_on_signal(_Atomic uint32_t *wakeups);

// Starts the program with the session directory in its environment. Returns 0, a positive errno if
// the program cannot be executed, or a negative errno if heaptape failed.
int record_launch_start(struct record_launch *l, const struct record_settings *s,
                        const char *session_dir, struct err *e);

// Attaches to a running program, which is not a child. Reports the session directory if the program
// is waiting for it. The exit status will be unknown. Returns 0, or a negative errno.
int record_launch_attach(struct record_launch *l, const struct record_attach *to,
                         const char *session_dir, struct err *e);

// Writes the path of the root directory of a running program, as the recorder sees it, to `path`
// (PATH_MAX bytes). A program in a container has a different root directory. Writes "" if the
// recorder has the same root directory, or if `pid` is 0.
void record_launch_find_root(pid_t pid, char *path);

// Reaps the program if it has ended. If `wait` is set, first waits for the program to end. Returns
// true if the program has ended.
bool record_launch_reap(struct record_launch *l, bool wait);

// Updates the number of termination requests and forwards the first request to the program.
void record_launch_forward(struct record_launch *l);

// Stops recording and waits for the program to exit, so that a full disk does not end the program.
void record_launch_continue_untraced(struct record_launch *l, struct drain *c);
