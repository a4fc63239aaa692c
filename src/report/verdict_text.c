// Sentences and remedies of the verdicts.
#include "report/verdict.h"

#include "cli/human.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Thresholds.
#define FREED_SHARE        0.1  // freed blocks of a growing call site, as a share
#define EXPLAINED_SHARE    0.1  // first call path's growth, as a share of the live bytes' growth
#define MOVED_SHARE        0.1  // shrinking call paths, as a share of the live bytes' growth
#define LONG_NS            60e9 // time after which growth is certain
#define DECAY_NS           15e9
#define LIMIT_RANGE        1.02 // a limit with a smaller range is printed as one figure
#define RETURNED           2    // peak RSS as a multiple of RSS
#define FEW_STACKS         16   // stacks without a thread that are ignored
#define KEPT_STACKS_BYTES  (64.0 * (1 << 20)) // more than glibc keeps for new threads (40 MiB)
#define SMALL_GROWTH_SHARE 0.1                // share of the live bytes
#define MOST_SHARE         0.5                // share of the growth of RSS
#define MORE_STACKS        1.1                // thread stacks as a multiple of their first number

#define say(v, ...)        verdict_append((v)->text, sizeof(v)->text, __VA_ARGS__)
#define advise(v, ...)     verdict_append((v)->remedy, sizeof(v)->remedy, __VA_ARGS__)

static void __attribute__((format(printf, 3, 4)))
set_sure(struct verdict *v, enum verdict_sureness sure, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    v->sure = sure;
    vsnprintf(v->because, sizeof v->because, fmt, args);
    va_end(args);
}

static const char *bytes_text(double bytes)
{
    return human_size(bytes > 0 ? (uint64_t)bytes : 0);
}

static const char *percent_text(double share)
{
    char *text = human_buffer();
    snprintf(text, HUMAN_BYTES, "%.0f %%", 100 * share);
    return text;
}

// Rounds a share of almost 100 % down, so that "100 %" means all.
static const char *part_text(double share)
{
    char *text = human_buffer();
    snprintf(text, HUMAN_BYTES, "%.*f %%", share < 1 && share >= 0.99, floor(1000 * share) / 10);
    return share >= 0.99 ? text : percent_text(share);
}

static const char *count_text(double n, const char *one, const char *many)
{
    return human_items(n > 0 ? (uint64_t)n : 0, one, many);
}

// Begins the text about a process without a problem.
static void say_fine(struct verdict *v, const struct verdict_facts *f)
{
    if (f->growing_process[0])
        say(v, "No problem found in this process, but %s grows.", f->growing_process);
    else
        say(v, "No problem found.");
}

static const char *allocator_text(const struct verdict_facts *f)
{
    return f->allocator_name ? f->allocator_name : "the allocator";
}

static double sum_of(const struct verdict_sites *sites)
{
    double sum = 0;
    for (size_t i = 0; i < sites->n; i++)
        sum += sites->items[i].bytes;
    return sum;
}

// Appends a text such as " 3 MiB from PATH, 1 MiB from PATH". If the sum exceeds `all`, which was
// measured in another way, reduces the figures in proportion.
static void say_parts(struct verdict *v, const struct verdict_sites *sites, const char *verb,
                      double all)
{
    unsigned shown = 0;
    double sum = sum_of(sites);
    for (size_t i = 0; i < sites->n; i++) {
        const struct verdict_site *s = &sites->items[i];
        if (s->path[0])
            say(v, "%s%s in %s", shown++ ? "; " : verb, bytes_text(s->bytes * fmin(1, all / sum)),
                s->path);
    }
    if (shown)
        say(v, ".");
}

static void say_sites(struct verdict *v, const struct verdict_sites *sites, const char *verb)
{
    say_parts(v, sites, verb, INFINITY);
}

static bool has_path(const struct verdict_sites *sites)
{
    return sites->n && sites->items[0].path[0];
}

static void say_rate(struct verdict *v, const struct growth *g)
{
    say(v, "by %s in %s (%s/s", bytes_text(g->grown_bytes), human_time(g->span_ns),
        bytes_text(g->bytes_per_s));
    if (g->bytes_per_s_error >= 0)
        say(v, " ± %s/s", bytes_text(g->bytes_per_s_error));
    say(v, ")");
}

static void set_growth_sure(struct verdict *v, const struct growth *g)
{
    if (g->span_ns < LONG_NS)
        set_sure(v, VERDICT_LIKELY, "%s were observed; a cache that is filling can look the same.",
                 human_time(g->span_ns));
}

// Returns true if the call path that grows most has a large enough share of the growth to be named.
// The growth of a call path is the median over parts of the recording. The median is low if the
// growth ended early or moved from one call path to another.
static bool is_explained(const struct verdict_facts *f)
{
    return f->growing.n && f->growing.items[0].bytes >= EXPLAINED_SHARE * f->live.grown_bytes;
}

