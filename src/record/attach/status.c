#include "record/attach/status.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void read_field(pid_t pid, pid_t tid, const char *field, char *to, size_t room)
{
    char path[64], *line = NULL;
    size_t capacity = 0, n = strlen(field);
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/status", (long)pid, (long)tid);
    FILE *f = fopen(path, "re");
    to[0] = 0;
    while (f && !to[0] && getline(&line, &capacity, f) > 0) {
        if (strncmp(line, field, n) == 0 && line[n] == ':')
            snprintf(to, room, "%s", line + n + 1 + strspn(line + n + 1, "\t "));
    }
    free(line);
    if (f)
        fclose(f);
}

uint64_t status_number(pid_t pid, pid_t tid, const char *field, int base)
{
    char text[32];
    read_field(pid, tid, field, text, sizeof text);
    return strtoull(text, NULL, base);
}

char status_letter(pid_t pid, pid_t tid, const char *field)
{
    char text[2];
    read_field(pid, tid, field, text, sizeof text);
    return text[0];
}

// Returns 1 if the process runs the same executable as heaptape, 0 if it runs another executable,
// or a negative errno. -ENOENT means that the process is ending.
static int runs_heaptape(pid_t pid)
{
    char path[64];
    struct stat self, other;
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    if (stat("/proc/self/exe", &self) < 0 || stat(path, &other) < 0)
        return -errno;
    return self.st_dev == other.st_dev && self.st_ino == other.st_ino;
}

int status_traced(pid_t pid, pid_t tracer, struct err *e)
{
    int same = runs_heaptape(tracer);
    // Name the parent, because the recorder and ctl attach from a child process.
    if (same == 1)
        return err_set(
            e, -EAGAIN,
            "%ld: process %llu, another heaptape, is attaching to it or detaching; try again",
            (long)pid, (unsigned long long)status_number(tracer, tracer, "PPid", 10));
    if (same == -ENOENT)
        return err_set(e, -EAGAIN, "%ld: was traced by process %ld, which has ended", (long)pid,
                       (long)tracer);
    return err_set(e, -EBUSY, "%ld: is traced by process %ld (a debugger, or strace)", (long)pid,
                   (long)tracer);
}

enum { CAP_DAC_OVERRIDE_BIT = 1, CAP_SYS_PTRACE_BIT = 19 };

// Returns the setting of the Yama security module, or 0 if there is no restriction.
static int ptrace_scope(void)
{
    char digit = '0';
    FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (f && fread(&digit, 1, 1, f) != 1)
        digit = '0';
    if (f)
        fclose(f);
    return digit - '0';
}

int status_denied(pid_t pid, struct err *e)
{
    int scope = ptrace_scope();
    uint64_t user = status_number(pid, pid, "Uid", 10),
             rights = status_number(getpid(), getpid(), "CapEff", 16);
    if (scope >= 3)
        return err_set(
            e, -EACCES,
            "%ld: not permitted: kernel.yama.ptrace_scope is 3, which forbids it until the next "
            "boot",
            (long)pid);
    // Opening /proc/PID/mem requires the permissions of the file's owner.
    if (rights >> CAP_SYS_PTRACE_BIT & ~rights >> CAP_DAC_OVERRIDE_BIT & 1 && user != geteuid())
        return err_set(
            e, -EACCES,
            "%ld: not permitted: it belongs to user %llu; run heaptape as that user, or with "
            "CAP_DAC_OVERRIDE in addition to CAP_SYS_PTRACE",
            (long)pid, (unsigned long long)user);
    if (rights >> CAP_SYS_PTRACE_BIT & 1)
        return err_set(
            e, -EACCES,
            "%ld: not permitted, although heaptape has CAP_SYS_PTRACE; a security module or "
            "a user namespace forbids it",
            (long)pid);
    if (user != getuid())
        return err_set(
            e, -EACCES,
            "%ld: not permitted: it belongs to user %llu; run heaptape as that user or as root",
            (long)pid, (unsigned long long)user);
    if (scope > 0)
        return err_set(e, -EACCES,
                       "%ld: not permitted: kernel.yama.ptrace_scope is %d; run heaptape as root%s",
                       (long)pid, scope,
                       scope == 1 ? ", or set it to 0 (sysctl kernel.yama.ptrace_scope=0)" : "");
    return err_set(e, -EACCES,
                   "%ld: not permitted: it has rights that heaptape lacks; run heaptape as root",
                   (long)pid);
}

// Returns true if the process ignores SIGTRAP, or has a handler for SIGTRAP while a thread blocks
// the signal. At a breakpoint, the kernel would reset the action of SIGTRAP.
static bool needs_trap(pid_t pid)
{
    char path[64];
    const uint64_t trap = 1ull << (SIGTRAP - 1);
    struct dirent *d;
    bool caught = status_number(pid, pid, "SigCgt", 16) & trap,
         needs = status_number(pid, pid, "SigIgn", 16) & trap;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *tasks = opendir(path);
    while (caught && tasks && (d = readdir(tasks)))
        needs |= status_number(pid, (pid_t)strtol(d->d_name, NULL, 10), "SigBlk", 16) & trap;
    if (tasks)
        closedir(tasks);
    return needs;
}

int status_ended(pid_t pid, struct err *e)
{
    char state = status_letter(pid, pid, "State");
    if (!state)
        return err_set(e, -ESRCH, "%ld: no such process", (long)pid);
    if (state == 'Z' && status_number(pid, pid, "Threads", 10) > 1)
        return err_set(e, -ENOTSUP,
                       "%ld: its main thread has ended, so /proc does not show its memory",
                       (long)pid);
    // The kernel releases the root directory of a process before its state changes.
    char root[64];
    snprintf(root, sizeof root, "/proc/%ld/root", (long)pid);
    if (state == 'Z' || state == 'X' || (access(root, F_OK) < 0 && errno == ENOENT))
        return err_set(e, -ESRCH, "%ld: the process has ended", (long)pid);
    return 0;
}

int status_check(pid_t pid, struct err *e)
{
    uint64_t tracer = status_number(pid, pid, "TracerPid", 10);
    int rc = status_ended(pid, e);
    char state = status_letter(pid, pid, "State");
    if (rc < 0)
        return rc;
    // Check the tracer first, because a traced process may be stopped too.
    if (tracer)
        return status_traced(pid, (pid_t)tracer, e);
    // A tracer has attached between the two reads.
    if (state == 't')
        return err_set(e, -EAGAIN, "%ld: is stopped by a tracer", (long)pid);
    if (state == 'T')
        return err_set(e, -EBUSY, "%ld: is stopped; continue it first", (long)pid);
    if (status_number(pid, pid, "Tgid", 10) != (uint64_t)pid)
        return err_set(e, -ESRCH, "%ld: is a thread, not a process", (long)pid);
    // Only kernel threads ignore SIGKILL.
    if (status_number(pid, pid, "SigIgn", 16) >> (SIGKILL - 1) & 1)
        return err_set(e, -ENOTSUP, "%ld: is a kernel thread, which has no memory", (long)pid);
    if (needs_trap(pid))
        return err_set(
            e, -ENOTSUP,
            "%ld: ignores SIGTRAP, or blocks and handles it, and a breakpoint would change that",
            (long)pid);
    return 0;
}
