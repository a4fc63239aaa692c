#include "record/attach/tracees.h"

#include "base/buf.h"
#include "base/clock.h"
#include "record/attach/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRAP_BIT (1ull << (SIGTRAP - 1))

// Duration of a sleep while there is no event. SIGCHLD, which is blocked, ends the sleep early.
enum { NAP_NS = 500000 };

enum { TOGETHER_NS = 20000000 }; // time for all threads to stop together
enum { SYSCALL_STOP = 0x80 };    // PTRACE_O_TRACESYSGOOD

// Number of attempts at PTRACE_SEIZE, which may fail for no apparent reason.
enum { SEIZE_TRIES = 3 };

static void wait_for_event(void)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigtimedwait(&child, NULL, &(struct timespec){.tv_nsec = NAP_NS});
}

static struct tracee *find_tracee(struct tracees *t, pid_t tid)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->all[i].tid == tid)
            return &t->all[i];
    }
    return NULL;
}

static struct tracee *add_tracee(struct tracees *t, pid_t tid)
{
    if (HT_GROW(&t->all, &t->capacity, t->n + 1) < 0)
        return NULL;
    t->all[t->n] = (struct tracee){
        .tid = tid, .blocks_trap = status_number(t->remote->pid, tid, "SigBlk", 16) & TRAP_BIT};
    return &t->all[t->n++];
}

static void drop_tracee(struct tracees *t, struct tracee *who)
{
    size_t i = (size_t)(who - t->all);
    t->n--;
    memmove(who, who + 1, (t->n - i) * sizeof *who);
}

// Returns 0 if PTRACE_SEIZE failed harmlessly: the kernel returns EPERM for an exiting thread, and
// for a thread that is already traced because a traced thread created it.
static int explain_refusal(const struct tracees *t, pid_t tid, struct err *e)
{
    pid_t pid = t->remote->pid;
    char state = status_letter(pid, tid, "State");
    pid_t tracer = (pid_t)status_number(pid, tid, "TracerPid", 10);
    if (!state || state == 'Z' || state == 'X' || tracer == getpid())
        return 0;
    return tracer ? status_traced(pid, tracer, e) : status_denied(pid, e);
}

// Returns 1 if the thread was seized, 0 if seizing was unnecessary, or a negative errno.
static int seize_thread(struct tracees *t, pid_t tid, struct err *e)
{
    const long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;
    bool seized = ptrace(PTRACE_SEIZE, tid, 0, options) == 0;
    // Try again, because the thread may have been about to exit when the kernel refused.
    for (unsigned i = 0; !seized && errno != ESRCH; i++) {
        struct err why = {0};
        int rc = explain_refusal(t, tid, &why);
        if (rc == 0)
            return 0;
        if (rc != -EACCES || i == SEIZE_TRIES)
            return err_set(e, rc, "%s", why.text);
        seized = ptrace(PTRACE_SEIZE, tid, 0, options) == 0;
    }
    if (seized && !add_tracee(t, tid))
        return err_no_memory(e, NULL);
    return seized;
}

// Attaches to threads that have no tracer. Starts with the main thread, because only one of two
// competing tracers can seize it. Returns the number of threads attached, or a negative errno.
static int seize_new(struct tracees *t, struct err *e)
{
    char path[64];
    struct dirent *d;
    int found = 0;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)t->remote->pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return err_set(e, -ESRCH, "%ld: no such process", (long)t->remote->pid);
    if (!find_tracee(t, t->remote->pid))
        found = seize_thread(t, t->remote->pid, e);
    while (found >= 0 && (d = readdir(tasks))) {
        pid_t tid = (pid_t)strtol(d->d_name, NULL, 10);
        if (tid <= 0 || find_tracee(t, tid))
            continue;
        int rc = seize_thread(t, tid, e);
        found = rc < 0 ? rc : found + rc;
    }
    closedir(tasks);
    return found;
}

int tracees_seize(struct tracees *t, struct remote *r, struct attach_breakpoint *entry,
                  struct err *e)
{
    int found;
    *t = (struct tracees){.remote = r, .entry = entry};
    while ((found = seize_new(t, e)) > 0)
        continue;
    return found;
}

bool tracees_plant(struct tracees *t, struct attach_breakpoint *b, uint64_t at)
{
    if (b->planted)
        return true;
    b->at = at;
    if (!remote_read(t->remote, at, b->original, sizeof b->original))
        return false;
    b->planted = 1; // set before writing, in case this process dies
    b->planted = remote_write(t->remote, at, machine_breakpoint, sizeof machine_breakpoint);
    return b->planted;
}

