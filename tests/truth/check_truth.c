// check_truth [--drop N] WORKLOAD [LOG]: checks a workload against
// docs/reference/workload-format.md. Each slot must be allocated while free and used while
// allocated. A use by another thread must follow the previous use by dependencies and program
// order.
//
// With the log of a truth program (truth_log.h), also checks that every thread makes exactly the
// logged calls in order, each with the logged block. --drop removes the Nth dependency; the check
// must then fail. Prints a summary, or the error and exits with 1.
#include "base/buf.h"
#include "workload/format.h"
#include "workload/reader.h"

#include "reach.h"
#include "truth_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOBODY = 0xffffffff, MAX_NAMES = 4096 };

struct slot {
    bool taken, preexisting;
    bool tracked;   // true if the log contains the block in the slot
    uint64_t block; // number of the block
    uint64_t size, last_op;
    uint32_t last_thread;
};

// The log, and the position of each thread in it.
struct log {
    struct truth_call *calls;
    size_t n;
    size_t at[MAX_NAMES], end[MAX_NAMES];
    bool seen[MAX_NAMES];
    bool has_small; // true if a size is small
};

static struct reach reach;
static struct slot *slots;
static size_t n_slots, slots_capacity;
// The name of each thread of the workload, or NOBODY if the log does not contain the thread.
static uint32_t *names;
static size_t n_names, names_capacity;
static struct log log_;
static uint64_t ops, waits, crossings, drop, tracked;

__attribute__((format(printf, 1, 2))) static _Noreturn void fail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, " (op %llu of the total order)\n", (unsigned long long)ops);
    exit(1);
}

static struct slot *slot_get(uint32_t i)
{
    if (HT_GROW(&slots, &slots_capacity, (size_t)i + 1) < 0)
        fail("out of memory");
    for (; n_slots <= i; n_slots++)
        slots[n_slots] = (struct slot){.last_thread = NOBODY};
    return &slots[i];
}

static uint32_t *name_get(uint32_t thread)
{
    if (HT_GROW(&names, &names_capacity, (size_t)thread + 1) < 0)
        fail("out of memory");
    for (; n_names <= thread; n_names++)
        names[n_names] = NOBODY;
    return &names[thread];
}

// Returns the thread's next call in the log.
static const struct truth_call *next_call(uint32_t name)
{
    if (log_.at[name] == log_.end[name])
        fail("thread %u makes more calls than it logged", name);
    return &log_.calls[log_.at[name]++];
}

static bool is_small(uint64_t size)
{
    return size >= TRUTH_SMALL_MIN_SIZE && size < TRUTH_SMALL_MIN_SIZE + TRUTH_SMALL_SIZES;
}

static bool is_tracked_size(uint64_t size)
{
    static const unsigned from[] = {TRUTH_MIN_SIZE, TRUTH_BIG_MIN_SIZE, TRUTH_MAPPED_MIN_SIZE,
                                    TRUTH_GROWN_MIN_SIZE};
    for (unsigned i = 0; i < sizeof from / sizeof *from; i++) {
        if (size >= from[i] && size < from[i] + TRUTH_SIZES)
            return true;
    }
    return log_.has_small && is_small(size);
}

static void name_thread(uint32_t *name, uint64_t size)
{
    uint64_t n = size - TRUTH_NAME_SIZE;
    if (*name != NOBODY || n >= MAX_NAMES || log_.seen[n] || log_.at[n] == log_.end[n])
        fail("thread %llu is missing in the log, or twice in the workload", (unsigned long long)n);
    *name = (uint32_t)n;
    log_.seen[n] = true;
}

// Compares a call with the log. `s` is the slot before the op.
static void compare(uint32_t *name, struct slot *s, const struct workload_op *op,
                    enum format_slot_use use)
{
    if (!log_.n)
        return;
    bool names_itself = use == FORMAT_SLOT_ALLOCATED && op->size >= TRUTH_NAME_SIZE &&
                        op->size < TRUTH_NAME_SIZE + MAX_NAMES;
    if (names_itself)
        name_thread(name, op->size);
    uint64_t size = event_requested(op->kind, op->size, op->count);
    if (use == FORMAT_SLOT_ALLOCATED && !names_itself && !is_tracked_size(size))
        return;
    // The C++ runtime allocates small blocks, too, before main.
    if (use == FORMAT_SLOT_ALLOCATED && *name == NOBODY && is_small(size))
        return;
    if (use != FORMAT_SLOT_ALLOCATED && !s->tracked)
        return;
    if (*name == NOBODY)
        fail("a thread without a name makes a call of the log");
    const struct truth_call *c = next_call(*name);
    if (c->kind != op->kind || (use != FORMAT_SLOT_FREED && c->size != size))
        fail("thread %u: %s of %llu bytes, but the log has %s of %llu", *name,
             event_infos[op->kind].name, (unsigned long long)size, event_infos[c->kind].name,
             (unsigned long long)c->size);
    if (use == FORMAT_SLOT_ALLOCATED) {
        s->tracked = true;
        s->block = c->block;
    } else if (s->block != c->block) {
        fail("thread %u: %s of block %llu, but the log has block %llu", *name,
             event_infos[op->kind].name, (unsigned long long)s->block,
             (unsigned long long)c->block);
    }
    tracked++;
}

