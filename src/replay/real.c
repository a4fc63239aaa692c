#include "replay/real.h"
#include "base/clock.h"
#include "replay/launch.h"
#include "replay/program.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

const struct replay_real_info replay_real_infos[REAL_FIGURES] = {
    [REAL_WALL] = {"wall time", "wall_ns", "wall_ratio"},
    [REAL_CPU] = {"CPU time", "cpu_ns", "cpu_ratio"},
    [REAL_PEAK_RSS] = {"peak RSS", "peak_rss_bytes", "rss_ratio"},
    [REAL_PROCESS_RSS] = {"process RSS", "process_peak_rss_bytes", "process_rss_ratio"},
};

enum { LOOK_MS = 2 };

char **replay_real_recorded(const struct replay_session *s)
{
    size_t n = 0, bytes = s->recorded_argv_bytes;
    for (size_t i = 0; i < bytes; i++)
        n += s->recorded_argv[i] == 0;
    char **argv = n ? calloc(1, (n + 1) * sizeof *argv + bytes) : NULL;
    if (!argv)
        return NULL;
    char *at = memcpy(argv + n + 1, s->recorded_argv, bytes);
    for (size_t i = 0; i < n; i++, at += strlen(at) + 1)
        argv[i] = at;
    return argv;
}

// Returns the value on a line of /proc/PID/status, converted to bytes. The line's unit must be kB.
static uint64_t status_bytes(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    return line ? strtoull(line + strlen(name), NULL, 10) * 1024 : 0;
}

// Raises the peaks to the memory so far. The high-water mark includes peaks between samples, but it
// counts all resident memory. Therefore file pages and shared pages are subtracted for private
// memory. ru_maxrss cannot be used, because it also counts the memory of heaptape before exec.
static void raise_peaks(int fd, struct replay_real *run)
{
    char text[4096];
    ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    uint64_t high = status_bytes(text, "VmHWM:"),
             shared = status_bytes(text, "RssFile:") + status_bytes(text, "RssShmem:");
    double own = high > shared ? (double)(high - shared) : 0;
    run->values[REAL_PEAK_RSS] = fmax(run->values[REAL_PEAK_RSS], own);
    run->values[REAL_PROCESS_RSS] = fmax(run->values[REAL_PROCESS_RSS], (double)high);
}

static double time_ns(const struct timeval *t)
{
    return (double)t->tv_sec * 1e9 + (double)t->tv_usec * 1e3;
}

// A program to run, a library that is preloaded before the allocator or "", and the wait status of
// the last run.
struct program {
    char *const *argv;
    const char *first;
    int status;
};

static int spawn_program(const struct program *p, const struct allocator *a, char **environment,
                         pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    launch_open_libraries(a, p->first, &actions);
    int rc = posix_spawnp(pid, p->argv[0], &actions, NULL, p->argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

static int run_once(struct program *p, const struct allocator *a, struct replay_real *run,
                    struct err *e)
{
    pid_t pid;
    char path[64];
    struct rusage usage;
    uint64_t began = clock_monotonic_ns();
    // The program may be linked with an allocator. Preload libc to override that allocator.
    char **environment = launch_environment(a, p->first, "libc.so.6");
    if (!environment)
        return err_no_memory(e, NULL);
    int rc = spawn_program(p, a, environment, &pid);
    free(environment);
    if (rc)
        return err_set(e, -rc, "%s: %s", p->argv[0], strerror(rc));
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    int memory = open(path, O_RDONLY | O_CLOEXEC), pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    pid_t ended;
    while ((ended = wait4(pid, &p->status, WNOHANG, &usage)) == 0 ||
           (ended < 0 && errno == EINTR)) {
        raise_peaks(memory, run);
        poll(&end, pidfd >= 0, LOOK_MS);
    }
    run->values[REAL_WALL] = (double)(clock_monotonic_ns() - began);
    run->values[REAL_CPU] = time_ns(&usage.ru_utime) + time_ns(&usage.ru_stime);
    if (memory >= 0)
        close(memory);
    if (pidfd >= 0)
        close(pidfd);
    return ended < 0 ? err_set_errno(e, "cannot wait for %s", p->argv[0]) : 0;
}

static const char *describe_end(int status, char text[32])
{
    if (WIFSIGNALED(status))
        snprintf(text, 32, "signal %d", WTERMSIG(status));
    else
        snprintf(text, 32, "exit status %d", WEXITSTATUS(status));
    return text;
}

// The result that the other results are compared with.
struct reference {
    struct replay_result *result; // NULL before the first run
    int status;
};

// Compares the last run with the reference. If only the reference was killed by a signal, the
// reference is the failed one.
static int compare_end(const struct program *p, struct replay_result *r, struct reference *ref,
                       bool keep_going, struct err *e)
{
    if (!ref->result)
        *ref = (struct reference){r, p->status};
    if (p->status == ref->status)
        return 0;
    bool swaps = WIFSIGNALED(ref->status) && !WIFSIGNALED(p->status) && ref->result != r;
    const struct reference last = {r, p->status}, failed = swaps ? *ref : last,
                           other = swaps ? last : *ref;
    char is[32], was[32];
    int rc = err_set(e, -ECHILD, "%s ended with %s on %s, with %s on %s", p->argv[0],
                     describe_end(failed.status, is), failed.result->allocator.name,
                     describe_end(other.status, was), other.result->allocator.name);
    if (!keep_going)
        return rc;
    *ref = other;
    failed.result->failure = strdup(e->text);
    *e = (struct err){0};
    return failed.result->failure ? 0 : err_no_memory(e, NULL);
}

int replay_real_run(struct replay_result *const *results, size_t n, uint64_t runs,
                    char *const argv[], bool keep_going, struct err *e)
{
    struct program p = {.argv = argv, .first = ""};
    struct reference reference = {0};
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        results[i]->real = calloc(runs, sizeof *results[i]->real);
        if (!results[i]->real)
            return err_no_memory(e, NULL);
    }
    for (size_t i = 0; i < runs * n && rc == 0; i++) {
        struct replay_result *r = results[i % n];
        if (r->failure)
            continue;
        rc = run_once(&p, &r->allocator, &r->real[r->n_real], e);
        r->n_real += rc == 0;
        rc = rc ?: compare_end(&p, r, &reference, keep_going, e);
    }
    return rc;
}

static uint64_t count_calls(const struct replay_call *calls)
{
    uint64_t n = 0;
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++)
        n += calls[kind].count;
    return n;
}

