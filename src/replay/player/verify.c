// --verify detects violations of the malloc contract: overlapping blocks, wrong alignment, blocks
// that are too small, memory from calloc that is not zero, and contents lost by realloc or
// overwritten by the allocator.
//
// Each block is filled with its own pattern. The pattern is checked when the block is freed or
// resized, and at the end of the replay. A shadow map has one bit for every 8 bytes of live address
// space. Therefore memory that is allocated twice is detected immediately, across threads, even
// before anything is written to it.
#include "replay/player/player.h"

#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

enum {
    GRANULE_BITS = 3, // blocks smaller than 16 bytes may be aligned to 8
    ADDRESS_BITS = 48,
    GRANULE = 1 << GRANULE_BITS,
    LEAF_BITS = 26, // log2 of the bytes covered by a leaf of the shadow map, which needs 1 MiB
    LEAF_GRANULES = 1 << (LEAF_BITS - GRANULE_BITS),
    LEAVES = 1 << (ADDRESS_BITS - LEAF_BITS),
    MALLOC_ALIGN = 16, // alignment for any type (max_align_t on x86-64 and aarch64)
    MIN_PAGE_BYTES = 4096,
};

// An entry's block.
struct verified_block {
    char *block;             // NULL if there is no block
    uint64_t size;           // if there is no block: the old size during a realloc, otherwise 0
    uint64_t usable;         // bytes of the block, at least `size`
    uint64_t seed, position; // seed of the pattern; word number of the allocation in the plan
    uint32_t thread;         // thread that allocated the block
};

struct leaf {
    _Atomic uint64_t live[LEAF_GRANULES / 64];
};

// The check in progress in this thread. If a signal arrives during the check, the allocator has
// returned a wild or read-only pointer.
struct check {
    const struct player_thread *thread;
    const struct verified_block *block; // NULL if no check is in progress
    unsigned kind;
};

static __thread struct check check __attribute__((tls_model("initial-exec")));

static struct verified_block *verified; // indexed by entry
static struct leaf *_Atomic *leaves;
static _Atomic uint64_t blocks;

static void on_fault(int signal_number, siginfo_t *info, void *context);

void player_verify_init(void)
{
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &fault, NULL);
    sigaction(SIGBUS, &fault, NULL);
    verified = player_map_shared(player.plan->slot_table_entries * sizeof *verified, MAP_POPULATE);
    leaves = player_map_shared(LEAVES * sizeof *leaves, MAP_NORESERVE);
}

static _Noreturn void violated(enum results_violation what, const struct player_thread *t,
                               unsigned kind, const struct verified_block *c, uint64_t at)
{
    struct results *r = player.results;
    player_claim_failure();
    r->failed_violation = what;
    r->failed_at = at;
    if (what != RESULTS_OVERLAP && what != RESULTS_USABLE_OVERLAP) { // set by find_other()
        r->other_thread = c->thread;
        r->other_position = c->position;
    }
    player_report_failure(RESULTS_VIOLATION, t, kind, c->size, 0);
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    struct results *r = player.results;
    struct check c = check;
    (void)context;
    if (!c.block || !c.block->block) { // outside a check, behave as if there were no handler
        signal(signal_number, SIG_DFL);
        raise(signal_number);
        return;
    }
    player_claim_failure();
    r->failed_violation = RESULTS_UNUSABLE;
    r->failed_at = (uintptr_t)c.block->block;
    r->failed_wanted = (uintptr_t)info->si_addr;
    r->other_thread = c.block->thread;
    r->other_position = c.block->position;
    player_report_failure(RESULTS_VIOLATION, c.thread, c.kind, c.block->size, info->si_code);
}

static struct leaf *leaf_of(uint64_t granule)
{
    struct leaf *_Atomic *at = &leaves[granule / LEAF_GRANULES % LEAVES], *none = NULL;
    struct leaf *leaf = atomic_load_explicit(at, memory_order_acquire);
    if (leaf)
        return leaf;
    leaf = player_map_shared(sizeof *leaf, MAP_NORESERVE);
    if (atomic_compare_exchange_strong(at, &none, leaf))
        return leaf;
    munmap(leaf, sizeof *leaf);
    return none;
}

