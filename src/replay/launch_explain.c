#include "replay/launch.h"
#include "replay/plan/ops.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Reads the first line that the player or its allocator printed, or "".
static void read_first_line(int fd, char *text, size_t size)
{
    ssize_t n = pread(fd, text, size - 1, 0);
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ')
            *c = '?';
    }
}

enum { WHERE_BYTES = 80, THREADS_BYTES = 400 };

// Describes the op at a position in the plan.
static void describe_place(const struct watchdog *w, uint32_t thread, uint64_t position,
                           char text[WHERE_BYTES])
{
    uint64_t op = UINT64_MAX;
    text[0] = 0;
    if (thread == UINT32_MAX) {
        snprintf(text, WHERE_BYTES, " before the start");
        return;
    }
    if (w->plan && position)
        op = plan_op_at(w->plan, thread, position);
    if (op == UINT64_MAX)
        return;
    if (plan_facts(w->plan)->one_thread)
        snprintf(text, WHERE_BYTES, " at op %llu of all", (unsigned long long)op);
    else
        snprintf(text, WHERE_BYTES, " at op %llu of thread %u", (unsigned long long)op, thread);
}

static const char *failed_kind(const struct results *r)
{
    return r->failed_kind == HT_THREAD_END ? "the end"
                                           : event_infos[r->failed_kind % HT_KIND_LIMIT].name;
}

// Explains why a block cannot be accessed: the returned pointer is wild, or the memory is read-only
// or was unmapped too early.
static int explain_unusable(const struct watchdog *w, const struct allocator *a, struct err *e)
{
    const struct results *r = w->results;
    char at[WHERE_BYTES], allocated[WHERE_BYTES];
    const char *kind = failed_kind(r);
    const char *why =
        r->failed_errno == SEGV_ACCERR ? "is read-only or protected" : "is not mapped";
    unsigned long long size = r->failed_size, block = r->failed_at;
    // The difference is negative if the address is in the header before the block.
    long long byte = (long long)(r->failed_wanted - r->failed_at);
    describe_place(w, r->failed_thread, r->failed_position, at);
    describe_place(w, r->other_thread, r->other_position, allocated);
    if (strcmp(at, allocated) == 0 || r->failed_kind == HT_PREEXISTING)
        return err_set(
            e, -EILSEQ, "%s: unusable: %s of %llu bytes%s returned 0x%llx, whose byte %lld %s%s",
            a->name, kind, size, at, block, byte, why,
            byte >= (long long)size && size ? ", although malloc_usable_size is bigger" : "");
    return err_set(e, -EILSEQ,
                   "%s: unusable: byte %lld of the block of %llu bytes allocated%s %s before %s%s",
                   a->name, byte, size, allocated, why, kind, at);
}

static int explain_violation(const struct watchdog *w, const struct allocator *a, struct err *e)
{
    const struct results *r = w->results;
    char at[WHERE_BYTES], other[WHERE_BYTES], call[2 * WHERE_BYTES];
    const char *kind = failed_kind(r);
    unsigned long long size = r->failed_size, found = r->failed_at;
    describe_place(w, r->failed_thread, r->failed_position, at);
    describe_place(w, r->other_thread, r->other_position, other);
    snprintf(call, sizeof call, "%s of %llu bytes%s", kind, size, at);
    switch ((enum results_violation)r->failed_violation) {
    case RESULTS_OVERLAP:
        return err_set(e, -EILSEQ, "%s: overlap: %s returned memory of a live block, allocated%s",
                       a->name, call, other);
    case RESULTS_USABLE_OVERLAP:
        return err_set(e, -EILSEQ,
                       "%s: overlap: %s returned a block of %llu usable bytes (malloc_usable_size) "
                       "that overlaps the %llu usable bytes of a live block, allocated%s",
                       a->name, call, found, (unsigned long long)r->failed_wanted, other);
    case RESULTS_MISALIGNED:
        return err_set(e, -EILSEQ,
                       "%s: misaligned: %s returned 0x%llx, which is not a multiple of %llu",
                       a->name, call, found, (unsigned long long)r->failed_wanted);
    case RESULTS_TOO_SMALL:
        return err_set(e, -EILSEQ, "%s: too small: %s returned a block of only %llu bytes", a->name,
                       call, found);
    case RESULTS_NOT_ZEROED:
        return err_set(e, -EILSEQ, "%s: not zeroed: %s returned a block whose byte %llu is not 0",
                       a->name, call, found);
    case RESULTS_LOST_CONTENT:
        return err_set(e, -EILSEQ,
                       "%s: lost content: %s to %llu bytes%s changed byte %llu of the block",
                       a->name, kind, size, at, found);
    case RESULTS_UNUSABLE:
        return explain_unusable(w, a, e);
    case RESULTS_OVERWRITTEN:
        break;
    }
    return err_set(
        e, -EILSEQ,
        "%s: overwritten: byte %llu of the block of %llu bytes allocated%s had changed before %s%s",
        a->name, found, size, other, kind, at);
}

