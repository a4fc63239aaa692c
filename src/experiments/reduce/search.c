// The cuts of a reduction and their order.
#include "experiments/reduce/reduce.h"

#include "base/buf.h"
#include "base/seed.h"

#include <stdio.h>

static int reserve_blocks(struct reduce *r, struct err *e)
{
    if (HT_GROW(&r->kept, &r->kept_capacity, r->blocks.n + 1) < 0 ||
        HT_GROW(&r->group_of, &r->group_of_capacity, r->blocks.n + 1) < 0)
        return err_no_memory(e, NULL);
    return 0;
}

static void show_step(struct reduce *r, const char *how)
{
    snprintf(r->status, sizeof r->status, "reduce: %llu of %llu events, %s",
             (unsigned long long)r->blocks.events, (unsigned long long)r->input.events, how);
}

// Spans: cut 0 drops the last half of the events, and cut 1 the blocks whose last op is in the
// first half. Cuts 2 and 3 do the same with quarters, and so on.
enum { SPAN_HALVINGS = 5 };

static bool make_span(void *context, size_t i, struct reduce_cut *c)
{
    struct reduce *r = context;
    uint64_t less = r->blocks.events >> (1 + i / 2), n = 0;
    if (i % 2 == 0) {
        c->to = r->blocks.events - less;
        return less > 0;
    }
    for (size_t b = 0; b < r->blocks.n; b++)
        n += r->kept[b] = r->blocks.items[b].last_event > less;
    c->blocks = r->kept;
    return n < r->blocks.n;
}

// Samples of half or three quarters of the blocks, in runs of different lengths or at random.
static const struct sample {
    uint64_t step;         // number of blocks in a run, or 0 for random blocks
    unsigned of, left_out; // the sample drops run number `left_out` of each `of` runs
} samples[] = {
    {0, 2, 0},   {0, 2, 1},   {2, 2, 0},    {2, 2, 1},    {16, 2, 0}, {16, 2, 1},
    {256, 2, 0}, {256, 2, 1}, {4096, 2, 0}, {4096, 2, 1}, {0, 4, 0},  {0, 4, 1},
    {1, 2, 0},   {1, 2, 1},   {0, 8, 0},    {0, 8, 1},
};

static bool make_sample(void *context, size_t i, struct reduce_cut *c)
{
    struct reduce *r = context;
    const struct sample *s = &samples[i];
    uint64_t n = 0;
    for (uint64_t b = 0; b < r->blocks.n; b++) {
        uint64_t state = b ^ r->blocks.n << 32, run = s->step ? b / s->step : seed_next(&state);
        n += r->kept[b] = run % s->of != s->left_out;
    }
    c->blocks = r->kept;
    return n > 0 && n < r->blocks.n;
}

// Groups of blocks, divided into chunks. Cut number i drops chunk number i.
struct chunks {
    struct reduce *r;
    // Number of groups, and number of groups in a chunk.
    size_t groups, length;
};

static bool make_chunk(void *context, size_t i, struct reduce_cut *c)
{
    const struct chunks *chunks = context;
    struct reduce *r = chunks->r;
    size_t first = i * chunks->length;
    for (size_t b = 0; b < r->blocks.n; b++)
        r->kept[b] = r->group_of[b] - first >= chunks->length || r->group_of[b] < first;
    c->blocks = r->kept;
    return chunks->groups > 1;
}

// Drops ops without a block. With i = 0, also drops thread ops.
static bool make_without_others(void *context, size_t i, struct reduce_cut *c)
{
    const struct reduce *r = context;
    c->others = false;
    c->thread_ops = i > 0;
    return r->blocks.others > 0 || (i == 0 && r->blocks.thread_ops > 0);
}

// Confirms the part after a step. Returns 1 to continue the search, 0 to stop it, or a negative
// errno.
static int finish_step(struct reduce *r, int found, struct err *e)
{
    int rc = reduce_confirm(r, e);
    return rc < 0 ? rc : found || !rc;
}

// Cuts that are not groups of blocks.
static const struct step {
    reduce_make *make;
    size_t cuts;
    const char *how;
} steps[] = {
    {make_span, 2 * SPAN_HALVINGS, "by time"},
    {make_without_others, 2, "without calls that have no block"},
    {make_sample, sizeof samples / sizeof *samples, "by samples"},
};

// Tries all cuts of a step until none of them meets the conditions. After each success, starts over
// with the first cut. Returns 1 if at least one cut met the conditions.
static int repeat_cuts(struct reduce *r, const struct step *step, struct err *e)
{
    int rc = 0, found = 0;
    do {
        size_t number;
        found |= rc;
        show_step(r, step->how);
        rc = reserve_blocks(r, e);
        if (rc == 0)
            rc = reduce_try(r, step->make, r, (const size_t[]){0, step->cuts}, &number, e);
    } while (rc > 0);
    return rc < 0 ? rc : finish_step(r, found, e);
}

static int number_groups(struct chunks *chunks, enum reduce_dimension d, struct err *e)
{
    struct reduce *r = chunks->r;
    int rc = reserve_blocks(r, e);
    if (rc < 0)
        return rc;
    chunks->groups = reduce_blocks_group(&r->blocks, d, r->group_of);
    return chunks->groups || !r->blocks.n ? 0 : err_no_memory(e, NULL);
}

// Drops chunks of groups. Chunks shrink from half of all groups to a single group. After a chunk
// was dropped, the search continues with the next chunk.
static int leave_out(struct reduce *r, enum reduce_dimension d, const char *how, struct err *e)
{
    struct chunks chunks = {.r = r};
    int found = 0, rc = number_groups(&chunks, d, e);
    for (chunks.length = chunks.groups / 2; rc == 0 && chunks.length; chunks.length /= 2) {
        size_t next = 0;
        do {
            size_t end = (chunks.groups + chunks.length - 1) / chunks.length;
            show_step(r, how);
            rc = reduce_try(r, make_chunk, &chunks, (const size_t[]){next, end}, &next, e);
            found |= rc > 0;
            int numbered = rc > 0 ? number_groups(&chunks, d, e) : 0;
            rc = numbered < 0 ? numbered : rc;
        } while (rc > 0);
        rc = rc < 0 ? rc : finish_step(r, found, e);
        found |= rc > 0;
        rc = rc < 0 ? rc : number_groups(&chunks, d, e);
    }
    return rc < 0 ? rc : found;
}

int reduce_pass(struct reduce *r, struct err *e)
{
    static const char *const how[] = {[REDUCE_BY_THREAD] = "by thread",
                                      [REDUCE_BY_SITE] = "by call site",
                                      [REDUCE_BY_CLASS] = "by size",
                                      [REDUCE_ALONE] = "by block"};
    int found = 0, rc = 0;
    for (size_t i = 0; rc >= 0 && i < sizeof steps / sizeof *steps; i++) {
        found |= rc;
        rc = repeat_cuts(r, &steps[i], e);
    }
    for (enum reduce_dimension d = 0; rc >= 0 && d < REDUCE_DIMENSIONS; d++) {
        found |= rc;
        rc = leave_out(r, d, how[d], e);
    }
    return rc < 0 ? rc : found | rc;
}