// Marks the block's memory as live or free. Returns false if part of the memory already has that
// mark.
static bool mark(const char *block, uint64_t size, bool live)
{
    uint64_t first = (uintptr_t)block >> GRANULE_BITS;
    uint64_t end = (((uintptr_t)block + (size ? size : 1) - 1) >> GRANULE_BITS) + 1;
    bool was_other = true;
    while (first < end) {
        unsigned bit = first % 64;
        uint64_t n = end - first < 64 - bit ? end - first : 64 - bit;
        uint64_t mask = (n == 64 ? UINT64_MAX : (1ull << n) - 1) << bit;
        _Atomic uint64_t *word = &leaf_of(first)->live[first % LEAF_GRANULES / 64];
        uint64_t had = live ? atomic_fetch_or(word, mask) : ~atomic_fetch_and(word, ~mask);
        was_other &= !(had & mask);
        first += n;
    }
    return was_other;
}

static uint64_t pattern_word(uint64_t seed, uint64_t n)
{
    // Knuth's multiplicative hash: adjacent words differ in all bytes.
    return (seed + n) * 0x9e3779b97f4a7c15u;
}

static unsigned char pattern_byte(uint64_t seed, uint64_t at)
{
    uint64_t word = pattern_word(seed, at / 8);
    return ((const unsigned char *)&word)[at % 8];
}

static void write_pattern(char *block, uint64_t size, uint64_t seed)
{
    uint64_t at = 0;
    for (; at + 8 <= size; at += 8) {
        uint64_t word = pattern_word(seed, at / 8);
        __builtin_memcpy(block + at, &word, sizeof word);
    }
    for (; at < size; at++)
        block[at] = (char)pattern_byte(seed, at);
}

// Returns the offset of the first byte that differs from the pattern, or `size`.
static uint64_t find_change(const char *block, uint64_t size, uint64_t seed)
{
    uint64_t at = 0, word;
    for (; at + 8 <= size; at += 8) {
        __builtin_memcpy(&word, block + at, sizeof word);
        if (word != pattern_word(seed, at / 8))
            break;
    }
    while (at < size && (unsigned char)block[at] == pattern_byte(seed, at))
        at++;
    return at;
}

static uint64_t find_nonzero(const char *block, uint64_t size)
{
    uint64_t at = 0;
    while (at < size && !block[at])
        at++;
    return at;
}

// Returns the alignment that a call must provide. If a block is too small for any type with that
// alignment, C permits a smaller alignment. Allocators align such blocks to 8.
static uint64_t wanted_alignment(const struct player_thread *t, unsigned kind, uint64_t size)
{
    uint64_t usual = size < MALLOC_ALIGN ? 1 << GRANULE_BITS : MALLOC_ALIGN, asked = 1;
    if (kind == HT_VALLOC || kind == HT_PVALLOC)
        asked = getauxval(AT_PAGESZ);
    else if (event_infos[kind].fields & HT_F_ALIGN || kind == HT_PREEXISTING)
        asked = player_alignment(t);
    // memalign rounds an alignment up if it is not a power of two.
    return asked > usual && !(asked & (asked - 1)) ? asked : usual;
}

static bool ranges_overlap(const char *a, uint64_t a_bytes, const char *b, uint64_t b_bytes)
{
    return a < b + b_bytes + !b_bytes && b < a + a_bytes + !a_bytes;
}

// Finds a live block that overlaps `c`. The search is slow, but it runs only just before the
// process ends. It may fail, because other threads are still running.
static const struct verified_block *find_other(const struct verified_block *c)
{
    struct results *r = player.results;
    for (uint64_t i = 0; i < player.plan->slot_table_entries; i++) {
        const struct verified_block *o = &verified[i];
        if (o != c && o->block && ranges_overlap(c->block, c->usable, o->block, o->usable)) {
            r->other_thread = o->thread;
            r->other_position = o->position;
            return o;
        }
    }
    return NULL;
}

