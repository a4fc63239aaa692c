#include "report/verdict.h"

#include <math.h>
#include <string.h>

// Thresholds.
#define GROWN_SHARE     0.02 // share of RSS
#define RSS_GROWN_SHARE 0.05 // share of RSS
#define UNCLEAR_SHARE   0.1  // share of the live bytes
#define FOLLOWS_SHARE   0.5  // growth of RSS as a share of the growth of live bytes
#define WASTE_SHARE     (1.0 / 3)
#define OUTSIDE_SHARE   0.5  // share of RSS
#define LIVE_SHARE      0.5  // share of RSS
#define UNWRITTEN_SHARE 0.75 // share of the live bytes
#define REPLACED_SHARE  0.5  // share of the live blocks
#define HARDLY_SHARE    0.1  // growth of RSS as a share of the growth of live bytes
#define ARENAS          3
#define PINNED_SHARE    0.5  // share of the free memory that must be between live blocks
#define SAW_FREE        1.25 // max. free memory that the next rise reuses, in units of the swing

double verdict_known(double value)
{
    return isnan(value) ? 0 : value;
}

static bool is_large(const struct verdict_facts *f, double bytes, double share)
{
    return f->knows_resident && bytes >= VERDICT_MANY_BYTES && bytes >= share * f->rss_bytes;
}

double verdict_free_bytes(const struct verdict_facts *f)
{
    return verdict_known(f->resident[VERDICT_PINNED]) + verdict_known(f->resident[VERDICT_FREE]);
}

double verdict_stuck_bytes(const struct verdict_facts *f)
{
    return fmax(verdict_known(f->resident[VERDICT_PINNED]), verdict_known(f->shared_free_bytes));
}

double verdict_outside_bytes(const struct verdict_facts *f)
{
    return verdict_known(f->resident[VERDICT_MAPPINGS]) +
           verdict_known(f->resident[VERDICT_SHARED]);
}

double verdict_unwritten_bytes(const struct verdict_facts *f)
{
    return f->live_bytes - f->resident[VERDICT_LIVE] - verdict_known(f->swap_bytes);
}

bool verdict_is_growing(const struct growth *g)
{
    return g->shape == GROWTH_LINEAR && g->grown_bytes >= VERDICT_GROWN_BYTES;
}

// Returns true if new blocks may replace blocks that are older than the recording. These blocks are
// not counted, so live bytes grow from 0 in any process that replaces its blocks.
static bool is_replacing(const struct verdict_facts *f)
{
    bool rss_follows =
        verdict_is_growing(&f->rss) && f->rss.grown_bytes >= FOLLOWS_SHARE * f->live.grown_bytes;
    return f->freed_before_blocks >= REPLACED_SHARE * f->live_blocks && !rss_follows;
}

// Returns the owner outside malloc that grows fastest, or VERDICT_OWNERS if no owner grows.
enum verdict_owner verdict_growing_owner(const struct verdict_facts *f)
{
    static const enum verdict_owner owners[] = {VERDICT_MAPPINGS, VERDICT_SHARED, VERDICT_FILES,
                                                VERDICT_STACKS};
    enum verdict_owner fastest = VERDICT_OWNERS;
    // The metadata of an allocator grows with the number of blocks.
    double rate = f->live.grown_bytes >= VERDICT_GROWN_BYTES ? f->live.bytes_per_s : 0;
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++) {
        const struct growth *g = &f->of[owners[i]];
        if (!f->knows_resident || !verdict_is_growing(g) ||
            g->grown_bytes < GROWN_SHARE * f->rss_bytes || g->bytes_per_s <= rate)
            continue;
        fastest = owners[i];
        rate = g->bytes_per_s;
    }
    return fastest;
}

static bool is_unwritten(const struct verdict_facts *f)
{
    double bytes = verdict_unwritten_bytes(f);
    bool rss_grows =
        verdict_is_growing(&f->live) && f->rss.grown_bytes > HARDLY_SHARE * f->live.grown_bytes;
    return f->knows_resident && bytes >= VERDICT_MANY_BYTES &&
           bytes >= UNWRITTEN_SHARE * f->live_bytes && bytes > f->rss_bytes && !rss_grows;
}

// Returns true if the next rise of a saw-tooth reuses the free memory.
static bool is_reused(const struct verdict_facts *f)
{
    return f->live.shape == GROWTH_SAWTOOTH && f->live.teeth > 1 &&
           verdict_free_bytes(f) <= SAW_FREE * f->live.swing_bytes;
}

static enum verdict_kind free_kind(const struct verdict_facts *f)
{
    double bytes = verdict_free_bytes(f);
    if (f->allocator == SOFTWARE_GLIBC && f->arenas >= ARENAS && f->arena_free_bytes >= bytes / 2)
        return VERDICT_KIND_arenas;
    bool between = f->allocator == SOFTWARE_GLIBC
                       ? verdict_known(f->top_free_bytes) + verdict_known(f->cached_bytes) <
                             PINNED_SHARE * bytes
                       : verdict_stuck_bytes(f) > PINNED_SHARE * bytes;
    return between && f->pinning_blocks != 0 ? VERDICT_KIND_pinned : VERDICT_KIND_retained;
}