void tracees_lift(struct tracees *t, struct attach_breakpoint *b)
{
    if (b->planted && remote_write(t->remote, b->at, b->original, sizeof b->original))
        b->planted = 0;
}

static uint64_t get_pc(pid_t tid)
{
    struct machine_registers r;
    return machine_get(tid, &r) ? r.pc : 0;
}

static void set_pc(pid_t tid, uint64_t pc)
{
    struct machine_registers r;
    if (!machine_get(tid, &r))
        return;
    r.pc = pc;
    r.syscall = -1; // do not restart the system call
    machine_set(tid, &r);
}

// Resumes a thread. If a stop was requested, requests it again, because any other stop consumes the
// request.
static void resume_tracee(struct tracee *who, int sig)
{
    who->state = TRACEE_RUNS;
    ptrace(who->calls ? PTRACE_SYSCALL : PTRACE_CONT, who->tid, 0, sig);
    if (who->interrupted)
        ptrace(PTRACE_INTERRUPT, who->tid, 0, 0);
}

// Removes the breakpoint that a forked child has inherited.
static void remove_copied_breakpoint(const struct tracees *t, pid_t child)
{
    char path[64];
    uint8_t now[MACHINE_BREAKPOINT_BYTES] = {0};
    const ssize_t bytes = sizeof now;
    off_t at = (off_t)t->entry->at;
    snprintf(path, sizeof path, "/proc/%ld/mem", (long)child);
    int memory = open(path, O_RDWR | O_CLOEXEC);
    if (memory >= 0 && at && pread(memory, now, sizeof now, at) == bytes &&
        memcmp(now, machine_breakpoint, sizeof now) == 0 &&
        pwrite(memory, t->entry->original, sizeof now, at) != bytes)
        errno = 0; // the child has ended
    if (memory >= 0)
        close(memory);
}

static void release_child(struct tracees *t, pid_t parent, bool shares)
{
    unsigned long child = 0;
    int status;
    if (ptrace(PTRACE_GETEVENTMSG, parent, 0, &child) < 0)
        return;
    struct tracee *known = find_tracee(t, (pid_t)child);
    if (known)
        drop_tracee(t, known);
    else if (waitpid((pid_t)child, &status, __WALL) != (pid_t)child || !WIFSTOPPED(status))
        return;
    if (!shares)
        remove_copied_breakpoint(t, (pid_t)child);
    ptrace(PTRACE_DETACH, child, 0, 0);
}

static void on_fork(struct tracees *t, struct tracee *who, bool shares)
{
    pid_t parent = who->tid;
    t->vforks += shares;
    if (shares)
        tracees_lift(t, t->entry);
    release_child(t, parent, shares);
    resume_tracee(find_tracee(t, parent), 0);
}

static void on_vfork_done(struct tracees *t, struct tracee *who)
{
    t->vforks -= t->vforks > 0;
    if (!t->vforks && t->wanted)
        tracees_plant(t, t->entry, t->entry->at);
    resume_tracee(who, 0);
}

// Returns true if the thread has hit a breakpoint or finished a step, but its SIGTRAP is still
// pending because a requested stop came first. After detaching, the signal would kill the process.
static bool is_trapped(const struct tracees *t, const struct tracee *who)
{
    uint64_t pc = get_pc(who->tid);
    return ((t->entry->at && pc == t->entry->at + MACHINE_TRAPPED_BYTES) || who->steps) &&
           status_number(t->remote->pid, who->tid, "SigPnd", 16) & TRAP_BIT;
}

static bool is_group_stop(int sig)
{
    return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static enum tracees_event on_stop(struct tracees *t, struct tracee *who, int sig)
{
    if (is_group_stop(sig)) {
        who->state = TRACEE_LISTENS;
        ptrace(PTRACE_LISTEN, who->tid, 0, 0);
        return TRACEES_NOTHING;
    }
    if (!who->interrupted) { // a new thread
        resume_tracee(who, 0);
        return TRACEES_NOTHING;
    }
    if (is_trapped(t, who)) { // the next stop will be for SIGTRAP
        ptrace(PTRACE_CONT, who->tid, 0, 0);
        return TRACEES_NOTHING;
    }
    who->interrupted = false;
    who->state = TRACEE_STOPPED;
    return TRACEES_STOPPED;
}

static void block_trap_again(pid_t tid)
{
    uint64_t mask = 0;
    if (ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) == 0) {
        mask |= TRAP_BIT;
        ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
    }
}

