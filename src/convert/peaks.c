#include "convert/peaks.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/seed.h"
#include "convert/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

enum {
    MOST_BLOCKS = 1 << 18, // maximum number of tracked blocks, which need 8 MiB
    // Bits of a size in a value of `blocks`; the higher bits are the process number.
    SIZE_BITS = 40,
    // An image makes nearly all calls if it makes more than this many times the others' calls.
    NEARLY_ALL = 3,
};

#define ANY UINT32_MAX

// Figures of a process.
struct tally {
    uint32_t pid;
    uint64_t live, blocks, peak, events;
    // `first_private` is the value in the first sample plus 1, or 0 if there is no sample.
    uint64_t first_private, most_private;
    bool ended;
};

// If more than MOST_BLOCKS blocks are live, only a sample of the small blocks is tracked. A block
// is tracked if its size exceeds `step` times a number in [0, 1) that is derived from its address.
// A tracked block that is smaller than `step` counts as `step` bytes.
struct count {
    struct tally *tallies;
    size_t n, capacity;
    struct map blocks;
    uint64_t step, seed;
    uint32_t pid;       // 0 selects all
    uint32_t only, but; // the only image to count, and an image to skip; ANY if unset
    uint64_t enough;    // the walk stops when a peak reaches this size
    uint64_t left;      // the walk stops after this number of events
    struct trace_file *trace;
    struct progress *progress;
};

static uint64_t key_of(const struct walk_call *c, uint64_t address)
{
    return address + c->process->number * 0x9e3779b97f4a7c15u;
}

static bool is_known(const struct count *c, uint64_t key, uint64_t size)
{
    if (size >= c->step)
        return true;
    // Use a hash: if addresses are evenly spaced, their products with a random factor are not
    // random enough.
    uint64_t random = XXH3_64bits_withSeed(&key, sizeof key, c->seed);
    return (unsigned __int128)random * c->step >> 64 < size;
}

static uint64_t size_of(uint64_t value)
{
    return value & ((1ull << SIZE_BITS) - 1);
}

static uint64_t weight_of(const struct count *c, uint64_t value)
{
    return size_of(value) > c->step ? size_of(value) : c->step;
}

static void add_to_tally(const struct count *c, struct tally *to, uint64_t value)
{
    uint64_t bytes = weight_of(c, value);
    to->live += bytes;
    to->blocks += bytes / size_of(value);
}

static void subtract_from_tally(const struct count *c, struct tally *from, uint64_t value)
{
    uint64_t bytes = weight_of(c, value);
    from->live -= bytes;
    from->blocks -= bytes / size_of(value);
}

// Rebuilds `blocks` without the blocks of ended processes and the blocks that `step` excludes.
static int thin_out(struct count *c)
{
    struct map old = c->blocks;
    int rc = 0;
    c->blocks = (struct map){0};
    for (size_t i = 0; i < c->n; i++) {
        if (!c->tallies[i].ended)
            c->tallies[i].live = c->tallies[i].blocks = 0;
    }
    for (size_t i = 0; rc == 0 && i < old.capacity; i++) {
        const struct map_cell *at = &old.cells[i];
        struct tally *of = at->value ? &c->tallies[at->value >> SIZE_BITS] : NULL;
        if (!of || of->ended || !is_known(c, at->key, size_of(at->value)))
            continue;
        add_to_tally(c, of, at->value);
        rc = map_put(&c->blocks, at->key, at->value);
    }
    map_release(&old);
    return rc;
}

static int make_room(struct count *c)
{
    int rc = thin_out(c);
    while (rc == 0 && c->blocks.n > MOST_BLOCKS / 2) {
        c->step = c->step ? c->step * 2 : 16;
        rc = thin_out(c);
    }
    return rc;
}

static void remove_block(struct count *c, struct tally *of, uint64_t key)
{
    uint64_t value = map_get(&c->blocks, key);
    if (!value)
        return;
    subtract_from_tally(c, of, value);
    map_remove(&c->blocks, key);
}