// Returns the free memory that was not used in the last second.
static double retained_bytes(const struct verdict_facts *f)
{
    double just_freed = f->recent_live_bytes - f->live_bytes;
    return verdict_free_bytes(f) - (just_freed > 0 ? just_freed : 0);
}

// Returns the kind of wasted memory with the most bytes, or VERDICT_KINDS.
static enum verdict_kind waste_kind(const struct verdict_facts *f)
{
    double stacks = verdict_known(f->resident[VERDICT_STACKS]), bytes = retained_bytes(f);
    if (is_large(f, stacks, WASTE_SHARE) && stacks >= bytes)
        return VERDICT_KIND_stacks;
    if (is_large(f, bytes, WASTE_SHARE) && !is_reused(f))
        return free_kind(f);
    return VERDICT_KINDS;
}

static bool is_uneven(const struct growth *g, enum growth_shape shape)
{
    return g->shape == shape && g->grown_bytes >= VERDICT_GROWN_BYTES &&
           g->grown_bytes >= UNCLEAR_SHARE * g->last_bytes;
}

// Returns true if RSS grows at a constant rate and live bytes do not, as when a program fills a
// container that doubles its size whenever it is full.
static bool is_growing_in_steps(const struct verdict_facts *f)
{
    return f->knows_resident && !f->exited && verdict_is_growing(&f->rss) &&
           !growth_is_wave(&f->live) && f->rss.grown_bytes >= FOLLOWS_SHARE * f->live.grown_bytes &&
           (is_uneven(&f->live, GROWTH_STEP) || is_uneven(&f->live, GROWTH_IRREGULAR));
}

static bool is_rss_growing(const struct verdict_facts *f)
{
    return f->knows_resident && !f->exited && verdict_is_growing(&f->rss) &&
           f->rss.grown_bytes >= RSS_GROWN_SHARE * f->rss_bytes &&
           f->live.shape != GROWTH_UNKNOWN && f->live.grown_bytes < VERDICT_GROWN_BYTES;
}

static bool is_heap_growing(const struct verdict_facts *f)
{
    return f->live.shape == GROWTH_UNKNOWN && f->knows_resident && verdict_is_growing(&f->heap) &&
           f->heap.grown_bytes >= GROWN_SHARE * f->rss_bytes;
}

static bool is_sawtooth(const struct growth *g)
{
    return g->shape == GROWTH_SAWTOOTH && g->swing_bytes >= VERDICT_GROWN_BYTES;
}

// Returns true if most of the memory outside malloc is shared and not the heap of the runtime. Only
// Java has a shared heap: the garbage collector ZGC calls its memfd "java_heap".
static bool is_mostly_shared(const struct verdict_facts *f)
{
    double shared = verdict_known(f->resident[VERDICT_SHARED]);
    for (size_t i = 0; i < f->n_names; i++) {
        if (f->names[i].owner == VERDICT_SHARED && strstr(f->names[i].name, "java_heap"))
            shared -= f->names[i].bytes;
    }
    return shared > verdict_outside_bytes(f) / 2;
}

static enum verdict_kind choose_kind(const struct verdict_facts *f)
{
    enum verdict_kind waste = waste_kind(f);
    enum verdict_owner growing = verdict_growing_owner(f);
    if (growing == VERDICT_MAPPINGS && f->runtime)
        return VERDICT_KIND_runtime;
    if (growing == VERDICT_STACKS)
        return VERDICT_KIND_stacks;
    if (growing != VERDICT_OWNERS)
        return VERDICT_KIND_mappings_grow;
    if (is_unwritten(f))
        return VERDICT_KIND_unwritten;
    if (verdict_is_growing(&f->live))
        return is_replacing(f) ? VERDICT_KIND_unclear : VERDICT_KIND_grows;
    if (is_heap_growing(f))
        return VERDICT_KIND_heap_grows;
    if (is_growing_in_steps(f))
        return VERDICT_KIND_grows_in_steps;
    if (waste != VERDICT_KINDS)
        return waste;
    if (f->live.shape == GROWTH_SATURATING && f->live.grown_bytes >= VERDICT_GROWN_BYTES)
        return VERDICT_KIND_fills;
    if (is_uneven(&f->live, GROWTH_IRREGULAR))
        return VERDICT_KIND_unclear;
    if (is_rss_growing(f))
        return VERDICT_KIND_rss_grows;
    if (is_sawtooth(&f->live) &&
        f->live.swing_bytes >= verdict_known(f->resident[VERDICT_UNKNOWN_HEAP]) &&
        f->live.swing_bytes >= verdict_outside_bytes(f))
        return VERDICT_KIND_sawtooth;
    if (is_large(f, f->resident[VERDICT_UNKNOWN_HEAP], WASTE_SHARE))
        return VERDICT_KIND_unknown_blocks;
    if (is_large(f, verdict_outside_bytes(f), OUTSIDE_SHARE))
        return f->runtime && !is_mostly_shared(f) ? VERDICT_KIND_runtime : VERDICT_KIND_mappings;
    if (f->live.shape == GROWTH_UNKNOWN && f->heap.shape != GROWTH_UNKNOWN &&
        f->resident[VERDICT_UNKNOWN_HEAP] >= VERDICT_GROWN_BYTES)
        return VERDICT_KIND_unknown_blocks;
    if (f->live.shape == GROWTH_UNKNOWN)
        return f->span_ns > 0 ? VERDICT_KIND_too_short : VERDICT_KIND_unknown;
    if (is_sawtooth(&f->live))
        return VERDICT_KIND_sawtooth;
    if (!f->knows_resident)
        return VERDICT_KIND_unknown;
    return is_large(f, f->resident[VERDICT_LIVE], LIVE_SHARE) ? VERDICT_KIND_live
                                                              : VERDICT_KIND_healthy;
}

