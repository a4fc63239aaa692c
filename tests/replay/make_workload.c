// Writes a workload to replay: make_workload FILE MODE THREADS CALLS [CROSS%]. Prints the expected
// calls of the player as lines "call KIND COUNT", the blocks live at the end as "live N", and
// "peak_live_bytes N".
//
//   churn         each thread replaces random blocks of its 10,000; the next thread frees CROSS %
//                 of the replaced blocks. The first thread starts the others
//   orphans       as churn, but the threads exist from the start
//   kinds         few blocks, and every call of the malloc API that a workload can hold, including
//                 failed calls
//   misfit        CALLS blocks of malloc that are freed with delete
//   leave         CALLS blocks of all kinds that are never freed
//   big-malloc, big-calloc, big-realloc
//                 CALLS blocks of 8 MiB that are never freed; realloc grows them from 4 MiB
//   dependencies  thread 0 allocates CALLS blocks; then thread 1 frees them, CROSS % of them with
//                 a separate dependency
//   holes         CALLS blocks each of 256 and 512 bytes, a quarter of them stays live (see
//                 make_holes), and CROSS calls of free(NULL)
//   queue         thread 0 allocates CALLS blocks of 4 KiB, which thread 1 frees; at most CROSS of
//                 them are live
//   paced         each thread allocates and frees a block every 10 ms, CALLS times
//   threads       THREADS threads, four at a time, with CALLS calls and a block from the parent
#include "base/buf.h"
#include "base/fio.h"
#include "workload/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_A_THREAD = 10000, MAX_THREADS = 1 << 16 };

static struct workload_output to;
static uint32_t n_slots;
static uint64_t stamp, live, peak, seed = 88172645463325252ull;
static uint64_t ops_of[MAX_THREADS];
static uint64_t to_make[HT_KIND_LIMIT]; // number of calls of each kind that the player must make
static int64_t live_blocks;

struct block {
    uint32_t slot, thread; // thread that allocated the block
    uint64_t op, size;     // number of the allocating op
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

// Returns a random size from 8 to 1,024. The power of two has a geometric distribution, and sizes
// between two powers are uniform.
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
    must(workload_output_op(&to, thread, &op, &error));
}

// The slots that each thread has freed. Only the same thread reuses them.
static struct {
    uint32_t *slots;
    size_t n, capacity;
} free_slots[MAX_THREADS];

static uint32_t allocate_slot(uint32_t thread)
{
    return free_slots[thread].n ? free_slots[thread].slots[--free_slots[thread].n] : n_slots++;
}

static void free_slot(uint32_t thread, uint32_t slot)
{
    must(
        HT_GROW(&free_slots[thread].slots, &free_slots[thread].capacity, free_slots[thread].n + 1));
    free_slots[thread].slots[free_slots[thread].n++] = slot;
}

static void count_live(uint64_t change)
{
    live += change;
    peak = live > peak ? live : peak;
}

static struct block allocate(uint32_t thread, struct workload_op op)
{
    struct block b = {allocate_slot(thread), thread, ops_of[thread],
                      event_requested(op.kind, op.size, op.count)};
    op.slot = b.slot;
    live_blocks++;
    count_live(b.size);
    put(thread, op);
    return b;
}

// Frees the block in `thread`, with a dependency if another thread allocated it.
static void deallocate(uint32_t thread, const struct block *b, struct workload_op op)
{
    struct workload_dependency dependency = {b->thread, b->op};
    op.slot = b->slot;
    if (b->thread != thread) {
        op.dependencies = &dependency;
        op.n_dependencies = 1;
    }
    live_blocks--;
    count_live(0 - b->size);
    put(thread, op);
    free_slot(thread, b->slot);
}

static struct block malloc_block(uint32_t thread)
{
    return allocate(thread, (struct workload_op){.kind = HT_MALLOC, .size = pick_size()});
}

static void free_block(uint32_t thread, const struct block *b)
{
    deallocate(thread, b, (struct workload_op){.kind = HT_FREE});
}

// Starts a thread that depends on its parent.
static void start_thread(uint32_t parent, uint32_t child)
{
    struct workload_dependency dependency = {parent, ops_of[parent]};
    put(parent,
        (struct workload_op){.kind = HT_THREAD_CREATE, .value = child, .slot = WORKLOAD_NO_SLOT});
    put(child, (struct workload_op){.kind = HT_THREAD_START,
                                    .value = 0,
                                    .dependencies = &dependency,
                                    .n_dependencies = 1,
                                    .slot = WORKLOAD_NO_SLOT});
}