static _Noreturn void overlapped(const struct player_thread *t, unsigned kind,
                                 const struct verified_block *c)
{
    const struct verified_block *o = find_other(c);
    if (!o || ranges_overlap(c->block, c->size, o->block, o->size))
        violated(RESULTS_OVERLAP, t, kind, c, 0);
    player.results->failed_wanted = o->usable;
    violated(RESULTS_USABLE_OVERLAP, t, kind, c, c->usable);
}

// Reads a byte of each page after the first `from` bytes, so that a usable size that is too big
// ends in on_fault() before the shadow map needs memory for it.
static void read_pages(const struct verified_block *c, uint64_t from)
{
    for (uint64_t at = from; at < c->usable; at += MIN_PAGE_BYTES)
        (void)*(volatile const char *)(c->block + at);
    if (from < c->usable)
        (void)*(volatile const char *)(c->block + c->usable - 1);
}

// A program may use all bytes that malloc_usable_size reports, so they belong to the block.
static void check_address(const struct player_thread *t, unsigned kind, struct verified_block *c)
{
    uint64_t align = wanted_alignment(t, kind, c->size), at = (uintptr_t)c->block;
    if (at % align || at >> ADDRESS_BITS) {
        player.results->failed_wanted = align;
        violated(RESULTS_MISALIGNED, t, kind, c, at);
    }
    c->usable = player.usable_size ? player.usable_size(c->block) : c->size;
    if (c->usable < c->size)
        violated(RESULTS_TOO_SMALL, t, kind, c, c->usable);
    if (!mark(c->block, c->size, true))
        overlapped(t, kind, c);
    uint64_t marked = (c->size + !c->size + GRANULE - 1) & ~(uint64_t)(GRANULE - 1);
    read_pages(c, c->size);
    if (c->usable > marked && !mark(c->block + marked, c->usable - marked, true))
        overlapped(t, kind, c);
}

void player_verify_allocated(struct player_thread *t, unsigned kind, uint64_t entry, void *block,
                             uint64_t size)
{
    struct verified_block *c = &verified[entry];
    uint64_t had = c->size < size ? c->size : size, seed = c->seed;
    c->size = 0;
    if (!block)
        return;
    uint64_t position = player_position(t);
    *c = (struct verified_block){block, size,     size,
                                 seed,  position, kind == HT_PREEXISTING ? UINT32_MAX : t->number};
    check = (struct check){t, c, kind};
    check_address(t, kind, c);
    if (event_infos[kind].class == HT_CLASS_RESIZE && find_change(block, had, seed) < had)
        violated(RESULTS_LOST_CONTENT, t, kind, c, find_change(block, had, seed));
    if (kind == HT_CALLOC && find_nonzero(block, size) < size)
        violated(RESULTS_NOT_ZEROED, t, kind, c, find_nonzero(block, size));
    c->seed = position << 20; // the patterns of two ops have no word in common within 8 MiB
    write_pattern(block, size, c->seed);
    check.block = NULL;
    atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
}

static void check_content(const struct player_thread *t, unsigned kind,
                          const struct verified_block *c)
{
    check = (struct check){t, c, kind};
    uint64_t at = find_change(c->block, c->size, c->seed);
    check.block = NULL;
    if (at < c->size)
        violated(RESULTS_OVERWRITTEN, t, kind, c, at);
}

void player_verify_free(struct player_thread *t, unsigned kind, uint64_t entry)
{
    struct verified_block *c = &verified[entry];
    if (!c->block)
        return;
    check_content(t, kind, c);
    mark(c->block, c->usable, false);
    c->block = NULL;
    if (event_infos[kind].class != HT_CLASS_RESIZE)
        c->size = 0;
}

void player_verify_leftovers(void)
{
    for (uint64_t i = 0; i < player.plan->slot_table_entries; i++) {
        if (verified[i].block)
            check_content(NULL, HT_THREAD_END, &verified[i]);
    }
    player.results->report.checked_blocks = atomic_load(&blocks);
}
