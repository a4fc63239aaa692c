#include "record/unrecorded/unrecorded.h"

#include "base/clock.h"
#include "record/drain/drain_private.h"
#include "record/unrecorded/running.h"
#include "record/unrecorded/tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MIN_INTERVAL_NS = 20000000,
    SETTLE_INTERVAL_NS = 100000000,
    COST = 20, // the pause after a search is its CPU time multiplied by COST
    // Number of searches after which a process must have loaded its libraries.
    CERTAIN_SEARCHES = 3,
    MAX_MISSED = 4096,    // maximum number of processes described
    YOUNG_NS = 100000000, // a younger program may not have had time for its first call
};

struct unrecorded_process {
    pid_t pid;
    unsigned long long start; // in kernel ticks; pid and start together identify a process
    unsigned last_search;     // number of the last search that found the process
    bool is_member;
    uint32_t images; // 1 + number of this process's last spool, or 0 if it has no spool
    bool missed;     // the current image of the process is not recorded
    struct unrecorded_image seen;
};

// Returns the number of forks on the machine since boot, or 0 if unknown.
static unsigned long long count_forks(void)
{
    struct proc_file_lines stat;
    proc_file_lines_open(&stat, "/proc/stat");
    const char *number = proc_file_lines_find(&stat, "processes ");
    unsigned long long forks = number ? strtoull(number, NULL, 10) : 0;
    proc_file_lines_close(&stat);
    return forks;
}

static bool find_survivor(const struct unrecorded *u, pid_t except)
{
    DIR *proc = opendir("/proc");
    bool found = false;
    for (pid_t pid; !found && (pid = proc_file_next(proc));)
        found = pid != except && lifetime_has_session(pid, u->how.dir);
    proc_file_close_folder(proc);
    return found;
}

// A search of /proc can miss a daemon, because a daemon's parent exits right after the fork.
// Therefore repeats the search, at most MAX_SEARCHES times, until no process on the machine forks
// during a search.
bool unrecorded_has_survivors(const struct unrecorded *u, pid_t except)
{
    enum { MAX_SEARCHES = 8 };
    int known = except || !u->tree ? -ENOTSUP : tree_has_survivor(u->tree);
    if (known >= 0)
        return known;
    for (int searches = 0; searches < MAX_SEARCHES; searches++) {
        unsigned long long forks = count_forks();
        if (find_survivor(u, except))
            return true;
        if (forks && forks == count_forks())
            return false;
    }
    return false;
}

static struct unrecorded_process *find_process(const struct unrecorded *u, pid_t pid,
                                               unsigned long long start)
{
    for (size_t i = u->n; i-- > 0;) {
        struct unrecorded_process *p = &u->items[i];
        if (p->pid == pid && p->last_search + 1 >= u->searches && (!start || p->start == start))
            return p;
    }
    return NULL;
}

// Reads parent and start time. Returns false if the process has ended.
static bool read_stat(pid_t pid, struct unrecorded_process *p, pid_t *parent)
{
    char text[1024];
    if (proc_file_read(pid, "stat", text, sizeof text) <= 0)
        return false;
    p->pid = pid;
    p->start = proc_file_stat(text, PROC_FILE_START_TICKS);
    *parent = (pid_t)proc_file_stat(text, PROC_FILE_PARENT);
    return true;
}

enum library { LIBRARY_UNKNOWN, LIBRARY_THERE, LIBRARY_MISSING };

// Determines whether the process has the library. The dynamic loader maps LD_PRELOAD libraries
// before libc. If only libc is mapped, the library will not be loaded.
static enum library find_library(pid_t pid)
{
    struct proc_file_lines maps;
    bool has_libc = false, found = false;
    proc_file_lines_open(&maps, "/proc/%d/maps", pid);
    for (const char *line; !found && (line = proc_file_lines_next(&maps));) {
        found = strstr(line, "libheaptape");
        has_libc |=
            strstr(line, "/libc.so") || strstr(line, "/libc-2.") || strstr(line, "/ld-musl-");
    }
    bool whole = maps.file && feof(maps.file); // getline did not run out of memory
    proc_file_lines_close(&maps);
    return found ? LIBRARY_THERE : whole && has_libc ? LIBRARY_MISSING : LIBRARY_UNKNOWN;
}