// Returns true if blocks move from one call path to another, so that the call paths that grow gain
// more bytes than all blocks together.
static bool is_moving(const struct verdict_facts *f)
{
    double all = f->live.grown_bytes, shrunk = verdict_known(f->shrunk_bytes);
    return shrunk >= MOVED_SHARE * all && shrunk >= (sum_of(&f->growing) - all) / 2;
}

// Appends the call paths that grow. If they do not explain the growth, appends the call paths with
// the most live bytes.
static void say_growing(struct verdict *v, const struct verdict_facts *f)
{
    if (is_explained(f) || !has_path(&f->holding))
        say_parts(v, &f->growing,
                  " Call paths that grow: ", is_moving(f) ? INFINITY : f->live.grown_bytes);
    else
        say_sites(v, &f->holding, " Largest call paths: ");
}

// Call after say_growing.
static void say_shrinking(struct verdict *v, const struct verdict_facts *f)
{
    if (is_explained(f) && has_path(&f->growing) && is_moving(f))
        say(v, " Other call paths shrink by %s.", bytes_text(f->shrunk_bytes));
}

// If the number of threads grew, appends the old and the new number and returns true. The blocks
// and stacks of threads grow with the number of threads.
static bool say_stacks(struct verdict *v, const struct verdict_facts *f)
{
    bool grew = f->stacks >= f->first_stacks + 2 && f->stacks >= MORE_STACKS * f->first_stacks;
    if (grew)
        say(v, " The number of threads grew from %.0f to %.0f.", f->first_stacks, f->stacks);
    return grew;
}

// Call if the verdict is growth. Unless the recording has call paths, recommends a recording with
// call stacks.
static void advise_stacks(struct verdict *v, const struct verdict_facts *f)
{
    if (!has_path(&f->growing) && !has_path(&f->holding))
        advise(v, " Record with --stacks to see which call path allocates the blocks.");
}

static void say_linear(struct verdict *v, const struct verdict_facts *f)
{
    if (f->live_over_calls) {
        say(v,
            "Live bytes grow linearly with the number of calls, by %s in %s, but not at a "
            "constant rate over time",
            bytes_text(f->live.grown_bytes), human_time(f->live.span_ns));
    } else {
        say(v, "Live bytes grow linearly, ");
        say_rate(v, &f->live);
    }
    say(v, f->exited ? ", until the process exits." : ".");
}

static void tell_grows(struct verdict *v, const struct verdict_facts *f)
{
    const struct verdict_site *first = is_explained(f) ? &f->growing.items[0] : NULL;
    say_linear(v, f);
    bool stacks = say_stacks(v, f);
    say_growing(v, f);
    if (f->live_over_calls)
        set_sure(v, VERDICT_LIKELY,
                 "The load varies; a cache whose hits make no calls can look the same.");
    else
        set_growth_sure(v, &f->live);
    if (first && first->freed_share > FREED_SHARE) {
        say(v, " The first of them frees %s of its blocks.", part_text(first->freed_share));
        set_sure(v, VERDICT_UNSURE, "The call path that grows most also frees blocks.");
    } else if (first && !isnan(first->freed_share)) {
        say(v, first->freed_share > 0 ? " The first of them frees less than a tenth of its blocks."
                                      : " The first of them frees none of its blocks.");
    }
    say_shrinking(v, f);
    if (!isnan(f->freed_at_exit_ns))
        say(v, " At exit, the process frees them: tools that look for leaks then find nothing.");
    if (f->exited)
        set_sure(v, VERDICT_UNSURE,
                 "The process exited: growth is a fault only in a process that runs on.");
    advise(v, "Free the blocks%s when they are no longer used, or limit their number.",
           first && first->path[0] ? " of these call paths" : "");
    if (stacks)
        advise(v, " First check whether the threads end: each keeps its blocks and its stack.");
    advise_stacks(v, f);
}

static void tell_grows_in_steps(struct verdict *v, const struct verdict_facts *f)
{
    say(v, "RSS grows linearly, ");
    say_rate(v, &f->rss);
    say(v,
        ", to %s. Live bytes grew by %s, in steps: the program probably fills containers that "
        "become larger and are not cleared.",
        bytes_text(f->rss_bytes), bytes_text(f->live.grown_bytes));
    say_growing(v, f);
    say_shrinking(v, f);
    set_growth_sure(v, &f->rss);
    advise(v, "Remove elements that are no longer used, or limit the number of elements.");
    advise_stacks(v, f);
}

// Describes memory whose blocks are unknown, which is the memory of malloc or all anonymous memory.
static const char *unread_text(const struct verdict_facts *f, char text[120])
{
    bool is_malloc = !isnan(f->live_bytes);
    snprintf(text, 120, "memory of %s%s", allocator_text(f),
             is_malloc ? "" : " or of the program's own mappings");
    return text;
}

