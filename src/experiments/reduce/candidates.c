#include "experiments/reduce/candidates.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 64 };

// Writes a path through which the file can be reopened with a separate position.
static void path_of(int fd, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "/proc/%d/fd/%d", (int)getpid(), fd);
}

static int make_part(int source, struct output *out, const struct slice_options *part, int level,
                     struct err *e)
{
    struct file f;
    struct slice_counts counts;
    const struct slice_file_options how = {.part = *part, .level = level};
    char path[PATH_BYTES];
    path_of(source, path);
    int rc =
        file_open(&f, path, FILE_WORKLOAD, e) ?: slice_file(&f.workload, out, &how, &counts, e);
    file_close(&f);
    return rc;
}

// Runs in the candidate's process. Writes the part, if any, and judges it.
static void judge_part(const struct candidates *c, struct candidate *item,
                       const struct slice_options *part, struct candidate_report *r)
{
    char path[PATH_BYTES];
    *r = (struct candidate_report){0};
    if (part)
        r->rc = make_part(c->source, &item->out, part, c->level, &r->e);
    path_of(part ? item->out.fd : c->source, path);
    if (r->rc == 0)
        r->rc = judge_workload(c->judge, path, c->runs, &r->judged, &r->e);
}

int candidates_init(struct candidates *c, struct err *e)
{
    c->reports = mmap(NULL, CANDIDATES_MAX * sizeof *c->reports, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c->reports == MAP_FAILED) {
        c->reports = NULL;
        return err_set_errno(e, "cannot create shared memory for the candidates");
    }
    return 0;
}

void candidates_release(struct candidates *c)
{
    candidates_cancel(c);
    if (c->reports)
        munmap(c->reports, CANDIDATES_MAX * sizeof *c->reports);
    c->reports = NULL;
}

// Creates a process group, so that signals from the terminal do not end replays. A replay that was
// ended by a signal would look like an allocator crash. Discards the output of allocators and
// commands.
static void become_candidate(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
}

int candidates_start(struct candidates *c, const struct slice_options *part, size_t tag,
                     struct err *e)
{
    size_t i = 0;
    int ends[2];
    while (c->items[i].pid)
        i++;
    struct candidate *item = &c->items[i];
    *item = (struct candidate){.tag = tag, .start_ns = clock_monotonic_ns(), .out.fd = -1};
    int rc = part ? output_open_unnamed(&item->out, e) : 0;
    if (rc < 0)
        return rc;
    bool has_pipe = pipe2(ends, O_CLOEXEC) == 0;
    pid_t pid = has_pipe ? fork() : -1;
    if (pid == 0) {
        become_candidate();
        judge_part(c, item, part, &c->reports[i]);
        _exit(0);
    }
    if (pid < 0)
        rc = err_set_errno(e, "cannot start a candidate");
    if (has_pipe)
        close(ends[1]);
    if (rc < 0) {
        if (has_pipe)
            close(ends[0]);
        output_close(&item->out, false, NULL);
        return rc;
    }
    setpgid(pid, pid);
    item->pid = pid;
    item->ended = ends[0];
    c->running++;
    return 0;
}

// Kills the process group of a candidate, which includes its child processes, and waits for the
// candidate.
static int reap_candidate(struct candidates *c, struct candidate *item)
{
    int status = 0;
    kill(-item->pid, SIGKILL);
    while (waitpid(item->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    close(item->ended);
    item->pid = 0;
    c->running--;
    return status;
}

void candidates_cancel(struct candidates *c)
{
    for (size_t i = 0; i < CANDIDATES_MAX; i++) {
        if (!c->items[i].pid)
            continue;
        reap_candidate(c, &c->items[i]);
        output_close(&c->items[i].out, false, NULL);
    }
}

// Ends a candidate that is judged or, if `is_overdue` is true, has taken too long. Sets its report.
static void end_candidate(struct candidates *c, size_t i, bool is_overdue)
{
    struct candidate_report *r = &c->reports[i];
    int status = reap_candidate(c, &c->items[i]);
    if (is_overdue) {
        *r = (struct candidate_report){.judged.failed = (unsigned)c->judge->n_conditions};
        snprintf(r->judged.text, sizeof r->judged.text, "it took longer than %.9g s (--timeout)",
                 (double)c->max_command_ns / 1e9);
    } else if (status != 0) {
        *r = (struct candidate_report){.rc = -ECHILD,
                                       .e = {"the process that judges the workload died"}};
    }
}

int candidates_wait(struct candidates *c, int timeout_ms, const struct candidate_report **report,
                    size_t *tag, struct output *out)
{
    struct pollfd fds[CANDIDATES_MAX];
    size_t at[CANDIDATES_MAX];
    nfds_t n = 0;
    struct stat st;
    for (size_t i = 0; i < CANDIDATES_MAX; i++) {
        if (!c->items[i].pid)
            continue;
        fds[n] = (struct pollfd){.fd = c->items[i].ended, .events = POLLIN};
        at[n++] = i;
    }
    if (poll(fds, n, timeout_ms) < 0)
        return -errno;
    for (nfds_t i = 0; i < n; i++) {
        struct candidate *item = &c->items[at[i]];
        bool is_overdue = !fds[i].revents && c->max_command_ns &&
                          clock_monotonic_ns() - item->start_ns > c->max_command_ns;
        if (!fds[i].revents && !is_overdue)
            continue;
        end_candidate(c, at[i], is_overdue);
        *out = item->out;
        out->offset = out->fd >= 0 && fstat(out->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
        *report = &c->reports[at[i]];
        *tag = item->tag;
        return 1;
    }
    return 0;
}
