// Asks the recorder for the plan of an object (src/record/entries/answer.h).
#include "capture/producer/producer_private.h"

#include <fcntl.h>

enum { NAP_NS = 200000 }; // interval between two checks for the plan
#define PATIENCE_NS 100000000u

// Returns true if only the owner of the session directory, which is the recorder, can have written
// the file.
static bool is_from_recorder(int fd, const char *dir)
{
    struct stat file, of;
    return fstat(fd, &file) == 0 && stat(dir, &of) == 0 && S_ISREG(file.st_mode) &&
           file.st_uid == of.st_uid && file.st_nlink == 1 && !(file.st_mode & (S_IWGRP | S_IWOTH));
}

// Reads a plan. Returns the size of the plan, 0 if the object cannot be redirected, or -1 if the
// recorder has not written the plan yet.
static long read_plan(const char *dir, const char *path, struct entries_plan *to)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    long n = is_from_recorder(fd, dir) ? read(fd, to, sizeof *to) : 0;
    close(fd);
    return n < 0 ? 0 : n;
}

static long await_plan(const struct producer_process *p, int fd, const char *path,
                       struct entries_plan *to)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    uint64_t end = clock_monotonic_ns() + PATIENCE_NS;
    long n = -1;
    atomic_store_explicit(&p->header->plan_wanted, 1 + (uint32_t)fd, memory_order_release);
    control_wake_recorder(p->header, producer_inherited.futexes);
    while (n < 0 && clock_monotonic_ns() < end && producer_has_recorder(p)) {
        nanosleep(&nap, NULL);
        n = read_plan(producer_inherited.dir, path, to);
    }
    return n;
}

const struct spool_wrap *producer_wrap(void)
{
    const struct producer_inherited *in = &producer_inherited;
    return in->session.magic && in->session.wrap.n ? &in->session.wrap : NULL;
}

enum producer_plan producer_read_plan(int fd, struct entries_plan *to)
{
    const struct producer_inherited *in = &producer_inherited;
    const struct producer_process *p = producer_current();
    char path[PRODUCER_MAX_PATH + 64], name[ENTRIES_FILE_BYTES];
    struct stat file;
    if (!producer_has_state(p, PRODUCER_RUNNING) || in->session.flags & SPOOL_NO_RECORDER ||
        fstat(fd, &file) < 0)
        return PRODUCER_NO_PLAN;
    entries_name_file(&file, name);
    if (!producer_format(path, sizeof path, "%s/%s", in->dir, name))
        return PRODUCER_NO_PLAN;
    long n = read_plan(in->dir, path, to);
    n = n < 0 ? await_plan(p, fd, path, to) : n;
    return n < 0                   ? PRODUCER_PLAN_IS_LATE
           : n == (long)sizeof *to ? PRODUCER_HAS_PLAN
                                   : PRODUCER_NO_PLAN;
}
