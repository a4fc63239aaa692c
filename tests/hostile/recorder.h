// Functions for programs that must wait until their recorder has done its part, however busy the
// machine is. Does not allocate memory. Needs /proc, or /proc open as descriptor 9.
#ifndef TESTS_HOSTILE_RECORDER_H
#define TESTS_HOSTILE_RECORDER_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RECORDER_PROC_FD = 9, RECORDER_CONNECTOR = 11, RECORDER_PASSES = 20 };

static int recorder_proc(void)
{
    static int fd = -1;
    if (fd < 0)
        fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || faccessat(fd, "self", F_OK, AT_SYMLINK_NOFOLLOW) < 0 ? RECORDER_PROC_FD : fd;
}

// Reads the rest of a file of /proc as text. Returns "" if it cannot be read.
static const char *recorder_read(const char *path)
{
    static char text[1 << 16];
    size_t n = 0;
    ssize_t got;
    int fd = openat(recorder_proc(), path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && n < sizeof text - 1 && (got = read(fd, text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = 0;
    if (fd >= 0)
        close(fd);
    return text;
}

// Returns the pid, in /proc, of the closest ancestor that is heaptape, or 0.
static int recorder_pid(void)
{
    char path[64] = "self/status";
    for (int pid = -1; pid != 0;) {
        const char *text = recorder_read(path), *parent = strstr(text, "\nPPid:");
        if (strncmp(text, "Name:\theaptape\n", 15) == 0)
            return pid;
        pid = 0;
        if (parent)
            sscanf(parent, "\nPPid: %d", &pid);
        snprintf(path, sizeof path, "%d/status", pid);
    }
    return 0;
}

// Returns the size in bytes of the kernel's events that the recorder has not read, or -1 if the
// recorder receives no such events.
static long recorder_unread(int pid)
{
    for (const char *at = recorder_read("net/netlink"); (at = strchr(at, '\n')); at++) {
        int protocol, owner;
        long unread;
        if (sscanf(at, "\n%*s %d %d %*s %ld", &protocol, &owner, &unread) == 3 &&
            protocol == RECORDER_CONNECTOR && owner == pid)
            return unread;
    }
    return -1;
}

// Returns true if all threads of the process sleep.
static int recorder_sleeps(int pid)
{
    char path[64];
    union {
        char bytes[4096];
        long align;
    } list;
    int sleeps = 1;
    long n;
    snprintf(path, sizeof path, "%d/task", pid);
    int fd = openat(recorder_proc(), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && (n = syscall(SYS_getdents64, fd, &list, sizeof list)) > 0) {
        // struct linux_dirent64: inode, offset, length of the entry, type, name
        for (long at = 0; at < n; at += *(unsigned short *)(list.bytes + at + 16)) {
            const char *name = list.bytes + at + 19;
            if (name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%d/task/%s/stat", pid, name);
            const char *state = strrchr(recorder_read(path), ')');
            sleeps &= !state || state[2] == 'S';
        }
    }
    if (fd >= 0)
        close(fd);
    return sleeps;
}

static long recorder_switches(int pid)
{
    char path[64];
    long switches = 0;
    snprintf(path, sizeof path, "%d/status", pid);
    const char *at = strstr(recorder_read(path), "\nvoluntary_ctxt_switches:");
    if (at)
        sscanf(at, "\nvoluntary_ctxt_switches: %ld", &switches);
    return switches;
}

// Waits until the recorder's main thread has slept `passes` times: it sleeps after each pass.
static __attribute__((unused)) void recorder_wait_passes(long passes)
{
    int pid = recorder_pid();
    for (long first = recorder_switches(pid); pid && recorder_switches(pid) < first + passes;)
        usleep(2000);
}

// Waits until the recorder has examined all programs that started before the call. The kernel has
// queued an event for each of them, and the thread that reads the events sleeps after examining the
// program. Without these events, the recorder searches /proc in some of its passes.
static __attribute__((unused)) void recorder_wait_examined(void)
{
    int pid = recorder_pid();
    if (pid && recorder_unread(pid) < 0)
        recorder_wait_passes(RECORDER_PASSES);
    // A thread also sleeps briefly while it waits for a lock.
    for (int times = 0; pid && recorder_unread(pid) >= 0 && times < 3; usleep(1000))
        times = recorder_unread(pid) == 0 && recorder_sleeps(pid) ? times + 1 : 0;
}

#endif
