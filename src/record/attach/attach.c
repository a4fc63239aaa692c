#include "record/attach/attach.h"

#include "base/clock.h"
#include "capture/spool/attach.h"
#include "record/attach/blocks.h"
#include "record/attach/filters.h"
#include "record/attach/leave.h"
#include "record/attach/plans.h"
#include "record/attach/sigframe.h"
#include "record/attach/status.h"
#include "record/attach/tracees.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS(n) ((n)*1000000ull)

enum {
    STACK_BYTES = 256 << 10, // stack for called functions; a thread's own stack may be too small
    RED_ZONE = 128,          // bytes between the first stack frame and the arguments
    MAX_PATH = 4096,
    MAX_MODULES = 65536,
    WAITING_TRIES = 100, // tries to find a waiting thread, one every 10 ms
};
#define PICKY_NS MS(200) // time to find a thread that calls malloc from outside libc
// Time to find a thread that calls malloc from anywhere. Afterwards, search for a thread in a
// system call.
#define ENTRY_NS      MS(2000)
#define CALL_NS       MS(10000)
#define TRIM_NS       MS(600000) // time for malloc_trim, which depends on the size of the heap
#define BUSY_NS       MS(5000)   // time for another tracer to detach before a recording is ended
#define STOP_NS       MS(100)
#define FIRST_STOP_NS MS(20)   // time for all threads to stop on the first try
#define LEAVE_NS      MS(500)  // time for all threads to leave the library while they are stopped
#define LIST_NS       MS(3000) // time for threads to leave malloc
#define CLEAR_NS      MS(2000) // time for threads to stop using the memory of an ended recording
#define KILLED_NS     MS(500)  // time for all threads of a killed recorder to exit
#define HOLD_NS       MS(10)   // if a call takes longer, the other threads are resumed

static const uint64_t no_arguments[6];

struct caller {
    struct tracees *tracees;
    pid_t tid;
    pid_t ender;                        // process that ends a recording
    struct machine_registers registers; // the thread's registers before the first call
    struct machine_vectors vectors;
    uint64_t mask;
    uint64_t stack; // separate stack, or 0 if it is not mapped; the signal frame follows it
    uint64_t text;  // buffer for strings
    uint64_t errno_at;
    int saved_errno;
    uint64_t taken_ns;
    uint64_t call_ns;         // time limit of a call that waits for a lock
    bool lets_run;            // the other threads run during calls
    bool holds;               // the other threads stay stopped, however long a call takes
    struct sigframe sigframe; // restores the thread if this process is killed
};

// Shared by the recorder and its child.
struct attach_shared {
    struct attach_breakpoint entry; // shared, so that the recorder can remove it if the child dies
    struct attach_result result;
    struct err error;
    int rc;
    pid_t parent; // the parent may be killed while the child waits
    struct attach_call calls[ATTACH_CALLS];
    size_t n_calls;
};

uint64_t attach_call_ns = CALL_NS;

static int set_gone(const struct caller *c, struct err *e)
{
    return remote_set_over(c->tracees->remote, e);
}

static size_t find_index(const struct tracees *t, pid_t tid)
{
    size_t i = 0;
    while (i < t->n && t->all[i].tid != tid)
        i++;
    return i;
}

// Returns true if the stopped thread was waiting for a lock.
static bool is_locked_out(pid_t tid)
{
    struct machine_registers r;
    return machine_get(tid, &r) && r.syscall == SYS_futex;
}

// Lets the other threads run between two tries.
static void let_run(const struct caller *c, uint64_t ms)
{
    tracees_continue_all(c->tracees, find_index(c->tracees, c->tid));
    nanosleep(&(struct timespec){(time_t)(ms / 1000), (long)MS(ms % 1000)}, NULL);
}

// Stops the other threads for a call, because competing with them for the CPUs could delay the call
// by seconds. If a thread does not stop soon, for example because it waits for a vfork child, lets
// all threads run during this call and later ones.
static void hold_others(struct caller *c)
{
    struct tracees *t = c->tracees;
    if (c->lets_run || tracees_stop_all(t, FIRST_STOP_NS))
        return;
    c->lets_run = true;
    tracees_continue_all(t, find_index(t, c->tid));
}

// Waits briefly for an event of the thread. If another thread stops, resumes that thread. Returns
// false if the thread has ended.
static bool poll_caller(struct caller *c, enum tracees_event *event)
{
    struct tracees *t = c->tracees;
    size_t who;
    *event = tracees_next(t, &who);
    if (t->gone || find_index(t, c->tid) == t->n)
        return false;
    if (*event != TRACEES_NOTHING && t->all[who].tid != c->tid) {
        tracees_continue(t, who);
        *event = TRACEES_NOTHING;
    }
    return true;
}

// Waits until the thread enters the system call whose instruction ends at `pc`. Unless `holds` is
// set, resumes the other threads after HOLD_NS, because one of them may own a lock. Each time
// call_ns has passed, checks whether the thread waits for a lock. If so, leaves the thread stopped,
// because the owner of the lock may be waiting for this thread. Otherwise lets the thread continue,
// because it may own locks.
static int await_syscall(struct caller *c, uint64_t pc, struct machine_registers *r, struct err *e)
{
    struct tracees *t = c->tracees;
    uint64_t start = clock_monotonic_ns();
    bool is_late = false, held = true;
    for (;;) {
        enum tracees_event event;
        if (!poll_caller(c, &event))
            return set_gone(c, e);
        if (event == TRACEES_AT_SYSCALL && machine_get(c->tid, r) && r->pc == pc)
            return 0;
        if (event == TRACEES_STOPPED && is_late && is_locked_out(c->tid))
            break;
        is_late &= event != TRACEES_STOPPED;
        if (event != TRACEES_NOTHING)
            tracees_continue(t, find_index(t, c->tid));
        if (held && !c->holds && clock_monotonic_ns() - start >= HOLD_NS) {
            held = false;
            tracees_continue_all(t, find_index(t, c->tid));
        }
        if (is_late || clock_monotonic_ns() - start < c->call_ns)
            continue;
        is_late = true;
        start = clock_monotonic_ns();
        tracees_interrupt(t, find_index(t, c->tid));
    }
    c->stack = 0; // keep the stack mapped: the function may have stored its address
    return err_set(e, -EIO, "%ld: a call in the process waited for a lock for too long (try again)",
                   (long)t->remote->pid);
}