// Explains why malloc is not from the allocator. If the loader could not preload the library, its
// message is the first output.
static int explain_wrong_allocator(const struct results *r, const struct allocator *a, int output,
                                   struct err *e)
{
    static const char loader[] = "ERROR: ld.so: ";
    char line[300];
    read_first_line(output, line, sizeof line);
    bool not_loaded = strncmp(line, loader, strlen(loader)) == 0;
    return err_set(e, -ENOEXEC, "%s: malloc is not from %s, but from %s%s%s", a->name,
                   a->library ? a->library : "libc", r->found_library, not_loaded ? ": " : "",
                   not_loaded ? line + strlen(loader) : "");
}

int launch_explain_failure(const struct watchdog *w, const struct allocator *a, int output,
                           struct err *e)
{
    const struct results *r = w->results;
    char at[WHERE_BYTES];
    const char *kind = event_infos[r->failed_kind % HT_KIND_LIMIT].name;
    describe_place(w, r->failed_thread, r->failed_position, at);
    switch ((enum results_status)r->status) {
    case RESULTS_WRONG_ALLOCATOR:
        return explain_wrong_allocator(r, a, output, e);
    case RESULTS_MIXED_ALLOCATOR:
        return err_set(e, -ENOEXEC, "%s: malloc is from this allocator, but %s is from %s", a->name,
                       kind, r->found_library);
    case RESULTS_NO_FUNCTION:
        return err_set(e, -ENOEXEC, "%s: has no function for %s, which the workload calls", a->name,
                       kind);
    case RESULTS_NO_SETUP:
        return err_set(e, -(int)r->failed_errno, "%s: the player cannot map its own memory: %s",
                       a->name, strerror((int)r->failed_errno));
    case RESULTS_OUT_OF_MEMORY:
        return err_set(e, -ENOMEM, "%s: out of memory: %s of %llu bytes failed%s", a->name, kind,
                       (unsigned long long)r->failed_size, at);
    case RESULTS_NO_THREAD:
        return err_set(e, -EAGAIN,
                       "%s: thread %llu cannot be started in addition to %llu others: %s (raise "
                       "ulimit -u and -v, kernel.pid_max, kernel.threads-max, vm.max_map_count or "
                       "the cgroup's pids.max, or replay with --threads one)",
                       a->name, (unsigned long long)r->failed_size,
                       (unsigned long long)r->live_threads, strerror((int)r->failed_errno));
    case RESULTS_STREAM_ENDED:
        return err_set(e, -EIO, "%s: the workload ended early", a->name);
    case RESULTS_VIOLATION:
        return explain_violation(w, a, e);
    case RESULTS_NO_FIGURES:
        return err_set(
            e, -(int)r->failed_errno,
            "%s: the player cannot read its memory use: %s (does the allocator close descriptors?)",
            a->name, strerror((int)r->failed_errno));
    case RESULTS_NOTHING:
    case RESULTS_STARTED:
    case RESULTS_PLAYING:
    case RESULTS_DONE:
        break;
    }
    return err_set(e, -ECHILD, "%s: the player stopped without a reason", a->name);
}