static void end_thread(uint32_t thread)
{
    put(thread, (struct workload_op){.kind = HT_THREAD_END, .slot = WORKLOAD_NO_SLOT});
}

static void make_churn(uint32_t threads, uint64_t calls, unsigned cross, bool orphans)
{
    struct block(*blocks)[SLOTS_A_THREAD] = calloc(threads, sizeof *blocks);
    must(blocks ? 0 : -ENOMEM);
    for (uint32_t t = 0; t < threads; t++) {
        if (t && !orphans)
            start_thread(0, t);
        for (unsigned i = 0; i < SLOTS_A_THREAD; i++)
            blocks[t][i] = malloc_block(t);
    }
    for (uint64_t i = 0; i < calls / 2; i++) {
        for (uint32_t t = 0; t < threads; t++) {
            struct block *b = &blocks[t][pick(SLOTS_A_THREAD)];
            free_block(pick(100) < cross ? (t + 1) % threads : t, b);
            *b = malloc_block(t);
        }
    }
    for (uint32_t t = threads; t-- > 0;) {
        for (unsigned i = 0; i < SLOTS_A_THREAD; i++)
            free_block(t, &blocks[t][i]);
        end_thread(t);
    }
    free(blocks);
}

static uint64_t pick_count(unsigned kind)
{
    return event_infos[kind].fields & HT_F_COUNT ? 1 + pick(9) : 0;
}

// Sizes are multiples of the alignment, as some allocators require.
static struct workload_op pick_allocation(unsigned kind)
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

// Returns a free of a matching kind. A block of a C++ function needs the matching delete.
static struct workload_op pick_free(unsigned allocated_by, const struct workload_op *allocation)
{
    static const uint8_t by_new[] = {HT_DELETE, HT_DELETE_SIZED, HT_DELETE_NOTHROW};
    static const uint8_t by_new_array[] = {HT_DELETE_ARRAY, HT_DELETE_ARRAY_SIZED,
                                           HT_DELETE_ARRAY_NOTHROW};
    static const uint8_t by_aligned[] = {HT_DELETE_ALIGNED, HT_DELETE_SIZED_ALIGNED,
                                         HT_DELETE_ALIGNED_NOTHROW};
    static const uint8_t by_array_aligned[] = {
        HT_DELETE_ARRAY_ALIGNED, HT_DELETE_ARRAY_SIZED_ALIGNED, HT_DELETE_ARRAY_ALIGNED_NOTHROW};
    struct workload_op op = {.kind = HT_FREE, .size = allocation->size, .align = allocation->align};
    if (allocated_by == HT_NEW || allocated_by == HT_NEW_NOTHROW)
        op.kind = by_new[pick(3)];
    else if (allocated_by == HT_NEW_ARRAY || allocated_by == HT_NEW_ARRAY_NOTHROW)
        op.kind = by_new_array[pick(3)];
    else if (allocated_by == HT_NEW_ALIGNED || allocated_by == HT_NEW_ALIGNED_NOTHROW)
        op.kind = by_aligned[pick(3)];
    else if (allocated_by == HT_NEW_ARRAY_ALIGNED || allocated_by == HT_NEW_ARRAY_ALIGNED_NOTHROW)
        op.kind = by_array_aligned[pick(3)];
    else if (allocated_by == HT_MALLOC && pick(2))
        op.kind = HT_FREE_SIZED;
    else if (allocated_by == HT_ALIGNED_ALLOC && pick(2))
        op.kind = HT_FREE_ALIGNED_SIZED;
    if (!(event_infos[op.kind].fields & HT_F_SIZE))
        op.size = 0;
    if (!(event_infos[op.kind].fields & HT_F_ALIGN))
        op.align = 0;
    return op;
}

static void resize(uint32_t thread, struct block *b)
{
    struct workload_op op = {
        .kind = pick(4) ? HT_REALLOC : HT_REALLOCARRAY, .size = pick_size(), .slot = b->slot};
    op.count = pick_count(op.kind);
    count_live(event_requested(op.kind, op.size, op.count) - b->size);
    b->size = event_requested(op.kind, op.size, op.count);
    b->op = ops_of[thread];
    put(thread, op);
}