// Returns true if the stop was caused by a single step. Stops at the program's own breakpoints have
// the code SI_KERNEL.
static bool consume_trap(struct tracee *who)
{
    siginfo_t info;
    bool step = who->steps && ptrace(PTRACE_GETSIGINFO, who->tid, 0, &info) == 0 &&
                (info.si_code == TRAP_TRACE || info.si_code == TRAP_BRKPT);
    if (step)
        who->steps = false;
    if (who->blocks_trap)
        block_trap_again(who->tid);
    return step;
}

static enum tracees_event on_trap(struct tracees *t, struct tracee *who)
{
    uint64_t pc = get_pc(who->tid);
    if (consume_trap(who)) { // the trap is from an earlier step
        resume_tracee(who, 0);
        return TRACEES_NOTHING;
    }
    who->state = TRACEE_STOPPED;
    if (pc == t->entry->at + MACHINE_TRAPPED_BYTES && t->entry->at) {
        set_pc(who->tid, t->entry->at);
        if (t->entry->planted)
            return TRACEES_AT_ENTRY;
        resume_tracee(who, 0); // the breakpoint has already been removed
        return TRACEES_NOTHING;
    }
    resume_tracee(who, SIGTRAP); // the trap is from the program's own breakpoint
    return TRACEES_NOTHING;
}

static enum tracees_event on_status(struct tracees *t, struct tracee *who, int status)
{
    int sig = WSTOPSIG(status);
    switch (status >> 16) {
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
        on_fork(t, who, status >> 16 == PTRACE_EVENT_VFORK);
        return TRACEES_NOTHING;
    case PTRACE_EVENT_VFORK_DONE:
        on_vfork_done(t, who);
        return TRACEES_NOTHING;
    case PTRACE_EVENT_CLONE:
        resume_tracee(who, 0);
        return TRACEES_NOTHING;
    case PTRACE_EVENT_EXEC:
        // The memory now belongs to another program.
        t->gone = true;
        t->entry->planted = 0;
        who->state = TRACEE_STOPPED;
        return TRACEES_NOTHING;
    case PTRACE_EVENT_STOP:
        return on_stop(t, who, sig);
    }
    if (sig == (SIGTRAP | SYSCALL_STOP)) {
        who->state = TRACEE_STOPPED;
        return TRACEES_AT_SYSCALL;
    }
    if (sig == SIGTRAP)
        return on_trap(t, who);
    resume_tracee(who, sig);
    return TRACEES_NOTHING;
}

static bool is_thread(const struct tracees *t, pid_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/task/%ld", (long)t->remote->pid, (long)tid);
    return access(path, F_OK) == 0;
}

static enum tracees_event on_report(struct tracees *t, pid_t tid, int status, size_t *who)
{
    struct tracee *it = find_tracee(t, tid);
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
        if (it)
            drop_tracee(t, it);
        t->gone |= tid == t->remote->pid || t->n == 0;
        return TRACEES_NOTHING;
    }
    bool is_new = !it;
    it = it ? it : add_tracee(t, tid);
    if (!it) {
        ptrace(PTRACE_DETACH, tid, 0, 0);
        return TRACEES_NOTHING;
    }
    if (is_new && !is_thread(t, tid)) {
        it->state = TRACEE_CHILD;
        return TRACEES_NOTHING;
    }
    enum tracees_event event = on_status(t, it, status);
    *who = (size_t)(it - t->all);
    return event;
}

enum tracees_event tracees_next(struct tracees *t, size_t *who)
{
    int status;
    pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);
    t->gone |= tid < 0;
    if (tid > 0)
        return on_report(t, tid, status, who);
    wait_for_event();
    return TRACEES_NOTHING;
}

void tracees_continue(struct tracees *t, size_t who)
{
    resume_tracee(&t->all[who], 0);
}

void tracees_finish_syscall(struct tracees *t, size_t who)
{
    struct tracee *it = &t->all[who];
    it->calls = false;
    it->state = TRACEE_RUNS;
    // If a stop is requested before the thread continues, the thread stops before its first
    // instruction.
    it->interrupted = ptrace(PTRACE_INTERRUPT, it->tid, 0, 0) == 0;
    ptrace(PTRACE_CONT, it->tid, 0, 0);
}

