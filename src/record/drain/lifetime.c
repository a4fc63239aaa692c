// Tests whether the process of a spool is alive.
//
// A pid is weak evidence: namespaces renumber processes, pids are reused, and a process can write
// any number to its header. A process owns a spool if it has the spool mapped. The pidfd of this
// process then reports its exit. If the mapping cannot be checked (no /proc, another namespace, no
// permission), the recorder requests a write lease (fcntl(2), F_SETLEASE). The kernel refuses the
// lease if any process has the file open or mapped.
#include "record/drain/drain_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENDING_MS = 2 }; // time for a process to exit before other processes are tried

// Set if a file in /proc could not be opened for lack of resources. A process that was not found
// may then exist.
static _Thread_local bool unsure;

static bool has_failed(bool failed)
{
    unsure |= failed && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
    return failed;
}

// Returns the process's pid in its innermost pid namespace, or 0 if unknown.
static uint32_t inner_pid(pid_t pid)
{
    char text[4096];
    has_failed(proc_file_read(pid, "status", text, sizeof text) < 0);
    const char *p = strstr(text, "\nNSpid:");
    if (!p)
        return 0;
    const char *end = strchrnul(p + 1, '\n'), *last = p + 7;
    for (const char *q = last; q < end; q++) {
        if (*q == '\t')
            last = q + 1;
    }
    return (uint32_t)strtoul(last, NULL, 10);
}

uint32_t lifetime_own_pid(pid_t pid)
{
    char path[64];
    struct stat own, other;
    snprintf(path, sizeof path, "/proc/%ld/ns/pid", (long)pid);
    // Reading the status takes three times as long as comparing the namespaces.
    bool same = stat("/proc/self/ns/pid", &own) == 0 && stat(path, &other) == 0 &&
                own.st_ino == other.st_ino;
    return same ? (uint32_t)pid : inner_pid(pid);
}

bool lifetime_has_pid(pid_t pid, uint32_t own_pid)
{
    return (uint32_t)pid == own_pid || inner_pid(pid) == own_pid;
}

// Returns 1 if the maps of a thread list the spool, else 0. Returns -1 if the maps are empty,
// because memory is not visible through a thread that has exited.
static int is_in_maps(pid_t pid, pid_t tid, uint64_t inode, uint64_t offset)
{
    struct proc_file_lines maps;
    const char *line;
    int found = -1;
    has_failed(!proc_file_lines_open(&maps, "/proc/%d/task/%d/maps", pid, tid));
    while (found != 1 && (line = proc_file_lines_next(&maps))) {
        unsigned long long at, number;
        found = sscanf(line, "%*x-%*x %*s %llx %*s %llu", &at, &number) == 2 && at == offset &&
                number == inode;
    }
    proc_file_lines_close(&maps);
    return found;
}

// Like is_in_maps, but checks all threads of the process, starting with the main thread.
static int has_mapped(pid_t pid, uint64_t inode, uint64_t offset)
{
    int found = is_in_maps(pid, pid, inode, offset);
    DIR *threads = found < 0 ? proc_file_folder(pid, "task") : NULL;
    has_failed(found < 0 && !threads);
    for (pid_t tid; found < 0 && (tid = proc_file_next(threads));)
        found = is_in_maps(pid, tid, inode, offset);
    proc_file_close_folder(threads);
    return found;
}

// Returns the pid of the pidfd's process in the mounted /proc, or 0 if it is not visible.
static pid_t pid_in_proc(int pidfd)
{
    struct proc_file_lines info;
    has_failed(!proc_file_lines_open(&info, "/proc/self/fdinfo/%d", pidfd));
    const char *number = proc_file_lines_find(&info, "Pid:");
    long pid = number ? strtol(number, NULL, 10) : 0;
    proc_file_lines_close(&info);
    return pid > 0 ? (pid_t)pid : 0;
}

bool lifetime_sees_processes(void)
{
    int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    pid_t shown = pidfd < 0 ? 0 : pid_in_proc(pidfd);
    proc_file_close(pidfd);
    return shown != 0;
}

// Opens a pidfd for any process except the recorder. The recorder has every spool mapped, and may
// have the same pid as a process in another namespace.
static int open_other(pid_t pid)
{
    if (pid == getpid())
        return -1;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    has_failed(pidfd < 0);
    return pidfd;
}

// Checks one process. Opens its pidfd first, so that all data read afterwards belongs to this
// process.
static bool try_process(struct drain_spool *s, pid_t pid, uint64_t inode, uint64_t offset)
{
    int pidfd = open_other(pid);
    if (pidfd < 0)
        return false;
    pid_t shown = pid_in_proc(pidfd);
    int mapped = shown && lifetime_has_pid(shown, s->pid) ? has_mapped(shown, inode, offset) : 0;
    // Wait for a process without memory, which is exiting and about to close the file.
    if (mapped < 0)
        poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, ENDING_MS);
    if (mapped <= 0) {
        close(pidfd);
        return false;
    }
    s->pidfd = pidfd;
    s->visible_pid = shown;
    s->proven = true;
    return true;
}