static void tell_heap_grows(struct verdict *v, const struct verdict_facts *f)
{
    char text[120];
    say(v, "Resident memory grows linearly, ");
    say_rate(v, &f->heap);
    say(v,
        ", to %s of %s: %s. The live blocks are not known: either the program keeps more and more "
        "of them, or %s does not return freed memory.",
        bytes_text(f->heap.last_bytes), bytes_text(f->rss_bytes), unread_text(f, text),
        allocator_text(f));
    set_sure(v, VERDICT_LIKELY, "The memory grows; the live blocks were not counted.");
    advise(v,
           "Record with --stacks to see which call path allocates blocks and does not free them.");
}

static void tell_mappings_grow(struct verdict *v, const struct verdict_facts *f)
{
    enum verdict_owner owner = verdict_growing_owner(f);
    const char *what = owner == VERDICT_SHARED  ? "Shared memory"
                       : owner == VERDICT_FILES ? "Resident memory of files"
                                                : "Anonymous memory outside malloc";
    say(v, "%s grows linearly, ", what);
    say_rate(v, &f->of[owner]);
    // Without the blocks from before the recording, only the growth of this part of RSS is known.
    if (f->resident[owner] < f->of[owner].grown_bytes)
        say(v, "; RSS is %s.", bytes_text(f->rss_bytes));
    else
        say(v, ", to %s of %s resident.", bytes_text(f->resident[owner]), bytes_text(f->rss_bytes));
    for (size_t i = 0; i < f->n_names; i++) {
        if (f->names[i].grown_bytes >= VERDICT_GROWN_BYTES && f->names[i].owner == owner)
            say(v, " %s grew by %s.", f->names[i].name, bytes_text(f->names[i].grown_bytes));
    }
    if (f->live.shape != GROWTH_UNKNOWN)
        say(v, " Live bytes of malloc %s: %s.",
            f->live.grown_bytes >= VERDICT_GROWN_BYTES ? "grow less" : "do not grow",
            bytes_text(f->live_bytes));
    set_growth_sure(v, &f->of[owner]);
    advise(v,
           owner == VERDICT_FILES
               ? "Unmap parts of the files that are no longer used; the kernel can also reclaim "
                 "these pages."
               : "Find the calls of mmap that have no munmap: record with --maps, or run 'strace "
                 "-k -e trace=mmap,munmap -p PID'.");
}

static void tell_unwritten(struct verdict *v, const struct verdict_facts *f)
{
    say(v,
        "RSS is only %s, although live blocks have %s: %s of them are not resident, because most "
        "of their pages were never written.",
        bytes_text(f->rss_bytes), bytes_text(f->live_bytes),
        bytes_text(verdict_unwritten_bytes(f)));
    say_sites(v, &f->holding, " Largest call paths: ");
    advise(v,
           "RSS does not contain these bytes: nothing is saved by freeing them, unless a limit of "
           "the address space (ulimit -v, vm.overcommit_memory=2) applies. Then allocate smaller "
           "blocks and let them grow.");
    v->saves_bytes = 0;
}

// Returns true if most stacks belong to no thread that ever ran. Coroutines have such stacks: a
// mapping behind a guard page.
static bool has_coroutines(const struct verdict_facts *f)
{
    return f->stacks > 2 * f->all_threads + FEW_STACKS;
}

static void tell_stacks(struct verdict *v, const struct verdict_facts *f)
{
    double bytes = f->resident[VERDICT_STACKS];
    say(v, "%s have %s of %s resident, %s.", has_coroutines(f) ? "Stacks" : "Thread stacks",
        bytes_text(bytes), bytes_text(f->rss_bytes), percent_text(bytes / f->rss_bytes));
    bool ended = f->ended_stack_bytes > KEPT_STACKS_BYTES;
    if (f->stacks > 1)
        say(v, " There are %s, %s each on average", count_text(f->stacks, "stack", "stacks"),
            bytes_text(bytes / f->stacks));
    if (ended)
        say(v,
            ", but only %s: the other stacks belong to threads that ended and were neither "
            "joined nor detached, or to coroutines",
            count_text(f->threads, "thread", "threads"));
    if (has_coroutines(f))
        say(v,
            ", but the process had only %s: most are stacks of coroutines, or other mappings "
            "behind a guard page",
            count_text(f->all_threads, "thread", "threads"));
    if (f->stacks > 1)
        say(v, ".");
    if (verdict_is_growing(&f->of[VERDICT_STACKS])) {
        say(v, " They grow linearly, ");
        say_rate(v, &f->of[VERDICT_STACKS]);
        say(v, ".");
        say_stacks(v, f);
    }
    say(v, " Live blocks of malloc have %s.", bytes_text(f->resident[VERDICT_LIVE]));
    // The C library allocates a block for each thread that starts.
    if (verdict_is_growing(&f->of[VERDICT_STACKS]) && verdict_is_growing(&f->live))
        say_growing(v, f);
    v->saves_bytes = bytes;
    if (has_coroutines(f)) {
        advise(v, "Unmap or reuse the stack of each coroutine that ends, or run fewer coroutines. "
                  "To find the calls of mmap, record with --maps.");
        return;
    }
    advise(v, ended
                  ? "Call pthread_join for each thread that ends, or pthread_detach: until then, "
                    "its stack stays mapped. Unmap or reuse the stack of each coroutine that ends."
                  : "Run fewer threads (a pool), or end idle ones: the pages that a stack once "
                    "used stay resident until its thread ends and is joined or detached. Move "
                    "large local arrays to the heap.");
}

