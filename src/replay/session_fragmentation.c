// Measures fragmentation in one more run on each allocator, using a plan that stops all threads at
// the peak of live bytes.
#include "replay/session.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

_Static_assert(PLAN_BEFORE_START == FRAGMENTATION_BEFORE_START,
               "a block of the one is a block of the other");

// Makes a plan with the session's settings, except that the plan has snapshots and no pace.
static int make_plan(struct replay_session *s, struct plan **p, struct output *file, struct err *e)
{
    struct plan_settings how = s->plan_settings;
    how.stats_every = 0;
    how.ns_per_stamp = 0;
    how.snapshots = true;
    how.snapshot_after_ops = plan_facts(s->plan)->ops_to_peak;
    how.file = file;
    int rc = how.streamed ? output_open_unnamed(file, e) : 0;
    rc = rc ?: workload_file_rewind(s->input, e) ?: plan_new(p, s->input->in.name, &how, e);
    return rc < 0 ? rc : plan_read(*p, s->input->reader, NULL, e);
}

static int find_at(struct fragmentation *out, const struct plan_snapshot *h,
                   const uint64_t *addresses, size_t n)
{
    long page_bytes = sysconf(_SC_PAGESIZE);
    struct fragmentation_heap heap = {.event = h->event,
                                      .page_bytes = page_bytes > 0 ? (uint64_t)page_bytes : 4096,
                                      .blocks = calloc(h->n + 1, sizeof *heap.blocks)};
    for (size_t i = 0; heap.blocks && i < h->n; i++) {
        const struct plan_snapshot_block *b = &h->blocks[i];
        if (b->entry < n)
            heap.blocks[heap.n++] = (struct fragmentation_block){
                addresses[b->entry], b->size, b->size, b->allocated_at, b->site, b->thread};
    }
    int rc = heap.blocks ? fragmentation_find(out, &heap) : -ENOMEM;
    free(heap.blocks);
    return rc;
}

static int find_fragmentation(struct replay_result *r, const struct plan *p,
                              const struct replay_run *run, struct err *e)
{
    for (unsigned i = 0; i < PLAN_SNAPSHOTS; i++) {
        unsigned copy;
        const struct plan_snapshot *h = plan_snapshots(p, i, &copy);
        const uint64_t *addresses = run->snapshots + copy * run->snapshot_entries;
        if (find_at(&r->fragmentation[i], h, addresses, run->snapshot_entries) < 0)
            return err_no_memory(e, NULL);
        fragmentation_sort(&r->fragmentation[i]);
    }
    return 0;
}

static int run_once(struct replay_session *s, const struct plan *p, struct replay_result *r,
                    struct err *e)
{
    struct replay_run run;
    const struct replay_run_settings settings = {.timeout_ns = s->settings.timeout_ns,
                                                 .player = s->settings.player,
                                                 .task.touch = s->settings.touch,
                                                 .task.coupled = replay_session_memory_threads(s) ==
                                                                 REPLAY_THREADS_COUPLED,
                                                 .task.trim_step = r->trim_step,
                                                 .snapshots = true};
    int rc = replay_run(p, &r->allocator, &settings, &run, e);
    if (rc < 0)
        return rc;
    progress_update(&s->progress, ++s->runs_done);
    rc = find_fragmentation(r, p, &run, e);
    replay_run_release(&run);
    return rc;
}

static int read_sites(struct replay_session *s, struct err *e)
{
    int rc =
        workload_file_rewind(s->input, e) ?: workload_read_sites(s->input->reader, &s->sites, e);
    if (rc < 0)
        return rc;
    s->symbols = symbols_new(&s->sites, workload_reader_header(s->input->reader)->exe);
    return s->symbols ? 0 : err_no_memory(e, NULL);
}

int replay_session_find_fragmentation(struct replay_session *s, struct err *e)
{
    struct plan *p = NULL;
    struct output file = {.fd = -1};
    int rc = read_sites(s, e) ?: make_plan(s, &p, &file, e);
    for (size_t i = 0; rc == 0 && i < s->n_results; i++)
        rc = run_once(s, p, &s->results[i], e);
    plan_free(p);
    output_close(&file, false, NULL);
    return rc;
}

enum replay_threads replay_session_memory_threads(const struct replay_session *s)
{
    enum replay_threads threads = s->settings.threads;
    if (threads != REPLAY_THREADS_AUTO)
        return threads;
    return plan_facts(s->plan)->threads > 1 && !s->settings.verify ? REPLAY_THREADS_COUPLED
                                                                   : REPLAY_THREADS_REAL;
}