// Blocks all signals except faults and breakpoints while the thread makes calls. If this process is
// killed, the code of sigframe.h restores the mask.
static void mask_signals(const struct caller *c)
{
    uint64_t most = ~0ull;
    const int faults[] = {SIGTRAP, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++)
        most &= ~(1ull << (faults[i] - 1));
    ptrace(PTRACE_SETSIGMASK, c->tid, sizeof most, &most);
}

// Makes the thread run with these registers until it enters the system call whose instruction ends
// at `pc`.
static int run_caller(struct caller *c, struct machine_registers *r, uint64_t pc, struct err *e)
{
    struct tracees *t = c->tracees;
    size_t i = find_index(t, c->tid);
    if (i == t->n || !machine_set(c->tid, r))
        return set_gone(c, e);
    mask_signals(c);
    t->all[i].calls = true;
    tracees_continue(t, i);
    return await_syscall(c, pc, r, e);
}

// Lets the thread finish the system call that it has entered, and waits until the thread stops
// after the system call.
static int finish_syscall(struct caller *c, struct machine_registers *r, struct err *e)
{
    enum tracees_event event = TRACEES_NOTHING;
    tracees_finish_syscall(c->tracees, find_index(c->tracees, c->tid));
    while (event != TRACEES_STOPPED) {
        if (!poll_caller(c, &event))
            return set_gone(c, e);
        if (event != TRACEES_STOPPED && event != TRACEES_NOTHING)
            tracees_continue(c->tracees, find_index(c->tracees, c->tid));
    }
    return machine_get(c->tid, r) ? 0 : set_gone(c, e);
}

static int call_function(struct caller *c, uint64_t function, const uint64_t arguments[6],
                         uint64_t *result, struct err *e)
{
    struct machine_registers r = c->registers;
    *result = 0;
    hold_others(c);
    r.pc = function;
    if (!machine_prepare_call(&r, c->tracees->remote, (c->stack + STACK_BYTES / 2) & ~63ull,
                              c->sigframe.back, arguments))
        return set_gone(c, e);
    int rc = run_caller(c, &r, c->sigframe.returned, e);
    if (rc < 0)
        return rc;
    *result = machine_function_result(&r);
    // Makes a system call without effect instead of sigreturn, and then begins sigreturn again.
    // Otherwise the kernel would forget how to restart the system call that the stop interrupted.
    if (!machine_skip_syscall(c->tid, &r, c->sigframe.back))
        return set_gone(c, e);
    return finish_syscall(c, &r, e);
}

// Makes a system call on the thread's own stack.
static int call_kernel(struct caller *c, long number, const uint64_t arguments[6], uint64_t *result,
                       struct err *e)
{
    struct machine_registers r = c->registers;
    r.pc = c->sigframe.call;
    machine_prepare_syscall(&r, number, arguments);
    int rc = run_caller(c, &r, c->sigframe.call + MACHINE_SYSCALL_BYTES, e);
    if (rc == 0)
        rc = finish_syscall(c, &r, e);
    *result = rc == 0 ? machine_syscall_result(&r) : 0;
    return rc;
}

static int call_by_name(struct caller *c, const char *name, const uint64_t arguments[6],
                        uint64_t *result, struct err *e)
{
    struct remote *r = c->tracees->remote;
    bool own = strncmp(name, "heaptape_", strlen("heaptape_")) == 0;
    uint64_t function = own ? remote_last_function(r, name) : remote_function(r, name);
    if (!function)
        return err_set(e, -ENOTSUP, "%ld: has no function %s", (long)c->tracees->remote->pid, name);
    return call_function(c, function, arguments, result, e);
}

static int write_text(struct caller *c, const char *text, struct err *e)
{
    size_t n = strlen(text) + 1;
    return n <= MAX_PATH && remote_write(c->tracees->remote, c->text, text, n) ? 0 : set_gone(c, e);
}

static int map_stack(struct caller *c, struct err *e)
{
    struct remote *r = c->tracees->remote;
    const uint64_t map[6] = {0, STACK_BYTES + SIGFRAME_BYTES, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1};
    uint64_t at = 0;
    int rc = call_kernel(c, SYS_mmap, map, &at, e);
    if (rc == 0 && (int64_t)at < 0)
        rc = err_set(e, -ENOMEM, "%ld: the process has no memory left", (long)r->pid);
    if (rc < 0)
        return rc;
    c->stack = at;
    c->text = at + STACK_BYTES - MAX_PATH;
    if (!sigframe_write(&c->sigframe, r, at + STACK_BYTES, &c->registers, c->mask, &c->vectors))
        return set_gone(c, e);
    rc = call_by_name(c, "__errno_location", no_arguments, &c->errno_at, e);
    if (rc == 0 && (!remote_read(r, c->errno_at, &c->saved_errno, sizeof c->saved_errno) ||
                    !sigframe_keep_errno(&c->sigframe, r, c->errno_at, c->saved_errno)))
        rc = set_gone(c, e);
    return rc;
}

// Changes the address at which the thread continues. A thread that restarts a system call is never
// moved, because the replaced bytes contain no system call.
static void set_pc(struct caller *c, uint64_t pc)
{
    if (pc == c->registers.pc)
        return;
    c->registers.pc = pc;
    if (!sigframe_set_pc(&c->sigframe, c->tracees->remote, c->stack ? c->stack + STACK_BYTES : 0,
                         pc))
        errno = 0; // the process has ended
}

// Restores the thread's state and leaves the thread stopped.
static void restore_caller(struct caller *c, struct attach_result *result)
{
    uint64_t ignored, paused;
    struct remote *r = c->tracees->remote;
    if (c->errno_at && !remote_write(r, c->errno_at, &c->saved_errno, sizeof c->saved_errno))
        errno = 0; // the process has ended
    machine_set_vectors(c->tid, &c->vectors);
    if (c->stack)
        call_kernel(c, SYS_munmap, (const uint64_t[6]){c->stack, STACK_BYTES + SIGFRAME_BYTES},
                    &ignored, NULL);
    c->stack = 0;
    // If this process is killed before it sets the registers, the code at sigframe.call restores
    // the mask and the registers.
    ptrace(PTRACE_SETSIGMASK, c->tid, sizeof c->mask, &c->mask);
    machine_set(c->tid, &c->registers);
    sigframe_end(&c->sigframe, r);
    paused = clock_monotonic_ns() - c->taken_ns;
    result->paused_ns = paused > result->paused_ns ? paused : result->paused_ns;
}

