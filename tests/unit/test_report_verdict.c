// Tests each verdict with facts for which the verdict applies, and with similar facts for which it
// must not apply.
#include "report/verdict.h"
#include "unit.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MIB (1024.0 * 1024)

static struct growth level(enum growth_shape shape, double grown_mib)
{
    return (struct growth){.shape = shape,
                           .span_ns = 5e9,
                           .first_bytes = MIB,
                           .last_bytes = (1 + grown_mib) * MIB,
                           .grown_bytes = grown_mib * MIB,
                           .late_bytes = grown_mib * MIB / 4,
                           .swing_bytes = grown_mib * MIB,
                           .trough_bytes = MIB,
                           .bytes_per_s = grown_mib * MIB / 5,
                           .bytes_per_s_error = 0.01 * MIB,
                           .misfit = 0.01,
                           .limit_bytes = 64 * MIB,
                           .limit_low_bytes = 60 * MIB,
                           .limit_high_bytes = 70 * MIB};
}

// Initializes the facts of a process on glibc with 2 MiB of live blocks that do not grow.
static void init(struct verdict_facts *f)
{
    verdict_facts_init(f);
    f->allocator = SOFTWARE_GLIBC;
    f->allocator_name = "glibc";
    f->knows_blocks = f->knows_resident = true;
    f->span_ns = 5e9;
    f->live = level(GROWTH_STEADY, 0);
    f->live_bytes = f->peak_live_bytes = 2 * MIB;
    f->live_blocks = 1000;
    f->swap_bytes = f->arenas = f->arena_free_bytes = f->top_free_bytes = 0;
    f->pinning_blocks = 100;
    f->pinning_bytes = 10e3;
    f->pinning_before_share = 0;
    f->stacks = 1;
    for (unsigned i = 0; i < VERDICT_OWNERS; i++)
        f->resident[i] = 0;
    f->resident[VERDICT_LIVE] = 2 * MIB;
    f->resident[VERDICT_FILES] = 3 * MIB;
    f->rss_bytes = f->peak_rss_bytes = 5 * MIB;
}

// Adds resident bytes of an owner.
static void add(struct verdict_facts *f, enum verdict_owner owner, double mib)
{
    f->resident[owner] += mib * MIB;
    f->rss_bytes += mib * MIB;
    f->peak_rss_bytes = fmax(f->peak_rss_bytes, f->rss_bytes);
    if (owner == VERDICT_LIVE)
        f->live_bytes = f->peak_live_bytes = f->live_bytes + mib * MIB;
}

static void add_site(struct verdict_sites *to, const char *path, double mib, double freed_share)
{
    struct verdict_site *s = &to->items[to->n++];
    *s = (struct verdict_site){.bytes = mib * MIB, .freed_share = freed_share};
    snprintf(s->path, sizeof s->path, "%s", path);
}

// Each function yes_KIND sets facts for which the verdict is KIND, and returns a part of the
// expected sentence. Each function no_KIND sets facts that differ from these in one condition.
static const char *yes_grows(struct verdict_facts *f)
{
    add(f, VERDICT_LIVE, 10);
    f->live = level(GROWTH_LINEAR, 10);
    add_site(&f->growing, "get (a.c:3) < remember (a.c:9)", 10, 0);
    return "Live bytes grow linearly, by 10.0 MiB in 5.00 s (2.0 MiB/s ± 10.2 KiB/s). Call paths "
           "that grow: 10.0 MiB in get (a.c:3) < remember (a.c:9). The first of them frees none of "
           "its blocks.";
}

static void no_grows(struct verdict_facts *f)
{
    yes_grows(f);
    f->live.grown_bytes = 0.9 * MIB;
}

static const char *yes_heap_grows(struct verdict_facts *f)
{
    add(f, VERDICT_UNKNOWN_HEAP, 20);
    f->is_running = true;
    f->knows_blocks = false;
    f->allocator = SOFTWARE_JEMALLOC;
    f->allocator_name = "jemalloc";
    f->live = level(GROWTH_UNKNOWN, 0);
    f->live_bytes = NAN;
    f->heap = level(GROWTH_LINEAR, 20);
    return "Resident memory grows linearly, by 20.0 MiB in 5.00 s (4.0 MiB/s ± 10.2 KiB/s), to "
           "21.0 MiB of 25.0 MiB: memory of jemalloc or of the program's own mappings.";
}

static void no_heap_grows(struct verdict_facts *f)
{
    yes_heap_grows(f);
    f->heap = level(GROWTH_SATURATING, 20);
}

static const char *yes_mappings_grow(struct verdict_facts *f)
{
    add(f, VERDICT_MAPPINGS, 20);
    f->of[VERDICT_MAPPINGS] = level(GROWTH_LINEAR, 20);
    return "Anonymous memory outside malloc grows linearly, by 20.0 MiB in 5.00 s";
}

static void no_mappings_grow(struct verdict_facts *f)
{
    yes_mappings_grow(f);
    add(f, VERDICT_LIVE, 30);
    f->live = level(GROWTH_LINEAR, 30);
}

static const char *yes_unwritten(struct verdict_facts *f)
{
    f->live_bytes = 480 * MIB;
    add_site(&f->holding, "reserve (a.c:9)", 480, 0);
    return "although live blocks have 480.0 MiB: 478.0 MiB of them are not resident";
}

static void no_unwritten(struct verdict_facts *f)
{
    yes_unwritten(f);
    f->swap_bytes = 400 * MIB;
}

static const char *yes_stacks(struct verdict_facts *f)
{
    add(f, VERDICT_STACKS, 104);
    f->stacks = 400;
    return "Thread stacks have 104.0 MiB of 109.0 MiB resident, 95 %. There are 400 stacks, 266.2 "
           "KiB each on average.";
}

static void no_stacks(struct verdict_facts *f)
{
    yes_stacks(f);
    add(f, VERDICT_LIVE, 250);
}

static const char *yes_arenas(struct verdict_facts *f)
{
    add(f, VERDICT_FREE, 120);
    f->arenas = 16;
    f->arena_free_bytes = 118 * MIB;
    return "120.0 MiB of 125.0 MiB resident, 96 %, is freed memory that glibc has not returned to "
           "the kernel: live blocks have 2.0 MiB. It is retained in 16 arenas";
}

