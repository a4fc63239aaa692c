// Writes a workload to replay: make_workload FILE MODE THREADS CALLS [CROSS%]. Prints what a player is to call, as lines
// "call KIND COUNT", "live N", the blocks left in the end, and "peak_live_bytes N".
//
//   churn   each thread replaces random blocks of its 10,000; of those it replaces, CROSS % are given up by the next
//           thread. All threads but the first are born by the first
//   orphans as churn, but nobody gives birth to the other threads
//   kinds   few blocks, and every call of the malloc API that a workload can hold, also failed ones
//   misfit  CALLS blocks of malloc that are given up with delete
//   leave   CALLS blocks of all kinds that are never given up
//   big-malloc, big-calloc, big-realloc: CALLS blocks of 8 MiB that are never given up; realloc grows them from 4 MiB
//   edges   thread 0 takes CALLS blocks; when it is done, thread 1 gives them up, CROSS % of them with a wait of their own
//   holes   blocks of 256 and of 512 bytes, CALLS of each, of which each fourth is left (see make_holes), beside CROSS calls of free(NULL)
//   paced   each thread takes and gives up a block every 10 ms, CALLS times
//   births  THREADS threads one after another, four at a time, each of CALLS calls, each with a block from its parent
#include "base/fio.h"
#include "workload/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_A_THREAD = 10000, MAX_THREADS = 1 << 16 };

static struct workload_writer *writer;
static struct workload_summary summary;
static uint64_t stamp, live, seed = 88172645463325252ull;
static uint64_t ops_of[MAX_THREADS];
static uint64_t to_make[HT_KIND_LIMIT]; // for the player to make
static int64_t live_blocks;

struct block {
    uint32_t slot, thread; // who took it
    uint64_t op, size;     // its number there
};

static struct err error;

static void must(int rc)
{
    if (rc < 0) {
        fprintf(stderr, "make_workload: %s (%s)\n", error.text, strerror(-rc));
        exit(1);
    }
}

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static uint64_t pick(uint64_t limit)
{
    return (next_random() >> 11) % limit;
}

// Geometric in powers of two from 8 to 1,024, uniform within.
static uint64_t pick_size(void)
{
    unsigned power = (unsigned)__builtin_ctzll(next_random() | 0x40);
    uint64_t low = 8ull << power, size = low + pick(low);
    return size > 1024 ? 1024 : size;
}

static void put(uint32_t thread, struct workload_op op)
{
    op.stamp = ++stamp;
    ops_of[thread]++;
    unsigned class = event_infos[op.kind].class;
    if (op.kind == HT_PREEXISTING)
        to_make[HT_MALLOC]++;
    else if (class != HT_CLASS_THREAD && class != HT_CLASS_MARK && !(op.flags & WORKLOAD_FAILED))
        to_make[op.kind]++;
    if (op.kind != HT_PREEXISTING) {
        summary.events++;
        summary.by_kind[op.kind]++;
    }
    must(workload_write_op(writer, thread, &op, &error));
}

// Slots given up by a thread, which alone takes them again.
static struct {
    uint32_t *slots;
    size_t n;
} given[MAX_THREADS];

static uint32_t take_slot(uint32_t thread)
{
    return given[thread].n ? given[thread].slots[--given[thread].n] : (uint32_t)summary.slots++;
}

static void give_slot(uint32_t thread, uint32_t slot)
{
    given[thread].slots = realloc(given[thread].slots, (given[thread].n + 1) * sizeof(uint32_t));
    given[thread].slots[given[thread].n++] = slot;
}

static void count_live(uint64_t change)
{
    live += change;
    if ((int64_t)change > 0)
        summary.requested_bytes += change;
    if (live > summary.peak_live_bytes)
        summary.peak_live_bytes = live;
}

static struct block take(uint32_t thread, struct workload_op op)
{
    struct block b = {take_slot(thread), thread, ops_of[thread], event_requested(op.kind, op.size, op.count)};
    op.slot = b.slot;
    live_blocks++;
    count_live(b.size);
    put(thread, op);
    return b;
}