static void say_free(struct verdict *v, const struct verdict_facts *f)
{
    double bytes = verdict_free_bytes(f);
    say(v,
        "%s of %s resident, %s, is freed memory that %s has not returned to the kernel: live "
        "blocks have %s.",
        bytes_text(bytes), bytes_text(f->rss_bytes), percent_text(bytes / f->rss_bytes),
        allocator_text(f), bytes_text(f->live_bytes));
    if (f->live.shape == GROWTH_SAWTOOTH)
        say(v, " Live bytes rose by %s and fell back: no leak.", bytes_text(f->live.swing_bytes));
    else if (f->is_running && f->live.shape == GROWTH_STEADY)
        say(v, " They do not grow: no leak.");
}

static void tell_arenas(struct verdict *v, const struct verdict_facts *f)
{
    say_free(v, f);
    say(v, " It is retained in %s, %s of it outside the main arena.",
        count_text(f->arenas, "arena", "arenas"), bytes_text(f->arena_free_bytes));
    say_sites(v, &f->pinning, " Live blocks between the free memory: free bytes in their pages: ");
    v->saves_bytes = f->resident[VERDICT_FREE];
    advise(v,
           "Start the program with MALLOC_ARENA_MAX=2, so that threads reuse each other's free "
           "memory, or call malloc_trim(0) after the threads' work: this returns up to %s.",
           bytes_text(v->saves_bytes));
}

// Advice on how to make the allocator return whole free pages.
static const char *const releases[] = {
    [SOFTWARE_GLIBC] = "call malloc_trim(0) after a burst, or start the program with "
                       "MALLOC_TRIM_THRESHOLD_=131072",
    [SOFTWARE_JEMALLOC] = "start the program with "
                          "MALLOC_CONF=background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0",
    // TCMALLOC_RELEASE_RATE has an effect only while the program frees memory.
    [SOFTWARE_TCMALLOC] =
        "call MallocExtension_ReleaseFreeMemory() after a burst, or start the program with "
        "TCMALLOC_AGGRESSIVE_DECOMMIT=1, or with TCMALLOC_RELEASE_RATE=10 if it continues to free "
        "memory",
    [SOFTWARE_MIMALLOC] = "start the program with MIMALLOC_PURGE_DELAY=0 (before version 2.1: "
                          "MIMALLOC_DECOMMIT_DELAY=0), or call mi_collect(true) after a burst",
    [SOFTWARE_MUSL] = "preload an allocator that returns free memory, because musl has no function "
                      "that does",
    [SOFTWARE_OTHER_ALLOCATOR] =
        "call the allocator's function that returns free memory after a burst",
};

static bool has_pinning_paths(const struct verdict_facts *f)
{
    return has_path(&f->pinning) && !(f->pinning_before_share > 0.5);
}

static void tell_pinned(struct verdict *v, const struct verdict_facts *f)
{
    double stuck = verdict_stuck_bytes(f);
    say_free(v, f);
    if (isnan(f->pinning_blocks))
        say(v, " %s of it are in pages with live blocks", bytes_text(stuck));
    else
        say(v, " %s (%s) %s between the free memory",
            count_text(f->pinning_blocks, "live block", "live blocks"),
            bytes_text(f->pinning_bytes), f->pinning_blocks > 1 ? "lie" : "lies");
    if (f->pinning_before_share > 0.5)
        say(v, ", %s of them from before the recording",
            f->pinning_before_share > 0.995 ? "all" : percent_text(f->pinning_before_share));
    say(v, ".");
    if (has_pinning_paths(f))
        say_sites(v, &f->pinning, " Free memory in their pages, by call path: ");
    v->saves_bytes = verdict_free_bytes(f) - stuck;
    if (v->saves_bytes >= VERDICT_GROWN_BYTES)
        advise(v, "To return up to %s of whole free pages, %s. ", bytes_text(v->saves_bytes),
               f->allocator == SOFTWARE_GLIBC ? "call malloc_trim(0) after a burst"
                                              : releases[f->allocator]);
    advise(v,
           "%s are in pages with live blocks: allocate long-lived blocks apart from the burst, "
           "before it or from a pool, or restart the program after a burst.",
           bytes_text(stuck));
    if (!has_pinning_paths(f))
        advise(v, " Record from the start of the program with --stacks to see their call paths.");
}