static void no_arenas(struct verdict_facts *f)
{
    yes_arenas(f);
    f->arenas = 2;
}

static const char *yes_pinned(struct verdict_facts *f)
{
    add(f, VERDICT_FREE, 160);
    add(f, VERDICT_PINNED, 32);
    f->arenas = 1;
    add_site(&f->pinning, "get (a.c:3) < batch (a.c:9)", 32, 0);
    return "100 live blocks (9.8 KiB) lie between the free memory. Free memory in their pages, by "
           "call path: 32.0 MiB in get (a.c:3) < batch (a.c:9).";
}

static void no_pinned(struct verdict_facts *f)
{
    yes_pinned(f);
    f->top_free_bytes = 150 * MIB;
}

static const char *yes_retained(struct verdict_facts *f)
{
    add(f, VERDICT_FREE, 80);
    f->top_free_bytes = 80 * MIB;
    f->allocator = SOFTWARE_JEMALLOC;
    f->allocator_name = "jemalloc";
    return "is freed memory that jemalloc has not returned to the kernel: live blocks have 2.0 "
           "MiB. 80.0 MiB of it are whole pages.";
}

static void no_retained(struct verdict_facts *f)
{
    yes_retained(f);
    f->live = level(GROWTH_SAWTOOTH, 80);
    f->live.teeth = 3; // the next rise uses the memory
}

static const char *yes_fills(struct verdict_facts *f)
{
    add(f, VERDICT_LIVE, 30);
    f->live = level(GROWTH_SATURATING, 20);
    add_site(&f->growing, "put (a.c:9)", 20, 0.4);
    return "towards 60.0 MiB to 70.0 MiB: a cache or table that fills, not a leak. Call paths that "
           "grow: 20.0 MiB in put (a.c:9).";
}

static void no_fills(struct verdict_facts *f)
{
    yes_fills(f);
    f->live.shape = GROWTH_LINEAR;
}

static const char *yes_grows_in_steps(struct verdict_facts *f)
{
    add(f, VERDICT_LIVE, 10);
    f->live = level(GROWTH_STEP, 12);
    f->rss = level(GROWTH_LINEAR, 8);
    return "RSS grows linearly, by 8.0 MiB in 5.00 s (1.6 MiB/s ± 10.2 KiB/s), to 15.0 MiB. Live "
           "bytes grew by 12.0 MiB, in steps";
}

static void no_grows_in_steps(struct verdict_facts *f)
{
    yes_grows_in_steps(f);
    f->rss.grown_bytes = 5 * MIB;
}

static const char *yes_rss_grows(struct verdict_facts *f)
{
    add(f, VERDICT_LIVE, 10);
    f->live_bytes = 20 * MIB;
    f->rss = level(GROWTH_LINEAR, 8);
    f->of[VERDICT_LIVE] = level(GROWTH_LINEAR, 7);
    return "to 15.0 MiB, most of it in live blocks. Live bytes do not grow: 20.0 MiB. The program "
           "writes to blocks that it allocated earlier.";
}

static void no_rss_grows(struct verdict_facts *f)
{
    yes_rss_grows(f);
    f->rss.grown_bytes = 0.7 * MIB;
}

static const char *yes_unclear(struct verdict_facts *f)
{
    add(f, VERDICT_LIVE, 30);
    f->live = level(GROWTH_IRREGULAR, 20);
    return "Live bytes grew by 20.0 MiB in 5.00 s, but not at a constant rate";
}

static void no_unclear(struct verdict_facts *f)
{
    yes_unclear(f);
    f->live.last_bytes = 300 * MIB;
}

static const char *yes_runtime(struct verdict_facts *f)
{
    add(f, VERDICT_MAPPINGS, 60);
    f->runtime = software_runtime_of("/usr/bin/java");
    return "60.0 MiB of 65.0 MiB resident, 92 %, is memory outside malloc, where Java has its own "
           "heap.";
}

static void no_runtime(struct verdict_facts *f)
{
    yes_runtime(f);
    f->runtime = NULL;
}

static const char *yes_mappings(struct verdict_facts *f)
{
    add(f, VERDICT_MAPPINGS, 40);
    add(f, VERDICT_SHARED, 20);
    return "60.0 MiB of 65.0 MiB resident, 92 %, is memory outside malloc: 40.0 MiB anonymous, "
           "20.0 MiB shared.";
}

static void no_mappings(struct verdict_facts *f)
{
    yes_mappings(f);
    add(f, VERDICT_LIVE, 80);
}

static const char *yes_unknown_blocks(struct verdict_facts *f)
{
    f->knows_blocks = false;
    add(f, VERDICT_UNKNOWN_HEAP, 190);
    return "190.0 MiB of 195.0 MiB resident, 97 %, cannot be explained";
}

static void no_unknown_blocks(struct verdict_facts *f)
{
    yes_unknown_blocks(f);
    add(f, VERDICT_LIVE, 400);
}

static const char *yes_sawtooth(struct verdict_facts *f)
{
    f->live = level(GROWTH_SAWTOOTH, 80);
    f->live.last_bytes = MIB;
    f->live.teeth = 2;
    f->peak_rss_bytes = 100 * MIB;
    return "No problem found. Live bytes rise by up to 80.0 MiB and fall back to 1.0 MiB: no leak. "
           "glibc returned the freed memory: RSS is 5.0 MiB, after a peak of 100.0 MiB.";
}

static void no_sawtooth(struct verdict_facts *f)
{
    yes_sawtooth(f);
    f->live.swing_bytes = 0.5 * MIB;
}

static const char *yes_live(struct verdict_facts *f)
{
    add(f, VERDICT_LIVE, 60);
    add_site(&f->holding, "put (a.c:9)", 60, 0.9);
    return "No problem found. Live blocks have 62.0 MiB of 65.0 MiB resident, 95 %. Live bytes do "
           "not grow. Largest call paths: 60.0 MiB in put (a.c:9).";
}

static void no_live(struct verdict_facts *f)
{
    yes_live(f);
    f->live.shape = GROWTH_UNKNOWN;
}

static const char *yes_healthy(struct verdict_facts *f)
{
    (void)f;
    return "No problem found. Live bytes (2.0 MiB) do not grow. RSS is 5.0 MiB; the largest part "
           "is files, 3.0 MiB.";
}

