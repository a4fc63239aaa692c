#include "record/processes/limit.h"

#include "record/processes/proc_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { SMALL_FILE_BYTES = 1 << 20 }; // spool files are larger than this

static const struct {
    unsigned resource;
    const char *what, *in_proc; // name of the resource; its line in /proc/PID/limits
    uint64_t unit_bytes;
    const char *unit;
    int errors[3];
} limits[] = {
    {RLIMIT_AS, "address space", "Max address space", 1024, " KiB", {ENOMEM, EAGAIN}},
    {RLIMIT_DATA, "data segment", "Max data size", 1024, " KiB", {ENOMEM, EAGAIN}},
    {RLIMIT_FSIZE, "file size", "Max file size", 1024, " KiB", {EFBIG}},
    {RLIMIT_NOFILE, "number of open files", "Max open files", 1, "", {EMFILE}},
};

enum { N_LIMITS = sizeof limits / sizeof *limits };

static uint64_t value_in_proc(pid_t pid, const char *name)
{
    struct proc_file_lines limits_of;
    unsigned long long value;
    proc_file_lines_open(&limits_of, "/proc/%d/limits", pid);
    const char *rest = proc_file_lines_find(&limits_of, name);
    bool is_number = rest && sscanf(rest, " %llu", &value) == 1; // otherwise "unlimited"
    proc_file_lines_close(&limits_of);
    return is_number ? value : RLIM_INFINITY;
}

static uint64_t value_of(pid_t pid, size_t i)
{
    struct rlimit limit;
    if (prlimit(pid, limits[i].resource, NULL, &limit) == 0)
        return limit.rlim_cur;
    return value_in_proc(pid, limits[i].in_proc);
}

static bool may_cause(size_t i, int error, uint64_t value)
{
    if (error)
        return limits[i].errors[0] == error || limits[i].errors[1] == error;
    return limits[i].errors[0] == ENOMEM ||
           (limits[i].resource == RLIMIT_FSIZE && value < SMALL_FILE_BYTES);
}

struct limit limit_find(pid_t pid, int error)
{
    uint64_t lowest = RLIM_INFINITY;
    struct limit found = {0};
    for (size_t i = 0; i < N_LIMITS; i++) {
        uint64_t value = value_of(pid, i);
        if (value >= lowest || !may_cause(i, error, value))
            continue;
        lowest = value;
        found = limit_of(limits[i].resource, value);
    }
    return found;
}

struct limit limit_of(uint32_t resource, uint64_t value)
{
    for (size_t i = 0; i < N_LIMITS; i++) {
        if (limits[i].resource == resource)
            return (struct limit){limits[i].what, value / limits[i].unit_bytes, limits[i].unit};
    }
    return (struct limit){0};
}

int limit_explain(int rc, struct err *e)
{
    struct limit l = limit_find(0, -rc);
    size_t n = strlen(e->text);
    if (rc < 0 && l.what)
        snprintf(e->text + n, sizeof e->text - n, " (the %s is limited to %llu%s)", l.what,
                 (unsigned long long)l.amount, l.unit);
    return rc;
}