// `thread` gives the block up, whoever took it.
static void give(uint32_t thread, const struct block *b, struct workload_op op)
{
    struct workload_dependency wait = {b->thread, b->op};
    op.slot = b->slot;
    if (b->thread != thread) {
        op.dependencies = &wait;
        op.n_dependencies = 1;
        summary.dependencies++;
        summary.remote_frees++;
    }
    live_blocks--;
    count_live(0 - b->size);
    put(thread, op);
    give_slot(thread, b->slot);
}

static struct block take_malloc(uint32_t thread)
{
    return take(thread, (struct workload_op){.kind = HT_MALLOC, .size = pick_size()});
}

static void give_free(uint32_t thread, const struct block *b)
{
    give(thread, b, (struct workload_op){.kind = HT_FREE});
}

// The new thread waits for its parent.
static void birth(uint32_t parent, uint32_t child)
{
    struct workload_dependency wait = {parent, ops_of[parent]};
    put(parent, (struct workload_op){.kind = HT_THREAD_CREATE, .value = child, .slot = WORKLOAD_NO_SLOT});
    put(child,
        (struct workload_op){
            .kind = HT_THREAD_START, .value = 0, .dependencies = &wait, .n_dependencies = 1, .slot = WORKLOAD_NO_SLOT});
    summary.threads++;
}

static void end(uint32_t thread)
{
    put(thread, (struct workload_op){.kind = HT_THREAD_END, .slot = WORKLOAD_NO_SLOT});
}

static void make_churn(uint32_t threads, uint64_t calls, unsigned cross, bool orphans)
{
    static struct block blocks[256][SLOTS_A_THREAD];
    for (uint32_t t = 0; t < threads; t++) {
        if (t && orphans)
            summary.threads++;
        else if (t)
            birth(0, t);
        for (unsigned i = 0; i < SLOTS_A_THREAD; i++)
            blocks[t][i] = take_malloc(t);
    }
    for (uint64_t i = 0; i < calls / 2; i++) {
        for (uint32_t t = 0; t < threads; t++) {
            struct block *b = &blocks[t][pick(SLOTS_A_THREAD)];
            give_free(pick(100) < cross ? (t + 1) % threads : t, b);
            *b = take_malloc(t);
        }
    }
    for (uint32_t t = threads; t-- > 0;) {
        for (unsigned i = 0; i < SLOTS_A_THREAD; i++)
            give_free(t, &blocks[t][i]);
        end(t);
    }
}

static uint64_t pick_count(unsigned kind)
{
    return event_infos[kind].fields & HT_F_COUNT ? 1 + pick(9) : 0;
}

// The size that goes with an alignment which all allocators take.
static struct workload_op pick_take(unsigned kind)
{
    struct workload_op op = {.kind = (uint8_t)kind, .size = pick_size(), .count = pick_count(kind)};
    if (event_infos[kind].fields & HT_F_ALIGN) {
        op.align = 16ull << pick(6);
        op.size = (op.size + op.align - 1) & ~(op.align - 1);
    }
    if (kind == HT_REALLOC || kind == HT_REALLOCARRAY)
        op.flags = WORKLOAD_FROM_NULL;
    if (kind == HT_MALLOC && pick(200) == 0)
        op.size = 1 << 20;
    return op;
}