static void no_healthy(struct verdict_facts *f)
{
    f->live.shape = GROWTH_UNKNOWN;
}

static const char *yes_too_short(struct verdict_facts *f)
{
    f->live = level(GROWTH_UNKNOWN, 1);
    f->span_ns = 1e9;
    return "RSS is 5.0 MiB; the largest part is files, 3.0 MiB. Growth cannot be judged: 1.00 s "
           "were observed, and at least 3.00 s are necessary.";
}

static void no_too_short(struct verdict_facts *f)
{
    yes_too_short(f);
    add(f, VERDICT_STACKS, 100);
}

static const char *yes_unknown(struct verdict_facts *f)
{
    f->knows_resident = false;
    return "Live bytes (2.0 MiB) do not grow. The resident memory was not recorded.";
}

static void no_unknown(struct verdict_facts *f)
{
    yes_unknown(f);
    f->live = level(GROWTH_LINEAR, 10);
}

static const struct {
    const char *name;
    const char *(*yes)(struct verdict_facts *f);
    void (*no)(struct verdict_facts *f);
} kinds[] = {
#define HT_X(name, act, when) {#name, yes_##name, no_##name},
    VERDICTS(HT_X)
#undef HT_X
};

static void test_each_kind(void **unused)
{
    (void)unused;
    for (unsigned kind = 0; kind < VERDICT_KINDS; kind++) {
        struct verdict_facts f;
        struct verdict v;
        init(&f);
        const char *part = kinds[kind].yes(&f);
        verdict_find(&v, &f);
        if (v.kind != kind || !strstr(v.text, part))
            fail_msg("%s: %s: %s", kinds[kind].name, v.name, v.text);
        size_t n = strlen(v.text);
        assert_true(v.text[n - 1] == '.' && !strstr(v.text, "nan") && !strstr(v.remedy, "nan"));
        assert_string_equal(v.name, kinds[kind].name);
    }
}

static void test_each_other(void **unused)
{
    (void)unused;
    for (unsigned kind = 0; kind < VERDICT_KINDS; kind++) {
        struct verdict_facts f;
        struct verdict v;
        init(&f);
        kinds[kind].no(&f);
        verdict_find(&v, &f);
        if (v.kind == kind)
            fail_msg("%s: %s", kinds[kind].name, v.text);
    }
}

// Sets facts, changes them, and finds the verdict.
static struct verdict find(const char *(*set)(struct verdict_facts *f),
                           void (*change)(struct verdict_facts *f))
{
    struct verdict_facts f;
    struct verdict v;
    init(&f);
    set(&f);
    change(&f);
    verdict_find(&v, &f);
    return v;
}

static void use_glibc(struct verdict_facts *f)
{
    f->allocator = SOFTWARE_GLIBC;
}

static void use_tcmalloc(struct verdict_facts *f)
{
    f->allocator = SOFTWARE_TCMALLOC;
}

static void use_jemalloc(struct verdict_facts *f)
{
    f->allocator = SOFTWARE_JEMALLOC;
}

static void use_mimalloc(struct verdict_facts *f)
{
    f->allocator = SOFTWARE_MIMALLOC;
}

static void use_musl(struct verdict_facts *f)
{
    f->allocator = SOFTWARE_MUSL;
}

static void use_other(struct verdict_facts *f)
{
    f->allocator = SOFTWARE_OTHER_ALLOCATOR;
}

static void test_remedies_by_allocator(void **unused)
{
    static void (*const use[])(struct verdict_facts * f) = {
        [SOFTWARE_GLIBC] = use_glibc,       [SOFTWARE_JEMALLOC] = use_jemalloc,
        [SOFTWARE_TCMALLOC] = use_tcmalloc, [SOFTWARE_MIMALLOC] = use_mimalloc,
        [SOFTWARE_MUSL] = use_musl,         [SOFTWARE_OTHER_ALLOCATOR] = use_other,
    };
    static const char *const parts[] = {"malloc_trim(0)",        "dirty_decay_ms:1000",
                                        "TCMALLOC_RELEASE_RATE", "MIMALLOC_PURGE_DELAY=0",
                                        "musl has no function",  "the allocator's function"};
    (void)unused;
    for (unsigned i = 0; i <= SOFTWARE_OTHER_ALLOCATOR; i++) {
        for (unsigned k = 0; k <= SOFTWARE_OTHER_ALLOCATOR; k++) {
            struct verdict v = find(yes_retained, use[i]);
            assert_int_equal(v.kind, VERDICT_KIND_retained);
            assert_true((strstr(v.remedy, parts[k]) != NULL) == (i == k));
            assert_true(v.saves_bytes == 80 * MIB);
        }
        // The verdict `arenas` applies only to glibc.
        assert_true((find(yes_arenas, use[i]).kind == VERDICT_KIND_arenas) ==
                    (i == SOFTWARE_GLIBC));
    }
    assert_non_null(strstr(find(yes_arenas, use_glibc).remedy, "MALLOC_ARENA_MAX=2"));
}

static void free_recently(struct verdict_facts *f)
{
    f->recent_live_bytes = 90 * MIB;
}

static void fill_early(struct verdict_facts *f)
{
    f->growing.items[0].bytes = 0.1 * MIB;
    add_site(&f->holding, "keep (a.c:12)", 18, 0.1);
}

static void fill_evenly(struct verdict_facts *f)
{
    add_site(&f->holding, "keep (a.c:12)", 18, 0.1);
}

// If the growth ended early, the verdict names the call paths with the most live bytes.
static void test_growing_paths(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_fills, fill_early);
    assert_non_null(strstr(v.text, "Largest call paths: 18.0 MiB in keep (a.c:12)."));
    assert_null(strstr(v.text, "that grow"));
    v = find(yes_grows, fill_early);
    assert_int_equal(v.kind, VERDICT_KIND_grows);
    assert_non_null(strstr(v.text, "Largest call paths: 18.0 MiB in keep (a.c:12)."));
    assert_null(strstr(v.text, "The first of them"));
    assert_null(strstr(v.remedy, "of these call paths"));
    assert_non_null(strstr(find(yes_grows, fill_evenly).remedy, "of these call paths"));
    v = find(yes_fills, fill_evenly);
    assert_non_null(strstr(v.text, "Call paths that grow: 20.0 MiB in put (a.c:9)."));
    assert_null(strstr(v.text, "Largest"));
}

