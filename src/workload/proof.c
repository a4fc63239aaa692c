#include "workload/proof.h"

#include "base/buf.h"
#include "base/search.h"
#include "workload/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OP_MASK ((1ull << OP_BITS) - 1)

enum {
    OP_BITS = 40,
    // Limit on stored dependencies (16 bytes each). Beyond the limit, the older half of each
    // thread's dependencies is dropped. If an op's dependencies were dropped, the op counts as
    // depending on everything that its thread has depended on so far.
    MAX_REMEMBERED = 1 << 22,
    // Limit on pairs of threads with a known order (at most 32 bytes each). The limit is sufficient
    // for 1,000 threads if the order of every pair is known.
    MAX_KNOWN = 1 << 20,
    // Limit on the steps of the order proof: STEPS_PER_OP for each op, plus FIRST_STEPS. Only a
    // malicious file reaches the limit.
    STEPS_PER_OP = 64,
    FIRST_STEPS = 1 << 22,
};

// Dependency of op number `op` on op number `on` of another thread.
struct proof_dependency {
    uint64_t op : OP_BITS, thread : 64 - OP_BITS; // `thread` is the other thread
    uint64_t on;
};

struct proof_thread {
    // Maps another thread + 1 to the number of ops of that thread that are known to precede this
    // thread's next op.
    struct map after;
    struct proof_dependency *learnt; // sorted by op
    size_t n, capacity;
    uint64_t forgotten; // dependencies of ops below this number may have been dropped
    bool began;
};

// A range [from, to) of a thread's ops. order_ranges has not yet added their dependencies to
// another thread.
struct proof_range {
    uint32_t thread;
    uint64_t from, to;
};

void proof_init(struct proof *p)
{
    *p = (struct proof){0};
    summary_init(&p->counter);
}

void proof_want_order(struct proof *p)
{
    p->order = true;
    p->counter.two_words = 1;
}

// Frees the data that only the order proof needs.
static void release_order(struct proof *p)
{
    for (size_t i = 0; i < p->n_threads; i++) {
        map_release(&p->threads[i].after);
        free(p->threads[i].learnt);
    }
    free(p->threads);
    free(p->ranges);
    p->threads = NULL;
    p->ranges = NULL;
    p->n_threads = p->threads_capacity = p->n_ranges = p->ranges_capacity = 0;
}

void proof_release(struct proof *p)
{
    summary_release(&p->counter);
    release_order(p);
    *p = (struct proof){0};
}

static uint64_t allocated_bytes(const struct proof *p)
{
    uint64_t sum;
    return __builtin_add_overflow(p->counter.summary.requested_bytes, p->counter.preexisting_bytes,
                                  &sum)
               ? UINT64_MAX
               : sum;
}

// Updates the bounds on the peak after a frame.
static void end_frame(struct proof *p)
{
    uint64_t highest;
    // If the sum is saturated, it is unknown how many bytes the frame allocated.
    bool unknown = allocated_bytes(p) == UINT64_MAX;
    if (unknown ||
        __builtin_add_overflow(p->frame_live, allocated_bytes(p) - p->frame_allocated, &highest))
        highest = UINT64_MAX;
    p->peak_to = highest > p->peak_to ? highest : p->peak_to;
    p->peak_from = p->counter.live_bytes > p->peak_from ? p->counter.live_bytes : p->peak_from;
}

void proof_frame(struct proof *p)
{
    end_frame(p);
    p->frame_live = p->counter.live_bytes;
    p->frame_allocated = allocated_bytes(p);
}

static struct proof_thread *thread_at(struct proof *p, uint32_t thread)
{
    int rc = HT_EXTEND(&p->threads, &p->n_threads, &p->threads_capacity, (size_t)thread + 1);
    return rc < 0 ? NULL : &p->threads[thread];
}

static int push_range(struct proof *p, uint32_t thread, uint64_t from, uint64_t to)
{
    return HT_APPEND(&p->ranges, &p->n_ranges, &p->ranges_capacity,
                     (struct proof_range){thread, from, to});
}

// Records that the first `n` ops of `thread` precede the next op of thread `to`.
static int order_after(struct proof *p, uint32_t to, uint32_t thread, uint64_t n)
{
    struct map *after = &p->threads[to].after;
    uint64_t before = map_get(after, thread + 1ull);
    if (thread == to || before >= n)
        return 0;
    if (map_put(after, thread + 1ull, n) < 0)
        return -ENOMEM;
    p->known += before == 0;
    return push_range(p, thread, before, n);
}

// Returns the index of the first stored dependency that belongs to op number `op` or to a later op.
static size_t first_learnt(const struct proof_thread *t, uint64_t op)
{
    return HT_SEARCH(i, t->n, t->learnt[i].op >= op);
}

static int order_after_all(struct proof *p, uint32_t to, const struct proof_thread *of)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < of->after.capacity; i++) {
        const struct map_cell *c = &of->after.cells[i];
        if (c->value)
            rc = order_after(p, to, (uint32_t)(c->key - 1), c->value);
    }
    p->steps += of->after.capacity;
    return rc;
}