static int prepare_caller(struct caller *c, struct tracees *t, size_t who,
                          struct attach_result *result, struct err *e)
{
    *c = (struct caller){.tracees = t,
                         .tid = t->all[who].tid,
                         .ender = c->ender,
                         .taken_ns = clock_monotonic_ns(),
                         .call_ns = attach_call_ns,
                         .lets_run = c->lets_run};
    if (!machine_get(c->tid, &c->registers) || !machine_get_vectors(c->tid, &c->vectors) ||
        ptrace(PTRACE_GETSIGMASK, c->tid, sizeof c->mask, &c->mask) < 0)
        return set_gone(c, e);
    int rc = sigframe_begin(&c->sigframe, t->remote, &c->registers, c->mask, e);
    if (rc < 0)
        return rc;
    rc = map_stack(c, e);
    if (rc < 0)
        restore_caller(c, result);
    return rc;
}

// Returns true if malloc was called by libc or the loader, which may hold a lock.
static bool is_called_from_libc(const struct tracees *t, pid_t tid)
{
    struct machine_registers r;
    uint64_t caller = machine_get(tid, &r) ? machine_return_address(t->remote, &r) : 0;
    return !caller || remote_is_libc(t->remote, caller);
}

// Returns true if the thread is in a blocking system call that the kernel restarts after an
// interruption. Returns false if the thread waits in the library, because a detach unmaps memory
// that the thread uses there. A thread that waits on a futex may own a lock of the allocator,
// unless libc waits for a condition variable or another thread. In these cases libc uses
// FUTEX_WAIT_BITSET; for a mutex it uses FUTEX_WAIT.
static bool is_waiting(const struct tracees *t, pid_t tid, struct remote_range library)
{
    struct machine_registers r;
    if (!machine_get(tid, &r) || (r.pc >= library.start && r.pc < library.end))
        return false;
    if (r.syscall == SYS_futex)
        return (r.second & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && remote_is_libc(t->remote, r.pc);
    for (const long *call = machine_waits; *call >= 0; call++) {
        if (r.syscall == *call)
            return true;
    }
    return false;
}

static bool find_entering(struct tracees *t, size_t *who)
{
    uint64_t start = clock_monotonic_ns(), now = start;
    for (; now - start < ENTRY_NS && !t->gone; now = clock_monotonic_ns()) {
        enum tracees_event event = tracees_next(t, who);
        bool picky = now - start < PICKY_NS;
        if (event == TRACEES_AT_ENTRY && !(picky && is_called_from_libc(t, t->all[*who].tid)))
            return true;
        if (event == TRACEES_AT_ENTRY)
            tracees_step_over(t, *who);
        else if (event != TRACEES_NOTHING)
            tracees_continue(t, *who);
    }
    return false;
}

static uint64_t thread_pointer(pid_t tid)
{
    struct machine_registers r;
    return machine_get(tid, &r) ? r.thread : 0;
}

// Returns false for a thread that the program created with clone(2) without thread-local memory.
// Such a thread cannot call libc functions: it has no thread-local memory, or another thread's.
static bool has_own_memory(const struct tracees *t, size_t who)
{
    uint64_t own = thread_pointer(t->all[who].tid);
    for (size_t i = 0; i < t->n && own; i++) {
        if (i != who && t->all[i].state == TRACEE_STOPPED && thread_pointer(t->all[i].tid) == own)
            return false;
    }
    return own;
}

static bool can_call(const struct tracees *t, size_t who, struct remote_range library)
{
    pid_t tid = t->all[who].tid;
    return t->all[who].state == TRACEE_STOPPED && is_waiting(t, tid, library) &&
           (tid == t->remote->pid || has_own_memory(t, who));
}

// Stops only the main thread. Returns true if the thread is waiting in the kernel and can make
// calls.
static bool find_waiting_main(struct tracees *t, struct remote_range library, size_t *who)
{
    const pid_t pid = t->remote->pid;
    uint64_t start = clock_monotonic_ns();
    *who = find_index(t, pid);
    if (*who == t->n || status_letter(pid, pid, "State") != 'S')
        return false;
    tracees_interrupt(t, *who);
    while (!t->gone && clock_monotonic_ns() - start < FIRST_STOP_NS) {
        enum tracees_event event = tracees_next(t, who);
        if (event == TRACEES_STOPPED && t->all[*who].tid == pid)
            return can_call(t, *who, library);
        if (event != TRACEES_NOTHING)
            tracees_continue(t, *who);
    }
    return false;
}

// Finds a thread that is waiting in the kernel, preferably the main thread. Stops all threads.
static bool find_waiting_now(struct tracees *t, struct remote_range library, size_t *who)
{
    if (!tracees_stop_all(t, STOP_NS))
        return false;
    *who = find_index(t, t->remote->pid);
    if (*who < t->n && can_call(t, *who, library))
        return true;
    *who = 0;
    while (*who < t->n && !can_call(t, *who, library))
        ++*who;
    return *who < t->n;
}

// Repeats find_waiting_now, for a program that is mostly busy and rarely calls malloc.
static bool find_waiting(struct tracees *t, struct remote_range library, size_t *who)
{
    for (unsigned i = 0; i < WAITING_TRIES && !t->gone; i++) {
        if (find_waiting_now(t, library, who))
            return true;
        tracees_continue_all(t, SIZE_MAX);
        nanosleep(&(struct timespec){.tv_nsec = MS(10)}, NULL);
    }
    return false;
}

// Uses a breakpoint to find a thread that enters malloc.
static int find_allocating(struct tracees *t, bool *found, size_t *who, struct err *e)
{
    uint64_t entry = remote_function(t->remote, "malloc");
    // Wait until earlier system calls have ended. Otherwise a fork that began before its thread was
    // traced would not be noticed, and the child would inherit the breakpoint.
    if (!tracees_pass_all(t, CALL_NS))
        return err_set(e, -EBUSY, "%ld: a thread cannot be stopped", (long)t->remote->pid);
    t->wanted = true;
    if (!entry || !tracees_plant(t, t->entry, entry))
        return err_set(e, -EACCES, "%ld: its code cannot be written to", (long)t->remote->pid);
    *found = find_entering(t, who);
    t->wanted = false;
    tracees_lift(t, t->entry);
    return 0;
}

// Finds a thread that can make calls because it owns no lock of libc or the allocator. Prefers a
// waiting thread, because finding any other thread requires a breakpoint, which would kill the
// process if this process were killed. If the other threads run during the calls, first tries the
// main thread without stopping the others.
static int find_caller(struct caller *c, struct tracees *t, struct attach_result *result,
                       struct err *e)
{
    uint64_t function = remote_last_function(t->remote, "heaptape_thread");
    struct remote_range library = remote_object_of(t->remote, function);
    size_t who = 0;
    bool found =
        (c->lets_run && find_waiting_main(t, library, &who)) || find_waiting_now(t, library, &who);
    int rc = found || t->gone ? 0 : find_allocating(t, &found, &who, e);
    if (rc == 0 && !found && !t->gone)
        found = find_waiting(t, library, &who);
    if (t->gone)
        return remote_set_over(t->remote, e);
    if (!found || c->lets_run)
        tracees_continue_all(t, found ? who : SIZE_MAX);
    if (!found)
        return rc < 0 ? rc
                      : err_set(e, -EBUSY,
                                "%ld: no thread called malloc within %u s or waited in a system "
                                "call that can be interrupted",
                                (long)t->remote->pid, (unsigned)(ENTRY_NS / MS(1000)));
    return prepare_caller(c, t, who, result, e);
}

static int copy_library(int from, int to)
{
    char bytes[65536];
    ssize_t n;
    while ((n = read(from, bytes, sizeof bytes)) > 0) {
        if (write(to, bytes, (size_t)n) != n)
            return -1;
    }
    return (int)n;
}

static int write_library(const struct caller *c, const char *path, int flags, const char *library,
                         struct err *e)
{
    int from = open(library, O_RDONLY | O_CLOEXEC),
        to = open(path, flags | O_WRONLY | O_CLOEXEC, 0644), rc = 0;
    if (to >= 0 && (flags & O_CREAT) && fchmod(to, 0644) < 0)
        rc = err_set_errno(e, "%s", path);
    else if (from < 0)
        rc = err_set_errno(e, "%s", library);
    else if (to < 0 || copy_library(from, to) < 0)
        rc = err_set_errno(e, "%ld: the library cannot be copied", (long)c->tracees->remote->pid);
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return rc;
}

static int explain_load(struct caller *c, struct err *e)
{
    char text[400] = "";
    uint64_t at = 0;
    if (call_by_name(c, "dlerror", no_arguments, &at, e) < 0)
        return -EIO;
    for (size_t i = 0; at && i < sizeof text - 1 &&
                       remote_read(c->tracees->remote, at + i, &text[i], 1) && text[i];
         i++)
        continue;
    return err_set(e, -ENOTSUP, "%ld: the library cannot be loaded: %s",
                   (long)c->tracees->remote->pid, text);
}

static int load_file(struct caller *c, const char *path, struct err *e)
{
    uint64_t handle = 0;
    int rc = write_text(c, path, e);
    if (rc == 0)
        rc = call_by_name(c, "dlopen", (const uint64_t[6]){c->text, RTLD_NOW}, &handle, e);
    return rc < 0 || handle ? rc : explain_load(c, e);
}

#define OTHERS "././././././././././././././././"
enum { MAX_OTHERS = (sizeof OTHERS - 1) / 2 };

// Loads the library from a memfd, because the process may have no writable file system that permits
// execution.
static int load_memory(struct caller *c, const char *library, struct err *e)
{
    // If another version of the library was loaded from the same path, dlopen would return that
    // version.
    size_t others = remote_count(c->tracees->remote, "heaptape_attach");
    char path[64 + sizeof OTHERS];
    uint64_t fd = 0, ignored;
    int rc = write_text(c, SPOOL_ATTACHED_FILE, e);
    if (rc == 0)
        rc = call_by_name(c, "memfd_create", (const uint64_t[6]){c->text, MFD_CLOEXEC}, &fd, e);
    if (rc == 0 && (int)fd < 0)
        rc = err_set(e, -ENOTSUP, "%ld: no file descriptor or memory is left for the library",
                     (long)c->tracees->remote->pid);
    if (rc < 0)
        return rc;
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)c->tracees->remote->pid, (int)fd);
    rc = write_library(c, path, 0, library, e);
    snprintf(path, sizeof path, SPOOL_ATTACHED_FD "%.*s%d",
             others < MAX_OTHERS ? 2 * (int)others : 0, OTHERS, (int)fd);
    if (rc == 0)
        rc = load_file(c, path, e);
    int closed = call_by_name(c, "close", (const uint64_t[6]){fd}, &ignored, e);
    return rc < 0 ? rc : closed;
}