static void tell_retained(struct verdict *v, const struct verdict_facts *f)
{
    double stuck = verdict_stuck_bytes(f);
    say_free(v, f);
    v->saves_bytes = verdict_free_bytes(f) - stuck;
    say(v, " %s of it are whole pages%s", bytes_text(v->saves_bytes),
        f->allocator == SOFTWARE_GLIBC && f->top_free_bytes > 0 ? " at the end of the heap" : "");
    if (stuck >= VERDICT_GROWN_BYTES)
        say(v, ", and %s are in pages with live blocks", bytes_text(stuck));
    say(v, ".");
    if (f->cached_bytes > v->saves_bytes / 2)
        say(v,
            " %s are small freed blocks in caches: glibc merges them only in malloc_trim and when "
            "the program uses a large block.",
            bytes_text(f->cached_bytes));
    if (stuck >= VERDICT_GROWN_BYTES && has_pinning_paths(f))
        say_sites(v, &f->pinning, " These blocks, by call path: ");
    advise(v, "If the program does not need the memory again soon, %s.", releases[f->allocator]);
    if (f->allocator != SOFTWARE_JEMALLOC || !(f->live.span_ns < DECAY_NS))
        return;
    say(v, " jemalloc returns pages about 10 s after they were freed, if threads of the same arena "
           "make further calls.");
    set_sure(v, VERDICT_LIKELY, "A longer %s shows whether jemalloc returns the memory.",
             f->is_running ? "--watch" : "recording");
}

static void tell_fills(struct verdict *v, const struct verdict_facts *f)
{
    if (growth_is_full(&f->live)) {
        say_fine(v, f);
        say(v, " Live bytes grew by %s, to %s, and no longer grow.",
            bytes_text(f->live.grown_bytes), bytes_text(f->live.last_bytes));
        say_sites(v, &f->holding, " Largest call paths: ");
        return;
    }
    say(v, "Live bytes grow more and more slowly, ");
    say_rate(v, &f->live);
    say(v, ", towards %s", bytes_text(f->live.limit_low_bytes));
    if (f->live.limit_high_bytes > LIMIT_RANGE * f->live.limit_low_bytes)
        say(v, " to %s", bytes_text(f->live.limit_high_bytes));
    say(v, f->load_unknown
               ? ": a cache or table that fills, or a leak while the load falls. Most calls "
                 "allocate blocks that are kept, so the load is not known."
               : ": a cache or table that fills, not a leak.");
    say_growing(v, f);
    if (f->load_unknown)
        set_sure(v, VERDICT_UNSURE, "Record longer, under a constant load.");
    else
        set_sure(v, VERDICT_LIKELY, "The limit is extrapolated from %s.",
                 human_time(f->live.span_ns));
}

// Returns the owner that grows most, or VERDICT_OWNERS if it has less than half of the growth of
// RSS. In a recording, only the growth of owners outside malloc is known.
static enum verdict_owner find_growing_most(const struct verdict_facts *f)
{
    enum verdict_owner most = VERDICT_LIVE;
    for (unsigned i = 0; i < VERDICT_OWNERS; i++)
        most = f->of[i].grown_bytes > f->of[most].grown_bytes ? i : most;
    return f->of[most].grown_bytes >= MOST_SHARE * f->rss.grown_bytes ? most : VERDICT_OWNERS;
}

static void tell_rss_grows(struct verdict *v, const struct verdict_facts *f)
{
    enum verdict_owner most = find_growing_most(f);
    say(v, "RSS grows linearly, ");
    say_rate(v, &f->rss);
    say(v, ", to %s", bytes_text(f->rss_bytes));
    if (most != VERDICT_OWNERS)
        say(v, ", most of it in %s", verdict_owner_texts[most].label);
    say(v, ". Live bytes do not grow: %s.", bytes_text(f->live_bytes));
    if (most == VERDICT_LIVE) {
        say(v, " The program writes to blocks that it allocated earlier.");
        set_sure(v, VERDICT_LIKELY, "RSS can grow until all pages of the live blocks are written.");
        return;
    }
    if (most == VERDICT_OWNERS && !(f->of[VERDICT_LIVE].span_ns > 0))
        say(v, " Most of the growth is not in one part outside malloc: the program may write to "
               "blocks that it allocated earlier, or the allocator keeps more free memory.");
    say_stacks(v, f);
    set_growth_sure(v, &f->rss);
    advise(v, f->is_running ? "Watch the process for longer." : "Record longer.");
}

// Advice on how to record the blocks from before the recording.
static void advise_before(struct verdict *v, const struct verdict_facts *f)
{
    advise(v, "%s",
           f->allocator == SOFTWARE_GLIBC ? "Record with --walk, or from the start of the program."
           : f->allocator == SOFTWARE_JEMALLOC || f->allocator == SOFTWARE_TCMALLOC
               ? "Run 'heaptape doctor --allocator-stats PID' while the process runs, or record "
                 "from the start of the program."
               : "Record from the start of the program.");
}

