#include "experiments/reduce/judge.h"

#include "replay/session.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static struct replay_run_settings settings_for(const struct judge *j, struct results_task task)
{
    return (struct replay_run_settings){
        .player = j->player, .timeout_ns = j->timeout_ns, .task = task};
}

// Runs the replays that the comparison needs, and merges their figures into *f. Stores the times of
// the calls in `timed`.
static int measure_figures(const struct judge *j, const struct plan *p, const struct condition *c,
                           struct condition_figures *f, struct replay_run *timed, struct err *e)
{
    bool apart = plan_facts(p)->threads > 1 && c->needs & CONDITION_NEEDS_MEMORY;
    struct replay_run run = {0}, memory = {0};
    const struct replay_run_settings plain = settings_for(j, (struct results_task){0}),
                                     coupled = settings_for(j, (struct results_task){.coupled = 1}),
                                     calls = settings_for(j, (struct results_task){.timed = 1});
    int rc = 0;
    if (c->needs & CONDITION_NEEDS_TIME || (c->needs & CONDITION_NEEDS_MEMORY && !apart))
        rc = replay_run(p, &c->allocator, &plain, &run, e);
    if (rc == 0 && apart)
        rc = replay_run(p, &c->allocator, &coupled, &memory, e);
    if (rc == 0 && c->needs & CONDITION_NEEDS_LATENCY)
        rc = replay_run(p, &c->allocator, &calls, timed, e);
    if (rc == 0 && apart)
        replay_run_move_memory(&run, &memory);
    f->figures = run.figures;
    f->calls = timed->calls;
    // Figures of the plan are equal in all runs.
    for (size_t i = 0; rc == 0 && apart && i < FIGURES; i++) {
        if (figure_infos[i].origin == FIGURE_PLAN)
            f->figures.values[i] = memory.figures.values[i];
    }
    replay_run_release(&run);
    replay_run_release(&memory);
    return rc;
}

static bool compare_figures(const struct judge *j, const struct plan *p, const struct condition *c,
                            struct condition_seen *seen, struct judge_report *r)
{
    struct condition_figures figures;
    struct replay_run timed = {0};
    struct err e = {0};
    int rc = measure_figures(j, p, c, &figures, &timed, &e);
    bool holds = rc == 0 && condition_compare(c, &figures, seen);
    if (rc < 0)
        snprintf(r->text, sizeof r->text, "%.290s", e.text);
    else if (isnan(seen->left) || isnan(seen->right))
        snprintf(r->text, sizeof r->text,
                 "a figure is unknown on this machine, or has too few calls");
    else
        snprintf(r->text, sizeof r->text, "the left side is %.6g, the right side %.6g", seen->left,
                 seen->right);
    replay_run_release(&timed);
    return holds;
}

// Returns true if the replay fails as the condition requires. For the input itself, accepts any
// failure of this kind.
static bool fails_as_expected(const struct judge *j, const struct plan *p,
                              const struct condition *c, struct condition_seen *seen,
                              struct judge_report *r)
{
    static const int codes[] = {
        [CONDITION_VERIFY] = -EILSEQ, [CONDITION_CRASH] = -ECHILD, [CONDITION_HANG] = -ETIMEDOUT};
    struct replay_run run;
    struct err e = {0};
    bool verifies = c->kind == CONDITION_VERIFY;
    const struct replay_run_settings how = settings_for(
        j, (struct results_task){.touch = verifies ? RESULTS_TOUCH_VERIFY : RESULTS_TOUCH_PAGE});
    int rc = replay_run(p, &c->allocator, &how, &run, &e);
    *seen = (struct condition_seen){.violation = run.violation, .wait_status = run.wait_status};
    snprintf(r->text, sizeof r->text, "%.290s",
             rc < 0 ? e.text : "the replay ends without an error");
    replay_run_release(&run);
    return rc == codes[c->kind] &&
           (!c->expected.known || (c->expected.violation == seen->violation &&
                                   c->expected.wait_status == seen->wait_status));
}

