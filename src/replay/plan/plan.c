#include "replay/plan/plan.h"
#include "replay/plan/build.h"
#include "replay/plan/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

uint64_t plan_default_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t bytes =
        pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 4ull << 30;
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < bytes)
        bytes = limit.rlim_cur;
    return bytes / 4;
}

int plan_new(struct plan **out, const char *name, const struct plan_settings *settings,
             struct err *e)
{
    struct plan *p = calloc(1, sizeof *p);
    if (!p)
        return err_no_memory(e, NULL);
    p->name = name;
    p->settings = *settings;
    p->memory_bytes = settings->memory_bytes / (settings->streamed ? 2 : 1);
    p->facts.one_thread = settings->one_thread;
    p->facts.streamed = settings->streamed;
    p->next_stats = settings->stats_every;
    p->next_trim = settings->trim_every;
    p->next_step = UINT64_MAX;
    p->memory.fd = p->ring.fd = -1;
    p->preexisting.memory = p->leftovers.memory = &p->memory;
    slot_table_init(&p->slot_table);
    int rc = plan_memory_init(&p->memory, p->memory_bytes, e)
                 ?: plan_memory_allocate(&p->memory, (sizeof(struct plan_header) + 7) / 8,
                                         &p->header_at, e);
    if (rc == 0 && p->facts.streamed)
        rc = plan_windows_new(p, e);
    if (rc < 0) {
        plan_free(p);
        return rc;
    }
    *out = p;
    return 0;
}

void plan_free(struct plan *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_streams; i++) {
        if (p->streams[i])
            plan_stream_release(p->streams[i]);
        free(p->streams[i]);
    }
    free(p->streams);
    plan_stream_release(&p->preexisting);
    plan_stream_release(&p->leftovers);
    slot_table_release(&p->slot_table);
    free(p->slots);
    free(p->op_numbers);
    free(p->samples);
    for (unsigned i = 0; i < PLAN_SNAPSHOTS; i++)
        free(p->snapshots[i].blocks);
    free(p->allocations);
    map_release(&p->use_of_site);
    free(p->site_uses);
    for (unsigned i = 0; i < PLAN_SECTIONS; i++)
        free(p->coupling.sections[i].members);
    free(p->recorded);
    free(p->lates);
    map_release(&p->late_uses);
    free(p->points);
    plan_memory_release(&p->memory);
    plan_memory_release(&p->ring);
    free(p->window_words);
    free(p->windows);
    free(p);
}

const struct plan_facts *plan_facts(const struct plan *p)
{
    return &p->facts;
}

int plan_fd(const struct plan *p)
{
    return p->memory.fd;
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + PLAN_FILE_STEP - 1) / PLAN_FILE_STEP * PLAN_FILE_STEP;
}

uint64_t plan_ring_at(const struct plan *p)
{
    return round_up(p->memory.used * 8) / 8;
}

// Keeps about PLAN_SAMPLES_WANTED of the samples, evenly spaced. If the plan is streamed, the
// decoder converts the kept samples to SAMPLE ops.
static void thin_samples(struct plan *p)
{
    size_t step = plan_sample_step(p);
    for (size_t i = 0; i < p->n_samples; i += step) {
        uint64_t at = p->samples[p->facts.samples++] = p->samples[i];
        if (!p->facts.streamed)
            p->memory.words[at] += PLAN_SAMPLE - PLAN_COUNT;
    }
}

// Appends a stream's last COUNT and its STOP.
static int stop_stream(struct plan *p, struct plan_stream *s, struct err *e)
{
    int rc = plan_put_count(p, s, e);
    if (rc == 0)
        *plan_memory_at(s->memory, s->next++) = PLAN_STOP; // each chunk reserves this word
    return rc;
}

// Frees the remaining blocks, each with a function that matches its allocation.
static int write_leftovers(struct plan *p, struct plan_header *h, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->n_slots; i++) {
        const struct plan_slot *s = &p->slots[i];
        if (!s->entry)
            continue;
        struct plan_call c = {
            .op = (enum plan_op)s->free_kind, .entry = s->entry, .extra = {1ull << s->align_log2}};
        rc = plan_put_call(p, &p->leftovers, &c, e);
        h->by_kind[s->free_kind]++;
        p->facts.calls++;
    }
    if (rc == 0)
        rc = stop_stream(p, &p->leftovers, e);
    h->leftovers_at = p->leftovers.first;
    return rc;
}