// How a block of that kind is given up: C++ ones by their own kind.
static struct workload_op pick_give(unsigned taken_by, const struct workload_op *take_op)
{
    static const uint8_t by_new[] = {HT_DELETE, HT_DELETE_SIZED, HT_DELETE_NOTHROW};
    static const uint8_t by_new_array[] = {HT_DELETE_ARRAY, HT_DELETE_ARRAY_SIZED, HT_DELETE_ARRAY_NOTHROW};
    static const uint8_t by_aligned[] = {HT_DELETE_ALIGNED, HT_DELETE_SIZED_ALIGNED, HT_DELETE_ALIGNED_NOTHROW};
    static const uint8_t by_array_aligned[] = {HT_DELETE_ARRAY_ALIGNED, HT_DELETE_ARRAY_SIZED_ALIGNED,
                                               HT_DELETE_ARRAY_ALIGNED_NOTHROW};
    struct workload_op op = {.kind = HT_FREE, .size = take_op->size, .align = take_op->align};
    if (taken_by == HT_NEW || taken_by == HT_NEW_NOTHROW)
        op.kind = by_new[pick(3)];
    else if (taken_by == HT_NEW_ARRAY || taken_by == HT_NEW_ARRAY_NOTHROW)
        op.kind = by_new_array[pick(3)];
    else if (taken_by == HT_NEW_ALIGNED || taken_by == HT_NEW_ALIGNED_NOTHROW)
        op.kind = by_aligned[pick(3)];
    else if (taken_by == HT_NEW_ARRAY_ALIGNED || taken_by == HT_NEW_ARRAY_ALIGNED_NOTHROW)
        op.kind = by_array_aligned[pick(3)];
    else if (taken_by == HT_MALLOC && pick(2))
        op.kind = HT_FREE_SIZED;
    else if (taken_by == HT_ALIGNED_ALLOC && pick(2))
        op.kind = HT_FREE_ALIGNED_SIZED;
    if (!(event_infos[op.kind].fields & HT_F_SIZE))
        op.size = 0;
    if (!(event_infos[op.kind].fields & HT_F_ALIGN))
        op.align = 0;
    return op;
}

static void resize(uint32_t thread, struct block *b)
{
    struct workload_op op = {.kind = pick(4) ? HT_REALLOC : HT_REALLOCARRAY, .size = pick_size(), .slot = b->slot};
    op.count = pick_count(op.kind);
    count_live(event_requested(op.kind, op.size, op.count) - b->size);
    b->size = event_requested(op.kind, op.size, op.count);
    b->op = ops_of[thread];
    put(thread, op);
}

// Calls that do nothing, or did nothing when they were recorded.
static void put_odd_calls(uint32_t thread)
{
    put(thread, (struct workload_op){.kind = HT_FREE, .slot = WORKLOAD_NO_SLOT});
    put(thread, (struct workload_op){.kind = HT_DELETE, .slot = WORKLOAD_NO_SLOT});
    put(thread, (struct workload_op){.kind = HT_MALLOC,
                                     .size = 1ull << 60,
                                     .flags = WORKLOAD_FAILED,
                                     .error = ENOMEM,
                                     .slot = WORKLOAD_NO_SLOT});
    put(thread, (struct workload_op){.kind = HT_MARK, .text = "here", .text_bytes = 4, .slot = WORKLOAD_NO_SLOT});
    struct block b = take(thread, (struct workload_op){.kind = HT_MALLOC, .size = 100});
    give(thread, &b, (struct workload_op){.kind = HT_REALLOC, .flags = WORKLOAD_FREED});
}

static void make_kinds(uint32_t threads, uint64_t calls)
{
    enum { BLOCKS = 200 };
    static struct block blocks[BLOCKS];
    static struct workload_op taken[BLOCKS];
    static const uint8_t kinds[] = {HT_MALLOC,
                                    HT_CALLOC,
                                    HT_REALLOC,
                                    HT_REALLOCARRAY,
                                    HT_MEMALIGN,
                                    HT_ALIGNED_ALLOC,
                                    HT_POSIX_MEMALIGN,
                                    HT_VALLOC,
                                    HT_PVALLOC,
                                    HT_NEW,
                                    HT_NEW_ARRAY,
                                    HT_NEW_NOTHROW,
                                    HT_NEW_ARRAY_NOTHROW,
                                    HT_NEW_ALIGNED,
                                    HT_NEW_ARRAY_ALIGNED,
                                    HT_NEW_ALIGNED_NOTHROW,
                                    HT_NEW_ARRAY_ALIGNED_NOTHROW};
    for (uint32_t t = 1; t < threads; t++)
        birth(0, t);
    for (unsigned i = 0; i < 20; i++)
        blocks[i] = take(0, (struct workload_op){.kind = HT_PREEXISTING, .size = 64});
    for (uint64_t n = 0; n < calls; n++) {
        unsigned i = (unsigned)pick(BLOCKS);
        uint32_t t = (uint32_t)pick(threads);
        bool resizable = !taken[i].align && taken[i].kind != HT_VALLOC && taken[i].kind != HT_PVALLOC &&
                         taken[i].kind < HT_NEW && taken[i].kind && blocks[i].thread == t;
        if (!blocks[i].size) {
            taken[i] = pick_take(kinds[pick(sizeof kinds)]);
            blocks[i] = take(t, taken[i]);
        } else if (resizable && pick(3) == 0) {
            resize(t, &blocks[i]);
            taken[i].kind = HT_REALLOC;
        } else {
            give(t, &blocks[i], pick_give(taken[i].kind, &taken[i]));
            blocks[i].size = 0;
        }
        if (n % 1000 == 0)
            put_odd_calls(t);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (blocks[i].size)
            give(0, &blocks[i], pick_give(taken[i].kind, &taken[i]));
    }
}

