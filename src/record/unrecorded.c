#include "record/unrecorded.h"

#include "base/clock.h"
#include "record/drain_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MIN_INTERVAL_NS = 20000000,
    COST = 20,         // the time between two looks, in their CPU time
    CERTAIN_LOOKS = 3, // at one whose libraries may be still on their way
};

struct unrecorded_process {
    pid_t pid;
    unsigned long long start; // in the kernel's ticks: with the pid it is one process
    unsigned look;            // the last that has seen it
    unsigned unloaded;        // looks, one after the other, that found no reason why the library is not there
    bool is_member;
    uint32_t images; // spools of the session up to its last one; 0: it had none
    const char *why; // why its image is not recorded; NULL: nothing is known to be missing
    char name[SPOOL_NAME_BYTES];
};

unsigned long long unrecorded_forks(void)
{
    unsigned long long forks = 0;
    char *line = NULL;
    size_t room = 0;
    FILE *stat = fopen("/proc/stat", "re");
    while (stat && !forks && getline(&line, &room, stat) > 0)
        (void)sscanf(line, "processes %llu", &forks);
    free(line);
    if (stat)
        fclose(stat);
    return forks;
}

static struct unrecorded_process *find(const struct unrecorded *u, pid_t pid, unsigned long long start)
{
    for (size_t i = u->n; i-- > 0;) {
        struct unrecorded_process *p = &u->items[i];
        if (p->pid == pid && p->look + 1 >= u->look && (!start || p->start == start))
            return p;
    }
    return NULL;
}

// Name, parent and start of a process. The name stands in parentheses and may hold any.
static bool read_stat(pid_t pid, struct unrecorded_process *p, pid_t *parent)
{
    char path[64], text[1024];
    int ppid;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *from = strchr(text, '('), *to = strrchr(text, ')');
    if (!from || !to ||
        sscanf(to + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ppid,
               &p->start) != 2)
        return false;
    p->pid = pid;
    *parent = ppid;
    snprintf(p->name, sizeof p->name, "%.*s", (int)(to - from - 1), from + 1);
    return true;
}

static bool has_library(pid_t pid)
{
    char path[64], *line = NULL;
    size_t room = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%ld/maps", (long)pid);
    FILE *maps = fopen(path, "re");
    while (maps && !found && getline(&line, &room, maps) > 0)
        found = strstr(line, "/libheaptape.so") != NULL;
    free(line);
    if (maps)
        fclose(maps);
    return found;
}

static bool has_other_root(pid_t pid)
{
    char path[64], root[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%ld/root", (long)pid);
    ssize_t n = readlink(path, root, sizeof root - 1);
    return n > 1;
}

// Why the library is not in the process. NULL: it is, or that is not certain.
static const char *judge(struct unrecorded_process *p, const char *dir)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)p->pid);
    if (access(path, F_OK) < 0 || has_library(p->pid))
        return NULL;
    const char *why = record_explain(path);
    if (why)
        return why;
    if (!lifetime_is_of_session(p->pid, dir))
        return "was started without HEAPTAPE_SPOOL in its environment";
    if (has_other_root(p->pid))
        return "is in another root directory, where libheaptape.so was not found";
    return ++p->unloaded >= CERTAIN_LOOKS ? "did not load libheaptape.so" : NULL;
}

static void look_at(struct unrecorded *u, pid_t pid, pid_t program, const char *dir)
{
    struct unrecorded_process found = {0}, *known = find(u, pid, 0);
    pid_t parent;
    // Somebody else's, at each look so far.
    if (known && !known->is_member) {
        known->look = u->look;
        return;
    }
    if (!read_stat(pid, &found, &parent))
        return;
    struct unrecorded_process *p = find(u, pid, found.start);
    if (!p) {
        const struct unrecorded_process *of = find(u, parent, 0);
        found.is_member = pid == program || (of && of->is_member) || lifetime_is_of_session(pid, dir);
        if (HT_GROW(&u->items, &u->capacity, u->n + 1) < 0)
            return;
        p = &u->items[u->n++];
        *p = found;
    }
    p->look = u->look;
    const char *why = p->is_member ? judge(p, dir) : NULL;
    if (why) {
        p->why = why;
        memcpy(p->name, found.name, sizeof p->name);
    }
}