// Loads the library from the session directory. This is the fallback if memfd_create is forbidden.
static int load_from_session(struct caller *c, const char *library, const char *session_dir,
                             struct err *e)
{
    char path[MAX_PATH], there[MAX_PATH + 32];
    snprintf(path, sizeof path, "%s/" SPOOL_ATTACHED_FILE, session_dir);
    snprintf(there, sizeof there, "/proc/%ld/root%s", (long)c->tracees->remote->pid, path);
    int rc = write_library(c, there, O_CREAT | O_EXCL, library, e);
    if (rc == 0)
        rc = load_file(c, path, e);
    unlink(there);
    return rc;
}

// `state` is the address of the struct spool_thread of the calling thread.
static struct leave_what describe_library(const struct caller *c, uint64_t state)
{
    struct remote *r = c->tracees->remote;
    uint64_t thread = thread_pointer(c->tid);
    struct leave_what in = {.state_offset = state - thread,
                            .module = r->libc == r->loader,
                            .busy = SPOOL_THREAD_WRITING,
                            .library =
                                remote_object_of(r, remote_last_function(r, "heaptape_thread"))};
    // The struct is the first thread-local variable of the library.
    while (leave_state(r, &in, thread) != state && in.module <= MAX_MODULES)
        in.module++;
    return in;
}

// Waits until all threads have left the library, and then resets the state of the recording in each
// thread. Call while all threads are stopped and after the recording has ended, so that no thread
// uses the memory of the recording again. Returns false if a thread does not leave.
static bool release_threads(const struct caller *c, const struct leave_what *in, uint64_t most_ns)
{
    struct tracees *t = c->tracees;
    struct spool_thread own;
    struct machine_registers *threads = leave_all(t, in, most_ns);
    bool good =
        threads && remote_read(t->remote, leave_state(t->remote, in, thread_pointer(c->tid)), &own,
                               sizeof own);
    for (size_t i = 0; good && i < t->n; i++) {
        uint64_t state =
            leave_state(t->remote, in, threads[i].thread) + offsetof(struct spool_thread, state);
        good =
            t->all[i].tid == c->tid || remote_write(t->remote, state, &own.state, sizeof own.state);
    }
    free(threads);
    return good;
}

