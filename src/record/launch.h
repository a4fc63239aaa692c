// Starts the program as if heaptape were not there, and passes signals on to it.
#ifndef HEAPTAPE_RECORD_LAUNCH_H
#define HEAPTAPE_RECORD_LAUNCH_H

#include "record/drain/drain.h"
#include "record/record.h"

#include <sys/resource.h>

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

enum { LAUNCH_SIGNALS = 8 };

struct record_launch {
    pid_t pid;
    bool reaped;
    int attached; // pidfd of a program that runs already; 0: there is none
    int wait_status;
    int terminations; // requests to end that have come
    int last_signal;
    sigset_t mask;       // as heaptape found it
    struct rlimit files; // the same: the program's limit of descriptors
    struct sigaction actions[LAUNCH_SIGNALS];
};

// Takes the signals over. From here on ^C (and SIGQUIT) is the program's business, and TERM and HUP are counted, as is ^C
// once the program has ended. From the second on a write is cancelled that takes a second (base/fio.h).
void record_launch_signals(struct record_launch *l);
void record_launch_signals_restore(struct record_launch *l);

// From here on each signal that matters makes *wakeups grow. NULL: no longer.
void record_launch_wake_on_signal(_Atomic uint32_t *wakeups);

// Starts the program with the session's directory in its environment. 0; a positive errno when it cannot be executed;
// a negative one when heaptape failed.
int record_launch_start(struct record_launch *l, const struct record_settings *s,
                        const char *session_dir, struct err *e);

// Instead of that: takes a program that runs already, which is no child, and reports the session's directory to it if it waits
// for that. Of its
// end only the moment is known. 0, or a negative errno.
int record_launch_attach(struct record_launch *l, const struct record_attach *to,
                         const char *session_dir, struct err *e);

// Where the root directory of a program that runs already is seen from here: containers have file systems of their own. Writes
// a path of PATH_MAX bytes; "" when it is the same one, or `pid` is 0.
void record_launch_find_root(pid_t pid, char *path);

// Reaps the program if it has ended (waits for it if `wait`). True once it has.
bool record_launch_reap(struct record_launch *l, bool wait);

// Counts what has come for heaptape. The first one is passed on to the program.
void record_launch_forward(struct record_launch *l);

// Ends the recording and waits for the program: a full disk is no reason to end somebody's program.
void record_launch_continue_untraced(struct record_launch *l, struct drain *c);

#endif