// Reads the text of libheaptape-times.so into the result. Skips unknown lines, because the program
// can write to the file, too.
static int read_calls(FILE *in, struct replay_result *r, struct err *e)
{
    struct replay_call calls[HT_KIND_LIMIT] = {0}, best[HT_KIND_LIMIT] = {0}, c = {0};
    char line[160], name[32];
    bool more = true;
    while (more) {
        more = fgets(line, sizeof line, in);
        if (!more || strncmp(line, "process ", 8) == 0) {
            if (count_calls(calls) > count_calls(best))
                memcpy(best, calls, sizeof best);
            memset(calls, 0, sizeof calls);
        } else if (sscanf(line, "%31s %" SCNu64 " %lf %lf %lf", name, &c.count, &c.p50_ns,
                          &c.p99_ns, &c.p999_ns) == 5 &&
                   event_kind_by_name(name) >= 0)
            calls[event_kind_by_name(name)] = c;
    }
    if (count_calls(best) == 0)
        return 0;
    r->real_calls = malloc(sizeof best);
    if (!r->real_calls)
        return err_no_memory(e, NULL);
    memcpy(r->real_calls, best, sizeof best);
    return 0;
}

// Runs the program with the allocator, and reads what its processes wrote to `file`.
static int time_calls(struct program *p, struct replay_result *r, FILE *file, struct err *e)
{
    char variable[64];
    snprintf(variable, sizeof variable, "HEAPTAPE_TIMES=/proc/%ld/fd/%d", (long)getpid(),
             fileno(file));
    struct replay_real run = {0};
    struct allocator a = r->allocator;
    a.tunables = malloc((a.n_tunables + 1) * sizeof *a.tunables);
    if (!a.tunables)
        return err_no_memory(e, NULL);
    if (a.n_tunables)
        memcpy(a.tunables, r->allocator.tunables, a.n_tunables * sizeof *a.tunables);
    a.tunables[a.n_tunables++] = variable;
    int rc = ftruncate(fileno(file), 0) ? -errno : run_once(p, &a, &run, e);
    free(a.tunables);
    rewind(file);
    return rc ?: read_calls(file, r, e);
}

int replay_real_time_calls(struct replay_result *const *results, size_t n, const char *times,
                           char *const argv[], struct err *e)
{
    struct program p = {.argv = argv, .first = times};
    int rc = 0;
    int fd = memfd_create("heaptape-times", MFD_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file) {
        rc = err_set_errno(e, "cannot create a file in memory");
        if (fd >= 0)
            close(fd);
        return rc;
    }
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = time_calls(&p, results[i], file, e);
    fclose(file);
    return rc;
}

size_t replay_real_values(const struct replay_result *r, enum replay_real_figure figure,
                          double values[MEASURE_MAX_RUNS])
{
    for (size_t i = 0; i < r->n_real; i++)
        values[i] = r->real[i].values[figure];
    return r->n_real;
}

double replay_real_median(const struct replay_result *r, enum replay_real_figure figure)
{
    double values[MEASURE_MAX_RUNS];
    return measure_median(values, replay_real_values(r, figure, values));
}

struct measure_ratio replay_real_ratio(const struct replay_session *s,
                                       const struct replay_result *r,
                                       enum replay_real_figure figure)
{
    double a[MEASURE_MAX_RUNS], b[MEASURE_MAX_RUNS];
    size_t n_a = replay_real_values(r, figure, a),
           n_b = replay_real_values(&s->results[0], figure, b);
    return measure_ratio(a, n_a, b, n_b);
}

int replay_real_cpu_is_within(const struct replay_session *s, const struct replay_result *r)
{
    const struct program_time t = program_time(s);
    const struct measure_ratio predicted = program_interval(s, &t, r),
                               real = replay_real_ratio(s, r, REAL_CPU);
    if (r == s->results || !measure_has_interval(&predicted))
        return -1;
    return real.ratio >= predicted.low && real.ratio <= predicted.high;
}