// Reads the functions that the library has redirected. Versions before 0.2.0 do not list them.
static int read_redirected(struct caller *c, struct plans *p, struct err *e)
{
    struct remote *r = c->tracees->remote;
    uint64_t to = c->stack + STACK_BYTES / 2 + RED_ZONE, at = 0, n = 0;
    *p = (struct plans){0};
    if (!remote_last_function(r, "heaptape_entries"))
        return 0;
    int rc = call_by_name(c, "heaptape_entries", (const uint64_t[6]){to}, &at, e);
    if (rc == 0 && (!remote_read(r, to, &n, sizeof n) || !plans_add_redirected(p, r, at, n)))
        rc = set_gone(c, e);
    return rc;
}

// Frees the memory of the ended recording if all threads leave it in time. Each attempt stops all
// threads, because running threads would compete for the CPUs, and one of them might be inside the
// library at every check. A thread may lack a CPU, wait for a vfork child, or wait inside the
// library. Therefore the time to stop (up to STOP_NS) and the run time between attempts double each
// time.
static int clear_recording(struct caller *c, bool *done, struct err *e)
{
    struct tracees *t = c->tracees;
    uint64_t rc = EAGAIN, at = 0, start = clock_monotonic_ns();
    struct plans redirected;
    int failed = read_redirected(c, &redirected, e);
    if (!failed)
        failed = call_by_name(c, "heaptape_thread", no_arguments, &at, e);
    const struct leave_what in = describe_library(c, at);
    for (uint64_t k = 1; !failed && (int)rc == EAGAIN && clock_monotonic_ns() - start < CLEAR_NS;
         k *= 2) {
        bool released =
            tracees_stop_all(t, k * FIRST_STOP_NS < STOP_NS ? k * FIRST_STOP_NS : STOP_NS) &&
            !t->gone && release_threads(c, &in, LEAVE_NS);
        if (t->gone)
            break;
        if (released) {
            plans_restore(&redirected, t->remote);
            failed = call_by_name(c, "heaptape_clear", no_arguments, &rc, e);
        }
        if ((int)rc == EAGAIN)
            let_run(c, k);
    }
    plans_release(&redirected);
    *done = (int)rc == 0;
    return t->gone ? set_gone(c, e) : failed;
}

static int find_recorder(struct caller *c, uint64_t *recorder, struct err *e)
{
    *recorder = 0;
    // Versions before 0.2.0 do not have this function.
    return remote_last_function(c->tracees->remote, "heaptape_recorder")
               ? call_by_name(c, "heaptape_recorder", no_arguments, recorder, e)
               : 0;
}

// Ends the recording. If a thread uses the recording's memory for too long, leaves the memory
// mapped, and the next attach frees it.
static int end_recording(struct caller *c, bool *cleared, struct err *e)
{
    uint64_t rc = 0;
    int failed = call_by_name(c, "heaptape_end", (const uint64_t[6]){(uint64_t)c->ender}, &rc, e);
    *cleared = false;
    if (!failed && (int)rc == ENOTSUP)
        return err_set(e, -ENOTSUP,
                       "%ld: was started with the library, which remains (to end the recording, "
                       "run 'heaptape ctl %ld stop')",
                       (long)c->tracees->remote->pid, (long)c->tracees->remote->pid);
    *cleared = (int)rc == EALREADY;
    return failed || *cleared ? failed : clear_recording(c, cleared, e);
}

// Makes the library prepare the redirection of an object's functions, and writes the code of their
// stubs. Does not change functions that an earlier recording has redirected.
static int redirect_object(struct caller *c, struct plans *p, size_t i, struct err *e)
{
    struct plans_object *o = &p->objects[i];
    struct remote *r = c->tracees->remote;
    uint64_t at = c->stack + STACK_BYTES / 2 + RED_ZONE, to = at + sizeof *o->plan, error = 0,
             area = 0;
    _Static_assert(sizeof *o->plan + RED_ZONE + MAX_PATH + 64 < STACK_BYTES / 2,
                   "the plan fits in the free part of the stack");
    plans_choose_place(o, r);
    if (!remote_write(r, at, o->plan, sizeof *o->plan))
        return set_gone(c, e);
    int rc = call_by_name(c, "heaptape_redirect", (const uint64_t[6]){at, o->base, to}, &error, e);
    if (rc == 0 && (int)error == EEXIST)
        return plans_drop_redirected(o, r) ? redirect_object(c, p, i, e) : 0;
    if (rc < 0)
        return rc;
    if (!error && !remote_read(r, to, &area, sizeof area))
        return set_gone(c, e);
    if (!error)
        error = (uint64_t)-plans_write_code(o, r, area);
    if ((int)error)
        plans_miss_object(p, o,
                          (int)error == ENOEXEC ? "its code in memory differs from the file"
                                                : strerror((int)error));
    return 0;
}

// Stores the jumps while all threads are stopped.
static int store_jumps(struct caller *c, struct plans *p, struct err *e)
{
    struct tracees *t = c->tracees;
    bool pending = false, done = false;
    uint64_t start = clock_monotonic_ns(), pc = c->registers.pc;
    for (size_t i = 0; i < p->n; i++)
        pending = pending || p->objects[i].pending;
    for (uint64_t k = 1; pending && !done && clock_monotonic_ns() - start < CALL_NS; k *= 2) {
        if (tracees_stop_all(t, k * STOP_NS) && !t->gone && plans_move_threads(p, t, c->tid, &pc)) {
            set_pc(c, pc);
            plans_store_jumps(p, t->remote);
            done = true;
        }
        if (t->gone)
            return set_gone(c, e);
        if (!done)
            let_run(c, 1);
    }
    return done || !pending ? 0
                            : err_set(e, -EBUSY, "%ld: its threads cannot be stopped in time",
                                      (long)t->remote->pid);
}

// Restores the jumps that the last detach removed.
static int store_jumps_again(struct caller *c, struct err *e)
{
    struct plans redirected;
    int rc = read_redirected(c, &redirected, e);
    if (rc == 0)
        rc = store_jumps(c, &redirected, e);
    plans_release(&redirected);
    return rc;
}

