#include "experiments/reduce/reduce.h"

#include "base/buf.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 100, LEVEL_UNDER_WORK = 1 };

void reduce_init(struct reduce *r, const struct reduce_settings *settings, struct judge *j)
{
    *r = (struct reduce){.settings = *settings, .judge = j, .part.fd = -1, .confirmed.fd = -1};
    r->candidates = (struct candidates){
        .judge = j,
        .source = -1,
        .runs = settings->runs,
        .level = LEVEL_UNDER_WORK,
        .max_command_ns = j->command ? j->timeout_ns : 0,
        .n = settings->jobs,
    };
}

void reduce_release(struct reduce *r)
{
    progress_clear(&r->progress);
    candidates_release(&r->candidates);
    input_close(&r->part);
    input_close(&r->confirmed);
    reduce_blocks_release(&r->blocks);
    free(r->kept);
    free(r->kept_threads);
    free(r->group_of);
}

static bool is_stopped(struct reduce *r)
{
    bool late = r->settings.end_ns && clock_monotonic_ns() >= r->settings.end_ns;
    r->stopped |= late || *r->settings.interrupted;
    // The budget does not limit the time for confirming a part that was found.
    return *r->settings.interrupted || (r->stopped && !r->is_confirming);
}

// Waits for a candidate and shows the progress. Returns the result of candidates_wait, or
// -ECANCELED if the search must stop.
static int wait_for_one(struct reduce *r, const struct candidate_report **report, size_t *tag,
                        struct output *out)
{
    int rc;
    do {
        progress_update(&r->progress, r->judged);
        rc =
            is_stopped(r) ? -ECANCELED : candidates_wait(&r->candidates, WAIT_MS, report, tag, out);
    } while (rc == 0 || rc == -EINTR);
    return rc;
}

static int duplicate_input(struct input *to, const struct input *from, struct err *e)
{
    *to = *from;
    to->fd = fcntl(from->fd, F_DUPFD_CLOEXEC, 0);
    to->owns_fd = true;
    to->ahead = (struct buf){0};
    to->ahead_read = 0;
    return to->fd < 0 ? err_set_errno(e, "%s: cannot be read again", from->name) : 0;
}

// Makes *in the current part, takes ownership of *in, and reads the blocks of the part.
static int set_part(struct reduce *r, struct input *in, struct err *e)
{
    struct workload_file w = {.in.fd = -1};
    struct input copy;
    input_close(&r->part);
    r->part = *in;
    r->candidates.source = r->part.fd;
    int rc = duplicate_input(&copy, &r->part, e)
                 ?: input_seek(&copy, 0, e)
                 ?: workload_file_adopt(&w, &copy, e);
    reduce_blocks_release(&r->blocks);
    if (rc == 0)
        rc = reduce_blocks_read(&r->blocks, w.reader, e);
    workload_file_close(&w);
    return rc;
}

static int adopt_part(struct reduce *r, struct output *out, struct err *e)
{
    struct input in;
    candidates_cancel(&r->candidates);
    int rc = input_from_output(&in, out, "(current part)", e);
    r->is_confirmed = false;
    return rc < 0 ? rc : set_part(r, &in, e);
}

// Judges the current part with `runs` replays. Returns 1 if the conditions hold, 0 if they do not
// hold, -ECANCELED if the search must stop, or another negative errno.
static int judge_part(struct reduce *r, unsigned runs, struct candidate_report *judged,
                      struct err *e)
{
    const struct candidate_report *report = NULL;
    struct output out;
    size_t tag;
    r->candidates.runs = runs;
    int rc = candidates_start(&r->candidates, NULL, 0, e) ?: wait_for_one(r, &report, &tag, &out);
    r->candidates.runs = r->settings.runs;
    if (rc < 0) {
        candidates_cancel(&r->candidates);
        return rc;
    }
    *judged = *report;
    r->judged++;
    return report->rc < 0 ? report->rc : report->judged.holds;
}

static int set_refusal(const struct reduce *r, const struct candidate_report *c, struct err *e)
{
    const struct judge_report *j = &c->judged;
    bool is_command = j->failed >= r->judge->n_conditions;
    const char *what = is_command ? r->judge->command : r->judge->conditions[j->failed].text;
    return err_set(e, -ENODATA, "%s: --keep%s '%s' holds in %u of %u replays: %s", r->part.name,
                   is_command ? "-cmd" : "", what, j->shown, j->shown + 1, j->text);
}