static void make_misfit(uint64_t calls)
{
    for (uint64_t i = 0; i < calls; i++) {
        struct block b = take_malloc(0);
        give(0, &b, (struct workload_op){.kind = HT_DELETE});
    }
}

static void make_births(uint32_t threads, uint64_t calls)
{
    enum { AT_ONCE = 4 };
    struct block handed[AT_ONCE];
    for (uint32_t first = 1; first <= threads; first += AT_ONCE) {
        for (uint32_t i = 0; i < AT_ONCE && first + i <= threads; i++) {
            birth(0, first + i);
            handed[i] = take_malloc(0);
        }
        for (uint32_t i = 0; i < AT_ONCE && first + i <= threads; i++) {
            give_free(first + i, &handed[i]);
            for (uint64_t n = 0; n < calls; n += 2) {
                struct block b = take_malloc(first + i);
                give_free(first + i, &b);
            }
            handed[i] = take_malloc(first + i);
            end(first + i);
        }
        for (uint32_t i = 0; i < AT_ONCE && first + i <= threads; i++)
            give_free(0, &handed[i]);
    }
}

static void make_leave(uint64_t calls)
{
    static const uint8_t kinds[] = {
        HT_MALLOC,      HT_CALLOC,           HT_REALLOC, HT_ALIGNED_ALLOC, HT_NEW, HT_NEW_ARRAY_NOTHROW,
        HT_NEW_ALIGNED, HT_NEW_ARRAY_ALIGNED};
    take(0, (struct workload_op){.kind = HT_PREEXISTING, .size = 64});
    for (uint64_t n = 0; n < calls; n++)
        take(0, pick_take(kinds[n % sizeof kinds]));
}

static void make_big(const char *how, uint64_t calls)
{
    enum { BIG = 8 << 20 };
    for (uint64_t n = 0; n < calls; n++) {
        struct workload_op op = {.kind = HT_MALLOC, .size = BIG};
        if (strcmp(how, "big-calloc") == 0)
            op = (struct workload_op){.kind = HT_CALLOC, .size = BIG / 8, .count = 8};
        if (strcmp(how, "big-realloc") == 0)
            op.size = BIG / 2;
        struct block b = take(0, op);
        if (op.size != BIG / 2)
            continue;
        count_live(BIG / 2);
        put(0, (struct workload_op){.kind = HT_REALLOC, .size = BIG, .slot = b.slot});
    }
}

static void make_edges(uint64_t calls, unsigned cross)
{
    struct block *blocks = calloc(calls, sizeof *blocks);
    birth(0, 1);
    for (uint64_t n = 0; n < calls; n++)
        blocks[n] = take_malloc(0);
    for (uint64_t n = 0; n < calls; n++) {
        // The last one's wait is for all.
        struct block *b = &blocks[n ? n - 1 : calls - 1];
        if (n && pick(100) >= cross)
            b->thread = 1;
        give_free(1, b);
    }
    free(blocks);
}