static int redirect_functions(struct caller *c, struct plans *p, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->n; i++)
        rc = redirect_object(c, p, i, e);
    if (rc == 0)
        rc = store_jumps(c, p, e);
    if (rc == 0)
        set_pc(c, plans_skip_entry(p, c->registers.pc));
    return rc;
}

static int join_session(struct caller *c, const struct attach_how *how, struct plans *p,
                        struct err *e)
{
    uint64_t error = 0, names = c->stack + STACK_BYTES / 2 + RED_ZONE;
    int rc = redirect_functions(c, p, e);
    uint32_t tables = p->missing[0] ? SPOOL_TABLES_REST : 0;
    if (how->names && !plans_have_names(p, how->names))
        tables |= SPOOL_TABLES_NAMES;
    if (rc == 0)
        rc = write_text(c, how->session_dir, e);
    if (rc == 0 && how->names &&
        !remote_write(c->tracees->remote, names, how->names, sizeof *how->names))
        rc = set_gone(c, e);
    if (rc == 0)
        rc = call_by_name(c, "heaptape_attach",
                          (const uint64_t[6]){c->text, how->names ? names : 0, tables}, &error, e);
    if (rc == 0 && (int)error == ENOLINK)
        return err_set(
            e, -ENOTSUP,
            "%ld: a function of --wrap is called directly, not through the loader's tables; link "
            "its allocator as a shared library, or libheaptape.so into the program",
            (long)c->tracees->remote->pid);
    // Only a session that the library cannot read is a reason to load another version. After an
    // interrupted attach, a thread may still be joining an earlier session.
    return rc < 0 || !(int)error ? rc
                                 : err_set(e,
                                           (int)error == EALREADY ? -EAGAIN
                                           : (int)error == ENOENT ? -EPROTO
                                                                  : -EIO,
                                           "%ld: the library cannot join the recording: %s",
                                           (long)c->tracees->remote->pid, strerror((int)error));
}

// Writes the path of the library for the process's C library, next to libheaptape.so.
static void choose_library(const struct remote *r, const char *library, char path[MAX_PATH])
{
    snprintf(path, MAX_PATH, "%.*s%s.so", (int)(strlen(library) - strlen(".so")), library,
             r->libc == r->loader ? "-musl" : "");
}

// Returns true if the recorder still runs. A killed recorder no longer counts as running for the
// library as soon as its first thread exits, so waits until all its threads have had time to exit.
static bool has_recorder(struct caller *c)
{
    uint64_t start = clock_monotonic_ns();
    while (getppid() == c->ender && clock_monotonic_ns() - start < KILLED_NS)
        let_run(c, 10);
    return getppid() == c->ender;
}

static int begin_recording(struct caller *c, const struct attach_how *how, struct plans *p,
                           bool memfd, struct err *e)
{
    struct remote *r = c->tracees->remote;
    bool loaded = remote_last_function(r, "heaptape_redirect"), cleared = true;
    uint64_t recorder = 0;
    int rc = loaded ? find_recorder(c, &recorder, e) : 0;
    if (rc == 0 && (uint32_t)recorder)
        return err_set(e, -EBUSY, "%ld: is already recorded by process %u", (long)r->pid,
                       (uint32_t)recorder);
    if (loaded && rc == 0)
        rc = end_recording(c, &cleared, e);
    if (rc == 0 && !cleared)
        rc = err_set(e, -EBUSY, "%ld: threads did not leave the library in time", (long)r->pid);
    if (loaded && rc == 0)
        rc = store_jumps_again(c, e);
    if (loaded && rc == 0)
        rc = join_session(c, how, p, e);
    // A loaded library of another version cannot join the session and stays idle. If the recorder
    // was killed, no library can join. In that case, do not load another copy: it could not
    // redirect the functions that the loaded library has redirected.
    if (loaded && (rc != -EPROTO || !has_recorder(c)))
        return rc;
    char library[MAX_PATH];
    choose_library(r, how->library, library);
    rc = memfd ? load_memory(c, library, e) : load_from_session(c, library, how->session_dir, e);
    return rc < 0 ? rc : join_session(c, how, p, e);
}

// Passes the blocks to the library in pieces, in the free part of the separate stack.
static int pass_blocks(struct caller *c, const struct blocks *b, struct err *e)
{
    const size_t room = (STACK_BYTES / 2 - MAX_PATH - RED_ZONE) / sizeof *b->all;
    uint64_t at = c->stack + STACK_BYTES / 2 + RED_ZONE, error = 0;
    int rc = 0;
    for (size_t i = 0, n; rc == 0 && !(int)error && i < b->n; i += n) {
        n = b->n - i < room ? b->n - i : room;
        rc = remote_write(c->tracees->remote, at, b->all + i, n * sizeof *b->all)
                 ? call_by_name(c, "heaptape_list", (const uint64_t[6]){at, n}, &error, e)
                 : set_gone(c, e);
    }
    return rc == 0 && (int)error ? err_set(e, -EPROTO, "nothing is recorded at the moment") : rc;
}

static int list_stopped(struct caller *c, const struct leave_what *in, uint64_t most_ns,
                        struct attach_result *result, struct err *e)
{
    struct blocks b = {0};
    struct machine_registers *threads = leave_all(c->tracees, in, most_ns);
    int rc = threads ? blocks_find(&b, c->tracees->remote, threads, c->tracees->n, e)
                     : err_set(e, -EAGAIN, "its threads did not leave malloc in time");
    free(threads);
    c->holds = true; // no block may be freed before it is listed
    if (rc == 0)
        rc = pass_blocks(c, &b, e);
    c->holds = false;
    for (size_t i = 0; rc == 0 && i < b.n; i++)
        result->listed_bytes += b.all[i].size;
    result->listed_blocks += rc == 0 ? b.n : 0;
    blocks_release(&b);
    return rc;
}

static int read_version(struct caller *c, char version[16], struct err *e)
{
    uint64_t at = 0;
    int rc = call_by_name(c, "gnu_get_libc_version", no_arguments, &at, e);
    version[15] = 0;
    return rc == 0 && !remote_read(c->tracees->remote, at, version, 15) ? set_gone(c, e) : rc;
}

