#include "capture/producer/producer_residency.h"
#include "capture/producer/producer_private.h"

#include <linux/seccomp.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/uio.h>

enum {
    BLOCKS = 1 << 13, // number of entries in the table
    GROUP = 64,       // number of entries in a group
    // Blocks are added to the first part of the table while it has space, so that most of the
    // table's pages are never touched.
    FIRST_BLOCKS = 1 << 9,
    FIRST_PROBES = 16,
    PROBES = 32,
    RESERVED = 1, // address in an entry that is being filled in
    // Pages per mincore call. The fixed cost of a call equals the cost of 2,000 pages.
    VECTOR_PAGES = 4096,
    // Pages per mincore call while another thread uses the vector. The buffer is then on the stack,
    // which may be a small signal stack.
    STACK_PAGES = 512,
    // Maximum number of pages whose contents are read. In larger blocks, a sample of the pages is
    // read.
    CHECKED_PAGES = 128,
    READ_PAGES = 16, // number of pages read at a time
    ALWAYS = 4,      // number of blocks per size class that are measured regardless of cost
    // Measuring may use 1/COST_SHARE of the time since the start, plus COST_FREE ticks (less than a
    // millisecond).
    COST_SHARE = 200,
    COST_FREE = 1 << 21,
    // Limits on the counted cost of a block and of a page. A measurement that takes longer was
    // interrupted by another program.
    MAX_BLOCK_TICKS = 1 << 18,
    MAX_PAGE_TICKS = 1 << 7,
    // Blocks smaller than SMALL_BYTES are measured only while the cost is below 1/SMALL_PART of
    // this budget, so that time remains for larger blocks.
    SMALL_BYTES = 1 << 15,
    SMALL_PART = 4,
    BIG_BYTES = 1 << 20, // blocks of at least this size are measured first at exit
    // Live blocks of a size between FOLLOWED_BYTES and FOLLOWED_MAX_BYTES are measured repeatedly.
    // The interval is 1/FOLLOW_PART of the time since the start, within FOLLOW_MIN_TICKS and
    // FOLLOW_MAX_TICKS.
    FOLLOWED_BYTES = 1 << 18,
    FOLLOWED_MAX_BYTES = 1 << 28,
    FOLLOW_MIN_TICKS = 1 << 22,
    FOLLOW_MAX_TICKS = 1 << 25,
    FOLLOW_PART = 64,
};

struct block {
    uint64_t size;
    uint32_t pid;      // the process that recorded the block; fork children inherit the table
    bool zeroed;       // allocated by calloc
    bool chosen;       // the block will be measured
    uint64_t resident; // resident pages when the block was allocated
    // Set when the block is removed from the table: the used bytes in the block's last record, and
    // the last time at which a measurement confirmed that value.
    uint64_t used, unchanged_at;
};

// A live block. The thread that allocated the block writes the entry before the program gets the
// block's address.
struct residency_entry {
    _Atomic uint64_t address; // 0 if unused
    _Atomic uint64_t seen;    // resident pages at the last measurement, plus 1; 0 if not measured
    _Atomic uint64_t used;    // used bytes at the last measurement
    _Atomic uint64_t unchanged_at; // ticks of the last measurement that found no change, or 0
    struct block block;
};

_Atomic uint8_t producer_residency_filter[RESIDENCY_PLACES];
// One bit per group. It is set when the group is first used, so that the pages of unused groups are
// not touched at exit.
static _Atomic uint64_t groups[BLOCKS / GROUP / 64];

// Mapped on demand, because variables count towards RLIMIT_DATA.
static struct memory {
    struct residency_entry entries[BLOCKS];
    char contents[READ_PAGES * 4096];
    unsigned char vector[VECTOR_PAGES];
} * memory;

struct measured {
    uint64_t resident, used, front; // pages
};

static _Atomic uint8_t *filter_at(uint64_t address)
{
    return &producer_residency_filter[address >> RESIDENCY_PAGE_BITS & (RESIDENCY_PLACES - 1)];
}