// Checks the conditions in order and stops at the first condition that does not hold.
static bool hold_all(const struct judge *j, const struct plan *p, struct judge_report *r)
{
    for (r->failed = 0; r->failed < j->n_conditions; r->failed++) {
        const struct condition *c = &j->conditions[r->failed];
        struct condition_seen seen = {0};
        bool holds = c->kind == CONDITION_FIGURES ? compare_figures(j, p, c, &seen, r)
                                                  : fails_as_expected(j, p, c, &seen, r);
        const struct condition_seen before = r->seen[r->failed];
        r->seen[r->failed] = seen;
        if (r->shown) {
            r->seen[r->failed].dividend_bytes = fmin(before.dividend_bytes, seen.dividend_bytes);
            r->seen[r->failed].margin = fmin(before.margin, seen.margin);
        }
        if (!holds)
            return false;
    }
    return true;
}

// Returns the command with each %f replaced with `path`, or NULL when out of memory.
static char *command_for(const char *command, const char *path)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    for (const char *at = command; to && *at; at++) {
        if (at[0] == '%' && at[1] == 'f') {
            fputs(path, to);
            at++;
        } else {
            fputc(*at, to);
        }
    }
    if (to && fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static int run_command(const struct judge *j, const char *path, unsigned runs,
                       struct judge_report *r, struct err *e)
{
    char *command = command_for(j->command, path);
    int status = 0;
    if (!command)
        return err_no_memory(e, NULL);
    r->failed = (unsigned)j->n_conditions;
    for (r->shown = 0; r->shown < runs && status == 0; r->shown += status == 0)
        status = system(command);
    r->holds = status == 0;
    if (WIFSIGNALED(status))
        snprintf(r->text, sizeof r->text, "it was terminated by signal %d", WTERMSIG(status));
    else
        snprintf(r->text, sizeof r->text, "its exit status is %d", WEXITSTATUS(status));
    free(command);
    return 0;
}

static int read_plan(const struct judge *j, const char *path, struct replay_session *s,
                     struct err *e)
{
    struct file f;
    const struct replay_settings how = {.player = j->player,
                                        .null_library = j->null_library,
                                        .runs = 1,
                                        .no_cache = true,
                                        .quiet = true};
    replay_session_init(s, &how);
    int rc = file_open(&f, path, FILE_WORKLOAD, e) ?: replay_session_read(s, path, &f.workload, e);
    file_close(&f);
    return rc;
}

int judge_workload(const struct judge *j, const char *path, unsigned runs, struct judge_report *r,
                   struct err *e)
{
    struct replay_session s;
    *r = (struct judge_report){0};
    if (j->n_conditions) {
        int rc = read_plan(j, path, &s, e);
        while (rc == 0 && r->shown < runs && hold_all(j, s.plan, r))
            r->shown++;
        replay_session_release(&s);
        r->holds = r->shown == runs;
        if (rc < 0 || !r->holds)
            return rc;
    }
    return j->command ? run_command(j, path, runs, r, e) : 0;
}

// Minimum difference between the sides of a comparison in a candidate, as a share of the right
// side. If half of the input's difference is smaller, that is the minimum instead. Without a
// margin, the search would end at a workload that meets the condition in only half of its replays.
// RSS differs by a few pages from run to run, so `floor_bytes` is also raised by MEMORY_MARGIN.
static const double TIME_MARGIN = 0.1, MEMORY_MARGIN = 0.01;

void judge_expect(struct judge *j, const struct judge_report *input, uint64_t floor_bytes)
{
    for (size_t i = 0; i < j->n_conditions; i++) {
        struct condition *c = &j->conditions[i];
        const struct condition_seen *seen = &input->seen[i];
        c->expected = (struct condition_expected){true, seen->violation, seen->wait_status};
        c->floor_bytes = fmin((double)floor_bytes * (1 + MEMORY_MARGIN), seen->dividend_bytes / 2);
        bool times = c->needs & (CONDITION_NEEDS_TIME | CONDITION_NEEDS_LATENCY);
        c->margin = fmin(times ? TIME_MARGIN : MEMORY_MARGIN, seen->margin / 2);
    }
}