// Lists the live blocks. On failure, recording continues without the list.
static void list_blocks(struct caller *c, const struct plans *p, struct attach_result *result)
{
    struct tracees *t = c->tracees;
    struct err e = {0};
    uint64_t start = clock_monotonic_ns(), at = 0;
    char version[16];
    int rc = read_version(c, version, &e);
    if (rc == 0)
        rc = blocks_check(t->remote, version, &e);
    if (rc == 0)
        rc = call_by_name(c, "heaptape_thread", no_arguments, &at, &e);
    // Move out every thread that may have changed the heap but not yet recorded the call.
    struct leave_what in = describe_library(c, at);
    in.busy = UINT32_MAX;
    in.malloc = true;
    in.plans = p;
    uint64_t k = 1;
    for (bool again = rc == 0; again;
         again = rc == -EAGAIN && clock_monotonic_ns() - start < LIST_NS && !t->gone) {
        rc = tracees_stop_all(t, k * STOP_NS) && !t->gone
                 ? list_stopped(c, &in, k * LEAVE_NS, result, &e)
                 : err_set(&e, -EAGAIN, "its threads cannot be stopped in time");
        k *= 2;
        if (rc == -EAGAIN)
            let_run(c, 1);
    }
    if (rc < 0)
        snprintf(result->not_listed, sizeof result->not_listed, "%.*s",
                 (int)sizeof result->not_listed - 1, e.text);
}