void verdict_facts_init(struct verdict_facts *f)
{
    *f = (struct verdict_facts){.allocator = SOFTWARE_OTHER_ALLOCATOR,
                                .freed_at_exit_ns = NAN,
                                .span_ns = NAN,
                                .live_bytes = NAN,
                                .live_blocks = NAN,
                                .freed_before_blocks = NAN,
                                .peak_live_bytes = NAN,
                                .shrunk_bytes = NAN,
                                .recent_live_bytes = NAN,
                                .rss_bytes = NAN,
                                .swap_bytes = NAN,
                                .peak_rss_bytes = NAN,
                                .rss_since_bytes = NAN,
                                .arenas = NAN,
                                .arena_free_bytes = NAN,
                                .top_free_bytes = NAN,
                                .cached_bytes = NAN,
                                .shared_free_bytes = NAN,
                                .pinning_blocks = NAN,
                                .pinning_bytes = NAN,
                                .pinning_before_share = NAN,
                                .stacks = NAN,
                                .first_stacks = NAN,
                                .all_threads = NAN,
                                .threads = NAN,
                                .ended_stack_bytes = NAN};
    growth_find(&f->live, NULL, 0);
    growth_find(&f->rss, NULL, 0);
    growth_find(&f->heap, NULL, 0);
    for (unsigned i = 0; i < VERDICT_OWNERS; i++) {
        f->resident[i] = NAN;
        growth_find(&f->of[i], NULL, 0);
    }
}

static const struct {
    const char *name;
    bool act;
} kinds[] = {
#define HT_X(name, act, when) {#name, act},
    VERDICTS(HT_X)
#undef HT_X
};

struct verdict verdict_choose(const struct verdict_facts *f)
{
    enum verdict_kind kind = choose_kind(f);
    return (struct verdict){.kind = kind,
                            .name = kinds[kind].name,
                            .act = kinds[kind].act,
                            .saves_bytes = NAN,
                            .sure = VERDICT_SURE};
}

static void put_growth(struct json *j, const char *key, const struct growth *g)
{
    json_put_object(j, key);
    json_put_string(j, "shape", growth_shape_name(g->shape));
    json_put_u64(j, "span_ns", (uint64_t)g->span_ns);
    json_put_double(j, "grown_bytes", g->grown_bytes);
    json_put_double(j, "bytes_per_s", g->bytes_per_s);
    json_put_double(j, "bytes_per_s_error", g->bytes_per_s_error);
    json_put_double(j, "misfit", g->misfit);
    json_put_double(j, "limit_bytes", g->limit_bytes);
    json_put_double(j, "limit_low_bytes", g->limit_low_bytes);
    json_put_double(j, "limit_high_bytes", g->limit_high_bytes);
    json_end_object(j);
}

const struct verdict_owner_text verdict_owner_texts[VERDICT_OWNERS] = {
#define HT_X(symbol, name, label) {name, label},
    VERDICT_OWNERS_TABLE(HT_X)
#undef HT_X
};

static void put_resident(struct json *j, const struct verdict_facts *f)
{
    json_put_object(j, "resident");
    for (unsigned i = 0; i < VERDICT_OWNERS; i++)
        json_put_u64(j, verdict_owner_texts[i].name, (uint64_t)verdict_known(f->resident[i]));
    json_end_object(j);
}

void verdict_json(struct json *j, const struct verdict *v, const struct verdict_facts *f)
{
    static const char *const sureness[] = {
#define HT_X(symbol, name) name,
        VERDICT_SURENESS(HT_X)
#undef HT_X
    };
    json_put_object(j, "verdict");
    json_put_string(j, "kind", v->name);
    json_put_bool(j, "act", v->act);
    json_put_string(j, "text", v->text);
    json_put_string(j, "remedy", v->remedy[0] ? v->remedy : NULL);
    json_put_double(j, "saves_bytes", v->saves_bytes);
    json_put_string(j, "sure", sureness[v->sure]);
    json_put_string(j, "because", v->because[0] ? v->because : NULL);
    put_growth(j, "live_growth", &f->live);
    if (f->knows_resident) {
        put_growth(j, "rss_growth", &f->rss);
        json_put_u64(j, "rss_bytes", (uint64_t)f->rss_bytes);
        put_resident(j, f);
    }
    json_end_object(j);
}
