#include "record/flight/watch.h"

#include "base/buf.h"
#include "cli/human.h"
#include "cli/options.h"
#include "cli/span.h"
#include "record/processes/proc_file.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { LOOK_NS = 200000000, REARM_PERCENT = 90 };

// Parses a percentage such as "80%", which must be from 1 to `most`.
static int parse_percent(const char *text, uint64_t most, uint64_t *percent)
{
    char number[32];
    size_t n = strlen(text);
    if (n < 2 || n > sizeof number || text[n - 1] != '%')
        return -EINVAL;
    memcpy(number, text, n - 1);
    number[n - 1] = 0;
    int rc = options_parse_number(number, percent);
    return rc < 0 || *percent == 0 || *percent > most ? -EINVAL : 0;
}

// Parses a growth limit such as "20%/5min".
static int parse_growth(char *text, struct flight_triggers *t)
{
    char *slash = strchr(text, '/');
    if (!slash)
        return -EINVAL;
    *slash = 0;
    int rc = parse_percent(text, 1000000, &t->growth_percent);
    rc = rc ?: span_parse(slash + 1, &t->growth_ns);
    return rc < 0 || t->growth_ns == 0 ? -EINVAL : 0;
}

static int parse_trigger(char *text, struct flight_triggers *t)
{
    t->any = true;
    if (strncmp(text, "rss>", 4) == 0)
        return options_parse_size(text + 4, &t->rss_bytes) < 0 || t->rss_bytes == 0 ? -EINVAL : 0;
    if (strncmp(text, "rss+", 4) == 0)
        return parse_growth(text + 4, t);
    if (strncmp(text, "cgroup>", 7) == 0)
        return parse_percent(text + 7, 99, &t->cgroup_percent);
    if (strncmp(text, "pressure>", 9) == 0)
        return parse_percent(text + 9, 99, &t->pressure_percent);
    bool *const flags[] = {&t->exit, &t->failure, &t->oom};
    int at = options_parse_choice("exit|exit!=0|oom", text);
    if (at >= 0)
        *flags[at] = true;
    return at < 0 ? -EINVAL : 0;
}

int flight_triggers_parse(const char *text, struct flight_triggers *t)
{
    char *copy = strdup(text), *rest = copy;
    int rc = copy ? 0 : -ENOMEM;
    *t = (struct flight_triggers){0};
    for (char *one; rc == 0 && (one = strsep(&rest, ","));)
        rc = parse_trigger(one, t);
    free(copy);
    return rc;
}

void watch_init(struct watch *w, const struct flight_triggers *t, const struct trace_session *s)
{
    *w = (struct watch){
        .triggers = t, .session = s, .group.oom_kills = UINT64_MAX, .left.oom_kills = UINT64_MAX};
}

void watch_release(struct watch *w)
{
    free(w->processes);
}

// Returns true if `value` exceeds the limit for the first time since it was below REARM_PERCENT
// percent of the limit.
static bool crosses_limit(bool *above, uint64_t value, uint64_t limit)
{
    bool crossed = !*above && value > limit;
    if (crossed || (*above && value < limit / 100 * REARM_PERCENT))
        *above = crossed;
    return crossed;
}

static bool check_rss(const struct watch *w, struct watch_state *p, const struct trace_process *of,
                      uint64_t rss, char *reason)
{
    if (!w->triggers->rss_bytes || !crosses_limit(&p->above, rss, w->triggers->rss_bytes))
        return false;
    snprintf(reason, WATCH_REASON_BYTES, "rss>%s: process %u has %s",
             human_size(w->triggers->rss_bytes), of->pid, human_size(rss));
    return true;
}

static void drop_point(struct watch_state *p)
{
    p->n_points--;
    memmove(p->stamps, p->stamps + 1, p->n_points * sizeof *p->stamps);
    memmove(p->points, p->points + 1, p->n_points * sizeof *p->points);
}

// Returns true if RSS has grown by growth_percent. Compares with the newest point that is at least
// growth_ns old, and drops older points. Points are at least 1/31 of growth_ns apart.
static bool check_growth(const struct watch *w, struct watch_state *p,
                         const struct trace_process *of, const struct trace_sample *s, char *reason)
{
    const struct flight_triggers *t = w->triggers;
    uint64_t ns = trace_stamp_ns(w->session, s->stamp), rss = s->rss_bytes;
    if (!t->growth_ns ||
        (p->n_points && ns - p->stamps[p->n_points - 1] < t->growth_ns / (WATCH_POINTS - 1)))
        return false;
    while (p->n_points == WATCH_POINTS || (p->n_points > 1 && ns - p->stamps[1] >= t->growth_ns))
        drop_point(p);
    uint64_t age = p->n_points ? ns - p->stamps[0] : 0, old = p->points[0];
    bool grown = age >= t->growth_ns && rss > old && rss - old > old / 100 * t->growth_percent;
    if (grown)
        snprintf(reason, WATCH_REASON_BYTES, "rss+%llu%%: process %u has %s, up from %s %s ago",
                 (unsigned long long)t->growth_percent, of->pid, human_size(rss), human_size(old),
                 human_time((double)age));
    // Report the same growth only once.
    p->n_points = grown ? 0 : p->n_points;
    p->stamps[p->n_points] = ns;
    p->points[p->n_points++] = rss;
    return grown;
}