static int write_threads(struct plan *p, struct plan_header *h, struct err *e)
{
    uint64_t words = p->n_streams * sizeof(struct plan_thread) / 8;
    int rc = plan_memory_allocate(&p->memory, words, &h->threads_at, e);
    if (rc < 0)
        return rc;
    uint64_t more_at = 0;
    if (p->facts.streamed) {
        rc = plan_memory_allocate(&p->memory, 1 + PLAN_AHEAD_WORDS, &more_at, e);
        if (rc < 0)
            return rc;
        p->memory.words[more_at] = PLAN_NEXT_SEGMENT;
    }
    struct plan_thread *t = (struct plan_thread *)(p->memory.words + h->threads_at);
    for (size_t i = 0; i < p->n_streams; i++) {
        const struct plan_stream *s = p->streams[i];
        t[i] = (struct plan_thread){.first_word = s && s->first ? more_at ? more_at : s->first : 0,
                                    .at_start = s && !s->started_by_thread,
                                    .outlives = s && s->outlives};
        p->facts.threads += s && s->first;
        h->waits_for_exits &= !s || !s->ops_at_exit || s->ops_at_exit == s->ops;
    }
    return 0;
}

uint64_t plan_streaming_bytes(const struct plan *p)
{
    return round_up(sizeof(struct plan_streaming) +
                    p->n_streams * sizeof(struct plan_streaming_thread));
}

int plan_finish(struct plan *p, struct err *e)
{
    uint64_t unused;
    struct plan_header h = {.magic = PLAN_MAGIC,
                            .n_threads = (uint32_t)p->n_streams,
                            .waits_for_exits = !p->settings.snapshots,
                            .slot_table_entries = p->slot_table.limit};
    p->facts.calls = p->facts.events + p->facts.preexisting;
    if (p->facts.events == 0)
        return err_set(e, -ENODATA, "%s: holds no call to replay", p->name);
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++)
        h.by_kind[kind] = p->facts.by_kind[kind] + p->preexisting_by[kind];
    int rc = plan_finish_snapshots(p, e)
                 ?: stop_stream(p, &p->preexisting, e)
                 ?: write_leftovers(p, &h, e);
    for (size_t i = 0; rc == 0 && !p->facts.streamed && i < p->n_streams; i++) {
        if (p->streams[i] && p->streams[i]->first)
            rc = stop_stream(p, p->streams[i], e);
    }
    if (rc == 0 && p->facts.streamed)
        rc = plan_write_window(p, e);
    rc = rc
             ?: plan_memory_allocate(&p->memory, PLAN_AHEAD_WORDS, &unused, e)
             ?: write_threads(p, &h, e);
    if (rc < 0)
        return rc;
    thin_samples(p);
    plan_finish_recorded(p);
    h.touch_zeroed = p->facts.touch_zeroed;
    h.max_block_bytes = p->max_block_bytes;
    struct plan_facts *f = &p->facts;
    f->peak_live_bytes = (uint64_t)p->peak + p->preexisting_bytes;
    f->live_at_end_bytes = (uint64_t)p->live + p->preexisting_bytes;
    f->preexisting_bytes = p->preexisting_bytes;
    f->slot_table_entries = h.slot_table_entries;
    f->own_bytes = p->memory.used * 8;
    f->bytes = f->own_bytes + f->window_bytes * PLAN_WINDOWS;
    h.words = p->memory.used;
    h.n_caches = p->n_threads;
    h.preexisting_at = p->preexisting.first;
    h.samples = f->samples;
    if (f->streamed) {
        h.streaming_bytes = f->streaming_bytes = plan_streaming_bytes(p);
        h.ring_at = plan_ring_at(p);
        h.window_words = f->window_bytes / 8;
    }
    memcpy(p->memory.words + p->header_at, &h, sizeof h);
    free(p->window_words);
    p->window_words = NULL;
    return 0;
}