static void use_slot(uint32_t thread, const struct workload_op *op)
{
    enum format_slot_use use = format_slot_use(op->kind, op->flags);
    struct slot *s = slot_get(op->slot);
    uint64_t number = reach.threads[thread].next_op - 1;
    if (s->taken == (use == FORMAT_SLOT_ALLOCATED))
        fail("thread %u: %s of slot %u, which is %s", thread, event_infos[op->kind].name, op->slot,
             s->taken ? "taken" : "free");
    if (op->kind == HT_PREEXISTING && s->last_thread != NOBODY)
        fail("slot %u of a preexisting block was used before", op->slot);
    if (s->last_thread != NOBODY && s->last_thread != thread) {
        crossings++;
        if (!reach_before(&reach, s->last_thread, s->last_op, thread))
            fail("thread %u: %s of slot %u does not come after op %llu of thread %u", thread,
                 event_infos[op->kind].name, op->slot, (unsigned long long)s->last_op,
                 s->last_thread);
    }
    compare(name_get(thread), s, op, use);
    s->taken = use != FORMAT_SLOT_FREED;
    s->tracked &= s->taken;
    s->last_thread = thread;
    s->last_op = number;
}

static void check_stamps(uint32_t thread, const struct workload_op *op)
{
    if (thread < reach.n_threads && op->stamp < reach.threads[thread].last_stamp)
        fail("thread %u: stamps decrease", thread);
}

static void take_op(uint32_t thread, const struct workload_op *from)
{
    struct workload_op op = *from;
    struct workload_dependency some[64];
    uint32_t n = 0;
    check_stamps(thread, &op);
    for (uint32_t i = 0; i < op.n_dependencies && n < 64; i++) {
        if (++waits != drop)
            some[n++] = op.dependencies[i];
    }
    op.dependencies = some;
    op.n_dependencies = n;
    name_get(thread);
    if (op.kind == HT_THREAD_CREATE)
        name_get((uint32_t)op.value);
    if (!reach_add(&reach, thread, &op))
        fail("thread %u depends on a later op", thread);
    if (op.slot != WORKLOAD_NO_SLOT)
        use_slot(thread, &op);
    ops++;
}

static void read_log(const char *path)
{
    FILE *f = fopen(path, "rbe");
    struct truth_call c;
    size_t capacity = 0;
    if (!f)
        fail("%s: cannot open", path);
    while (fread(&c, sizeof c, 1, f) == 1) {
        if (c.thread >= MAX_NAMES || HT_GROW(&log_.calls, &capacity, log_.n + 1) < 0)
            fail("%s: is no log", path);
        if (log_.at[c.thread] == log_.end[c.thread])
            log_.at[c.thread] = log_.n;
        log_.calls[log_.n++] = c;
        log_.has_small |= is_small(c.size);
        log_.end[c.thread] = log_.n;
    }
    fclose(f);
    if (!log_.n)
        fail("%s: is empty", path);
}

// Ops of different threads with equal stamps are unordered, so slot numbers need not appear in
// order, but all must appear.
static void check_numbers(void)
{
    for (size_t i = 0; i < n_slots; i++) {
        if (slots[i].last_thread == NOBODY)
            fail("slot %zu is unused, but higher slots are used", i);
    }
}

static void check_log(void)
{
    for (uint32_t t = 0; t < MAX_NAMES; t++) {
        if (log_.at[t] != log_.end[t])
            fail("thread %u makes %zu calls fewer than it logged", t, log_.end[t] - log_.at[t]);
    }
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct input in;
    struct workload_reader *r;
    const struct workload_op *op;
    uint32_t thread;
    int rc;
    if (argc > 2 && strcmp(argv[1], "--drop") == 0) {
        drop = strtoull(argv[2], NULL, 10);
        argv += 2;
        argc -= 2;
    }
    if (argc < 2 || input_open(&in, argv[1], &e) < 0 || workload_reader_open(&r, &in, &e) < 0)
        fail("usage: check_truth [--drop N] WORKLOAD [LOG]: %s", e.text);
    if (argc > 2)
        read_log(argv[2]);
    while ((rc = workload_next_op(r, &thread, &op, &e)) > 0)
        take_op(thread, op);
    if (rc < 0)
        fail("%s", e.text);
    check_numbers();
    check_log();
    printf("%llu ops, %llu dependencies, %llu uses by another thread, %llu calls as logged\n",
           (unsigned long long)ops, (unsigned long long)waits, (unsigned long long)crossings,
           (unsigned long long)tracked);
    workload_reader_close(r);
    input_close(&in);
    reach_release(&reach);
    free(slots);
    free(names);
    free(log_.calls);
    return 0;
}