// Orders thread `to` after all ops on which the ops in the ranges depend, directly or through other
// ops.
static int order_ranges(struct proof *p, uint32_t to)
{
    int rc = 0;
    while (rc == 0 && p->n_ranges && p->known <= MAX_KNOWN) {
        struct proof_range r = p->ranges[--p->n_ranges];
        if (r.thread >= p->n_threads)
            continue;
        const struct proof_thread *of = &p->threads[r.thread];
        if (r.from < of->forgotten)
            rc = order_after_all(p, to, of);
        for (size_t i = first_learnt(of, r.from); rc == 0 && i < of->n && of->learnt[i].op < r.to;
             i++, p->steps++)
            rc = order_after(p, to, of->learnt[i].thread, of->learnt[i].on + 1);
        p->steps++;
    }
    p->n_ranges = 0;
    return rc;
}

static void forget_half(struct proof *p)
{
    for (size_t i = 0; i < p->n_threads; i++) {
        struct proof_thread *t = &p->threads[i];
        size_t half = (t->n + 1) / 2;
        if (!half)
            continue;
        t->forgotten = t->learnt[half - 1].op + 1;
        memmove(t->learnt, t->learnt + half, (t->n - half) * sizeof *t->learnt);
        t->n -= half;
        p->remembered -= half;
    }
}

static int add_dependency(struct proof *p, uint32_t thread, uint64_t number,
                          struct workload_dependency on)
{
    struct proof_thread *t = &p->threads[thread];
    if (on.thread == thread || map_get(&t->after, on.thread + 1ull) > on.op)
        return 0;
    if (p->remembered == MAX_REMEMBERED)
        forget_half(p);
    if (HT_APPEND(&t->learnt, &t->n, &t->capacity,
                  (struct proof_dependency){.op = number, .thread = on.thread, .on = on.op}) < 0)
        return -ENOMEM;
    p->remembered++;
    int rc = order_after(p, thread, on.thread, on.op + 1);
    return rc < 0 ? rc : order_ranges(p, thread);
}

// Orders a new thread after the op that creates it, unless the thread already has ops. Thread 0
// exists from the start.
static int prove_create(struct proof *p, uint32_t thread, uint64_t number,
                        const struct workload_op *op)
{
    if (op->value == 0 || op->value > UINT32_MAX - 1 || op->flags & WORKLOAD_FAILED)
        return 0;
    struct proof_thread *child = thread_at(p, (uint32_t)op->value);
    if (!child)
        return -ENOMEM;
    if (child->began || op->value == thread)
        return 0;
    return add_dependency(p, (uint32_t)op->value, 0, (struct workload_dependency){thread, number});
}

static bool is_use(const struct workload_op *op)
{
    return op->slot != WORKLOAD_NO_SLOT && !(op->flags & WORKLOAD_FAILED);
}

static inline uint64_t *last_use(struct proof *p, uint32_t slot)
{
    return &p->counter.slots[2 * (size_t)slot + 1];
}

// Encodes the op as the last use of a slot. A preexisting block exists before all threads, so the
// next use of its slot needs no ordering.
static inline uint64_t use_by(uint32_t thread, uint64_t number, const struct workload_op *op)
{
    return op->kind == HT_PREEXISTING ? 0 : (uint64_t)thread << OP_BITS | (number + 1);
}

static int prove_use(struct proof *p, uint32_t thread, uint64_t number,
                     const struct workload_op *op)
{
    uint64_t *last = last_use(p, op->slot);
    uint32_t other = (uint32_t)(*last >> OP_BITS);
    uint64_t other_op = (*last & OP_MASK) - 1;
    bool ordered = !*last || other == thread || p->known > MAX_KNOWN ||
                   map_get(&p->threads[thread].after, other + 1ull) > other_op;
    *last = use_by(thread, number, op);
    if (ordered)
        return 0;
    return err_set(
        &p->why, -EBADMSG,
        "op %llu of thread %u uses slot %u without a dependency on its use by op %llu of thread %u",
        (unsigned long long)number, thread, op->slot, (unsigned long long)other_op, other);
}

static int prove_op(struct proof *p, uint32_t thread, uint64_t number, const struct workload_op *op)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < op->n_dependencies; i++)
        rc = add_dependency(p, thread, number, op->dependencies[i]);
    if (rc == 0 && op->kind == HT_THREAD_CREATE)
        rc = prove_create(p, thread, number, op);
    if (rc == 0 && is_use(op))
        rc = prove_use(p, thread, number, op);
    return rc;
}

