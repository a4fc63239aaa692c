// Whether the process of a spool lives.
//
// A pid says little: namespaces number processes anew, pids are used again, and any process can write any number into its
// header. What proves that a process is a spool's is that it has the spool mapped; its end is then the pidfd's. Where that
// cannot be seen (no /proc, another namespace, a process that may not be looked at), the kernel still knows whether anybody
// has the file open or mapped: only then it refuses a write lease (fcntl(2), F_SETLEASE).
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

enum { ENDING_MS = 2 }; // that a process may take to end, before others are tried

// Did a look at a process fail for want of a file descriptor or memory? Then it says nothing about the process.
static _Thread_local bool unsure;

// What an open has returned, if it is a failure, is judged.
static bool has_failed(bool failed)
{
    unsure |= failed && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
    return failed;
}

static FILE *open_text(const char *path)
{
    FILE *f = fopen(path, "re");
    has_failed(!f);
    return f;
}

static DIR *open_folder(const char *path)
{
    DIR *d = opendir(path);
    has_failed(!d);
    return d;
}

// The pid that the process has in its innermost pid namespace; 0: unknown.
static uint32_t inner_pid(pid_t pid)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = has_failed(fd < 0) ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
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

bool lifetime_is_called(pid_t pid, uint32_t own_pid)
{
    return (uint32_t)pid == own_pid || inner_pid(pid) == own_pid;
}

// Is the start of the spool among the mappings in the file? 1, 0, or -1 when there are none: the memory of a thread group
// is not to be seen through a leader that has ended.
static int is_in_maps(const char *path, uint64_t inode, uint64_t offset)
{
    FILE *maps = open_text(path);
    char *line = NULL;
    size_t room = 0;
    int found = -1;
    while (maps && found != 1 && getline(&line, &room, maps) > 0) {
        unsigned long long at, number;
        found = sscanf(line, "%*x-%*x %*s %llx %*s %llu", &at, &number) == 2 && at == offset &&
                number == inode;
    }
    free(line);
    if (maps)
        fclose(maps);
    return found;
}

// The same of all its threads.
static int has_mapped(pid_t pid, uint64_t inode, uint64_t offset)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%ld/maps", (long)pid);
    int found = is_in_maps(path, inode, offset);
    if (found >= 0)
        return found;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *threads = open_folder(path);
    struct dirent *d;
    while (threads && found < 0 && (d = readdir(threads))) {
        if (d->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%ld/task/%s/maps", (long)pid, d->d_name);
        found = is_in_maps(path, inode, offset);
    }
    if (threads)
        closedir(threads);
    return found;
}

// The number that the process behind a pidfd has in the instance of /proc that is mounted; 0: none.
static pid_t pid_in_proc(int pidfd)
{
    char path[64], *line = NULL;
    size_t room = 0;
    long pid = 0;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    FILE *info = open_text(path);
    while (info && getline(&line, &room, info) > 0) {
        if (sscanf(line, "Pid: %ld", &pid) == 1)
            break;
    }
    free(line);
    if (info)
        fclose(info);
    return pid > 0 ? (pid_t)pid : 0;
}

bool lifetime_sees_processes(void)
{
    int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    pid_t shown = pidfd < 0 ? 0 : pid_in_proc(pidfd);
    if (pidfd >= 0)
        close(pidfd);
    return shown != 0;
}

// The recorder itself has every spool mapped, and may have the number that a process has in another namespace.
static int open_other(pid_t pid)
{
    if (pid == getpid())
        return -1;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    has_failed(pidfd < 0);
    return pidfd;
}

