#include "record/attach/leave.h"

#include "base/clock.h"
#include "record/attach/blocks.h"

#include <stdlib.h>
#include <sys/ptrace.h>

// If a step takes longer than 1/STEPS of the time, the thread is waiting in the kernel.
enum { STEPS = 25 };

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

// Single-steps the thread out of the code, because a running thread may rarely be outside. All
// other threads stay stopped.
static bool step_outside(struct tracees *t, const struct leave_what *in, size_t who,
                         uint64_t until_ns, uint64_t step_ns, struct user_regs_struct *r)
{
    bool known;
    while (!is_outside(t->remote, in, t->all[who].tid, r, &known)) {
        if (!known || t->all[who].state != TRACEE_STOPPED || clock_monotonic_ns() >= until_ns ||
            !tracees_step(t, who, step_ns))
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
    if (good)
        return all;
    free(all);
    return NULL;
}