// Adds calls that have no effect, and calls that had no effect in the recording because they
// failed.
static void put_odd_calls(uint32_t thread)
{
    put(thread, (struct workload_op){.kind = HT_FREE, .slot = WORKLOAD_NO_SLOT});
    put(thread, (struct workload_op){.kind = HT_DELETE, .slot = WORKLOAD_NO_SLOT});
    put(thread, (struct workload_op){.kind = HT_MALLOC,
                                     .size = 1ull << 60,
                                     .flags = WORKLOAD_FAILED,
                                     .error = ENOMEM,
                                     .slot = WORKLOAD_NO_SLOT});
    put(thread, (struct workload_op){
                    .kind = HT_MARK, .text = "here", .text_bytes = 4, .slot = WORKLOAD_NO_SLOT});
    struct block b = allocate(thread, (struct workload_op){.kind = HT_MALLOC, .size = 100});
    deallocate(thread, &b, (struct workload_op){.kind = HT_REALLOC, .flags = WORKLOAD_FREED});
}

static void make_kinds(uint32_t threads, uint64_t calls)
{
    enum { BLOCKS = 200 };
    static struct block blocks[BLOCKS];
    static struct workload_op allocations[BLOCKS];
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
        start_thread(0, t);
    for (unsigned i = 0; i < 20; i++)
        blocks[i] = allocate(0, (struct workload_op){.kind = HT_PREEXISTING, .size = 64});
    for (uint64_t n = 0; n < calls; n++) {
        unsigned i = (unsigned)pick(BLOCKS);
        uint32_t t = (uint32_t)pick(threads);
        bool resizable = !allocations[i].align && allocations[i].kind != HT_VALLOC &&
                         allocations[i].kind != HT_PVALLOC && allocations[i].kind < HT_NEW &&
                         allocations[i].kind && blocks[i].thread == t;
        if (!blocks[i].size) {
            allocations[i] = pick_allocation(kinds[pick(sizeof kinds)]);
            blocks[i] = allocate(t, allocations[i]);
        } else if (resizable && pick(3) == 0) {
            resize(t, &blocks[i]);
            allocations[i].kind = HT_REALLOC;
        } else {
            deallocate(t, &blocks[i], pick_free(allocations[i].kind, &allocations[i]));
            blocks[i].size = 0;
        }
        if (n % 1000 == 0)
            put_odd_calls(t);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (blocks[i].size)
            deallocate(0, &blocks[i], pick_free(allocations[i].kind, &allocations[i]));
    }
}

static void make_misfit(uint64_t calls)
{
    for (uint64_t i = 0; i < calls; i++) {
        struct block b = malloc_block(0);
        deallocate(0, &b, (struct workload_op){.kind = HT_DELETE});
    }
}

static void make_threads(uint32_t threads, uint64_t calls)
{
    enum { AT_ONCE = 4 };
    struct block handed[AT_ONCE];
    for (uint32_t first = 1; first <= threads; first += AT_ONCE) {
        for (uint32_t i = 0; i < AT_ONCE && first + i <= threads; i++) {
            start_thread(0, first + i);
            handed[i] = malloc_block(0);
        }
        for (uint32_t i = 0; i < AT_ONCE && first + i <= threads; i++) {
            free_block(first + i, &handed[i]);
            for (uint64_t n = 0; n < calls; n += 2) {
                struct block b = malloc_block(first + i);
                free_block(first + i, &b);
            }
            handed[i] = malloc_block(first + i);
            end_thread(first + i);
        }
        for (uint32_t i = 0; i < AT_ONCE && first + i <= threads; i++)
            free_block(0, &handed[i]);
    }
}

static void make_leave(uint64_t calls)
{
    static const uint8_t kinds[] = {HT_MALLOC,      HT_CALLOC,
                                    HT_REALLOC,     HT_ALIGNED_ALLOC,
                                    HT_NEW,         HT_NEW_ARRAY_NOTHROW,
                                    HT_NEW_ALIGNED, HT_NEW_ARRAY_ALIGNED};
    allocate(0, (struct workload_op){.kind = HT_PREEXISTING, .size = 64});
    for (uint64_t n = 0; n < calls; n++)
        allocate(0, pick_allocation(kinds[n % sizeof kinds]));
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
        struct block b = allocate(0, op);
        if (op.size != BIG / 2)
            continue;
        count_live(BIG / 2);
        put(0, (struct workload_op){.kind = HT_REALLOC, .size = BIG, .slot = b.slot});
    }
}