// Describes a thread's current op, for example "malloc of 24 bytes at op 3 of thread 0". Returns 0
// if the thread has no op or if its op does not match `waiting`.
static size_t describe_thread(const struct watchdog *w, uint64_t thread, bool waiting, char *text,
                              size_t size)
{
    struct watchdog_op at;
    char place[WHERE_BYTES];
    if (!watchdog_op_of(w, thread, &at))
        return 0;
    bool waits_for_thread = at.op == PLAN_WAIT || at.op == PLAN_COUPLE;
    if (waiting != (waits_for_thread || at.op == PLAN_NEXT_SEGMENT))
        return 0;
    bool is_threads = thread < w->n_threads;
    describe_place(w, is_threads ? (uint32_t)thread : UINT32_MAX, at.position, place);
    if (waits_for_thread)
        return (size_t)snprintf(text, size, "waiting for thread %llu%s",
                                (unsigned long long)at.size, place);
    if (at.op == PLAN_NEXT_SEGMENT)
        return (size_t)snprintf(text, size, "thread %llu waiting for its next part",
                                (unsigned long long)thread);
    if (at.op == PLAN_START_THREAD)
        return (size_t)snprintf(text, size, "the start of thread %llu%s",
                                (unsigned long long)at.size, place);
    unsigned kind = plan_op_info(at.op).kind;
    if (!kind || !event_infos[kind].name)
        return (size_t)snprintf(text, size, "the player's own work%s", place);
    if (event_infos[kind].class == HT_CLASS_FREE || at.op == PLAN_REALLOC_FREE)
        return (size_t)snprintf(text, size, "%s%s", event_infos[kind].name, place);
    return (size_t)snprintf(text, size, "%s of %llu bytes%s", event_infos[kind].name,
                            (unsigned long long)at.size, place);
}

// Describes the ops of all threads: calls first, then waits.
static void describe_threads(const struct watchdog *w, char text[THREADS_BYTES])
{
    uint64_t more = 0;
    size_t used = 0;
    text[0] = 0;
    for (unsigned waiting = 0; w->plan && waiting < 2; waiting++) {
        for (uint64_t i = 0; i <= w->n_threads; i++) {
            char one[2 * WHERE_BYTES];
            size_t n = describe_thread(w, i, waiting, one, sizeof one);
            if (n && used + n + 32 < THREADS_BYTES)
                used += (size_t)snprintf(text + used, THREADS_BYTES - used, "%s%s",
                                         used ? "; " : ": in ", one);
            else
                more += n != 0;
        }
    }
    if (more)
        snprintf(text + used, THREADS_BYTES - used, "; and %llu more threads",
                 (unsigned long long)more);
}

int launch_explain_death(const struct watchdog *w, const struct allocator *a,
                         const struct launch_outcome *s, struct err *e)
{
    char threads[THREADS_BYTES];
    uint32_t status = atomic_load(&w->results->status);
    describe_threads(w, threads);
    static const char *const phases[] = {"before the player started", "before the replay",
                                         "during the replay", "after the replay"};
    char output[200], how[80];
    const char *when = phases[status < 4 ? status : 3];
    read_first_line(s->output, output, sizeof output);
    if (s->stuck)
        return err_set(e, -ETIMEDOUT, "%s: no progress for %.9g s %s (see --timeout)%s", a->name,
                       (double)w->timeout_ns / 1e9, when, threads);
    if (WIFSIGNALED(s->status))
        snprintf(how, sizeof how, "signal %d (%s)", WTERMSIG(s->status),
                 strsignal(WTERMSIG(s->status)));
    else
        snprintf(how, sizeof how, "exit status %d", WEXITSTATUS(s->status));
    return err_set(e, -ECHILD, "%s: ended by %s %s%s%s%s", a->name, how, when, threads,
                   output[0] ? ": " : "", output);
}