// Looks up the functions in advance, so that stopped threads do not have to wait for the search.
static void find_functions(struct remote *r)
{
    static const char *const names[] = {"malloc",       "__errno_location", "mmap",  "munmap",
                                        "memfd_create", "dlopen",           "close", "dlerror"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        remote_function(r, names[i]);
}

// Checks that each function of --wrap is defined by some object. Call only if some of these
// functions are not redirected.
static int check_names(struct remote *r, const struct spool_wrap *names, struct err *e)
{
    for (unsigned i = 0; names && i < names->n; i++) {
        if (!remote_last_function(r, names->items[i].name))
            return err_set(
                e, -ENOTSUP,
                "%ld: no symbol of the executable or dynamic symbol of a library is %s; build it "
                "with symbols, or link its allocator as a shared library",
                (long)r->pid, names->items[i].name);
    }
    return 0;
}

// Like status_check. If `ends` is set, waits briefly for another tracer to detach.
static int check_patiently(pid_t pid, bool ends, struct err *e)
{
    uint64_t start = clock_monotonic_ns();
    struct err why;
    int rc;
    do {
        why = (struct err){0};
        rc = status_check(pid, &why);
        if (rc == -EBUSY && ends)
            nanosleep(&(struct timespec){.tv_nsec = MS(10)}, NULL);
    } while (rc == -EBUSY && ends && clock_monotonic_ns() - start < BUSY_NS);
    return rc < 0 ? err_set(e, rc, "%s", why.text) : 0;
}

// Ends a recording whose recorder is `owner` or has died. If `owner` is 0, ends any recording.
static int end_recording_of(struct caller *c, pid_t owner, struct err *e)
{
    uint64_t recorder = 0;
    bool cleared;
    int rc = owner ? find_recorder(c, &recorder, e) : 0;
    if (rc == 0 && (uint32_t)recorder && (pid_t)recorder != owner)
        return err_set(e, -ENOENT, "%ld: is being recorded by process %u",
                       (long)c->tracees->remote->pid, (uint32_t)recorder);
    return rc < 0 ? rc : end_recording(c, &cleared, e);
}

// Raises the priority, because threads of the process are about to be stopped. Real-time scheduling
// lets this process run as soon as a thread stops. With the highest priority of the normal policy,
// it waits until the next tick if another thread has just started to run on its CPU. Call only
// after the search for functions, which would take a CPU away from the program. Ignores failure.
static void raise_priority(void)
{
    const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    if (sched_setscheduler(0, SCHED_FIFO, &lowest) < 0)
        setpriority(PRIO_PROCESS, 0, PRIO_MIN);
}

// Checks that the functions can be called.
static int check_calls(struct remote *r, const struct attach_shared *s, struct err *e)
{
    for (size_t i = 0; i < s->n_calls; i++) {
        if (!remote_function(r, s->calls[i].function))
            return err_set(e, -ENOTSUP, "%ld: has no function %s", (long)r->pid,
                           s->calls[i].function);
    }
    // If there is a filter, refuse the call: the function may make a system call that the program
    // never makes, and the filter may kill the process for it.
    if (status_number(r->pid, r->pid, "Seccomp", 10))
        return err_set(e, -ENOTSUP, "%ld: its seccomp filter may forbid the call", (long)r->pid);
    return 0;
}

// Calls a function. On the separate stack, the value and its size follow the text.
static int make_call(struct caller *c, struct attach_call *call, struct err *e)
{
    uint64_t words[2] = {call->form == ATTACH_WRITE ? call->number : 0, sizeof call->value},
             value = c->text + ATTACH_TEXT_BYTES, size = value + sizeof *words;
    const uint64_t arguments[][6] = {
        [ATTACH_NUMBER] = {call->number},
        [ATTACH_PROPERTY] = {c->text, value},
        [ATTACH_READ] = {c->text, value, size, 0, 0},
        [ATTACH_WRITE] = {c->text, 0, 0, value, sizeof call->value},
        [ATTACH_RUN] = {c->text, 0, 0, 0, 0},
    };
    int rc = write_text(c, call->text, e);
    if (rc == 0 && !remote_write(c->tracees->remote, value, words, sizeof words))
        rc = set_gone(c, e);
    if (rc == 0)
        rc = call_by_name(c, call->function, arguments[call->form], &call->result, e);
    if (rc == 0 && !remote_read(c->tracees->remote, value, &call->value, sizeof call->value))
        rc = set_gone(c, e);
    return rc;
}

static int make_calls(struct caller *c, struct attach_shared *s)
{
    uint64_t start = clock_monotonic_ns();
    int rc = 0;
    c->call_ns = TRIM_NS;
    for (size_t i = 0; rc == 0 && i < s->n_calls; i++)
        rc = make_call(c, &s->calls[i], &s->error);
    c->call_ns = attach_call_ns;
    s->result.call_ns = clock_monotonic_ns() - start;
    return rc;
}

// A task: start a recording, end a recording (if `how` and `calls` are NULL), or make calls.
struct attach_task {
    pid_t pid;
    const struct attach_how *how;
    pid_t owner;
    struct attach_call *calls;
    size_t n_calls;
};

static bool ends_recording(const struct attach_task *task)
{
    return !task->how && !task->calls;
}

// Checks that the task is possible, before any thread is stopped.
static int check_task(const struct attach_task *task, struct remote *r, struct plans *plans,
                      struct attach_shared *s)
{
    const struct attach_how *how = task->how;
    if (task->calls)
        return check_calls(r, s, &s->error);
    if (!how)
        return remote_last_function(r, "heaptape_end")
                   ? 0
                   : err_set(&s->error, -ENOENT, "%ld: is not being recorded", (long)task->pid);
    int rc = plans_find(plans, r, how->names, &s->error);
    return rc == 0 && how->names && !plans_have_names(plans, how->names)
               ? check_names(r, how->names, &s->error)
               : rc;
}

// Traces the threads, and performs the task in one of them.
static int perform_task(const struct attach_task *task, struct remote *r, struct plans *plans,
                        struct attach_shared *s)
{
    const struct attach_how *how = task->how;
    struct tracees t;
    bool memfd = false;
    // Let the other threads run, because the calls may take a long time.
    struct caller caller = {.ender = s->parent, .lets_run = task->calls}, *c = &caller;
    find_functions(r);
    raise_priority();
    int rc = tracees_seize(&t, r, &s->entry, &s->error);
    s->result.threads = t.n > s->result.threads ? (uint32_t)t.n : s->result.threads;
    if (rc == 0 && !task->calls)
        rc = filters_check(&t, &memfd, &s->result.paused_ns, &s->error);
    if (rc == 0)
        rc = find_caller(c, &t, &s->result, &s->error);
    if (rc == 0) {
        rc = task->calls ? make_calls(c, s)
             : how       ? begin_recording(c, how, plans, memfd, &s->error)
                         : end_recording_of(c, task->owner, &s->error);
        if (rc == 0 && how && how->list_blocks)
            list_blocks(c, plans, &s->result);
        restore_caller(c, &s->result);
    }
    tracees_release(&t);
    return rc;
}

// Runs in the child.
static int run_task(const struct attach_task *task, struct attach_shared *s)
{
    struct remote r;
    struct plans plans = {0};
    int rc = check_patiently(task->pid, ends_recording(task), &s->error);
    if (rc < 0)
        return rc;
    rc = remote_open(&r, task->pid, &s->error);
    // While ending a recording, -ENOTSUP means that the process has called exec and no longer
    // contains the library.
    if (rc < 0)
        return rc == -ENOTSUP && ends_recording(task) ? -ENOENT : rc;
    rc = check_task(task, &r, &plans, s);
    if (rc == 0)
        rc = perform_task(task, &r, &plans, s);
    if (rc < 0 && rc != -ENOENT && remote_is_over(&r))
        rc = remote_set_over(&r, &s->error);
    if (task->how) {
        strcpy(s->result.not_redirected, plans.missing);
        strcpy(s->result.not_recorded, plans.unrecorded);
    }
    plans_release(&plans);
    remote_close(&r);
    return rc;
}

// Like run_task, but waits while another heaptape is attaching or detaching.
static int run_task_patiently(const struct attach_task *task, struct attach_shared *s)
{
    uint64_t start = clock_monotonic_ns();
    int rc;
    while ((rc = run_task(task, s)) == -EAGAIN && clock_monotonic_ns() - start < BUSY_NS) {
        s->error = (struct err){0};
        nanosleep(&(struct timespec){.tv_nsec = MS(5)}, NULL);
    }
    return rc == -EAGAIN ? -EBUSY : rc;
}

static void become_tracer(void)
{
    sigset_t all;
    // SIGCHLD is not delivered if it is ignored.
    signal(SIGCHLD, SIG_DFL);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
}

// Removes a breakpoint that a killed child has left, because the breakpoint would kill the process.
// The thread that made calls restores itself when its call returns.
static void clean_up(pid_t pid, struct attach_breakpoint *b)
{
    struct remote r;
    if (!b->planted || remote_open(&r, pid, NULL) < 0)
        return;
    b->planted = !remote_write(&r, b->at, b->original, sizeof b->original);
    remote_close(&r);
}

static int run_in_child(const struct attach_task *task, const struct attach_meanwhile *meanwhile,
                        struct attach_result *result, struct err *e)
{
    struct attach_shared *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    if (s == MAP_FAILED)
        return err_no_memory(e, NULL);
    s->result = *result;
    s->parent = getpid();
    s->n_calls = task->n_calls < ATTACH_CALLS ? task->n_calls : ATTACH_CALLS;
    if (task->calls)
        memcpy(s->calls, task->calls, s->n_calls * sizeof *s->calls);
    pthread_mutex_t *allocating = meanwhile ? meanwhile->allocating : NULL;
    if (allocating)
        pthread_mutex_lock(allocating);
    pid_t child = fork();
    if (child != 0 && allocating)
        pthread_mutex_unlock(allocating);
    if (child == 0) {
        become_tracer();
        s->rc = run_task_patiently(task, s);
        _exit(0);
    }
    while (child > 0 && waitpid(child, &status, WNOHANG) == 0) {
        if (meanwhile)
            meanwhile->call(meanwhile->context);
        nanosleep(&(struct timespec){.tv_nsec = MS(1) / 5}, NULL);
    }
    int rc = child < 0 ? err_set_errno(e, "cannot start a process") : s->rc;
    if (child > 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
        clean_up(task->pid, &s->entry);
        rc = err_set(e, -EIO, "%ld: the process of heaptape that traced it was killed (try again)",
                     (long)task->pid);
    } else if (rc < 0) {
        err_set(e, rc, "%s", s->error.text);
    }
    *result = s->result;
    if (task->calls)
        memcpy(task->calls, s->calls, s->n_calls * sizeof *s->calls);
    munmap(s, sizeof *s);
    return rc;
}

int attach_begin(pid_t pid, const struct attach_how *how, const struct attach_meanwhile *meanwhile,
                 struct attach_result *result, struct err *e)
{
    return run_in_child(&(struct attach_task){.pid = pid, .how = how}, meanwhile, result, e);
}

int attach_end(pid_t pid, pid_t owner, const struct attach_meanwhile *meanwhile,
               struct attach_result *result, struct err *e)
{
    return run_in_child(&(struct attach_task){.pid = pid, .owner = owner}, meanwhile, result, e);
}

int attach_call(pid_t pid, struct attach_call *calls, size_t n, struct attach_result *result,
                struct err *e)
{
    return run_in_child(&(struct attach_task){.pid = pid, .calls = calls, .n_calls = n}, NULL,
                        result, e);
}