static void fill_with_rss(struct verdict_facts *f)
{
    f->live = level(GROWTH_SATURATING, 200);
    f->rss = level(GROWTH_SATURATING, 30);
}

static void grow_with_rss(struct verdict_facts *f)
{
    f->live = level(GROWTH_LINEAR, 200);
    f->rss = level(GROWTH_LINEAR, 30);
}

// If other call paths shrink, the call paths that grow may gain more than all blocks together.
static void test_shrinking_paths(void **unused)
{
    struct verdict_facts f;
    struct verdict v;
    (void)unused;
    init(&f);
    yes_grows(&f);
    f.growing.items[0].bytes = 30 * MIB;
    verdict_find(&v, &f);
    assert_non_null(strstr(v.text, "Call paths that grow: 10.0 MiB in get"));
    f.shrunk_bytes = 20 * MIB;
    verdict_find(&v, &f);
    assert_non_null(strstr(v.text, "Call paths that grow: 30.0 MiB in get"));
    assert_non_null(strstr(v.text, "its blocks. Other call paths shrink by 20.0 MiB."));
    f.shrunk_bytes = 0.9 * MIB;
    verdict_find(&v, &f);
    assert_non_null(strstr(v.text, "Call paths that grow: 10.0 MiB in get"));
    assert_null(strstr(v.text, "Other call paths"));
}

// Blocks that were never written do not explain growth of RSS.
static void test_unwritten_growth(void **unused)
{
    (void)unused;
    assert_int_equal(find(yes_unwritten, fill_with_rss).kind, VERDICT_KIND_unwritten);
    assert_int_equal(find(yes_unwritten, grow_with_rss).kind, VERDICT_KIND_grows);
}

// Memory that was in use a moment ago is not retained.
static void test_recent(void **unused)
{
    (void)unused;
    assert_int_equal(find(yes_retained, use_jemalloc).kind, VERDICT_KIND_retained);
    assert_int_equal(find(yes_retained, free_recently).kind, VERDICT_KIND_healthy);
}

static void replace_blocks(struct verdict_facts *f)
{
    f->freed_before_blocks = f->live_blocks * 0.6;
}

static void replace_few_blocks(struct verdict_facts *f)
{
    f->freed_before_blocks = f->live_blocks * 0.4;
}

static void replace_while_rss_grows(struct verdict_facts *f)
{
    replace_blocks(f);
    f->rss = level(GROWTH_LINEAR, 8);
}

// In a service that was attached to, live bytes also grow if new blocks replace unknown blocks.
static void test_replaced_blocks(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_grows, replace_blocks);
    assert_int_equal(v.kind, VERDICT_KIND_unclear);
    assert_non_null(strstr(v.text, "also freed 600 blocks from before the recording"));
    assert_non_null(strstr(v.remedy, "--walk"));
    assert_int_equal(find(yes_grows, replace_few_blocks).kind, VERDICT_KIND_grows);
    assert_int_equal(find(yes_grows, replace_while_rss_grows).kind, VERDICT_KIND_grows);
    assert_null(strstr(find(yes_unclear, replace_blocks).text, "from before"));
}

static void fill_up(struct verdict_facts *f)
{
    f->live.late_bytes = 0;
    add_site(&f->holding, "keep (a.c:12)", 18, 0.1);
}

static void start_threads(struct verdict_facts *f)
{
    add_site(&f->growing, "start (a.c:3) < main (a.c:9)", 2, 0);
    f->live = level(GROWTH_LINEAR, 2);
    f->of[VERDICT_STACKS] = level(GROWTH_LINEAR, 8);
}

static void keep_more_than_stacks(struct verdict_facts *f)
{
    start_threads(f);
    f->live = level(GROWTH_LINEAR, 20);
}

// If thread stacks grow more than live bytes, the blocks of the threads are not the cause.
static void test_growing_stacks(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_healthy, start_threads);
    assert_int_equal(v.kind, VERDICT_KIND_stacks);
    assert_non_null(strstr(v.text, "They grow linearly, by 8.0 MiB in 5.00 s"));
    assert_non_null(strstr(v.text, "Call paths that grow: 2.0 MiB in start (a.c:3) < main"));
    assert_int_equal(find(yes_healthy, keep_more_than_stacks).kind, VERDICT_KIND_grows);
}

static void grow_in_unknown_part(struct verdict_facts *f)
{
    growth_find(&f->of[VERDICT_LIVE], NULL, 0);
    f->of[VERDICT_MAPPINGS] = level(GROWTH_LINEAR, 0.5);
}

// In a recording, a small growth outside malloc is not most of the growth of RSS.
static void test_rss_of_unknown_part(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_rss_grows, grow_in_unknown_part);
    assert_int_equal(v.kind, VERDICT_KIND_rss_grows);
    assert_null(strstr(v.text, "most of it in"));
    assert_non_null(strstr(v.text, "to 15.0 MiB. Live bytes do not grow: 20.0 MiB. Most of the "
                                   "growth is not in one part outside malloc"));
    assert_null(strstr(find(yes_rss_grows, use_glibc).text, "not in one part"));
}

static void rise_and_fall(struct verdict_facts *f)
{
    f->live.fallen_bytes = 12 * MIB;
}

// The text about a level that rises and falls says so.
static void test_wave(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_unclear, rise_and_fall);
    assert_non_null(strstr(v.text, "Live bytes rise and fall by up to 12.0 MiB, and grew by "));
    assert_string_equal(v.remedy, "Record longer: for several periods of its load.");
    assert_null(strstr(find(yes_unclear, use_glibc).text, "fall"));
    v = find(yes_grows_in_steps, rise_and_fall);
    assert_int_not_equal(v.kind, VERDICT_KIND_grows_in_steps);
}

static void grow_elsewhere(struct verdict_facts *f)
{
    snprintf(f->growing_process, sizeof f->growing_process, "process 12 (/bin/x)");
}

// "No problem found." is about one process.
static void test_other_process(void **unused)
{
    (void)unused;
    const char *(*const fine[])(struct verdict_facts * f) = {yes_healthy, yes_live, yes_sawtooth};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        assert_non_null(
            strstr(find(fine[i], grow_elsewhere).text,
                   "No problem found in this process, but process 12 (/bin/x) grows. "));
        struct verdict alone = find(fine[i], use_glibc);
        assert_null(strstr(alone.text, "in this process"));
    }
    assert_null(strstr(find(yes_grows, grow_elsewhere).text, "process 12"));
}

