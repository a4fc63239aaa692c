#include "record/attach/filters.h"

#include "base/buf.h"
#include "base/clock.h"
#include "record/attach/machine.h"
#include "record/attach/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL(name, optional, known, ...)                                                           \
    {                                                                                              \
#name, SYS_##name, optional, known,                                                        \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define NEED(name, ...)     CALL(name, false, __VA_ARGS__)
#define OPTIONAL(name, ...) CALL(name, true, __VA_ARGS__)
#define ARG(i)              (1u << (i))
#define NO_FD               (uint64_t) - 1
#define FILE_MODE           0600

// tests/capture/attach.bats runs a program under a filter that permits only these calls.
const struct filters_need filters_needs[FILTERS_NEEDS] = {
    OPTIONAL(memfd_create, ARG(1), 0, MFD_CLOEXEC),
    OPTIONAL(process_vm_readv, 0),
    NEED(brk, 0),
    NEED(clock_gettime, 0),
    NEED(close, 0, NO_FD),
    NEED(fallocate, 0, NO_FD),
    NEED(fstat, 0, NO_FD),
    NEED(ftruncate, 0, NO_FD),
    NEED(futex, 0),
    NEED(geteuid, 0),
    NEED(getpid, 0),
    NEED(getppid, 0),
    NEED(gettid, 0),
    NEED(madvise, 0, 0, 0, NO_FD),
    NEED(mmap, ARG(2), 0, 0, PROT_NONE),
    NEED(mmap, ARG(2), 0, 0, PROT_READ),
    NEED(mmap, ARG(2), 0, 0, PROT_READ | PROT_WRITE),
    NEED(mmap, ARG(2), 0, 0, PROT_READ | PROT_EXEC),
    NEED(mprotect, ARG(2), 0, 0, PROT_NONE),
    NEED(mprotect, ARG(2), 0, 0, PROT_READ),
    NEED(mprotect, ARG(2), 0, 0, PROT_READ | PROT_WRITE),
    NEED(mremap, ARG(1) | ARG(3), 0, 0, 0, MREMAP_MAYMOVE | MREMAP_FIXED),
    NEED(munmap, 0),
    NEED(nanosleep, 0),
    NEED(newfstatat, 0, NO_FD),
    NEED(openat, ARG(3), NO_FD, 0, 0, FILE_MODE),
    NEED(prctl, ARG(0), PR_GET_NAME),
    NEED(prctl, ARG(0), PR_GET_SECCOMP),
    NEED(prctl, ARG(0), PR_GET_TSC),
    NEED(pread64, 0, NO_FD),
    NEED(prlimit64, ARG(0) | ARG(2), 0),
    NEED(read, 0, NO_FD),
    NEED(readlinkat, 0, NO_FD),
    NEED(renameat2, 0, NO_FD, 0, NO_FD),
    NEED(rt_sigprocmask, 0),
    NEED(sched_yield, 0),
    NEED(tgkill, ARG(2)),
    NEED(unlinkat, 0, NO_FD),
};

enum { MAX_STEPS = 1 << 18 };

struct value {
    uint32_t number;
    bool known;
};

// Registers of an interpreted filter.
struct registers {
    struct value a, x, memory[BPF_MEMWORDS];
};

struct examination {
    const struct sock_filter *program;
    size_t n;
    const struct filters_need *call;
    unsigned steps;
};

static uint32_t most_restrictive(uint32_t a, uint32_t b)
{
    // The kernel compares actions as signed numbers. The lowest action has precedence.
    return (int32_t)a < (int32_t)b ? a : b;
}

static struct value known_value(uint32_t number)
{
    return (struct value){number, true};
}

static struct value read_data(const struct filters_need *call, uint32_t offset)
{
    const uint32_t args = offsetof(struct seccomp_data, args);
    uint32_t i = (offset - args) / 8;
    if (offset == offsetof(struct seccomp_data, nr))
        return known_value((uint32_t)call->number);
    if (offset == offsetof(struct seccomp_data, arch))
        return known_value(MACHINE_AUDIT);
    if (offset < args || i >= 6 || !(call->known & ARG(i)))
        return (struct value){0};
    return known_value((uint32_t)(offset % 8 ? call->args[i] >> 32 : call->args[i]));
}

static struct value load_value(const struct examination *x, const struct registers *m,
                               const struct sock_filter *f)
{
    switch (BPF_MODE(f->code)) {
    case BPF_ABS:
        return read_data(x->call, f->k);
    case BPF_IMM:
        return known_value(f->k);
    case BPF_MEM:
        return f->k < BPF_MEMWORDS ? m->memory[f->k] : (struct value){0};
    case BPF_LEN:
        return known_value(sizeof(struct seccomp_data));
    }
    return (struct value){0};
}

static struct value read_operand(const struct registers *m, const struct sock_filter *f)
{
    return BPF_SRC(f->code) == BPF_X ? m->x : known_value(f->k);
}

static struct value compute_value(struct value a, struct value b, unsigned op)
{
    if (!a.known || (!b.known && op != BPF_NEG))
        return (struct value){0};
    switch (op) {
    case BPF_ADD:
        return known_value(a.number + b.number);
    case BPF_SUB:
        return known_value(a.number - b.number);
    case BPF_MUL:
        return known_value(a.number * b.number);
    case BPF_DIV:
        return known_value(b.number ? a.number / b.number : 0);
    case BPF_AND:
        return known_value(a.number & b.number);
    case BPF_OR:
        return known_value(a.number | b.number);
    case BPF_XOR:
        return known_value(a.number ^ b.number);
    case BPF_LSH:
        return known_value(b.number < 32 ? a.number << b.number : 0);
    case BPF_RSH:
        return known_value(b.number < 32 ? a.number >> b.number : 0);
    case BPF_NEG:
        return known_value(-a.number);
    }
    return (struct value){0};
}

static bool compare_values(uint32_t a, uint32_t b, unsigned op)
{
    return op == BPF_JEQ ? a == b : op == BPF_JGT ? a > b : op == BPF_JGE ? a >= b : (a & b) != 0;
}

// Executes any instruction except jumps and returns.
static void execute_instruction(const struct examination *x, struct registers *m,
                                const struct sock_filter *f)
{
    switch (BPF_CLASS(f->code)) {
    case BPF_LD:
        m->a = load_value(x, m, f);
        break;
    case BPF_LDX:
        m->x = load_value(x, m, f);
        break;
    case BPF_ST:
    case BPF_STX:
        if (f->k < BPF_MEMWORDS)
            m->memory[f->k] = BPF_CLASS(f->code) == BPF_ST ? m->a : m->x;
        break;
    case BPF_ALU:
        m->a = compute_value(m->a, read_operand(m, f), BPF_OP(f->code));
        break;
    case BPF_MISC:
        if (BPF_MISCOP(f->code) == BPF_TAX)
            m->x = m->a;
        else
            m->a = m->x;
        break;
    }
}

// Interprets a program from `at`. Follows both branches if a jump depends on an unknown value.
static uint32_t interpret_program(struct examination *x, struct registers m, size_t at)
{
    for (; at < x->n && x->steps > 0; at++) {
        const struct sock_filter *f = &x->program[at];
        struct value b = read_operand(&m, f);
        x->steps--;
        if (BPF_CLASS(f->code) == BPF_RET) {
            struct value v = BPF_RVAL(f->code) == BPF_A ? m.a : known_value(f->k);
            return v.known ? v.number & SECCOMP_RET_ACTION_FULL : SECCOMP_RET_KILL_PROCESS;
        }
        if (BPF_CLASS(f->code) != BPF_JMP)
            execute_instruction(x, &m, f);
        else if (BPF_OP(f->code) == BPF_JA)
            at += f->k;
        else if (m.a.known && b.known)
            at += compare_values(m.a.number, b.number, BPF_OP(f->code)) ? f->jt : f->jf;
        else if (f->jt == f->jf)
            at += f->jt;
        else
            return most_restrictive(interpret_program(x, m, at + 1 + f->jt),
                                    interpret_program(x, m, at + 1 + f->jf));
    }
    return SECCOMP_RET_KILL_PROCESS;
}

uint32_t filters_action(const struct sock_filter *program, size_t n,
                        const struct filters_need *call)
{
    struct examination x = {program, n, call, MAX_STEPS};
    return interpret_program(&x, (struct registers){known_value(0), known_value(0), {{0}}}, 0);
}

static const char *action_name(uint32_t action)
{
    switch (action) {
    case SECCOMP_RET_ERRNO:
        return "errno";
    case SECCOMP_RET_TRAP:
        return "trap";
    case SECCOMP_RET_TRACE:
        return "trace";
    case SECCOMP_RET_USER_NOTIF:
        return "notify";
    }
    return "kill";
}

// Filter programs, each preceded by its length in instructions.
struct programs {
    uint8_t *bytes;
    size_t n, capacity;
};

static bool is_known(const struct programs *p, size_t own)
{
    size_t bytes = p->n - own;
    for (size_t at = 0; at < own;) {
        size_t n;
        memcpy(&n, p->bytes + at, sizeof n);
        size_t length = sizeof n + n * sizeof(struct sock_filter);
        if (length == bytes && memcmp(p->bytes + at, p->bytes + own, bytes) == 0)
            return true;
        at += length;
    }
    return false;
}

// Fetches filter i. Returns 1 if it was fetched, 0 if the thread has fewer filters, or a negative
// errno.
static int fetch_filter(struct programs *p, pid_t tid, unsigned long i)
{
    long n = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, i, NULL);
    size_t own = p->n, count = (size_t)n, bytes = sizeof count + count * sizeof(struct sock_filter);
    if (n < 0)
        return errno == ENOENT ? 0 : -errno;
    if (HT_GROW(&p->bytes, &p->capacity, own + bytes) < 0)
        return -ENOMEM;
    memcpy(p->bytes + own, &count, sizeof count);
    if (ptrace(PTRACE_SECCOMP_GET_FILTER, tid, i, p->bytes + own + sizeof count) != n)
        return -EIO;
    p->n += bytes;
    if (is_known(p, own))
        p->n = own;
    return 1;
}