// Makes the process with that number, as the recorder counts, the spool's, if it has it mapped. The pidfd comes first: what
// is then read of the process is of the one that it stands for.
static bool try_process(struct drain_spool *s, pid_t pid, uint64_t inode, uint64_t offset)
{
    int pidfd = open_other(pid);
    if (pidfd < 0)
        return false;
    pid_t shown = pid_in_proc(pidfd);
    int mapped = shown && lifetime_is_called(shown, s->pid) ? has_mapped(shown, inode, offset) : 0;
    // One that has no memory any more is about to end, and has let go of the file then.
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

// One whose number is another one here.
static bool try_others(struct drain_spool *s, uint64_t inode, uint64_t offset)
{
    DIR *proc = open_folder("/proc");
    struct dirent *d;
    bool found = false;
    while (proc && !found && (d = readdir(proc))) {
        pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
        found = pid > 0 && (uint32_t)pid != s->pid && inner_pid(pid) == s->pid &&
                try_process(s, pid, inode, offset);
    }
    if (proc)
        closedir(proc);
    return found;
}

bool lifetime_is_of_session(pid_t pid, const char *dir)
{
    char path[64], want[PATH_MAX + 32], text[65536];
    size_t n = (size_t)snprintf(want, sizeof want, "%s=%s", SPOOL_ENV_DIR, dir) + 1, have = 0;
    snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (has_failed(fd < 0))
        return false;
    ssize_t got;
    bool found = false;
    while (!found && (got = read(fd, text + have, sizeof text - have)) > 0) {
        have += (size_t)got;
        found = memmem(text, have, want, n) != NULL;
        // What is kept may be the beginning of it.
        size_t keep = have < n ? have : n;
        memmove(text, text + have - keep, keep);
        have = keep;
    }
    close(fd);
    return found;
}

// When the process began, in clock ticks; 0: unknown.
static unsigned long long start_ticks(const char *process)
{
    char path[64], text[1024];
    unsigned long long ticks = 0;
    snprintf(path, sizeof path, "/proc/%s/stat", process);
    FILE *f = open_text(path);
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    // The name, in brackets, may hold anything. Field 22 of proc(5); the third comes after the name.
    const char *name_end = strrchr(text, ')');
    if (name_end)
        sscanf(name_end + 1,
               " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
               &ticks);
    if (f)
        fclose(f);
    return ticks;
}

// May the process be one of the recording whose mappings are not to be seen? Not a kernel thread, nor one that is older than
// the recorder: namespaces number their processes with the numbers of such.
static bool is_hidden(pid_t pid)
{
    char path[64], process[32];
    snprintf(process, sizeof process, "%ld", (long)pid);
    snprintf(path, sizeof path, "/proc/%s/maps", process);
    FILE *maps = open_text(path);
    int failed = maps ? 0 : errno;
    if (maps)
        fclose(maps);
    return (failed == EACCES || failed == EPERM || failed == ENOENT) &&
           start_ticks(process) >= start_ticks("self");
}

// Takes the process of that number for the spool's without a proof: of the session in `dir`, or, if that is NULL, one whose
// mappings are not to be seen.
static bool try_named(struct drain_spool *s, const char *dir)
{
    int pidfd = open_other((pid_t)s->pid);
    if (pidfd < 0)
        return false;
    pid_t shown = pid_in_proc(pidfd);
    if (!shown || !lifetime_is_called(shown, s->pid) ||
        !(dir ? lifetime_is_of_session(shown, dir) : is_hidden(shown))) {
        close(pidfd);
        return false;
    }
    s->pidfd = pidfd;
    s->visible_pid = shown;
    return true;
}

bool lifetime_nobody_has(int fd)
{
    // If somebody opens the file in the moment of the lease, the kernel tells us so by a signal: by one that does nothing.
    if (fcntl(fd, F_SETSIG, SIGURG) < 0 || fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
        return false;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return true;
}

// A reserve is in a file that everybody has.
static bool has_ended(const struct drain_spool *s, int fd)
{
    return !s->reserve && lifetime_nobody_has(fd);
}

int lifetime_find(struct drain_spool *s, const char *dir, int fd, uint64_t offset)
{
    struct stat st;
    unsure = false;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!has_ended(s, fd) && try_process(s, (pid_t)s->pid, st.st_ino, offset))
        return 0;
    // The image may be gone already, and its process be another program by exec: that is to be seen if it is not recorded. To
    // search /proc for a process that lived for a moment would take more time than it did.
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
    // A reserve is in the session's file, which everybody has open: what cannot be seen there is taken for ended, and told
    // so, since its spool is then marked as refused. Its place is another's soon: that takes a look that has not failed.
    s->dead = !try_named(s, dir) && !try_named(s, NULL);
    return s->dead && unsure ? -EMFILE : 0;
}

bool lifetime_is_over(const struct drain_spool *s)
{
    struct pollfd ended = {.fd = s->pidfd, .events = POLLIN};
    if (s->pidfd >= 0)
        return poll(&ended, 1, 0) > 0;
    return s->fd >= 0 && lifetime_nobody_has(s->fd);
}