// A table that is full does not "grow more and more slowly".
static void test_full(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_fills, fill_up);
    assert_string_equal(v.text, "No problem found. Live bytes grew by 20.0 MiB, to 21.0 MiB, and "
                                "no longer grow. Largest call paths: 18.0 MiB in keep (a.c:12).");
    assert_int_equal(v.sure, VERDICT_SURE);
    assert_null(strstr(find(yes_fills, fill_evenly).text, "no longer"));
}

static void free_almost_all(struct verdict_facts *f)
{
    f->growing.items[0].freed_share = 0.9999;
}

static void free_all(struct verdict_facts *f)
{
    f->growing.items[0].freed_share = 1;
}

static void free_at_exit(struct verdict_facts *f)
{
    f->exited = true;
    f->freed_at_exit_ns = 4.9e9;
}

static void grow_paths_more(struct verdict_facts *f)
{
    f->growing.items[0].bytes = 20 * MIB;
    add_site(&f->growing, "put (b.c:7)", 5, 0);
}

// The figures of one sentence do not contradict each other.
static void test_figures_of_growth(void **unused)
{
    (void)unused;
    assert_non_null(strstr(find(yes_grows, free_almost_all).text, "frees 99.9 % of its blocks"));
    assert_non_null(strstr(find(yes_grows, free_all).text, "frees 100 % of its blocks"));
    assert_non_null(strstr(find(yes_grows, grow_paths_more).text,
                           "8.0 MiB in get (a.c:3) < remember (a.c:9); 2.0 MiB in put (b.c:7)."));
    assert_non_null(strstr(find(yes_grows, free_at_exit).text, "At exit, the process frees them"));
    assert_null(strstr(find(yes_grows, use_glibc).text, "At exit"));
}

static void exit_process(struct verdict_facts *f)
{
    f->exited = true;
}

static void free_some(struct verdict_facts *f)
{
    f->growing.items[0].freed_share = 0.5;
}

static void forget_stacks(struct verdict_facts *f)
{
    f->growing.n = 0;
}

static void observe_long(struct verdict_facts *f)
{
    f->live.span_ns = 600e9;
}

// A leak is not certain after 5 seconds, after an exit, or if the call path also frees blocks.
static void test_sureness_of_growth(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_grows, use_glibc);
    assert_int_equal(v.sure, VERDICT_LIKELY);
    assert_non_null(strstr(v.because, "5.00 s were observed"));
    assert_int_equal(find(yes_grows, observe_long).sure, VERDICT_SURE);
    v = find(yes_grows, exit_process);
    assert_int_equal(v.sure, VERDICT_UNSURE);
    assert_non_null(strstr(v.text, "until the process exits."));
    assert_null(strstr(find(yes_grows, use_glibc).text, "until the process exits."));
    v = find(yes_grows, free_some);
    assert_int_equal(v.sure, VERDICT_UNSURE);
    assert_non_null(strstr(v.text, "frees 50 % of its blocks"));
    v = find(yes_grows, forget_stacks);
    assert_non_null(strstr(v.remedy, "--stacks"));
    assert_null(strstr(find(yes_grows, use_glibc).remedy, "--stacks"));
}

static void run_on(struct verdict_facts *f)
{
    f->is_running = true;
}

static void run_long(struct verdict_facts *f)
{
    f->is_running = true;
    f->span_ns = 60e9;
    f->rss = level(GROWTH_STEADY, 0);
}

static void run_busy(struct verdict_facts *f)
{
    f->is_running = true;
    f->span_ns = 60e9;
    f->rss = level(GROWTH_UNKNOWN, 0);
}

static void read_most(struct verdict_facts *f)
{
    f->is_running = true;
    f->live_bytes = MIB;
}

static void fill_heap(struct verdict_facts *f)
{
    f->heap.shape = GROWTH_IRREGULAR;
}

static void keep_heap(struct verdict_facts *f)
{
    f->heap = level(GROWTH_STEADY, 0);
}

// The sentences about a process that is sampled from outside do not mention a recording.
static void test_running(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_unknown_blocks, run_on);
    assert_null(strstr(v.text, "recording"));
    assert_null(strstr(v.remedy, "ecord"));
    assert_non_null(strstr(find(yes_unknown_blocks, read_most).text, "is memory of glibc. Its"));
    v = find(yes_heap_grows, fill_heap);
    assert_int_equal(v.kind, VERDICT_KIND_unknown_blocks);
    assert_non_null(strstr(v.text, "It grew by 20.0 MiB in 5.00 s, but not at a constant rate."));
    v = find(yes_heap_grows, keep_heap);
    assert_non_null(strstr(v.text, "It does not grow."));
    assert_null(strstr(v.text, "grew"));
    v = find(yes_too_short, run_on);
    assert_string_equal(v.because, "The time is too short.");
    assert_string_equal(v.remedy, "Watch the process for longer.");
    assert_string_equal(find(yes_too_short, use_glibc).because, "The recording is too short.");
    v = find(yes_too_short, run_long);
    assert_non_null(strstr(v.text, "the blocks of malloc are not known."));
    assert_null(strstr(v.text, "necessary"));
    v = find(yes_too_short, run_busy);
    assert_non_null(strstr(v.text, "60.00 s were observed, but with too few samples."));
    assert_string_equal(v.remedy, "Watch the process for longer.");
    v = find(yes_unclear, run_on);
    assert_non_null(strstr(v.remedy, "Watch the process for longer."));
}

static void stay(struct verdict_facts *f)
{
    f->is_running = true;
    f->live = level(GROWTH_STEADY, 0);
}

static void stay_recorded(struct verdict_facts *f)
{
    f->live = level(GROWTH_STEADY, 0);
}

static void grow_unevenly(struct verdict_facts *f)
{
    f->of[VERDICT_MAPPINGS] = level(GROWTH_IRREGULAR, 20);
}