static void tell_replacing(struct verdict *v, const struct verdict_facts *f)
{
    say(v,
        "Live bytes grew by %s in %s, but the program also freed %s from before the recording. "
        "The sizes of these blocks are not known: the new blocks may only replace them.",
        bytes_text(f->live.grown_bytes), human_time(f->live.span_ns),
        count_text(f->freed_before_blocks, "block", "blocks"));
    say_growing(v, f);
    set_sure(v, VERDICT_UNSURE, "The blocks from before the recording are not known.");
    advise_before(v, f);
}

static void tell_unclear(struct verdict *v, const struct verdict_facts *f)
{
    if (verdict_is_growing(&f->live)) {
        tell_replacing(v, f);
        return;
    }
    if (growth_is_wave(&f->live))
        say(v,
            "Live bytes rise and fall by up to %s, and grew by %s in %s: whether their low points "
            "rise cannot be judged.",
            bytes_text(f->live.fallen_bytes), bytes_text(f->live.grown_bytes),
            human_time(f->live.span_ns));
    else
        say(v,
            "Live bytes grew by %s in %s, but not at a constant rate: whether they go on growing "
            "cannot be judged.",
            bytes_text(f->live.grown_bytes), human_time(f->live.span_ns));
    say_growing(v, f);
    set_sure(v, VERDICT_UNSURE, "A longer %s is necessary.", f->is_running ? "time" : "recording");
    if (f->exited)
        return;
    advise(v, f->is_running ? "Watch the process for longer" : "Record longer");
    advise(v, growth_is_wave(&f->live) ? ": for several periods of its load." : ".");
}

static void say_names(struct verdict *v, const struct verdict_facts *f)
{
    unsigned shown = 0;
    for (size_t i = 0; i < f->n_names; i++) {
        // The kernel calls shared anonymous memory "/dev/zero (deleted)".
        bool is_named = strncmp(f->names[i].name, "/dev/zero", 9) != 0;
        if (is_named &&
            (f->names[i].owner == VERDICT_MAPPINGS || f->names[i].owner == VERDICT_SHARED))
            say(v, "%s%s of %s", shown++ ? ", " : " Largest: ", bytes_text(f->names[i].bytes),
                f->names[i].name);
    }
    if (shown)
        say(v, ".");
}

static void tell_mappings(struct verdict *v, const struct verdict_facts *f)
{
    double bytes = verdict_outside_bytes(f);
    say(v,
        "%s of %s resident, %s, is memory outside malloc: %s anonymous, %s shared. Live blocks "
        "of malloc have %s.",
        bytes_text(bytes), bytes_text(f->rss_bytes), percent_text(bytes / f->rss_bytes),
        bytes_text(f->resident[VERDICT_MAPPINGS]), bytes_text(f->resident[VERDICT_SHARED]),
        bytes_text(f->resident[VERDICT_LIVE]));
    say_names(v, f);
    if (f->resident[VERDICT_SHARED] > bytes / 2)
        advise(v, "Processes that map the same shared memory use it together, but its pages count "
                  "in the RSS of each process. A setting of the program usually determines its "
                  "size, for example shared_buffers of PostgreSQL.");
    else
        advise(v, "Find the calls of mmap: record with --maps, or run 'strace -k -e "
                  "trace=mmap,munmap -p PID'. The heap of a language runtime is such memory, too.");
}

static void tell_runtime(struct verdict *v, const struct verdict_facts *f)
{
    double bytes = verdict_outside_bytes(f);
    const struct growth *g = &f->of[VERDICT_MAPPINGS];
    say(v, "%s of %s resident, %s, is memory outside malloc, where %s has its own heap.",
        bytes_text(bytes), bytes_text(f->rss_bytes), percent_text(bytes / f->rss_bytes),
        f->runtime->name);
    if (g->shape == GROWTH_LINEAR && g->grown_bytes >= VERDICT_GROWN_BYTES) {
        say(v, " This memory grows linearly, ");
        say_rate(v, g);
        say(v, "%s",
            f->runtime->collects ? ": either the program keeps more and more objects, or the next "
                                   "garbage collection frees them."
                                 : ": the program keeps more and more objects.");
    } else if (g->shape != GROWTH_UNKNOWN && g->grown_bytes >= VERDICT_GROWN_BYTES) {
        say(v, " This memory grew by %s in %s, but not at a constant rate.",
            bytes_text(g->grown_bytes), human_time(g->span_ns));
    }
    if (!isnan(f->live_bytes))
        say(v, " Live blocks of malloc have %s.", bytes_text(f->resident[VERDICT_LIVE]));
    set_sure(v, VERDICT_LIKELY, "The figures of this heap are not known.");
    advise(v, "For this heap, %s.", f->runtime->remedy);
}