static int fetch_filters(struct programs *p, const struct tracees *t)
{
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < t->n; k++) {
        unsigned long i = 0;
        if (t->all[k].state == TRACEE_STOPPED) {
            while ((rc = fetch_filter(p, t->all[k].tid, i)) > 0)
                i++;
        }
        rc = rc == -EINVAL && i == 0 ? 0 : rc; // the thread has no filters
    }
    return rc;
}

static int check_needs(const struct programs *p, pid_t pid, bool *memfd, struct err *e)
{
    for (size_t k = 0; k < FILTERS_NEEDS; k++) {
        const struct filters_need *call = &filters_needs[k];
        uint32_t action = SECCOMP_RET_ALLOW;
        for (size_t at = 0, n; at < p->n; at += n * sizeof(struct sock_filter)) {
            memcpy(&n, p->bytes + at, sizeof n);
            at += sizeof n;
            action = most_restrictive(
                action, filters_action((const struct sock_filter *)(p->bytes + at), n, call));
        }
        if (action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG)
            continue;
        if (call->number == SYS_memfd_create)
            *memfd = false;
        else if (!call->optional || action != SECCOMP_RET_ERRNO)
            return err_set(
                e, -ENOTSUP,
                "%ld: its seccomp filter has the action '%s' for %s, which the library needs; "
                "start it with 'heaptape record' instead",
                (long)pid, action_name(action), call->name);
    }
    return 0;
}