// The sentence about free memory or about the heap of a runtime reports the growth, if it was
// judged.
static void test_growth_beside(void **unused)
{
    const char *text = "20.0 MiB in 5.00 s, but not at a constant rate.";
    (void)unused;
    assert_non_null(strstr(find(yes_retained, stay).text, "They do not grow: no leak."));
    assert_non_null(strstr(find(yes_pinned, stay).text, "They do not grow: no leak."));
    assert_null(strstr(find(yes_retained, stay_recorded).text, "grow"));
    assert_non_null(strstr(find(yes_runtime, grow_unevenly).text, text));
    assert_null(strstr(find(yes_runtime, run_on).text, "grew"));
}

static void exit_early(struct verdict_facts *f)
{
    f->exited = true;
}

static void grow_unevenly_live(struct verdict_facts *f)
{
    f->live.shape = GROWTH_IRREGULAR;
}

static void hold(struct verdict_facts *f)
{
    add_site(&f->holding, "put (a.c:9)", 20, 0.4);
}

static void fill_caches(struct verdict_facts *f)
{
    f->of[VERDICT_PINNED] = level(GROWTH_LINEAR, 8);
    f->is_running = true;
}

// RSS that grows linearly is named even if live bytes do not grow linearly.
static void test_rss_growth(void **unused)
{
    (void)unused;
    assert_int_equal(find(yes_grows_in_steps, grow_unevenly_live).kind,
                     VERDICT_KIND_grows_in_steps);
    assert_int_equal(find(yes_grows_in_steps, exit_early).kind, VERDICT_KIND_healthy);
    assert_non_null(strstr(find(yes_grows_in_steps, run_on).remedy, "Record with --stacks"));
    assert_null(strstr(find(yes_grows_in_steps, hold).remedy, "Record with --stacks"));
    assert_int_equal(find(yes_rss_grows, exit_early).kind, VERDICT_KIND_healthy);
    struct verdict v = find(yes_rss_grows, fill_caches);
    assert_non_null(
        strstr(v.text, "most of it in free, in pages with live blocks. Live bytes do not grow"));
    assert_null(strstr(v.text, "allocated earlier"));
    assert_string_equal(v.remedy, "Watch the process for longer.");
    // A step without growth of RSS at a constant rate is reported, not judged.
    v = find(yes_grows_in_steps, no_grows_in_steps);
    assert_non_null(
        strstr(v.text, "grew by 12.0 MiB in a part of the 5.00 s, and hardly changed otherwise."));
}

static void use_fastbins(struct verdict_facts *f)
{
    f->cached_bytes = verdict_free_bytes(f);
}

static void use_few_fastbins(struct verdict_facts *f)
{
    f->cached_bytes = verdict_free_bytes(f) / 4;
}

// Freed blocks in caches are not pinned: glibc merges and returns them on request.
static void test_cached(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_pinned, use_fastbins);
    assert_int_equal(v.kind, VERDICT_KIND_retained);
    assert_non_null(strstr(v.text, "small freed blocks in caches"));
    v = find(yes_pinned, use_few_fastbins);
    assert_int_equal(v.kind, VERDICT_KIND_pinned);
    assert_null(strstr(v.text, "caches"));
}

static void end_threads(struct verdict_facts *f)
{
    f->threads = 1;
    f->ended_stack_bytes = 400 * 8 * MIB;
    f->of[VERDICT_STACKS] = level(GROWTH_LINEAR, 50);
}

// glibc keeps some stacks of ended threads for new threads.
static void end_few_threads(struct verdict_facts *f)
{
    f->threads = 395;
    f->ended_stack_bytes = 5 * 8 * MIB;
}

static void test_ended_threads(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_stacks, end_threads);
    assert_non_null(strstr(
        v.text, "each on average, but only 1 thread: the other stacks belong to threads that ended "
                "and were neither joined nor detached, or to coroutines. They grow linearly, by "
                "50.0 MiB in 5.00 s"));
    assert_non_null(strstr(v.remedy, "Call pthread_join for each thread that ends"));
    v = find(yes_stacks, end_few_threads);
    assert_null(strstr(v.text, "joined"));
    assert_null(strstr(v.text, "grow"));
    assert_non_null(strstr(v.remedy, "Run fewer threads"));
}

static void had_one_thread(struct verdict_facts *f)
{
    f->all_threads = 1;
}

static void had_most_threads(struct verdict_facts *f)
{
    f->all_threads = 200;
}

static void test_coroutines(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_stacks, had_one_thread);
    assert_int_equal(v.kind, VERDICT_KIND_stacks);
    assert_non_null(strstr(v.text, "There are 400 stacks, 266.2 KiB each on average, but the "
                                   "process had only 1 thread: most are stacks of coroutines"));
    assert_null(strstr(v.text, "Thread stacks"));
    assert_null(strstr(v.remedy, "threads"));
    v = find(yes_stacks, had_most_threads);
    assert_non_null(strstr(v.text, "Thread stacks have"));
    assert_null(strstr(v.text, "coroutines"));
    assert_non_null(strstr(v.remedy, "Run fewer threads"));
}

static void add_threads(struct verdict_facts *f)
{
    f->first_stacks = 10;
    f->stacks = 20;
}

static void add_few_threads(struct verdict_facts *f)
{
    f->first_stacks = 100;
    f->stacks = 109;
}

static void test_more_threads(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_grows, add_threads);
    assert_non_null(strstr(v.text, "The number of threads grew from 10 to 20."));
    assert_non_null(strstr(v.remedy, "First check whether the threads end"));
    assert_null(strstr(find(yes_grows, add_few_threads).text, "threads"));
}

static void grow_slowly(struct verdict_facts *f)
{
    f->live = level(GROWTH_LINEAR, 0.5);
}

static void grow_by_little(struct verdict_facts *f)
{
    f->live = level(GROWTH_LINEAR, 0.5);
    f->live.last_bytes = 30 * MIB;
}

static void grow_and_exit(struct verdict_facts *f)
{
    grow_slowly(f);
    f->exited = true;
}