// Advice on how to print the allocator's own statistics.
static const char *const statistics[] = {
    [SOFTWARE_GLIBC] = "call malloc_stats() or malloc_info(0, stderr)",
    [SOFTWARE_JEMALLOC] = "call malloc_stats_print(), or start the program with "
                          "MALLOC_CONF=stats_print:true",
    [SOFTWARE_TCMALLOC] = "call MallocExtension_GetStats(), or start the program with "
                          "MALLOCSTATS=1",
    [SOFTWARE_MIMALLOC] = "call mi_stats_print(), or start the program with MIMALLOC_SHOW_STATS=1",
    [SOFTWARE_MUSL] = "record the program from its start, because musl has no statistics",
    [SOFTWARE_OTHER_ALLOCATOR] = "use the statistics of the allocator",
};

static void tell_unread(struct verdict *v, const struct verdict_facts *f)
{
    double bytes = f->resident[VERDICT_UNKNOWN_HEAP];
    char text[120];
    say(v,
        "%s of %s resident, %s, is %s. Its blocks could not be read from outside: the program may "
        "use them, or they may be free.",
        bytes_text(bytes), bytes_text(f->rss_bytes), percent_text(bytes / f->rss_bytes),
        unread_text(f, text));
    if (f->heap.grown_bytes >= VERDICT_GROWN_BYTES)
        say(v, " It grew by %s in %s, but not at a constant rate.", bytes_text(f->heap.grown_bytes),
            human_time(f->heap.span_ns));
    else if (f->heap.shape != GROWTH_UNKNOWN)
        say(v, " It does not grow.");
    set_sure(v, VERDICT_UNSURE, "The live blocks are not known.");
    advise(v, "To see how much of it is free, %s.", statistics[f->allocator]);
}

static void tell_unknown_blocks(struct verdict *v, const struct verdict_facts *f)
{
    double bytes = f->resident[VERDICT_UNKNOWN_HEAP];
    if (f->is_running) {
        tell_unread(v, f);
        return;
    }
    say(v,
        "%s of %s resident, %s, cannot be explained: these pages have blocks from before the "
        "recording, or free memory of %s.",
        bytes_text(bytes), bytes_text(f->rss_bytes), percent_text(bytes / f->rss_bytes),
        allocator_text(f));
    set_sure(v, VERDICT_UNSURE, "The blocks from before the recording are not known.");
    advise_before(v, f);
}

// If the allocator keeps free memory for the next rise, or if RSS fell from a peak, appends a
// sentence about it. Otherwise, returns false.
static bool say_returned(struct verdict *v, const struct verdict_facts *f)
{
    double bytes = verdict_free_bytes(f);
    bool returned = f->peak_rss_bytes >= RETURNED * f->rss_bytes &&
                    f->peak_rss_bytes >= f->rss_bytes + VERDICT_MANY_BYTES;
    if (bytes >= VERDICT_MANY_BYTES)
        say(v, " %s keeps %s of freed memory resident for the next rise.", allocator_text(f),
            bytes_text(bytes));
    else if (returned)
        say(v, " %s returned the freed memory: RSS is %s, after a peak of %s.", allocator_text(f),
            bytes_text(f->rss_bytes), bytes_text(f->peak_rss_bytes));
    return bytes >= VERDICT_MANY_BYTES || returned;
}

static void say_not_recorded(struct verdict *v, const struct verdict_facts *f)
{
    if (f->rss_since_bytes > 0)
        say(v,
            " RSS grew by %s after the last page map, so the owners of resident memory are not "
            "known.",
            bytes_text(f->rss_since_bytes));
    else
        say(v, " The resident memory was not recorded.");
}

static void tell_sawtooth(struct verdict *v, const struct verdict_facts *f)
{
    double low = f->live.trough_bytes;
    say_fine(v, f);
    say(v, " Live bytes rise by up to %s and fall back to %s: no leak.",
        bytes_text(f->live.swing_bytes), bytes_text(low));
    if (!f->knows_resident)
        say_not_recorded(v, f);
    else if (!say_returned(v, f) && f->rss.swing_bytes >= f->live.swing_bytes / 2)
        say(v, " RSS falls with them: %s returns the freed memory.", allocator_text(f));
    if (verdict_free_bytes(f) >= VERDICT_MANY_BYTES)
        advise(v, "If this memory is needed elsewhere, %s.", releases[f->allocator]);
}

static bool has_grown(const struct growth *g)
{
    return g->shape == GROWTH_LINEAR || g->shape == GROWTH_SATURATING ||
           g->shape == GROWTH_IRREGULAR || g->shape == GROWTH_STEP;
}

// Begins the text about a process without a problem. Growth by a tenth may be a problem although it
// is below the threshold, so the verdict is unsure in that case.
static void say_no_problem(struct verdict *v, const struct verdict_facts *f)
{
    const struct growth *g = &f->live;
    if (!has_grown(g) || g->grown_bytes < SMALL_GROWTH_SHARE * g->last_bytes || f->exited) {
        say_fine(v, f);
        return;
    }
    set_sure(v, VERDICT_UNSURE, "A longer %s is necessary to judge the growth.",
             f->is_running ? "time" : "recording");
    advise(v, f->is_running ? "Watch the process for longer." : "Record longer.");
}