bool watch_sample(struct watch *w, const struct trace_process *of, const struct trace_sample *s,
                  char *reason)
{
    if (HT_EXTEND(&w->processes, &w->n, &w->capacity, of->number + 1ull) < 0)
        return false;
    struct watch_state *p = &w->processes[of->number];
    return check_rss(w, p, of, s->rss_bytes, reason) || check_growth(w, p, of, s, reason);
}

static bool check_limit(struct watch *w, const struct proc_cgroup *c, char *reason)
{
    uint64_t percent = w->triggers->cgroup_percent;
    if (!percent || c->used == UINT64_MAX || c->limit == UINT64_MAX ||
        !crosses_limit(&w->above_limit, c->used, c->limit / 100 * percent))
        return false;
    snprintf(reason, WATCH_REASON_BYTES, "cgroup>%llu%%: it uses %s of %s",
             (unsigned long long)percent, human_size(c->used), human_size(c->limit));
    return true;
}

static bool check_pressure(struct watch *w, const struct proc_cgroup *c, char *reason)
{
    uint64_t percent = w->triggers->pressure_percent;
    if (!percent || c->pressure == UINT64_MAX ||
        !crosses_limit(&w->above_pressure, c->pressure, 100 * percent))
        return false;
    snprintf(reason, WATCH_REASON_BYTES,
             "pressure>%llu%%: in the last 10 s, tasks of the %s waited for memory for %.1f %%",
             (unsigned long long)percent, c->pressure_of_host ? "host" : "cgroup",
             (double)c->pressure / 100);
    return true;
}

static bool check_kills(const struct watch *w, struct watch_group *g, const struct proc_cgroup *c,
                        char *reason)
{
    uint64_t before = g->oom_kills;
    if (c->oom_kills == UINT64_MAX)
        return false;
    g->oom_kills = c->oom_kills;
    if (!w->triggers->oom || before == UINT64_MAX || c->oom_kills <= before)
        return false;
    snprintf(reason, WATCH_REASON_BYTES, "oom: the OOM killer killed a process of the cgroup");
    return true;
}

bool watch_limits(struct watch *w, const struct proc_cgroup *c, char *reason)
{
    return check_kills(w, &w->group, c, reason) || check_limit(w, c, reason) ||
           check_pressure(w, c, reason);
}

static bool check_cgroup(struct watch *w, char *reason)
{
    struct proc_cgroup c;
    proc_cgroup_read(w->group.lines, "/sys/fs/cgroup", "/proc/pressure", &c);
    return watch_limits(w, &c, reason);
}

bool watch_cgroup(struct watch *w, const struct trace_process *p, uint64_t now_ns, char *reason)
{
    char lines[sizeof w->group.lines];
    const struct flight_triggers *t = w->triggers;
    if ((!t->cgroup_percent && !t->pressure_percent && !t->oom) || now_ns < w->look_ns)
        return false;
    w->look_ns = now_ns + LOOK_NS;
    proc_file_read((pid_t)p->pid, "cgroup", lines, sizeof lines);
    if (*lines && strcmp(lines, w->group.lines) != 0) {
        w->left = w->group;
        memcpy(w->group.lines, lines, sizeof lines);
        w->group.oom_kills = UINT64_MAX;
    }
    return check_cgroup(w, reason);
}

void watch_process_end(struct watch *w, const struct trace_process *p)
{
    if (!p->has_exit_status)
        return;
    int status = (int)p->exit_status;
    w->ended = true;
    w->exit_status = p->exit_status;
    w->killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

// Checks the process's previous cgroup. In version 1, an exiting process is listed in the root
// cgroup, so its kill is counted in the previous cgroup.
static bool check_left_cgroup(struct watch *w, char *reason)
{
    struct proc_cgroup c;
    proc_cgroup_read(w->left.lines, "/sys/fs/cgroup", NULL, &c);
    return check_kills(w, &w->left, &c, reason);
}

bool watch_end(struct watch *w, char *reason)
{
    const struct flight_triggers *t = w->triggers;
    int status = (int)w->exit_status;
    if (t->oom && (check_cgroup(w, reason) || (w->killed && check_left_cgroup(w, reason))))
        return true;
    // The kill may have preceded the first read of the counter. If the kernel does not count OOM
    // kills, any SIGKILL may be an OOM kill.
    if (t->oom && w->killed && w->group.oom_kills) {
        snprintf(reason, WATCH_REASON_BYTES,
                 "oom: SIGKILL terminated the program, %sby the OOM killer",
                 w->group.oom_kills == UINT64_MAX ? "perhaps " : "probably ");
        return true;
    }
    bool failed = t->failure && w->ended && w->exit_status != 0;
    if (t->any && !t->exit && !failed)
        return false;
    const char *name = failed ? "exit!=0" : "exit";
    if (!w->ended)
        snprintf(reason, WATCH_REASON_BYTES, "%s: the recording ended", name);
    else if (WIFSIGNALED(status))
        snprintf(reason, WATCH_REASON_BYTES, "%s: signal %d terminated the program", name,
                 WTERMSIG(status));
    else
        snprintf(reason, WATCH_REASON_BYTES, "%s: the program exited with status %d", name,
                 WEXITSTATUS(status));
    return true;
}