static void make_paced(uint32_t threads, uint64_t calls)
{
    for (uint32_t t = 1; t < threads; t++)
        birth(0, t);
    for (uint64_t n = 0; n < calls; n++) {
        stamp += 10000000;
        for (uint32_t t = 0; t < threads; t++) {
            struct block b = take_malloc(t);
            give_free(t, &b);
        }
    }
}

// Small blocks of two threads, of which each fourth is left when a big one makes the peak. Then thread 1 puts others in the
// place of its own, without a wait, and the big one goes. Whoever looks at the peak must so wait for thread 1, and hold it back,
// as it waits for nobody; all the more when thread 2 has `idle` calls to make before the peak.
static void make_holes(uint64_t calls, uint64_t idle)
{
    enum { BIG = 1 << 20, KEPT = 4 };
    struct block *ours = calloc(calls, sizeof *ours), *theirs = calloc(calls, sizeof *theirs);
    struct workload_op small = {.kind = HT_MALLOC, .size = 256, .value = 1};
    struct workload_op other = {.kind = HT_MALLOC, .size = 512, .value = 2};
    birth(0, 1);
    birth(0, 2);
    for (uint64_t n = 0; n < idle; n++)
        put(2, (struct workload_op){.kind = HT_FREE, .slot = WORKLOAD_NO_SLOT});
    for (uint64_t n = 0; n < calls; n++) {
        ours[n] = take(0, small);
        theirs[n] = take(1, other);
    }
    for (uint64_t n = 0; n < calls; n++) {
        if (n % KEPT) {
            give_free(0, &ours[n]);
            give_free(1, &theirs[n]);
        }
    }
    struct block big = take(0, (struct workload_op){.kind = HT_MALLOC, .size = BIG});
    put(0, (struct workload_op){.kind = HT_FREE, .slot = WORKLOAD_NO_SLOT});
    for (uint64_t n = 0; n < calls; n += KEPT) {
        give_free(1, &theirs[n]);
        theirs[n] = take(1, other);
    }
    give_free(0, &big);
    free(ours);
    free(theirs);
}

static void print_facts(void)
{
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (to_make[kind])
            printf("call %s %llu\n", event_infos[kind].name, (unsigned long long)to_make[kind]);
    }
    printf("live %lld\n", (long long)live_blocks);
    printf("peak_live_bytes %llu\n", (unsigned long long)summary.peak_live_bytes);
}

int main(int argc, char **argv)
{
    struct output out;
    struct workload_header header = {.clock_hz = 1000000000, .has_stamps = true, .pid = 1};
    if (argc < 5)
        return 2;
    uint32_t threads = (uint32_t)strtoul(argv[3], NULL, 0);
    uint64_t calls = strtoull(argv[4], NULL, 0);
    must(output_open(&out, argv[1], OUTPUT_FORCE, &error));
    writer = workload_writer_new(&out, 1);
    summary.threads = 1;
    must(workload_write_header(writer, &header, &error));
    bool orphans = strcmp(argv[2], "orphans") == 0;
    if (orphans || strcmp(argv[2], "churn") == 0)
        make_churn(threads, calls, argc > 5 ? (unsigned)strtoul(argv[5], NULL, 0) : 0, orphans);
    else if (strcmp(argv[2], "kinds") == 0)
        make_kinds(threads, calls);
    else if (strcmp(argv[2], "misfit") == 0)
        make_misfit(calls);
    else if (strcmp(argv[2], "leave") == 0)
        make_leave(calls);
    else if (strcmp(argv[2], "holes") == 0)
        make_holes(calls, argc > 5 ? strtoull(argv[5], NULL, 0) : 0);
    else if (strncmp(argv[2], "big-", 4) == 0)
        make_big(argv[2], calls);
    else if (strcmp(argv[2], "edges") == 0)
        make_edges(calls, argc > 5 ? (unsigned)strtoul(argv[5], NULL, 0) : 0);
    else if (strcmp(argv[2], "paced") == 0)
        make_paced(threads, calls);
    else
        make_births(threads, calls);
    summary.last_stamp = stamp;
    must(workload_write_end(writer, &summary, &error));
    workload_writer_free(writer);
    must(output_close(&out, true, &error));
    print_facts();
    return 0;
}