static bool is_same_namespace(pid_t pid)
{
    char path[64];
    struct stat own, other;
    snprintf(path, sizeof path, "/proc/%ld/ns/mnt", (long)pid);
    return stat("/proc/self/ns/mnt", &own) == 0 && stat(path, &other) == 0 &&
           own.st_ino == other.st_ino;
}

// Returns true if the process has the same filters as this process. A container runtime installs
// the same filters for all programs, and programs can only add filters. Therefore, if this process,
// process 1 and the target have the same number of filters, the filters are the same.
static bool has_own_filters(const struct tracees *t)
{
    pid_t self = getpid();
    uint64_t own = status_number(self, self, "Seccomp_filters", 10);
    bool same = own && status_number(1, 1, "Seccomp_filters", 10) == own &&
                is_same_namespace(t->remote->pid);
    for (size_t i = 0; same && i < t->n; i++)
        same = status_number(t->remote->pid, t->all[i].tid, "Seccomp_filters", 10) == own;
    return same;
}

// Makes the calls in a child, which may be killed. Returns the child's exit status: 0 if all calls
// succeeded, 1 if only memfd_create failed, or 2 + the index of the call that failed.
static int try_calls(void)
{
    int status = 0;
    for (size_t k = 0; k < FILTERS_NEEDS; k++) {
        const struct filters_need *c = &filters_needs[k];
        errno = 0;
        if (syscall(c->number, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4],
                    c->args[5]) >= 0 ||
            (errno != EPERM && errno != ENOSYS && errno != EACCES))
            continue;
        if (c->number == SYS_memfd_create)
            status = 1;
        else if (!c->optional)
            return 2 + (int)k;
    }
    return status;
}