int reduce_begin(struct reduce *r, const struct workload_file *w, struct err *e)
{
    struct candidate_report judged;
    struct input in;
    replay_run_ticks_per_second();
    progress_init(&r->progress, r->status, "candidates", 0, r->settings.quiet);
    snprintf(r->status, sizeof r->status, "reduce: the input");
    int rc = candidates_init(&r->candidates, e)
                 ?: duplicate_input(&in, &w->in, e)
                 ?: set_part(r, &in, e);
    r->input = r->blocks;
    r->input.items = NULL;
    if (rc == 0)
        rc = judge_part(r, r->settings.runs, &judged, e);
    if (rc == -ECANCELED)
        return err_set(e, rc, "%s: stopped before the condition was checked", w->in.name);
    if (rc == 0)
        return set_refusal(r, &judged, e);
    if (rc < 0)
        return err_set(e, rc, "%s", judged.e.text[0] ? judged.e.text : strerror(-rc));
    judge_expect(r->judge, &judged.judged, r->settings.floor_bytes);
    return 0;
}

static int choose_ops(struct reduce *r, const struct reduce_cut *cut, struct slice_choice *choice,
                      struct err *e)
{
    const struct reduce_blocks *b = &r->blocks;
    if (HT_GROW(&r->kept_threads, &r->kept_threads_capacity, b->threads + 1) < 0)
        return err_no_memory(e, NULL);
    memset(r->kept_threads, 0, b->threads);
    for (size_t i = 0; i < b->n; i++) {
        if (cut->blocks && !cut->blocks[i])
            continue;
        r->kept_threads[b->items[i].thread] = true;
        r->kept_threads[b->items[i].last_thread] = true;
    }
    size_t n_threads = cut->thread_ops ? b->threads : 0;
    *choice = (struct slice_choice){cut->blocks, b->n, r->kept_threads, n_threads, cut->others};
    return 0;
}

static int start_cut(struct reduce *r, const struct reduce_cut *cut, size_t tag, struct err *e)
{
    struct slice_choice choice;
    struct slice_options part = {.choice = &choice};
    int rc = choose_ops(r, cut, &choice, e);
    if (cut->to < r->blocks.events)
        part.to = (struct slice_point){SLICE_AT_EVENT, cut->to, NULL};
    return rc < 0 ? rc : candidates_start(&r->candidates, &part, tag, e);
}

int reduce_try(struct reduce *r, reduce_make *make, void *context, const size_t range[2],
               size_t *found, struct err *e)
{
    size_t next = range[0];
    for (;;) {
        const struct candidate_report *report;
        struct output out;
        while (next < range[1] && r->candidates.running < r->candidates.n && !is_stopped(r)) {
            struct reduce_cut cut = {.to = UINT64_MAX, .others = true, .thread_ops = true};
            size_t i = next++;
            int rc = make(context, i, &cut) ? start_cut(r, &cut, i, e) : 0;
            if (rc < 0)
                return rc;
        }
        int rc = r->candidates.running ? wait_for_one(r, &report, found, &out) : -ECANCELED;
        if (rc < 0) {
            candidates_cancel(&r->candidates);
            return rc == -ECANCELED
                       ? 0
                       : err_set(e, rc, "cannot wait for candidates: %s", strerror(-rc));
        }
        r->judged++;
        if (report->rc == 0 && report->judged.holds)
            return (rc = adopt_part(r, &out, e)) < 0 ? rc : 1;
        output_close(&out, false, NULL);
    }
}

int reduce_confirm(struct reduce *r, struct err *e)
{
    struct candidate_report judged;
    struct input copy;
    if (r->is_confirmed)
        return 1;
    r->is_confirming = true;
    int shown = judge_part(r, REDUCE_CONFIRMATIONS, &judged, e);
    r->is_confirming = false;
    if (shown < 0)
        return shown == -ECANCELED ? 1 : shown;
    int rc = duplicate_input(&copy, shown ? &r->part : &r->confirmed, e);
    if (rc < 0)
        return rc;
    r->is_confirmed = true;
    if (shown) {
        input_close(&r->confirmed);
        r->confirmed = copy;
        r->is_shown = true;
        return 1;
    }
    unsigned runs = 2 * r->settings.runs;
    r->settings.runs = r->candidates.runs =
        runs < REDUCE_CONFIRMATIONS ? runs : REDUCE_CONFIRMATIONS;
    return set_part(r, &copy, e);
}

int reduce_search(struct reduce *r, struct err *e)
{
    struct input copy;
    int rc = duplicate_input(&copy, &r->part, e);
    if (rc < 0)
        return rc;
    r->confirmed = copy;
    r->is_confirmed = true;
    do {
        rc = reduce_pass(r, e);
    } while (rc > 0 && !is_stopped(r));
    progress_clear(&r->progress);
    return rc < 0 ? rc : 0;
}

int reduce_write(struct reduce *r, struct output *out, struct err *e)
{
    return input_seek(&r->part, 0, e) ?: input_copy(&r->part, out, e);
}
