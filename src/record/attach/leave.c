#include "record/attach/leave.h"

#include "base/clock.h"
#include "record/attach/blocks.h"

#include <stdlib.h>
#include <time.h>

enum {
    RUN_NS = 30000,        // run time in the first try: a few hundred calls of malloc
    MOST_RUN_NS = 1000000, // run time in the longest try
    TRIES = 16,            // tries of each duration
    WAITS = 4, // tries after which a thread in a system call is considered to be waiting
};

uint64_t leave_state(const struct remote *r, const struct leave_what *in, uint64_t thread)
{
    uint64_t vector, n, state;
    if (!in->module)
        return thread + in->state_offset;
    // The first word of the vector is the number of modules.
    return remote_read(r, thread + MACHINE_MUSL_VECTOR, &vector, sizeof vector) &&
                   remote_read(r, vector, &n, sizeof n) && in->module <= n &&
                   remote_read(r, vector + in->module * sizeof state, &state, sizeof state)
               ? state
               : 0;
}

static bool is_outside(struct remote *remote, const struct leave_what *in, pid_t tid,
                       struct machine_registers *r, bool *known)
{
    struct spool_thread state;
    *known = machine_get(tid, r) &&
             remote_read(remote, leave_state(remote, in, r->thread), &state, sizeof state);
    return *known && !(state.busy & in->busy) &&
           (r->pc < in->library.start || r->pc >= in->library.end) &&
           !(in->plans && plans_have_code(in->plans, r->pc)) &&
           !(in->malloc && blocks_is_malloc(remote, r->pc));
}

// Lets a stopped thread run for a moment. Returns false if it does not stop again, or if the
// indices of threads may have changed.
static bool run_briefly(struct tracees *t, size_t who, long run_ns, uint64_t until_ns)
{
    const pid_t tid = t->all[who].tid;
    tracees_continue(t, who);
    nanosleep(&(struct timespec){.tv_nsec = run_ns}, NULL);
    tracees_interrupt(t, who);
    while (!t->gone && clock_monotonic_ns() < until_ns) {
        size_t other;
        if (tracees_next(t, &other) == TRACEES_NOTHING)
            continue;
        if (t->all[other].tid == tid)
            return other == who;
    }
    return false;
}

// Runs the thread until it is outside the code. All other threads stay stopped. Does not use single
// steps: if this process were killed after a step, the thread would get SIGTRAP.
static bool run_outside(struct tracees *t, const struct leave_what *in, size_t who,
                        uint64_t until_ns, struct machine_registers *r)
{
    bool known;
    unsigned waits = 0;
    long run_ns = RUN_NS;
    for (unsigned i = 1; !is_outside(t->remote, in, t->all[who].tid, r, &known); i++) {
        waits = r->syscall >= 0 ? waits + 1 : 0;
        if (!known || t->all[who].state != TRACEE_STOPPED || clock_monotonic_ns() >= until_ns ||
            waits > WAITS || !run_briefly(t, who, run_ns, until_ns))
            return false;
        run_ns *= i % TRIES == 0 && run_ns < MOST_RUN_NS ? 2 : 1;
    }
    return true;
}

struct machine_registers *leave_all(struct tracees *t, const struct leave_what *in,
                                    uint64_t most_ns)
{
    uint64_t until = clock_monotonic_ns() + most_ns;
    size_t n = t->n;
    struct machine_registers *all = calloc(n + 1, sizeof *all);
    bool good = all;
    for (size_t i = 0; good && i < n; i++)
        good = run_outside(t, in, i, until, &all[i]);
    // Fail if a thread that ran has started another thread.
    if (good && t->n == n)
        return all;
    free(all);
    return NULL;
}