// Those who have ended and are not to be told of.
static void forget_ended(struct unrecorded *u)
{
    size_t n = 0;
    for (size_t i = 0; i < u->n; i++) {
        if (u->items[i].look == u->look || u->items[i].why)
            u->items[n++] = u->items[i];
    }
    u->n = n;
}

static void look(struct unrecorded *u, pid_t program, const char *dir)
{
    DIR *proc = opendir("/proc");
    struct dirent *d;
    u->look++;
    while (proc && (d = readdir(proc))) {
        pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
        if (pid > 0)
            look_at(u, pid, program, dir);
    }
    if (proc)
        closedir(proc);
    forget_ended(u);
}

void unrecorded_look(struct unrecorded *u, pid_t program, const char *dir)
{
    uint64_t now = clock_monotonic_ns();
    if (now < u->next_ns)
        return;
    uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    unsigned long long forks = unrecorded_forks();
    if (!forks || forks != u->forks)
        u->due = CERTAIN_LOOKS;
    u->forks = forks;
    if (u->due) {
        u->due--;
        look(u, program, dir);
    }
    u->next_ns = now + MIN_INTERVAL_NS + COST * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began);
}

void unrecorded_match(struct unrecorded *u, const struct drain *c)
{
    for (size_t i = 0; i < c->n_spools; i++) {
        const struct drain_spool *s = c->spools[i];
        struct unrecorded_process *p = find(u, s->visible_pid, 0);
        // A new spool is of an image that came after the one without.
        if (p && p->images <= s->session_number) {
            p->images = s->session_number + 1;
            p->why = NULL;
        }
    }
}

static void report(struct record_result *result, uint32_t pid, const char *name, const char *why)
{
    if (result->n_unrecorded < RECORD_UNRECORDED) {
        struct record_unrecorded *to = &result->unrecorded[result->n_unrecorded];
        to->pid = pid;
        snprintf(to->name, sizeof to->name, "%.*s", SPOOL_NAME_BYTES, name);
        snprintf(to->why, sizeof to->why, "%s", why);
    }
    result->n_unrecorded++;
}

static void report_refused(struct record_result *result, struct spool_untraced *u)
{
    char why[sizeof result->unrecorded->why];
    uint32_t error = atomic_load_explicit(&u->why, memory_order_acquire);
    uint64_t calls = atomic_load(&u->count.calls);
    if (error == SPOOL_REFUSED_SECCOMP)
        snprintf(why, sizeof why, "its system calls are filtered");
    else if (error == SPOOL_REFUSED_COUNTER)
        snprintf(why, sizeof why, "it may not read the time-stamp counter");
    else if (error == SPOOL_REFUSED_ENDED)
        snprintf(why, sizeof why, "the recording had ended");
    else
        snprintf(why, sizeof why, "no spool could be made for it: %s", strerror((int)error));
    size_t n = strlen(why);
    if (n < sizeof why)
        snprintf(why + n, sizeof why - n, " (%llu calls)", (unsigned long long)calls);
    report(result, u->pid, u->name, why);
}

void unrecorded_report(const struct unrecorded *u, struct spool_session *session, struct record_result *result)
{
    uint32_t refused = session ? atomic_load(&session->untraced) : 0;
    for (uint32_t i = 0; i < refused && i < SPOOL_UNTRACED; i++)
        report_refused(result, &session->untraced_of[i]);
    result->n_unrecorded += refused > SPOOL_UNTRACED ? refused - SPOOL_UNTRACED : 0;
    for (size_t i = 0; i < u->n; i++) {
        if (u->items[i].why)
            report(result, (uint32_t)u->items[i].pid, u->items[i].name, u->items[i].why);
    }
}

void unrecorded_release(struct unrecorded *u)
{
    free(u->items);
    *u = (struct unrecorded){0};
}