static bool is_missed(pid_t pid, const struct unrecorded_image *seen)
{
    if (!seen->followed || !seen->name[0])
        return false;
    enum library library = find_library(pid);
    return library == LIBRARY_MISSING || (library == LIBRARY_UNKNOWN && seen->why[0]);
}

static void examine_process(struct unrecorded *u, pid_t pid, pid_t program)
{
    struct unrecorded_process found = {0}, *known = find_process(u, pid, 0);
    pid_t parent;
    // In earlier searches, the process did not belong to the session.
    if (known && !known->is_member) {
        known->last_search = u->searches;
        return;
    }
    if (!read_stat(pid, &found, &parent))
        return;
    struct unrecorded_process *p = find_process(u, pid, found.start);
    if (!p) {
        const struct unrecorded_process *of = find_process(u, parent, 0);
        found.is_member = pid == program || (u->outer_pid && parent == u->outer_pid) ||
                          (of && of->is_member) || lifetime_has_session(pid, u->how.dir);
        if (HT_APPEND(&u->items, &u->n, &u->capacity, found) < 0)
            return;
        p = &u->items[u->n - 1];
    }
    p->last_search = u->searches;
    if (!p->is_member)
        return;
    struct unrecorded_image seen;
    unrecorded_inspect(&seen, pid, &u->how);
    if (is_missed(pid, &seen)) {
        p->missed = true;
        p->seen = seen;
    }
}

static void forget_ended(struct unrecorded *u)
{
    size_t n = 0;
    for (size_t i = 0; i < u->n; i++) {
        if (u->items[i].last_search == u->searches || u->items[i].missed)
            u->items[n++] = u->items[i];
    }
    u->n = n;
}

// Returns the recorder's pid in /proc if /proc belongs to another pid namespace, where the
// program's pid is unknown. Otherwise returns 0.
static pid_t find_outer_pid(void)
{
    char text[32];
    ssize_t n = readlink("/proc/self", text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    pid_t self = (pid_t)strtol(text, NULL, 10);
    return self != getpid() ? self : 0;
}

static void search_proc(struct unrecorded *u, pid_t program)
{
    DIR *proc = opendir("/proc");
    u->searches++;
    u->outer_pid = find_outer_pid();
    program = u->outer_pid ? -1 : program;
    for (pid_t pid; (pid = proc_file_next(proc));)
        examine_process(u, pid, program);
    proc_file_close_folder(proc);
    forget_ended(u);
}

void unrecorded_begin(struct unrecorded *u, const struct unrecorded_how *how, enum clock_kind clock,
                      pid_t attached)
{
    *u = (struct unrecorded){.how = *how};
    u->tree = tree_new(&u->how, clock, attached);
    if (attached && !find_outer_pid())
        u->running = running_list(attached, &u->n_running);
}

void unrecorded_search(struct unrecorded *u, pid_t program)
{
    uint64_t now = clock_monotonic_ns();
    if (now < u->next_ns)
        return;
    if (u->tree) {
        tree_settle(u->tree);
        u->next_ns = now + SETTLE_INTERVAL_NS;
        return;
    }
    uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    unsigned long long forks = count_forks();
    if (!forks || forks != u->forks)
        u->due = CERTAIN_SEARCHES;
    u->forks = forks;
    if (u->due) {
        u->due--;
        search_proc(u, program);
    }
    u->next_ns = now + MIN_INTERVAL_NS + COST * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began);
}

void unrecorded_add_spool(struct unrecorded *u, const struct drain_spool *s)
{
    if (u->tree)
        tree_spool(u->tree, s);
}

void unrecorded_match(struct unrecorded *u, const struct drain *c)
{
    for (size_t i = 0; !u->tree && i < c->n_spools; i++) {
        const struct drain_spool *s = c->spools[i];
        struct unrecorded_process *p = find_process(u, s->visible_pid, 0);
        // A new spool belongs to a later image than the missed image.
        if (p && p->images <= s->number) {
            p->images = s->number + 1;
            p->missed = false;
        }
    }
}

static int add_missed(struct trace_unrecorded *to, const struct trace_missed *missed)
{
    to->processes += 1 + missed->forks;
    return to->n < MAX_MISSED ? trace_unrecorded_add(to, missed) : 0;
}