// Adds 1 or -1 to the counter of the address. A counter that has reached RESIDENCY_COUNT stays
// full, and a counter of 0 is not decremented.
static void filter_count(uint64_t address, int change)
{
    uint8_t was = atomic_load_explicit(filter_at(address), memory_order_relaxed);
    while ((was & RESIDENCY_COUNT) < RESIDENCY_COUNT && (was & RESIDENCY_COUNT) + change >= 0 &&
           !atomic_compare_exchange_weak_explicit(filter_at(address), &was, (uint8_t)(was + change),
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
}

void producer_residency_hint_always(void)
{
    memset((void *)producer_residency_filter, RESIDENCY_ALWAYS, sizeof producer_residency_filter);
}

void producer_residency_forget(void)
{
    memset((void *)producer_residency_filter, 0, sizeof producer_residency_filter);
    if (memory)
        producer_unmap_private(memory, sizeof *memory);
    memory = NULL;
}

bool producer_residency_start(void)
{
    if (!memory && !producer_memory_is_scarce(sizeof *memory))
        memory = producer_map_private(sizeof *memory);
    return memory != NULL;
}

static struct residency_entry *entry_at(uint64_t address, unsigned i)
{
    uint64_t place = ((address >> 4) * 0x9e3779b97f4a7c15u >> 48) + i;
    return &memory->entries[place & ((i < FIRST_PROBES ? FIRST_BLOCKS : BLOCKS) - 1)];
}

static struct residency_entry *find_entry(uint64_t address)
{
    for (unsigned i = 0; i < PROBES; i++) {
        if (atomic_load_explicit(&entry_at(address, i)->address, memory_order_acquire) == address)
            return entry_at(address, i);
    }
    return NULL;
}

// Removes the block and copies its data to *copy. Returns false if the block is not in the table or
// another thread removed it first.
static bool remove_block(struct residency_entry *from, uint64_t address, struct block *copy)
{
    if (!from)
        return false;
    *copy = from->block;
    copy->used = atomic_load_explicit(&from->used, memory_order_relaxed);
    copy->unchanged_at = atomic_load_explicit(&from->unchanged_at, memory_order_relaxed);
    if (!atomic_compare_exchange_strong_explicit(&from->address, &address, 0, memory_order_acq_rel,
                                                 memory_order_relaxed))
        return false;
    filter_count(address, -1);
    return true;
}

static void mark_group(unsigned group)
{
    const uint64_t bit = 1ull << group % 64;
    if (!(atomic_load_explicit(&groups[group / 64], memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(&groups[group / 64], bit, memory_order_relaxed);
}

// If the release of a block at the address was missed, removes the block.
static void remove_missed(uint64_t address)
{
    struct block old;
    if (producer_residency_big_hint(address))
        remove_block(find_entry(address), address, &old);
}

// Adds a block. If there is no space, the block is not tracked.
static void add_block(uint64_t address, const struct block *from)
{
    remove_missed(address);
    for (unsigned i = 0; i < PROBES; i++) {
        struct residency_entry *to = entry_at(address, i);
        uint64_t none = 0;
        if (!atomic_compare_exchange_strong_explicit(&to->address, &none, RESERVED,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        to->block = *from;
        atomic_store_explicit(&to->seen, 0, memory_order_relaxed);
        atomic_store_explicit(&to->unchanged_at, 0, memory_order_relaxed);
        filter_count(address, 1);
        mark_group((unsigned)(to - memory->entries) / GROUP);
        atomic_store_explicit(&to->address, address, memory_order_release);
        return;
    }
}

static uint64_t page_bytes(void)
{
    return getauxval(AT_PAGESZ);
}

// Counts the pages that are not all zeros. The program may have made pages inaccessible, so the
// kernel reads them. Inaccessible pages count as used.
static uint64_t count_used(const struct iovec *pages, unsigned n, uint64_t bytes, uint64_t *leading)
{
    const struct iovec to = {memory->contents, n * bytes};
    long got =
        syscall(SYS_process_vm_readv, (long)producer_inherited.pid, &to, 1l, pages, (long)n, 0l);
    uint64_t used = 0, front = 0;
    for (unsigned i = 0; i < n; i++) {
        const uint64_t *words = (const uint64_t *)(memory->contents + i * bytes);
        bool is_used = got < (long)((i + 1) * bytes);
        for (uint64_t w = 0; !is_used && w < bytes / 8; w++)
            is_used = words[w];
        used += is_used;
        front += is_used && front == i;
    }
    *leading = front;
    return used;
}

// Consecutive pages. `resident` has one byte per page; bit 0 of the byte is set if the page is
// resident.
struct residency_part {
    uint64_t first, n;
    const unsigned char *resident;
};

// Calls `each` for every part of a range of pages. Returns false if the kernel does not report
// which pages are resident.
static bool each_part(struct producer_process *p, uint64_t start, uint64_t pages,
                      void (*each)(void *context, const struct residency_part *part), void *context)
{
    unsigned char own[STACK_PAGES], *to = own;
    uint64_t bytes = page_bytes(), most = STACK_PAGES;
    bool known = true,
         shared = pages > STACK_PAGES &&
                  !atomic_exchange_explicit(&p->residency.counting, 1, memory_order_acquire);
    if (shared) {
        to = memory->vector;
        most = VECTOR_PAGES;
    }
    for (uint64_t at = 0; known && at < pages; at += most) {
        uint64_t n = pages - at < most ? pages - at : most;
        known = syscall(SYS_mincore, start + at * bytes, n * bytes, to) == 0;
        if (known)
            each(context, &(struct residency_part){at, n, to});
    }
    if (shared)
        atomic_store_explicit(&p->residency.counting, 0, memory_order_release);
    return known;
}

static void count_part(void *context, const struct residency_part *part)
{
    struct measured *m = context;
    uint64_t leading = 0;
    while (leading < part->n && part->resident[leading] & 1)
        leading++;
    m->front += m->front == part->first ? leading : 0;
    m->resident += leading;
    for (uint64_t i = leading; i < part->n; i++)
        m->resident += part->resident[i] & 1;
}

// State of a loop that reads every `step`-th resident page of a zeroed block.
struct reading {
    uint64_t start, bytes, step, seen, checked, used, front;
    struct iovec pages[READ_PAGES];
    unsigned n;
};

static void read_pages(struct reading *r)
{
    uint64_t leading;
    if (!r->n)
        return;
    r->used += count_used(r->pages, r->n, r->bytes, &leading);
    r->front += r->front == r->checked ? leading : 0;
    r->checked += r->n;
    r->n = 0;
}

static void read_part(void *context, const struct residency_part *part)
{
    struct reading *r = context;
    for (uint64_t i = 0; i < part->n; i++) {
        if (!(part->resident[i] & 1) || r->seen++ % r->step)
            continue;
        r->pages[r->n++] =
            (struct iovec){(void *)(r->start + (part->first + i) * r->bytes), r->bytes};
        if (r->n == sizeof memory->contents / r->bytes)
            read_pages(r);
    }
}

// Excludes pages that the kernel or the allocator filled with zeros: they are resident, but the
// program has not used them.
static bool exclude_zeros(struct producer_process *p, uint64_t start, uint64_t pages,
                          struct measured *m)
{
    struct reading r = {
        .start = start, .bytes = page_bytes(), .step = m->resident / CHECKED_PAGES + 1};
    if (!m->resident)
        return true;
    if (r.bytes > sizeof memory->contents ||
        atomic_exchange_explicit(&p->residency.reading, 1, memory_order_acquire))
        return false;
    bool done = each_part(p, start, pages, read_part, &r);
    read_pages(&r);
    atomic_store_explicit(&p->residency.reading, 0, memory_order_release);
    if (!done || !r.checked)
        return false;
    uint64_t front = r.front == r.checked ? m->resident : r.front * r.step;
    m->used = m->resident * r.used / r.checked;
    m->front = front < m->front ? front : m->front;
    m->front = m->front < m->used ? m->front : m->used;
    return true;
}

// Returns the number of pages that lie completely inside the block, and sets *start to the address
// of the first such page.
static uint64_t inner_pages(uint64_t address, uint64_t size, uint64_t *start)
{
    uint64_t bytes = page_bytes(), end = (address + size) & ~(bytes - 1);
    *start = (address + bytes - 1) & ~(bytes - 1);
    return end > *start ? (end - *start) / bytes : 0;
}

static unsigned size_class(uint64_t size)
{
    return 63 - (unsigned)__builtin_clzll(size | 1);
}

// If the cost so far permits measuring the block, counts the block as measured and returns true.
static bool can_afford(struct producer_process *p, uint64_t size, uint64_t now)
{
    uint64_t elapsed = now - (p->header->start_stamp << CODEC_STAMP_SHIFT);
    uint64_t ticks = atomic_load_explicit(&p->residency.ticks, memory_order_relaxed);
    _Atomic uint32_t *measured = &p->residency.measured[size_class(size)];
    uint64_t most = (elapsed / COST_SHARE + COST_FREE) / (size < SMALL_BYTES ? SMALL_PART : 1);
    if (ticks > most && atomic_load_explicit(measured, memory_order_relaxed) >= ALWAYS)
        return false;
    atomic_fetch_add_explicit(measured, 1, memory_order_relaxed);
    return true;
}

// Returns true in a sandbox, where an unexpected system call may kill the program.
static bool is_forbidden(const struct producer_process *p)
{
    return !p->measures || producer_inherited.sandbox;
}

// Returns the maximum cost of measuring a block.
static uint64_t max_cost(uint64_t pages)
{
    return MAX_BLOCK_TICKS + pages * MAX_PAGE_TICKS;
}

static uint64_t cost_since(const struct producer_process *p, uint64_t begun, uint64_t max)
{
    uint64_t ticks = clock_ticks(p->clock) - begun;
    return ticks < max ? ticks : max;
}

static void end_cost(struct producer_process *p, uint64_t begun, uint64_t pages)
{
    atomic_fetch_add_explicit(&p->residency.ticks, cost_since(p, begun, max_cost(pages)),
                              memory_order_relaxed);
}

// Decides whether a new block is measured. If so, determines how much of it is already resident
// because its memory was used before.
static void choose_block(struct producer_process *p, uint64_t address, struct block *b, bool fresh)
{
    struct measured m = {0};
    uint64_t start, pages = inner_pages(address, b->size, &start), begun = clock_ticks(p->clock);
    b->pid = p->pid;
    b->chosen = pages && !is_forbidden(p) && can_afford(p, b->size, begun);
    if (!b->chosen)
        return;
    if (!fresh || b->zeroed)
        return;
    b->chosen = each_part(p, start, pages, count_part, &m);
    b->resident = m.resident;
    end_cost(p, begun, pages);
}

static bool count_resident(struct producer_process *p, uint64_t address, const struct block *b,
                           struct measured *m)
{
    uint64_t start, pages = inner_pages(address, b->size, &start);
    *m = (struct measured){0};
    // If all pages were already resident, the number of resident pages cannot grow.
    if (b->resident != pages)
        return each_part(p, start, pages, count_part, m);
    m->resident = pages;
    return true;
}

// Counts the resident pages that the program has used.
static bool count_used_pages(struct producer_process *p, uint64_t address, const struct block *b,
                             struct measured *m)
{
    uint64_t start, pages = inner_pages(address, b->size, &start);
    m->used = m->resident > b->resident ? m->resident - b->resident : 0;
    m->front = m->front < m->used ? m->front : m->used;
    return !b->zeroed || exclude_zeros(p, start, pages, m);
}

// Records how long the block kept its previous number of used bytes. Call before writing a record
// with the new number.
static void put_unchanged(const struct producer_writer *w, uint64_t address, uint64_t used,
                          uint64_t unchanged_at)
{
    const struct event ev = {.kind = HT_RESIDENCY_UNCHANGED,
                             .ptr = address,
                             .count = used,
                             .value =
                                 (clock_ticks(w->p->clock) - unchanged_at) >> CODEC_STAMP_SHIFT};
    if (unchanged_at)
        producer_stream_put(w, &ev);
}

static void measure_block(const struct producer_writer *w, uint64_t address, const struct block *b)
{
    struct measured m;
    if (!b->chosen || is_forbidden(w->p))
        return;
    uint64_t bytes = page_bytes(), begun = clock_ticks(w->p->clock);
    // If a fork child inherited the block, its parent decided to measure it, so check the cost
    // again.
    if (b->pid != w->p->pid && !can_afford(w->p, b->size, begun))
        return;
    bool known = count_resident(w->p, address, b, &m) && count_used_pages(w->p, address, b, &m);
    end_cost(w->p, begun, b->size / bytes);
    const struct event ev = {.kind = HT_RESIDENCY,
                             .ptr = address,
                             .size = b->size,
                             .count = m.resident * bytes,
                             .align = m.used * bytes,
                             .value = m.front * bytes};
    if (!known)
        return;
    if (b->pid == w->p->pid && ev.align != b->used)
        put_unchanged(w, address, b->used, b->unchanged_at);
    producer_stream_put(w, &ev);
}

void producer_residency_before(const struct producer_writer *w, const struct event *ev,
                               bool recorded)
{
    enum event_class class = event_infos[ev->kind].class;
    struct block b;
    if ((class != HT_CLASS_FREE && class != HT_CLASS_HALF) ||
        !producer_residency_big_hint(ev->ptr) || !remove_block(find_entry(ev->ptr), ev->ptr, &b))
        return;
    if (recorded)
        measure_block(w, ev->ptr, &b);
    // If the realloc fails, the block stays live, so remember it.
    w->t->resized = class == HT_CLASS_HALF ? ev->ptr : 0;
    w->t->resized_bytes = b.size;
    w->t->resized_zeroed = b.zeroed;
}

void producer_residency_after(const struct producer_writer *w, const struct event *ev)
{
    enum event_class class = event_infos[ev->kind].class;
    if (class != HT_CLASS_ALLOC && class != HT_CLASS_RESIZE)
        return;
    struct producer_thread *t = w->t;
    bool resized = class == HT_CLASS_RESIZE && t->resized && t->resized == ev->ptr;
    struct block b = {.size = event_requested(ev->kind, ev->size, ev->count),
                      .zeroed = ev->kind == HT_CALLOC || (resized && t->resized_zeroed)};
    uint64_t address = ev->result;
    if (resized && ev->error) {
        address = ev->ptr;
        b.size = t->resized_bytes;
    }
    if (class == HT_CLASS_RESIZE)
        t->resized = 0;
    if (!address || b.size < HT_BIG_BYTES)
        return;
    choose_block(w->p, address, &b, !(class == HT_CLASS_RESIZE && ev->ptr));
    // Add zeroed blocks even if they are not measured: after a realloc, a page of zeros still
    // counts as unused.
    if (b.chosen || b.zeroed)
        add_block(address, &b);
    else
        remove_missed(address);
}

// Measures the live blocks in a group that have at least `least` bytes. Skips blocks inherited from
// a parent.
static void finish_group(const struct producer_writer *w, struct residency_entry *group,
                         uint64_t least)
{
    for (struct residency_entry *at = group; at < group + GROUP && !is_forbidden(w->p); at++) {
        uint64_t address = atomic_load_explicit(&at->address, memory_order_acquire);
        struct block b;
        if (address > RESERVED && at->block.pid == w->p->pid && at->block.size >= least &&
            remove_block(at, address, &b))
            measure_block(w, address, &b);
    }
}

void producer_residency_finish(const struct producer_writer *w)
{
    // An exiting vfork child must not measure its parent's blocks.
    if (is_forbidden(w->p) || syscall(SYS_getpid) != (long)producer_inherited.pid)
        return;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < BLOCKS / GROUP; i++) {
            if (atomic_load_explicit(&groups[i / 64], memory_order_relaxed) >> i % 64 & 1)
                finish_group(w, &memory->entries[i * GROUP], round ? 0 : BIG_BYTES);
        }
    }
}

// Returns true if the block is measured repeatedly while it is live.
static bool is_followed(const struct producer_process *p, uint64_t address, const struct block *b)
{
    return address > RESERVED && b->pid == p->pid && b->chosen && b->size >= FOLLOWED_BYTES &&
           b->size <= FOLLOWED_MAX_BYTES;
}

// Measures a live block again. If another thread releases the block at the same time, records
// nothing. `now` is in ticks and must not be later than the current time. Returns the maximum cost
// in ticks.
static uint64_t follow_block(const struct producer_writer *w, struct residency_entry *at,
                             uint64_t now)
{
    uint64_t address = atomic_load_explicit(&at->address, memory_order_acquire),
             bytes = page_bytes();
    struct block b = at->block;
    struct measured m;
    if (!is_followed(w->p, address, &b))
        return 0;
    uint64_t max = max_cost(b.size / bytes);
    if (!count_resident(w->p, address, &b, &m))
        return max;
    uint64_t seen = atomic_load_explicit(&at->seen, memory_order_acquire),
             used = atomic_load_explicit(&at->used, memory_order_relaxed);
    if (seen == m.resident + 1) {
        // The program may still write to resident pages of zeros, which does not change the count.
        if (!b.zeroed || used == m.resident * bytes)
            atomic_store_explicit(&at->unchanged_at, now, memory_order_relaxed);
        return max;
    }
    if (!count_used_pages(w->p, address, &b, &m) ||
        atomic_load_explicit(&at->address, memory_order_acquire) != address)
        return max;
    uint64_t unchanged_at = atomic_exchange_explicit(&at->unchanged_at, 0, memory_order_relaxed);
    const struct event ev = {
        .kind = HT_RESIDENCY_STEP, .ptr = address, .size = b.size, .value = m.used * bytes};
    atomic_store_explicit(&at->used, ev.value, memory_order_relaxed);
    // The exchange fails if the entry now belongs to another block.
    if (!atomic_compare_exchange_strong_explicit(&at->seen, &seen, m.resident + 1,
                                                 memory_order_release, memory_order_relaxed))
        return max;
    put_unchanged(w, address, used, seen ? unchanged_at : 0);
    producer_stream_put(w, &ev);
    return max;
}

void producer_residency_follow(const struct producer_writer *w)
{
    uint64_t begun = clock_ticks(w->p->clock), max = MAX_BLOCK_TICKS,
             due = atomic_load_explicit(&w->p->residency.due, memory_order_relaxed);
    if (begun < due || is_forbidden(w->p) ||
        !atomic_compare_exchange_strong_explicit(&w->p->residency.due, &due, UINT64_MAX,
                                                 memory_order_acquire, memory_order_relaxed))
        return;
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (atomic_load_explicit(&groups[i / GROUP / 64], memory_order_relaxed) >> i / GROUP % 64 &
            1)
            max += follow_block(w, &memory->entries[i], begun);
    }
    uint64_t now = clock_ticks(w->p->clock),
             pause = (now - (w->p->header->start_stamp << CODEC_STAMP_SHIFT)) / FOLLOW_PART;
    pause = pause < FOLLOW_MIN_TICKS   ? FOLLOW_MIN_TICKS
            : pause > FOLLOW_MAX_TICKS ? FOLLOW_MAX_TICKS
                                       : pause;
    uint64_t paid = cost_since(w->p, begun, max) * COST_SHARE;
    atomic_store_explicit(&w->p->residency.due, now + (paid > pause ? paid : pause),
                          memory_order_release);
}

bool producer_residency_allowed(uint32_t filters)
{
    return syscall(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) == 0 ||
           (filters && control_filters() == filters);
}