// Appends how the live bytes grow, or that they do not grow. Growth below the threshold is not
// judged.
static void say_small_growth(struct verdict *v, const struct verdict_facts *f)
{
    const struct growth *g = &f->live;
    if (has_grown(g) && g->grown_bytes >= VERDICT_GROWN_BYTES && growth_is_wave(g))
        say(v, " rose and fell by up to %s, and grew by %s in %s.", bytes_text(g->fallen_bytes),
            bytes_text(g->grown_bytes), human_time(g->span_ns));
    else if (g->shape == GROWTH_STEP && g->grown_bytes >= VERDICT_GROWN_BYTES)
        say(v, " grew by %s in a part of the %s, and hardly changed otherwise.",
            bytes_text(g->grown_bytes), human_time(g->span_ns));
    else if (has_grown(g))
        say(v, " grew by %s in %s, which is too little to judge.", bytes_text(g->grown_bytes),
            human_time(g->span_ns));
    else
        say(v, " do not grow.");
}

static void tell_live(struct verdict *v, const struct verdict_facts *f)
{
    // RSS was read shortly before or after the page map.
    double bytes = fmin(f->resident[VERDICT_LIVE], f->rss_bytes);
    say_no_problem(v, f);
    say(v, " Live blocks have %s of %s resident, %s. Live bytes", bytes_text(bytes),
        bytes_text(f->rss_bytes), percent_text(bytes / f->rss_bytes));
    say_small_growth(v, f);
    say_sites(v, &f->holding, " Largest call paths: ");
}

static enum verdict_owner largest_owner(const struct verdict_facts *f)
{
    enum verdict_owner largest = VERDICT_LIVE;
    for (unsigned i = 0; i < VERDICT_OWNERS; i++)
        largest = verdict_known(f->resident[i]) > verdict_known(f->resident[largest]) ? i : largest;
    return largest;
}

static void say_resident(struct verdict *v, const struct verdict_facts *f)
{
    enum verdict_owner largest = largest_owner(f);
    say(v, " RSS is %s; the largest part is %s, %s.", bytes_text(f->rss_bytes),
        verdict_owner_texts[largest].label, bytes_text(f->resident[largest]));
}

static void tell_healthy(struct verdict *v, const struct verdict_facts *f)
{
    say_no_problem(v, f);
    say(v, " Live bytes (%s)", bytes_text(f->live_bytes));
    say_small_growth(v, f);
    if (!say_returned(v, f))
        say_resident(v, f);
}

static void tell_too_short(struct verdict *v, const struct verdict_facts *f)
{
    // If there are enough samples, the only obstacle is that the blocks are unknown.
    bool is_long = f->is_running && f->rss.shape != GROWTH_UNKNOWN;
    if (f->knows_resident)
        say_resident(v, f);
    if (is_long)
        say(v, " Growth cannot be judged: the blocks of malloc are not known.");
    else if (f->span_ns >= GROWTH_MIN_NS)
        say(v, " Growth cannot be judged: %s were observed, but with too few samples.",
            human_time(f->span_ns));
    else
        say(v, " Growth cannot be judged: %s were observed, and at least %s are necessary.",
            human_time(f->span_ns), human_time(GROWTH_MIN_NS));
    if (is_long) {
        set_sure(v, VERDICT_UNSURE, "The live blocks are not known.");
        return;
    }
    set_sure(v, VERDICT_UNSURE, "The %s is too short.", f->is_running ? "time" : "recording");
    if (!f->exited)
        advise(v, f->is_running ? "Watch the process for longer." : "Record longer.");
}

static void tell_unknown(struct verdict *v, const struct verdict_facts *f)
{
    if (f->live.shape == GROWTH_UNKNOWN) {
        say(v, "Growth cannot be judged: there are no events with timestamps.");
    } else {
        say(v, "Live bytes (%s)", bytes_text(f->live_bytes));
        say_small_growth(v, f);
    }
    if (!f->knows_resident)
        say_not_recorded(v, f);
    set_sure(v, VERDICT_UNSURE, "Too little is known about the process.");
}

void verdict_append(char *text, size_t size, const char *fmt, ...)
{
    va_list args;
    size_t n = strlen(text);
    va_start(args, fmt);
    vsnprintf(text + n, size - n, n ? fmt : fmt + strspn(fmt, " "), args);
    va_end(args);
}

void verdict_find(struct verdict *v, const struct verdict_facts *f)
{
    static void (*const tell[])(struct verdict * v, const struct verdict_facts *f) = {
#define HT_X(name, act, when) tell_##name,
        VERDICTS(HT_X)
#undef HT_X
    };
    *v = verdict_choose(f);
    tell[v->kind](v, f);
}
