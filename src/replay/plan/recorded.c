// The recorded program, for comparison with the replay: memory samples, live bytes and threads.
#include "base/buf.h"
#include "replay/plan/build.h"

#include <stdlib.h>
#include <string.h>

int plan_set_samples(struct plan *p, const struct workload_sample *samples, size_t n, struct err *e)
{
    p->recorded = calloc(n + 1, sizeof *p->recorded);
    if (!p->recorded)
        return err_no_memory(e, NULL);
    for (size_t i = 0; i < n; i++)
        p->recorded[i] = (struct plan_recorded_sample){.sample = samples[i]};
    p->n_recorded = n;
    return 0;
}

// Tracks private mappings that the program itself made, if they were recorded. A workload contains
// no addresses, so every munmap counts.
static void follow_mapping(struct plan *p, const struct workload_op *op)
{
    static const char private[] = "rw-p anonymous";
    if (op->flags & WORKLOAD_FAILED)
        return;
    if (op->kind == HT_MMAP && op->text_bytes == strlen(private) &&
        memcmp(op->text, private, op->text_bytes) == 0)
        p->mapped_bytes += op->size;
    else if (op->kind == HT_MUNMAP)
        p->mapped_bytes -= op->size < p->mapped_bytes ? op->size : p->mapped_bytes;
}

// Returns the bytes of the blocks whose free is the last call of a thread. The call may not have
// returned yet. Counts each block at one sample only.
static uint64_t pass_freed(struct plan *p)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->n_streams; i++) {
        struct plan_stream *s = p->streams[i];
        if (s && s->freed_ops == s->ops)
            bytes += s->freed_bytes;
        if (s)
            s->freed_bytes = 0;
    }
    return bytes;
}

// Places a sample between the last op so far and the next op.
static void locate_sample(struct plan *p, struct plan_recorded_sample *r)
{
    r->event = p->facts.events;
    r->exits = p->n_exited;
    r->live_bytes = p->live;
    r->freed_bytes = pass_freed(p);
    r->mapped_bytes = p->mapped_bytes;
}

const struct workload_sample *plan_pass_sample(struct plan *p, const struct workload_op *op)
{
    if (p->n_passed == p->n_recorded || (op && p->recorded[p->n_passed].sample.stamp >= op->stamp))
        return NULL;
    locate_sample(p, &p->recorded[p->n_passed]);
    return &p->recorded[p->n_passed++].sample;
}

void plan_follow(struct plan *p, struct plan_span *span, const struct workload_op *op)
{
    if (event_infos[op->kind].class == HT_CLASS_MAP)
        follow_mapping(p, op);
    if (op->kind == HT_PREEXISTING)
        return;
    if (!span->ops++) {
        span->first_stamp = op->stamp;
        span->first_event = p->facts.events;
    }
    span->last_stamp = op->stamp;
    span->last_event = p->facts.events;
    p->last_stamp = op->stamp > p->last_stamp ? op->stamp : p->last_stamp;
}

// Returns true if the program wrote to most of its blocks. If private memory is as large as live
// bytes, blocks were used entirely, including blocks from calloc. A sample may fall between a
// block's allocation and its first use. Therefore each sample may lack an eighth of the memory, and
// one sample in eight may lack more.
static bool used_its_blocks(const struct plan *p)
{
    size_t compared = 0, missing = 0;
    for (size_t i = 0; i < p->n_recorded; i++) {
        const struct plan_recorded_sample *r = &p->recorded[i];
        int64_t private_bytes = (int64_t)(r->sample.anon_bytes - r->mapped_bytes);
        compared += r->event > 0;
        missing += private_bytes < r->live_bytes - r->live_bytes / 8;
    }
    return compared > 0 && missing <= compared / 8;
}

// Returns true if the program wrote to most of its memory from calloc. Uses the big blocks whose
// use was measured. If there are no such blocks, uses private memory, which may also contain
// variables and mappings of the program.
static bool used_zeroed(const struct plan *p)
{
    uint64_t bytes = 0, used = 0;
    for (unsigned i = 0; i < PLAN_SIZE_CLASSES; i++) {
        bytes += p->uses[1][i].all.bytes;
        used += p->uses[1][i].all.used;
    }
    return bytes ? used >= bytes / 2 : used_its_blocks(p);
}

// Adds the preexisting blocks to the live bytes at all points: the blocks are live from the start,
// but their ops may come late.
void plan_finish_recorded(struct plan *p)
{
    size_t step = plan_sample_step(p), n = 0;
    for (size_t i = 0; i < p->n_points; i += step)
        p->points[n++] = (struct plan_live_point){
            p->points[i].event, p->points[i].live_bytes + (int64_t)p->preexisting_bytes};
    p->n_points = n;
    while (p->n_passed < p->n_recorded)
        locate_sample(p, &p->recorded[p->n_passed++]);
    for (size_t i = 0; i < p->n_recorded; i++)
        p->recorded[i].live_bytes += (int64_t)p->preexisting_bytes;
    p->facts.touch_zeroed = used_zeroed(p);
    p->facts.duration_stamps = p->last_stamp > p->first_stamp ? p->last_stamp - p->first_stamp : 0;
}

const struct plan_recorded_sample *plan_recorded_samples(const struct plan *p, size_t *n)
{
    *n = p->n_recorded;
    return p->recorded;
}

const struct plan_live_point *plan_live_points(const struct plan *p, size_t *n)
{
    *n = p->n_points;
    return p->points;
}

size_t plan_threads(const struct plan *p)
{
    return p->n_streams;
}

const struct plan_span *plan_span(const struct plan *p, size_t thread)
{
    return p->streams[thread] && p->streams[thread]->first ? &p->streams[thread]->span : NULL;
}
