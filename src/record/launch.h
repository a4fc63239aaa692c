// Starts the program as if heaptape were not there, and passes signals on to it.
#ifndef HEAPTAPE_RECORD_LAUNCH_H
#define HEAPTAPE_RECORD_LAUNCH_H

#include "record/record.h"

#include <sys/resource.h>

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

enum { LAUNCH_SIGNALS = 7 };

struct launch {
    pid_t pid;
    bool reaped;
    int wait_status;
    int terminations; // requests to end that have come
    int last_signal;
    sigset_t mask;       // as heaptape found it
    struct rlimit files; // the same: the program's limit of descriptors
    struct sigaction actions[LAUNCH_SIGNALS];
};

// Takes the signals over. From here on ^C and ^\ are the program's business, and TERM and HUP are counted.
void launch_signals(struct launch *l);
void launch_signals_restore(struct launch *l);

// From here on each signal that matters makes *doorbell grow. NULL: no longer.
void launch_bell(_Atomic uint32_t *doorbell);

// Starts the program with the session's directory in its environment. 0; a positive errno when it cannot be executed;
// a negative one when heaptape failed.
int launch_start(struct launch *l, const struct record_settings *s, const char *session_dir, struct err *e);

// Reaps the program if it has ended (waits for it if `wait`). True once it has.
bool launch_reap(struct launch *l, bool wait);

// Sends the program what has come for heaptape since the last call.
void launch_forward(struct launch *l);

#endif