// Makes a stopped thread execute one instruction or enter a signal handler. Returns false if the
// thread has ended, or if it is waiting in the kernel. A waiting thread is left running. Indices of
// threads may change.
static bool step_tracee(struct tracees *t, size_t who, uint64_t most_ns)
{
    struct tracee *it = &t->all[who];
    const pid_t tid = it->tid;
    uint64_t start = clock_monotonic_ns();
    int status = 0, sig = 0;
    pid_t got;
    do {
        it->state = TRACEE_RUNS;
        it->steps = ptrace(PTRACE_SINGLESTEP, tid, 0, sig) == 0;
        while ((got = waitpid(tid, &status, __WALL | WNOHANG)) == 0 &&
               clock_monotonic_ns() - start < most_ns)
            wait_for_event();
        if (got != tid)
            return false;
        sig = WIFSTOPPED(status) && !(status >> 16) ? WSTOPSIG(status) : 0;
        if (sig == SIGTRAP && consume_trap(it)) {
            it->state = TRACEE_STOPPED;
            return true;
        }
    } while (sig && sig != SIGTRAP);
    on_report(t, tid, status, &who);
    return false;
}

// If a signal handler runs first, the thread reaches the breakpoint again after the handler.
void tracees_step_over(struct tracees *t, size_t who)
{
    const uint64_t most_ns = 1000000000u;
    bool planted = t->entry->planted;
    tracees_lift(t, t->entry);
    bool stands = step_tracee(t, who, most_ns);
    if (planted)
        tracees_plant(t, t->entry, t->entry->at);
    if (stands)
        resume_tracee(&t->all[who], 0);
}

void tracees_interrupt(struct tracees *t, size_t who)
{
    struct tracee *it = &t->all[who];
    if (it->state == TRACEE_STOPPED || it->interrupted)
        return;
    it->interrupted = ptrace(PTRACE_INTERRUPT, it->tid, 0, 0) == 0;
}

static bool have_all_stopped(const struct tracees *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->all[i].state == TRACEE_RUNS && t->all[i].interrupted)
            return false;
    }
    return true;
}

bool tracees_stop_all(struct tracees *t, uint64_t most_ns)
{
    uint64_t start = clock_monotonic_ns();
    bool in_time = true;
    for (;;) {
        size_t who;
        // Request all stops before waiting, and also stop the threads that are created during the
        // wait.
        for (size_t i = 0; i < t->n; i++)
            tracees_interrupt(t, i);
        in_time = clock_monotonic_ns() - start < most_ns;
        if (have_all_stopped(t) || t->gone || !in_time)
            return in_time;
        tracees_next(t, &who);
    }
}

void tracees_continue_all(struct tracees *t, size_t except)
{
    for (size_t i = 0; i < t->n; i++) {
        if (i != except && t->all[i].state == TRACEE_STOPPED)
            resume_tracee(&t->all[i], 0);
    }
}

// First tries to stop all threads together, so that threads that have already stopped do not
// compete for the CPUs with the others. After TOGETHER_NS, resumes each thread as soon as it stops,
// because a thread that waits for a vfork child stops late.
bool tracees_pass_all(struct tracees *t, uint64_t most_ns)
{
    uint64_t start = clock_monotonic_ns();
    bool all_stopped = tracees_stop_all(t, TOGETHER_NS);
    tracees_continue_all(t, SIZE_MAX);
    if (all_stopped)
        return !t->gone;
    while (!have_all_stopped(t) && !t->gone) {
        size_t who;
        if (clock_monotonic_ns() - start >= most_ns)
            return false;
        if (tracees_next(t, &who) != TRACEES_NOTHING)
            tracees_continue(t, who);
    }
    return !t->gone;
}

// Returns true if any thread is runnable. Such a thread may have reached a breakpoint whose signal
// is pending.
static bool is_any_runnable(const struct tracees *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->all[i].state == TRACEE_RUNS &&
            status_letter(t->remote->pid, t->all[i].tid, "State") == 'R')
            return true;
    }
    return false;
}

void tracees_release(struct tracees *t)
{
    const uint64_t at_once_ns = 100000000u, most_ns = 2000000000u, starved_ns = 60000000000u;
    uint64_t start = clock_monotonic_ns(), now = start;
    tracees_lift(t, t->entry);
    while (!tracees_stop_all(t, at_once_ns) && !t->gone &&
           (now - start < most_ns || (now - start < starved_ns && is_any_runnable(t))))
        now = clock_monotonic_ns();
    for (size_t i = 0; i < t->n; i++) {
        if (t->all[i].state == TRACEE_CHILD)
            remove_copied_breakpoint(t, t->all[i].tid);
        ptrace(PTRACE_DETACH, t->all[i].tid, 0, 0);
    }
    free(t->all);
    t->all = NULL;
    t->n = 0;
}