// Searches /proc for a process that has the pid in the header only in its own pid namespace.
static bool try_others(struct drain_spool *s, uint64_t inode, uint64_t offset)
{
    DIR *proc = opendir("/proc");
    bool found = false;
    has_failed(!proc);
    for (pid_t pid; !found && (pid = proc_file_next(proc));)
        found = (uint32_t)pid != s->pid && inner_pid(pid) == s->pid &&
                try_process(s, pid, inode, offset);
    proc_file_close_folder(proc);
    return found;
}

bool lifetime_has_session(pid_t pid, const char *dir)
{
    char want[PATH_MAX + 32], text[65536];
    size_t n = (size_t)snprintf(want, sizeof want, "%s=%s", SPOOL_ENV_DIR, dir) + 1, have = 0;
    int fd = pid > 0 ? proc_file_open(pid, "environ") : -1;
    if (has_failed(fd < 0))
        return false;
    ssize_t got;
    bool found = false;
    while (!found && (got = read(fd, text + have, sizeof text - have)) > 0) {
        have += (size_t)got;
        found = memmem(text, have, want, n) != NULL;
        // Keep the last bytes, which may be the start of a match.
        size_t keep = have < n ? have : n;
        memmove(text, text + have - keep, keep);
        have = keep;
    }
    close(fd);
    return found;
}

// Returns the start time of the process in clock ticks, or 0 if unknown.
static uint64_t start_ticks(const char *process)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%s/stat", process);
    FILE *f = fopen(path, "re");
    has_failed(!f);
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    return proc_file_stat(text, PROC_FILE_START_TICKS);
}

// Returns true if the process may be a recorded process whose mappings cannot be read. Excludes
// kernel threads and processes older than the recorder, because processes in other namespaces often
// have the same pids.
static bool is_hidden(pid_t pid)
{
    char process[32];
    int fd = proc_file_open(pid, "maps");
    has_failed(fd < 0);
    proc_file_close(fd);
    snprintf(process, sizeof process, "%ld", (long)pid);
    return (fd == -EACCES || fd == -EPERM || fd == -ENOENT) &&
           start_ticks(process) >= start_ticks("self");
}

// Accepts the process with the spool's pid without checking that it has the spool mapped. Its
// environment must contain the session directory `dir` or, if `dir` is NULL, its mappings must be
// unreadable.
static bool try_named(struct drain_spool *s, const char *dir)
{
    int pidfd = open_other((pid_t)s->pid);
    if (pidfd < 0)
        return false;
    pid_t shown = pid_in_proc(pidfd);
    if (!shown || !lifetime_has_pid(shown, s->pid) ||
        !(dir ? lifetime_has_session(shown, dir) : is_hidden(shown))) {
        close(pidfd);
        return false;
    }
    s->pidfd = pidfd;
    s->visible_pid = shown;
    return true;
}

bool lifetime_is_unused(int fd)
{
    // The kernel sends a signal if the file is opened during the lease. Choose a signal that is
    // ignored by default.
    if (fcntl(fd, F_SETSIG, SIGURG) < 0 || fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
        return false;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return true;
}

// Returns true if the process has ended. Returns false for a reserve, because other processes share
// its file, so a lease would show nothing.
static bool has_ended(const struct drain_spool *s, int fd)
{
    return !s->reserve && lifetime_is_unused(fd);
}

int lifetime_find(struct drain_spool *s, const char *dir, int fd, uint64_t offset)
{
    struct stat st;
    unsure = false;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!has_ended(s, fd) && try_process(s, (pid_t)s->pid, st.st_ino, offset))
        return 0;
    // The image has ended, although its process may run an unrecorded program after exec. Do not
    // search /proc, because a search takes longer than a short-lived process runs.
    if (has_ended(s, fd)) {
        s->dead = !try_named(s, dir);
        return 0;
    }
    if (try_others(s, st.st_ino, offset))
        return 0;
    if (!s->reserve) {
        s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        return s->fd >= 0 ? 0 : -EMFILE;
    }
    // All processes of the user have the reserves file open. Therefore a process that is not found
    // is presumed dead, and its spool is marked as refused. The reserve will be reused soon, so
    // make sure that the search did not fail for lack of resources.
    s->dead = !try_named(s, dir) && !try_named(s, NULL);
    return s->dead && unsure ? -EMFILE : 0;
}

bool lifetime_is_over(const struct drain_spool *s)
{
    struct pollfd ended = {.fd = s->pidfd, .events = POLLIN};
    if (s->pidfd >= 0)
        return poll(&ended, 1, 0) > 0;
    return s->fd >= 0 && lifetime_is_unused(s->fd);
}