static void make_dependencies(uint64_t calls, unsigned cross)
{
    struct block *blocks = calloc(calls, sizeof *blocks);
    start_thread(0, 1);
    for (uint64_t n = 0; n < calls; n++)
        blocks[n] = malloc_block(0);
    for (uint64_t n = 0; n < calls; n++) {
        // Thread 1 frees the last block first, so the first dependency covers all blocks.
        struct block *b = &blocks[n ? n - 1 : calls - 1];
        if (n && pick(100) >= cross)
            b->thread = 1;
        free_block(1, b);
    }
    free(blocks);
}

static void make_queue(uint64_t calls, uint64_t bound)
{
    struct block *blocks = calloc(calls, sizeof *blocks);
    start_thread(0, 1);
    for (uint64_t n = 0; n < calls + bound; n++) {
        if (n >= bound)
            free_block(1, &blocks[n - bound]);
        if (n < calls)
            blocks[n] = allocate(0, (struct workload_op){.kind = HT_MALLOC, .size = 4096});
    }
    free(blocks);
}

static void make_paced(uint32_t threads, uint64_t calls)
{
    for (uint32_t t = 1; t < threads; t++)
        start_thread(0, t);
    for (uint64_t n = 0; n < calls; n++) {
        stamp += 10000000;
        for (uint32_t t = 0; t < threads; t++) {
            struct block b = malloc_block(t);
            free_block(t, &b);
        }
    }
}

// Two threads allocate small blocks. A fourth of the blocks is live at the peak, which a large
// block causes. Then thread 1 replaces its blocks without a dependency, and the large block is
// freed.
//
// A snapshot at the peak must wait for thread 1 and stop it, because thread 1 depends on no other
// thread. Thread 2 makes `idle` calls before the peak, which delay the peak further.
static void make_holes(uint64_t calls, uint64_t idle)
{
    enum { BIG = 1 << 20, KEPT = 4 };
    struct block *ours = calloc(calls, sizeof *ours), *others = calloc(calls, sizeof *others);
    struct workload_op small = {.kind = HT_MALLOC, .size = 256, .value = 1};
    struct workload_op other = {.kind = HT_MALLOC, .size = 512, .value = 2};
    start_thread(0, 1);
    start_thread(0, 2);
    for (uint64_t n = 0; n < idle; n++)
        put(2, (struct workload_op){.kind = HT_FREE, .slot = WORKLOAD_NO_SLOT});
    for (uint64_t n = 0; n < calls; n++) {
        ours[n] = allocate(0, small);
        others[n] = allocate(1, other);
    }
    for (uint64_t n = 0; n < calls; n++) {
        if (n % KEPT) {
            free_block(0, &ours[n]);
            free_block(1, &others[n]);
        }
    }
    struct block big = allocate(0, (struct workload_op){.kind = HT_MALLOC, .size = BIG});
    put(0, (struct workload_op){.kind = HT_FREE, .slot = WORKLOAD_NO_SLOT});
    for (uint64_t n = 0; n < calls; n += KEPT) {
        free_block(1, &others[n]);
        others[n] = allocate(1, other);
    }
    free_block(0, &big);
    free(ours);
    free(others);
}

// Defines the call sites of the ops of make_holes.
static void define_sites(struct workload_sites *sites)
{
    const uint64_t address[] = {0x1000, 0x2000};
    for (uint32_t i = 0; i < 2; i++)
        must(workload_sites_define(sites, i + 1, (const char *)&address[i], 1));
    workload_write_sites(to.writer, sites);
}

static void print_facts(void)
{
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (to_make[kind])
            printf("call %s %llu\n", event_infos[kind].name, (unsigned long long)to_make[kind]);
    }
    printf("live %lld\n", (long long)live_blocks);
    printf("peak_live_bytes %llu\n", (unsigned long long)peak);
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
    must(workload_output_begin(&to, &out, 1, &header, &error));
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
    else if (strcmp(argv[2], "dependencies") == 0)
        make_dependencies(calls, argc > 5 ? (unsigned)strtoul(argv[5], NULL, 0) : 0);
    else if (strcmp(argv[2], "queue") == 0)
        make_queue(calls, argc > 5 ? strtoull(argv[5], NULL, 0) : 1);
    else if (strcmp(argv[2], "paced") == 0)
        make_paced(threads, calls);
    else
        make_threads(threads, calls);
    struct workload_summary summary = workload_output_summary(&to);
    struct workload_sites sites = {0};
    define_sites(&sites);
    must(workload_write_end(to.writer, &summary, &error));
    workload_sites_release(&sites);
    workload_output_release(&to);
    must(output_close(&out, true, &error));
    print_facts();
    return 0;
}
