#include "record/attach/leave.h"

#include "base/clock.h"
#include "record/attach/blocks.h"

#include <stdlib.h>
#include <sys/ptrace.h>
#include <time.h>

enum {
    STEPS = 25, // if a step takes longer than 1/STEPS of the time, the thread waits in the kernel
    RUNS = 20,  // tries before the thread is stepped
    RUN_NS = 30000, // duration of a try, some hundred calls of malloc
};

static bool is_outside(struct remote *remote, const struct leave_what *in, pid_t tid,
                       struct user_regs_struct *r, bool *known)
{
    struct spool_thread state;
    *known = ptrace(PTRACE_GETREGS, tid, 0, r) == 0 &&
             remote_read(remote, r->fs_base + in->state_offset, &state, sizeof state);
    return *known && !(state.busy & in->busy) &&
           (r->rip < in->library.start || r->rip >= in->library.end) &&
           !(in->plans && plans_have_code(in->plans, r->rip)) &&
           !(in->malloc && blocks_is_malloc(remote, r->rip));
}

// Lets a stopped thread run for a moment. Returns false if it does not stop again, or if the indices
// of threads may have changed.
static bool run_briefly(struct tracees *t, size_t who, uint64_t most_ns)
{
    const pid_t tid = t->all[who].tid;
    uint64_t start = clock_monotonic_ns();
    tracees_continue(t, who);
    nanosleep(&(struct timespec){.tv_nsec = RUN_NS}, NULL);
    tracees_interrupt(t, who);
    while (!t->gone && clock_monotonic_ns() - start < most_ns) {
        size_t other;
        if (tracees_next(t, &other) == TRACEES_NOTHING)
            continue;
        if (t->all[other].tid == tid)
            return other == who;
    }
    return false;
}

// Runs the thread until it is outside of the code. After RUNS tries, single-steps it, because a
// running thread may rarely be outside. A step takes longer than a try if the CPUs are idle. All
// other threads stay stopped.
static bool step_outside(struct tracees *t, const struct leave_what *in, size_t who,
                         uint64_t until_ns, uint64_t step_ns, struct user_regs_struct *r)
{
    bool known;
    for (unsigned i = 0; !is_outside(t->remote, in, t->all[who].tid, r, &known); i++) {
        if (!known || t->all[who].state != TRACEE_STOPPED || clock_monotonic_ns() >= until_ns ||
            !(i < RUNS ? run_briefly(t, who, step_ns) : tracees_step(t, who, step_ns)))
            return false;
    }
    return true;
}

struct user_regs_struct *leave_all(struct tracees *t, const struct leave_what *in, uint64_t most_ns)
{
    uint64_t until = clock_monotonic_ns() + most_ns;
    size_t n = t->n;
    struct user_regs_struct *all = calloc(n + 1, sizeof *all);
    bool good = all;
    for (size_t i = 0; good && i < n; i++)
        good = step_outside(t, in, i, until, most_ns / STEPS, &all[i]);
    // A thread that ran may have started another one.
    if (good && t->n == n)
        return all;
    free(all);
    return NULL;
}