static void explain_refusal(char why[UNRECORDED_WHY_BYTES], const struct spool_untraced *u)
{
    uint32_t error = atomic_load_explicit(&u->why, memory_order_acquire);
    struct limit l = limit_of(u->resource, u->limit);
    if (error == SPOOL_REFUSED_SECCOMP)
        snprintf(why, UNRECORDED_WHY_BYTES, "its system calls are filtered");
    else if (error == SPOOL_REFUSED_COUNTER)
        snprintf(why, UNRECORDED_WHY_BYTES, "it may not read the time-stamp counter");
    else if (error == SPOOL_REFUSED_ENDED)
        snprintf(why, UNRECORDED_WHY_BYTES, "the recording had ended");
    else if (u->limit && l.what)
        snprintf(why, UNRECORDED_WHY_BYTES,
                 "its spool could not be created: %s (its %s is limited to %llu%s)",
                 strerror((int)error), l.what, (unsigned long long)l.amount, l.unit);
    else
        snprintf(why, UNRECORDED_WHY_BYTES, "its spool could not be created: %s",
                 strerror((int)error));
}

// Adds the processes that registered themselves as not recorded. The data is not trusted: any
// program of the user can write to it.
static int add_refused(const struct drain_reserves *r, struct trace_unrecorded *to)
{
    uint32_t refused = drain_untraced(r);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < refused && i < SPOOL_UNTRACED; i++) {
        struct spool_untraced *u = &r->shared->untraced_of[i];
        char why[UNRECORDED_WHY_BYTES], name[SPOOL_NAME_BYTES + 1];
        explain_refusal(why, u);
        snprintf(name, sizeof name, "%.*s", SPOOL_NAME_BYTES, u->name);
        rc = add_missed(to, &(struct trace_missed){.pid = u->pid,
                                                   .name = name,
                                                   .why = why,
                                                   .calls = atomic_load(&u->count.calls),
                                                   .ns = UINT64_MAX});
    }
    to->processes += refused > SPOOL_UNTRACED ? refused - SPOOL_UNTRACED : 0;
    return rc;
}

void unrecorded_count(const struct drain_reserves *n, struct trace_balance *b)
{
    enum { MAX_COUNT_BITS = 48 };
    uint32_t untraced = drain_untraced(n);
    bool broken = atomic_load(&n->guard.broken);
    for (uint32_t k = 0; k < untraced && k < SPOOL_UNTRACED; k++) {
        uint64_t calls = atomic_load(&n->shared->untraced_of[k].count.calls);
        broken |= calls >> MAX_COUNT_BITS != 0;
        b->lost_elsewhere += calls >> MAX_COUNT_BITS ? 0 : calls;
    }
    b->lost_at_least |= untraced > SPOOL_UNTRACED || broken;
    b->overwritten_session |= broken;
}

// Returns true if the image registered itself as not recorded. Compares names too, because pids
// differ between namespaces.
static bool has_reported(const struct drain_reserves *r, const struct tree_image *image)
{
    uint32_t refused = drain_untraced(r);
    for (uint32_t i = 0; i < refused && i < SPOOL_UNTRACED; i++) {
        const struct spool_untraced *u = &r->shared->untraced_of[i];
        if (u->pid == (uint32_t)image->pid ||
            strncmp(u->name, image->seen.name, sizeof u->name) == 0)
            return true;
    }
    return refused > SPOOL_UNTRACED;
}

static bool is_known(const struct tree_image *image, const struct drain *c)
{
    for (size_t i = 0; i < c->n_reserves; i++) {
        if (has_reported(c->reserves[i], image))
            return true;
    }
    return drain_has_refused(c, (uint32_t)image->pid);
}

// Appends the limit, for example "; its address space was limited to 4000 KiB".
static void add_limit(const struct tree_image *image, char why[UNRECORDED_WHY_BYTES])
{
    const struct limit *l = &image->seen.limit;
    size_t n = strlen(why);
    if (l->what)
        snprintf(why + n, UNRECORDED_WHY_BYTES - n, "; its %s %s limited to %llu%s", l->what,
                 image->ended ? "was" : "is", (unsigned long long)l->amount, l->unit);
}