static int try_in_child(pid_t pid, bool *memfd, struct err *e)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(try_calls());
    if (child < 0 || waitpid(child, &status, 0) != child)
        return err_set_errno(e, "cannot start a process");
    if (!WIFEXITED(status))
        return err_set(
            e, -ENOTSUP,
            "%ld: its seccomp filter kills programs that make a system call the library needs",
            (long)pid);
    *memfd = WEXITSTATUS(status) != 1;
    return WEXITSTATUS(status) < 2
               ? 0
               : err_set(e, -ENOTSUP,
                         "%ld: its seccomp filter does not allow %s, which the library needs",
                         (long)pid, filters_needs[WEXITSTATUS(status) - 2].name);
}

static bool is_filtered(const struct tracees *t, bool *strict)
{
    bool filtered = false;
    for (size_t i = 0; i < t->n; i++) {
        uint64_t mode = status_number(t->remote->pid, t->all[i].tid, "Seccomp", 10);
        filtered |= mode != SECCOMP_MODE_DISABLED;
        *strict |= mode == SECCOMP_MODE_STRICT;
    }
    return filtered;
}

int filters_check(struct tracees *t, bool *memfd, uint64_t *paused_ns, struct err *e)
{
    const uint64_t most_ns = 1000000000u;
    const pid_t pid = t->remote->pid;
    struct programs p = {0};
    bool strict = false;
    *memfd = true;
    if (!is_filtered(t, &strict))
        return 0;
    if (strict)
        return err_set(e, -ENOTSUP, "%ld: may only read, write and exit (strict seccomp mode)",
                       (long)pid);
    uint64_t start = clock_monotonic_ns();
    int rc = tracees_stop_all(t, most_ns)
                 ? fetch_filters(&p, t)
                 : err_set(e, -EBUSY, "%ld: a thread cannot be stopped", (long)pid);
    tracees_continue_all(t, SIZE_MAX);
    const uint64_t ns = clock_monotonic_ns() - start;
    *paused_ns = ns > *paused_ns ? ns : *paused_ns;
    if (rc == 0)
        rc = check_needs(&p, pid, memfd, e);
    else if ((rc == -EACCES || rc == -EPERM) && has_own_filters(t))
        rc = try_in_child(pid, memfd, e);
    else if (rc == -EACCES || rc == -EPERM)
        rc = err_set(
            e, -EPERM,
            "%ld: its system calls are filtered (seccomp), and only root outside of containers "
            "can read the filter",
            (long)pid);
    else if (rc != -EBUSY)
        rc = err_set(e, rc, "%ld: its seccomp filter cannot be read: %s", (long)pid, strerror(-rc));
    free(p.bytes);
    return rc;
}