static int add_block(struct count *c, const struct walk_call *call)
{
    const struct event *ev = call->event;
    struct tally *of = &c->tallies[call->process->number];
    uint64_t most = (1ull << SIZE_BITS) - 1, key = key_of(call, ev->result),
             size = event_requested(ev->kind, ev->size, ev->count);
    size = size < most ? size : most;
    remove_block(c, of, key); // the free of the previous block is missing
    if (!size || !is_known(c, key, size) || call->process->number >> (64 - SIZE_BITS))
        return 0;
    uint64_t value = (uint64_t)call->process->number << SIZE_BITS | size;
    add_to_tally(c, of, value);
    of->peak = of->live > of->peak ? of->live : of->peak;
    int rc = map_put(&c->blocks, key, value);
    if (rc == 0 && of->peak >= c->enough)
        return -ECANCELED;
    return rc == 0 && c->blocks.n > MOST_BLOCKS ? make_room(c) : rc;
}

// Returns the tally of the process, or NULL when out of memory.
static struct tally *tally_of(struct count *c, const struct trace_process *p)
{
    if (p->number >= c->n && HT_EXTEND(&c->tallies, &c->n, &c->capacity, p->number + 1ull) < 0)
        return NULL;
    c->tallies[p->number].pid = p->pid;
    return &c->tallies[p->number];
}

static int count_call(void *context, const struct walk_call *call)
{
    struct count *c = context;
    const struct event *ev = call->event;
    unsigned class = event_infos[ev->kind].class;
    struct tally *of = tally_of(c, call->process);
    if (!of)
        return -ENOMEM;
    of->events += event_counts(ev->kind);
    c->left -= event_counts(ev->kind);
    bool frees = class == HT_CLASS_FREE || (class == HT_CLASS_RESIZE && (ev->result || !ev->error));
    if (frees && ev->ptr)
        remove_block(c, of, key_of(call, ev->ptr));
    bool allocates = (class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE) && ev->result;
    int rc = allocates ? add_block(c, call) : 0;
    return rc == 0 && !c->left ? -ECANCELED : rc;
}

static int count_sample(void *context, const struct trace_sample *s)
{
    struct count *c = context;
    struct tally *of = tally_of(c, c->trace->reader.processes[s->process]);
    if (!of)
        return -ENOMEM;
    of->first_private = of->first_private ? of->first_private : s->anon_bytes + 1;
    of->most_private = s->anon_bytes > of->most_private ? s->anon_bytes : of->most_private;
    return 0;
}

static bool is_wanted(void *context, const struct trace_process *p)
{
    const struct count *c = context;
    return (!c->pid || p->pid == c->pid) && (c->only == ANY || p->number == c->only) &&
           p->number != c->but;
}

static int end_process(void *context, const struct trace_process *p)
{
    struct count *c = context;
    if (p->number < c->n && is_wanted(c, p))
        c->tallies[p->number].ended = true;
    return 0;
}

static int show_progress(void *context)
{
    const struct count *c = context;
    progress_update(c->progress, c->trace->in.offset);
    return 0;
}

static int by_peak(const void *a, const void *b)
{
    const struct peak *x = a, *y = b;
    if (x->peak_bytes != y->peak_bytes)
        return x->peak_bytes < y->peak_bytes ? 1 : -1;
    if (x->events != y->events)
        return x->events < y->events ? 1 : -1;
    return x->process < y->process ? -1 : 1;
}

static int list_peaks(struct peaks *p, const struct count *c, struct err *e)
{
    p->items = calloc(c->n + 1, sizeof *p->items);
    for (size_t i = 0; p->items && i < c->n; i++) {
        const struct tally *t = &c->tallies[i];
        uint64_t first = t->first_private ? t->first_private - 1 : 0;
        if (!t->events && !t->first_private)
            continue;
        p->n += t->events != 0;
        p->items[p->with_idle++] =
            (struct peak){.process = (uint32_t)i,
                          .pid = t->pid,
                          .events = t->events,
                          .peak_bytes = t->peak,
                          .end_bytes = t->live,
                          .end_blocks = t->blocks,
                          .private_bytes = t->most_private > first ? t->most_private - first : 0};
    }
    if (!p->items)
        return err_no_memory(e, c->trace->in.name);
    qsort(p->items, p->with_idle, sizeof *p->items, by_peak);
    p->estimated = c->step != 0;
    return 0;
}

static struct count count_of(struct trace_file *t, uint32_t pid, struct progress *progress)
{
    return (struct count){.pid = pid,
                          .only = ANY,
                          .but = ANY,
                          .enough = UINT64_MAX,
                          .left = UINT64_MAX,
                          .seed = seed_random(),
                          .trace = t,
                          .progress = progress};
}

static void release_count(struct count *c)
{
    free(c->tallies);
    map_release(&c->blocks);
}