static void explain_end(const struct tree_image *image, char why[UNRECORDED_WHY_BYTES])
{
    if (image->seen.gone)
        snprintf(why, UNRECORDED_WHY_BYTES,
                 "it ended before it could be examined; libheaptape.so never started in it");
    else if (!image->ended)
        snprintf(why, UNRECORDED_WHY_BYTES, "did not load libheaptape.so");
    else if (image->seen.limit.what)
        snprintf(why, UNRECORDED_WHY_BYTES, "libheaptape.so never started in it");
    else if (WIFSIGNALED(image->status))
        snprintf(why, UNRECORDED_WHY_BYTES,
                 "libheaptape.so never started in it; signal %d ended it", WTERMSIG(image->status));
    else
        snprintf(why, UNRECORDED_WHY_BYTES,
                 "libheaptape.so never started in it; it exited with status %d",
                 WEXITSTATUS(image->status));
    add_limit(image, why);
}

static int add_image(const struct tree_image *image, bool unopened, uint64_t stamp_hz,
                     struct trace_unrecorded *to)
{
    char why[UNRECORDED_WHY_BYTES];
    if (image->seen.why[0])
        memcpy(why, image->seen.why, sizeof why);
    else if (unopened)
        strcpy(why, "its spool could not be opened, or libheaptape.so never started in it");
    else
        explain_end(image, why);
    return add_missed(
        to, &(struct trace_missed){.pid = (uint32_t)image->pid,
                                   .name = (char *)image->seen.name,
                                   .why = why,
                                   .forks = image->ran > 1 ? image->ran - 1 : 0,
                                   .calls = UINT64_MAX,
                                   .ns = image->to ? clock_to_ns(image->to - image->from, stamp_hz)
                                                   : UINT64_MAX});
}

static bool is_missed_image(const struct tree_image *image, struct unrecorded_clock clock)
{
    if (!image->seen.followed)
        return false;
    return image->seen.why[0] || image->to ||
           (clock_to_ns(clock.now - image->from, clock.stamp_hz) > YOUNG_NS &&
            find_library(image->pid) == LIBRARY_MISSING);
}

static int add_tree(struct unrecorded *u, const struct drain *c, struct unrecorded_clock clock,
                    struct trace_unrecorded *to)
{
    const struct tree_image *image;
    size_t at = 0;
    int rc = 0;
    to->by = tree_finish(u->tree) ? TRACE_MISSED_KERNEL : TRACE_MISSED_GAPS;
    while (rc == 0 && (image = tree_next_missed(u->tree, &at))) {
        bool known = !image->seen.why[0] && is_known(image, c);
        if (!known && is_missed_image(image, clock))
            rc = add_image(image, c->unopened > 0, clock.stamp_hz, to);
    }
    return rc;
}

// Adds the forked children that were running before heaptape attached to the process.
static int add_running(const struct unrecorded *u, struct trace_unrecorded *to)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < u->n_running; i++) {
        struct running_child *child = &u->running[i];
        rc = add_missed(to, &(struct trace_missed){.pid = (uint32_t)child->pid,
                                                   .name = child->name,
                                                   .why = RUNNING_WHY,
                                                   .calls = UINT64_MAX,
                                                   .ns = UINT64_MAX});
    }
    return rc;
}

static bool was_running(const struct unrecorded *u, pid_t pid)
{
    for (size_t i = 0; i < u->n_running; i++) {
        if (u->running[i].pid == pid)
            return true;
    }
    return false;
}

int unrecorded_finish(struct unrecorded *u, const struct drain *c, struct unrecorded_clock clock,
                      struct trace_unrecorded *to)
{
    int rc = add_running(u, to);
    for (size_t i = 0; i < c->n_reserves && rc == 0; i++)
        rc = add_refused(c->reserves[i], to);
    if (rc == 0 && u->tree)
        return add_tree(u, c, clock, to);
    to->by = lifetime_sees_processes() ? TRACE_MISSED_PROC : TRACE_MISSED_UNKNOWN;
    for (size_t i = 0; rc == 0 && i < u->n; i++) {
        const struct unrecorded_process *p = &u->items[i];
        const char *why = p->seen.why[0] ? p->seen.why : "did not load libheaptape.so";
        if (p->missed && !was_running(u, p->pid))
            rc = add_missed(to, &(struct trace_missed){.pid = (uint32_t)p->pid,
                                                       .name = (char *)p->seen.name,
                                                       .why = (char *)why,
                                                       .calls = UINT64_MAX,
                                                       .ns = UINT64_MAX});
    }
    return rc;
}

void unrecorded_release(struct unrecorded *u)
{
    tree_free(u->tree);
    free(u->items);
    free(u->running);
    *u = (struct unrecorded){0};
}