// Growth below the threshold is neither a leak nor no growth. If it is a tenth of the live bytes,
// the process may have a problem.
static void test_small_growth(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_healthy, grow_slowly);
    assert_int_equal(v.kind, VERDICT_KIND_healthy);
    assert_non_null(strstr(v.text, "Live bytes (2.0 MiB) grew by 512.0 KiB in 5.00 s, which is too "
                                   "little to judge."));
    assert_null(strstr(v.text, "No problem"));
    assert_int_equal(v.sure, VERDICT_UNSURE);
    assert_string_equal(v.remedy, "Record longer.");
    assert_non_null(strstr(find(yes_healthy, grow_and_exit).text, "No problem found."));
    v = find(yes_healthy, grow_by_little);
    assert_non_null(strstr(v.text, "No problem found."));
    assert_int_equal(v.sure, VERDICT_SURE);
    v = find(yes_live, grow_slowly);
    assert_int_equal(v.kind, VERDICT_KIND_live);
    assert_non_null(strstr(v.text, "Live bytes grew by 512.0 KiB in 5.00 s"));
    assert_null(strstr(v.text, "do not grow"));
}

static void share_most(struct verdict_facts *f)
{
    add(f, VERDICT_SHARED, 70);
    f->names[f->n_names++] =
        (struct verdict_name){"/dev/zero (deleted)", VERDICT_SHARED, 70 * MIB, 0};
}

// Shared memory needs no search for calls of mmap. Its name in /proc is not the name of a file.
static void has_unknown_blocks(struct verdict_facts *f)
{
    f->knows_blocks = false;
    f->resident[VERDICT_UNKNOWN_HEAP] = f->resident[VERDICT_MAPPINGS];
    f->resident[VERDICT_MAPPINGS] = 0;
}

static void test_unknown_part_outside_malloc(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_mappings_grow, has_unknown_blocks);
    assert_int_equal(v.kind, VERDICT_KIND_mappings_grow);
    assert_non_null(strstr(v.text, "; RSS is 25.0 MiB."));
    assert_null(strstr(v.text, "to 0 B"));
    v = find(yes_mappings_grow, use_glibc);
    assert_non_null(strstr(v.text, ", to 20.0 MiB of 25.0 MiB resident."));
}

static void test_shared(void **unused)
{
    (void)unused;
    assert_non_null(strstr(find(yes_mappings, use_glibc).remedy, "Find the calls of mmap"));
    struct verdict v = find(yes_mappings, share_most);
    assert_non_null(strstr(v.remedy, "count in the RSS of each process"));
    assert_null(strstr(v.remedy, "mmap"));
    assert_null(strstr(v.text, "/dev/zero"));
}

static void start_attached(struct verdict_facts *f)
{
    f->pinning_before_share = 1;
}

// The call paths of blocks from before the recording are unknown.
static void test_pinning_blocks_from_before(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_pinned, start_attached);
    assert_int_equal(v.kind, VERDICT_KIND_pinned);
    assert_non_null(strstr(v.text, "all of them from before the recording"));
    assert_null(strstr(v.text, "by call path"));
    assert_non_null(strstr(v.remedy, "Record from the start of the program with --stacks"));
    assert_null(strstr(find(yes_pinned, use_glibc).remedy, "Record from the start"));
}

static void share_regions(struct verdict_facts *f)
{
    use_tcmalloc(f);
    f->shared_free_bytes = 60 * MIB;
}

static void use_statistics(struct verdict_facts *f)
{
    use_jemalloc(f);
    f->pinning_blocks = f->pinning_bytes = NAN;
    f->pinning.n = 0;
    f->resident[VERDICT_PINNED] = 150 * MIB;
    f->resident[VERDICT_FREE] = 42 * MIB;
}

// In this test, the allocator can release only whole regions, and its statistics do not contain the
// number of blocks.
static void test_regions(void **unused)
{
    (void)unused;
    assert_true(find(yes_retained, use_tcmalloc).saves_bytes == 80 * MIB);
    assert_true(find(yes_retained, share_regions).saves_bytes == 20 * MIB);
    struct verdict v = find(yes_pinned, use_statistics);
    assert_int_equal(v.kind, VERDICT_KIND_pinned);
    assert_non_null(strstr(v.text, " 150.0 MiB of it are in pages with live blocks."));
    assert_null(strstr(v.text, "lie between"));
    assert_true(v.saves_bytes == 42 * MIB);
    assert_null(strstr(find(yes_pinned, use_glibc).text, "of it are in pages"));
}

static void use_all_pages(struct verdict_facts *f)
{
    use_jemalloc(f);
    f->resident[VERDICT_PINNED] = 192 * MIB;
    f->resident[VERDICT_FREE] = MIB / 2;
}

// Without whole free pages, no call returns memory.
static void test_no_whole_pages(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_pinned, use_all_pages);
    assert_int_equal(v.kind, VERDICT_KIND_pinned);
    assert_null(strstr(v.remedy, "whole free pages"));
    assert_null(strstr(v.remedy, "MALLOC_CONF"));
    assert_int_equal(strncmp(v.remedy, "192.0 MiB are in pages with live blocks: allocate", 49), 0);
    assert_non_null(
        strstr(find(yes_pinned, use_statistics).remedy, "up to 42.0 MiB of whole free"));
}

static void test_allocators(void **unused)
{
    const char *name;
    (void)unused;
    assert_int_equal(software_allocator_of("/lib/x86_64-linux-gnu/libc.so.6", &name),
                     SOFTWARE_GLIBC);
    assert_string_equal(name, "glibc");
    assert_int_equal(software_allocator_of("/lib/libc-2.31.so", &name), SOFTWARE_GLIBC);
    assert_int_equal(software_allocator_of("/lib/ld-musl-x86_64.so.1", &name), SOFTWARE_MUSL);
    assert_int_equal(software_allocator_of("/usr/lib/x86_64-linux-musl/libc.so", &name),
                     SOFTWARE_MUSL);
    assert_string_equal(name, "musl");
    assert_int_equal(software_allocator_of("libjemalloc.so.2", &name), SOFTWARE_JEMALLOC);
    assert_int_equal(software_allocator_of("/x/libtcmalloc_minimal.so.4", &name),
                     SOFTWARE_TCMALLOC);
    assert_int_equal(software_allocator_of("/x/libmimalloc.so.2.0", &name), SOFTWARE_MIMALLOC);
    assert_int_equal(software_allocator_of("/x/libother.so", &name), SOFTWARE_OTHER_ALLOCATOR);
    assert_string_equal(name, "libother.so");
    assert_int_equal(software_allocator_of(NULL, &name), SOFTWARE_OTHER_ALLOCATOR);
    assert_null(name);
}