static int prove_order(struct proof *p, const struct workload_run *run, size_t n)
{
    uint32_t thread = run->thread;
    struct proof_thread *t = thread_at(p, thread);
    int rc = t ? 0 : -ENOMEM;
    if (thread >= 1u << (64 - OP_BITS) || run->first_op + n >= OP_MASK)
        return err_set(&p->why, -EBADMSG, "op %llu of thread %u is one too many",
                       (unsigned long long)run->first_op, thread);
    if (t)
        t->began = true;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct workload_op *op = &run->ops[i];
        uint64_t number = run->first_op + i, *last = is_use(op) ? last_use(p, op->slot) : NULL;
        if (last && !op->n_dependencies && (!*last || *last >> OP_BITS == thread))
            *last = use_by(thread, number, op);
        else
            rc = prove_op(p, thread, number, op);
    }
    p->ops += n;
    if (p->known > MAX_KNOWN || p->steps > FIRST_STEPS + STEPS_PER_OP * p->ops) {
        p->order = false;
        release_order(p);
    }
    return rc;
}

static __attribute__((noinline)) int bad_slot(struct proof *p, uint32_t thread, uint64_t number,
                                              const struct workload_op *op)
{
    bool allocates = format_slot_use(op->kind, op->flags) == FORMAT_SLOT_ALLOCATED;
    return err_set(&p->why, -EBADMSG, "op %llu of thread %u %s slot %u, which %s",
                   (unsigned long long)number, thread, allocates ? "allocates into" : "uses",
                   op->slot, allocates ? "already holds a block" : "holds no block");
}

int proof_run(struct proof *p, const struct workload_run *run, size_t readable)
{
    int n = summary_run(&p->counter, run->thread, run->ops, run->n_ops, readable);
    if (n < 0)
        return n;
    // Do not check the slot of an op that contradicts earlier ops.
    int rc = p->order ? prove_order(p, run, (size_t)n - p->counter.contradicted) : 0;
    if (rc == 0 && p->counter.contradicted)
        rc = bad_slot(p, run->thread, run->first_op + (uint64_t)n - 1, &run->ops[n - 1]);
    return rc;
}

static int report_difference(struct proof *p, const char *name, uint64_t said, const char *make,
                             uint64_t counted)
{
    return err_set(&p->why, -EBADMSG, "the summary says %s %llu, its ops make %s%llu", name,
                   (unsigned long long)said, make, (unsigned long long)counted);
}

// How a number in the summary can change when ops are added.
enum growth { GROWS, FALLS, VARIES };

// Returns true if `said`, a number in the summary, is consistent with `counted`, the corresponding
// count of the ops so far. If `all` is set, these are all ops of the file.
static bool is_possible(enum growth growth, bool all, uint64_t said, uint64_t counted)
{
    if (all)
        return said == counted;
    return growth == VARIES || (growth == GROWS ? said >= counted : said <= counted);
}

int proof_summary(struct proof *p, bool has_stamps, const struct workload_summary *s, bool all)
{
#define HT_X(field, growth)                                                                        \
    {                                                                                              \
#field, offsetof(struct workload_summary, field), growth                                   \
    }
    static const struct {
        const char *name;
        size_t offset;
        enum growth growth;
    } numbers[] = {HT_X(events, GROWS),
                   HT_X(threads, GROWS),
                   HT_X(slots, GROWS),
                   HT_X(requested_bytes, GROWS),
                   HT_X(live_at_end_bytes, VARIES),
                   HT_X(live_at_end_blocks, VARIES),
                   HT_X(remote_frees, GROWS),
                   HT_X(unmatched_frees, GROWS),
                   HT_X(preexisting_blocks, GROWS),
                   HT_X(preexisting_bytes, VARIES),
                   HT_X(dependencies, GROWS),
                   HT_X(first_stamp, FALLS),
                   HT_X(last_stamp, GROWS)};
#undef HT_X
    struct workload_summary counted = summary_result(&p->counter);
    // Old files count all preexisting blocks as unmatched.
    if (!s->preexisting_blocks) {
        counted.unmatched_frees += counted.preexisting_blocks;
        counted.preexisting_blocks = counted.preexisting_bytes = 0;
    }
    const char *make = all ? "" : "at least ";
    size_t n = sizeof numbers / sizeof *numbers - (has_stamps ? 0 : 2);
    for (size_t i = 0; i < n; i++) {
        uint64_t said = *(const uint64_t *)((const char *)s + numbers[i].offset);
        uint64_t is = *(const uint64_t *)((const char *)&counted + numbers[i].offset);
        if (!is_possible(numbers[i].growth, all, said, is))
            return report_difference(p, numbers[i].name, said,
                                     numbers[i].growth == FALLS ? "" : make, is);
    }
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (!is_possible(GROWS, all, s->by_kind[kind], counted.by_kind[kind]))
            return report_difference(
                p, event_infos[kind].name ? event_infos[kind].name : "an unknown kind",
                s->by_kind[kind], make, counted.by_kind[kind]);
    }
    end_frame(p);
    if (s->peak_live_bytes < p->peak_from || (all && s->peak_live_bytes > p->peak_to))
        return report_difference(p, "peak_live_bytes", s->peak_live_bytes, make,
                                 counted.peak_live_bytes);
    return 0;
}