// Counts the calls in the trace. Returns 0 even if the walk stopped early.
static int walk_trace(struct count *c, struct err *e)
{
    const struct walk_options how = {.call = count_call,
                                     .wants = is_wanted,
                                     .pause = show_progress,
                                     .ended = end_process,
                                     .sample = count_sample,
                                     .context = c};
    struct err cut;
    if (c->progress)
        c->progress->total = c->trace->in.size_bytes;
    int rc = walk_run(&c->trace->reader, &how, &cut, e);
    progress_clear(c->progress);
    return rc == -ECANCELED ? 0 : rc;
}

int peaks_count(struct peaks *p, struct trace_file *t, uint32_t pid, struct progress *progress,
                struct err *e)
{
    struct count c = count_of(t, pid, progress);
    *p = (struct peaks){0};
    int rc = walk_trace(&c, e);
    rc = rc == 0 ? list_peaks(p, &c, e) : rc;
    release_count(&c);
    return rc;
}

void peaks_release(struct peaks *p)
{
    free(p->items);
    *p = (struct peaks){0};
}

// Returns the number of images that match `pid`, using the counts at the end of the file. Sets
// *most to the image with the most events, and *others to the number of events of the other
// matching images.
static size_t count_candidates(const struct trace_file *t, uint32_t pid,
                               const struct trace_count **most, uint64_t *others)
{
    size_t candidates = 0;
    uint64_t events = 0;
    *most = NULL;
    for (size_t i = 0; i < t->tail.n; i++) {
        const struct trace_count *c = &t->tail.counts[i];
        if (!c->events || (pid && c->pid != pid))
            continue;
        *most = *most && (*most)->events >= c->events ? *most : c;
        events += c->events;
        candidates++;
    }
    *others = *most ? events - (*most)->events : 0;
    return candidates;
}

static uint64_t highest_peak(const struct count *c)
{
    uint64_t peak = 0;
    for (size_t i = 0; i < c->n; i++)
        peak = c->tallies[i].peak > peak ? c->tallies[i].peak : peak;
    return peak;
}

// Handles a file in which nearly all calls belong to one image, as with `env PROGRAM` or `sh -c
// PROGRAM`. Reads the other images first, up to the last of their `others` events, without decoding
// the frames that contain only the large image. Then reads the large image, until its live bytes
// exceed the highest peak of the others.
static int walk_others_first(struct count *c, const struct trace_count *most, uint64_t others,
                             struct err *e)
{
    c->but = most->process;
    c->left = others;
    int rc = walk_trace(c, e);
    rc = rc == 0 ? trace_file_rewind(c->trace, e) : rc;
    c->but = ANY;
    c->only = most->process;
    c->enough = highest_peak(c);
    c->left = UINT64_MAX;
    rc = rc == 0 ? walk_trace(c, e) : rc;
    if (most->process < c->n)
        c->tallies[most->process].events = most->events;
    return rc;
}

// Chooses the first process with this pid, or the first process if `pid` is 0. This is only for
// segments, because the last segment may contain no events. Returns false for other traces.
static bool choose_idle(const struct trace_file *t, uint32_t pid, uint32_t *process)
{
    const struct trace_reader *r = &t->reader;
    for (size_t i = 0; r->session.segment && i < r->n_processes; i++) {
        *process = (uint32_t)i;
        if (!pid || r->processes[i]->pid == pid)
            return true;
    }
    return false;
}

int peaks_choose(struct peaks *p, struct trace_file *t, uint32_t pid, struct progress *progress,
                 struct err *e)
{
    const struct trace_count *most;
    uint64_t others;
    *p = (struct peaks){0};
    int rc = trace_file_read_tail(t, e);
    p->n_all = t->tail.n;
    if (rc < 0)
        return rc;
    if (count_candidates(t, pid, &most, &others) == 1) {
        p->chosen = most->process;
        return 0;
    }
    struct count c = count_of(t, pid, progress);
    bool nearly_all = most && others < most->events / NEARLY_ALL;
    rc = nearly_all ? walk_others_first(&c, most, others, e) : walk_trace(&c, e);
    rc = rc == 0 ? list_peaks(p, &c, e) : rc;
    release_count(&c);
    if (rc < 0)
        return rc;
    if (!p->n && !choose_idle(t, pid, &p->chosen))
        return trace_reader_no_process(&t->reader, pid, e);
    if (p->n)
        p->chosen = p->items[0].process;
    p->n_all = !p->n ? 1 : t->tail.n ? t->tail.n : p->n;
    return trace_file_rewind(t, e);
}