static void grow_mappings(struct verdict_facts *f)
{
    f->of[VERDICT_MAPPINGS] = level(GROWTH_LINEAR, 20);
}

static void keep_mappings(struct verdict_facts *f)
{
    f->of[VERDICT_MAPPINGS] = level(GROWTH_STEADY, 0);
}

static void grow_python(struct verdict_facts *f)
{
    grow_mappings(f);
    f->runtime = software_runtime_of("/usr/bin/python3.11");
}

static void add_shared(struct verdict_facts *f)
{
    add(f, VERDICT_SHARED, 70);
}

static void add_shared_heap(struct verdict_facts *f)
{
    add_shared(f);
    f->names[f->n_names++] =
        (struct verdict_name){"/memfd:java_heap (deleted)", VERDICT_SHARED, 60 * MIB, NAN};
}

// Shared memory is not the heap of the runtime, except with ZGC.
static void test_runtimes_with_shared_memory(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_runtime, add_shared);
    assert_int_equal(v.kind, VERDICT_KIND_mappings);
    assert_non_null(strstr(v.text, "60.0 MiB anonymous, 70.0 MiB shared"));
    assert_int_equal(find(yes_runtime, add_shared_heap).kind, VERDICT_KIND_runtime);
}

// If the memory of a language runtime grows, the verdict is not marked. The heap of a garbage
// collector grows until the next collection. Python frees most objects at once.
static void test_runtimes(void **unused)
{
    (void)unused;
    struct verdict v = find(yes_runtime, grow_mappings);
    assert_int_equal(v.kind, VERDICT_KIND_runtime);
    assert_false(v.act);
    assert_non_null(strstr(v.text, "This memory grows linearly, by 20.0 MiB in 5.00 s"));
    assert_non_null(strstr(v.text, "or the next garbage collection frees them."));
    assert_null(strstr(find(yes_runtime, keep_mappings).text, "grows"));
    v = find(yes_runtime, grow_python);
    assert_non_null(strstr(v.text, ": the program keeps more and more objects."));
    assert_null(strstr(v.text, "collection"));
    assert_non_null(strstr(v.remedy, "tracemalloc"));
    assert_string_equal(software_runtime_of("/opt/python3.11")->name, "Python");
    assert_string_equal(software_runtime_of("/usr/bin/mono-sgen")->name, "Mono");
    assert_string_equal(software_runtime_of("/usr/bin/racket")->name, "Racket");
    assert_string_equal(software_runtime_of("/usr/lib/sbcl/sbcl")->name, "SBCL");
    assert_null(software_runtime_of("/usr/bin/redis-server"));
    assert_null(software_runtime_of(NULL));
}

// The only facts are live blocks and RSS. Live blocks are the verdict if they have at least half of
// the RSS.
static void test_half_of_rss(void **unused)
{
    struct verdict_facts f;
    struct verdict v;
    (void)unused;
    init(&f);
    add(&f, VERDICT_LIVE, 30);
    f.rss_bytes = 2 * f.resident[VERDICT_LIVE];
    verdict_find(&v, &f);
    assert_int_equal(v.kind, VERDICT_KIND_live);
    f.rss_bytes += 1;
    verdict_find(&v, &f);
    assert_int_equal(v.kind, VERDICT_KIND_healthy);
}

static void test_no_facts(void **unused)
{
    struct verdict_facts f;
    struct verdict v;
    (void)unused;
    verdict_facts_init(&f);
    verdict_find(&v, &f);
    assert_int_equal(v.kind, VERDICT_KIND_unknown);
    assert_false(v.act);
    assert_non_null(
        strstr(v.text, "Growth cannot be judged: there are no events with timestamps."));
    // No growth has a limit, because a limit of 0 would be a fact.
    assert_true(isnan(f.live.limit_bytes) && isnan(f.rss.limit_bytes) && isnan(f.heap.limit_bytes));
    for (unsigned i = 0; i < VERDICT_OWNERS; i++)
        assert_true(isnan(f.of[i].limit_bytes));
}

static void test_unknown_blocks_remedies(void **unused)
{
    (void)unused;
    assert_non_null(strstr(find(yes_unknown_blocks, use_glibc).remedy, "--walk"));
    assert_null(strstr(find(yes_unknown_blocks, use_glibc).remedy, "--allocator-stats"));
    struct verdict v = find(yes_unknown_blocks, use_jemalloc);
    assert_non_null(strstr(v.remedy, "heaptape doctor --allocator-stats PID"));
    assert_null(strstr(v.remedy, "--walk"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_each_kind),
    cmocka_unit_test(test_each_other),
    cmocka_unit_test(test_remedies_by_allocator),
    cmocka_unit_test(test_replaced_blocks),
    cmocka_unit_test(test_full),
    cmocka_unit_test(test_other_process),
    cmocka_unit_test(test_wave),
    cmocka_unit_test(test_growing_stacks),
    cmocka_unit_test(test_rss_of_unknown_part),
    cmocka_unit_test(test_figures_of_growth),
    cmocka_unit_test(test_sureness_of_growth),
    cmocka_unit_test(test_running),
    cmocka_unit_test(test_growth_beside),
    cmocka_unit_test(test_small_growth),
    cmocka_unit_test(test_shared),
    cmocka_unit_test(test_unknown_blocks_remedies),
    cmocka_unit_test(test_pinning_blocks_from_before),
    cmocka_unit_test(test_growing_paths),
    cmocka_unit_test(test_shrinking_paths),
    cmocka_unit_test(test_unwritten_growth),
    cmocka_unit_test(test_recent),
    cmocka_unit_test(test_regions),
    cmocka_unit_test(test_no_whole_pages),
    cmocka_unit_test(test_rss_growth),
    cmocka_unit_test(test_more_threads),
    cmocka_unit_test(test_ended_threads),
    cmocka_unit_test(test_coroutines),
    cmocka_unit_test(test_unknown_part_outside_malloc),
    cmocka_unit_test(test_cached),
    cmocka_unit_test(test_allocators),
    cmocka_unit_test(test_runtimes),
    cmocka_unit_test(test_runtimes_with_shared_memory),
    cmocka_unit_test(test_half_of_rss),
    cmocka_unit_test(test_no_facts),
};

UNIT_MAIN(tests)
