// Call sites: the walk up the stack, and what is known of them already.
#include "capture/producer_site.h"
#include "capture/producer_maps.h"
#include "capture/producer_private.h"
#include "capture/unwind.h"

#include <sys/mman.h>
#include <sys/syscall.h>

uint32_t producer_depth;

enum {
    OWN_FRAMES = 8,     // of this library, between the walk and the wrapper
    LOWEST_CODE = 4096, // return addresses below it are none
    SCANS_AT_ONCE = 16,
    WATCH_WALKS = 1024, // of a thread, between looks whether objects have been unloaded
};

// The main thread's stack grows, up to its limit; so much of it counts as its own.
#define MAIN_STACK_BYTES (128ull << 20)

void producer_sites_start(uint32_t depth)
{
    struct producer_inherited *in = &producer_inherited;
    if (depth == 0 || in->sites)
        return;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    struct producer_sites *sites = producer_mmap(NULL, sizeof *sites, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (sites == MAP_FAILED)
        return;
    if (madvise(sites, sizeof *sites, MADV_WIPEONFORK)) {
        producer_munmap(sites, sizeof *sites);
        return;
    }
    madvise(sites, sizeof *sites, MADV_DONTDUMP);
    in->sites = sites;
    producer_depth = depth < SPOOL_MAX_DEPTH ? depth : SPOOL_MAX_DEPTH;
}

// Where the stack that `sp` lies on ends. Reading between a frame and that end is safe as long as the thread runs on it.
static void find_stack(struct producer_thread *t, uintptr_t sp)
{
    struct producer_sites *sites = producer_inherited.sites;
    struct producer_mapping m;
    if (atomic_exchange_explicit(&sites->scanning, 1, memory_order_acquire))
        return;
    bool found = producer_maps_find(sites, sp, &m);
    atomic_store_explicit(&sites->scanning, 0, memory_order_release);
    t->stack_low = t->stack_high = UINTPTR_MAX; // of no stack, and not looked for again
    if (!found)
        return;
    // The C library puts a thread's control block at the end of its stack; what lies above it may be another mapping, and
    // go away.
    uintptr_t thread = (uintptr_t)__builtin_thread_pointer();
    if (m.grows) {
        t->stack_low = m.end - MAIN_STACK_BYTES;
        t->stack_high = m.end;
    } else if (thread > sp && thread < m.end) {
        t->stack_low = m.start;
        t->stack_high = thread;
    }
}

// A frame of this library, which is built with frame pointers: [the caller's frame pointer, return address].
static bool is_frame(const struct producer_thread *t, uintptr_t frame, uintptr_t below)
{
    return frame > below && frame <= t->stack_high - 2 * sizeof(uintptr_t) && frame % sizeof(uintptr_t) == 0;
}

// The frame of the wrapper, whose return address is `caller`. 0 when the chain does not lead there, as on a signal stack
// or a coroutine's.
static uintptr_t wrapper_frame(struct producer_thread *t, uintptr_t frame, uintptr_t caller)
{
    if (!t->live)
        return 0;
    if (!t->stack_high)
        find_stack(t, frame);
    if (!t->stack_high || frame < t->stack_low || !is_frame(t, frame, 0))
        return 0;
    for (unsigned i = 0; i < OWN_FRAMES; i++) {
        const uintptr_t *at = (const uintptr_t *)frame;
        if (at[1] == caller)
            return frame;
        if (!is_frame(t, at[0], frame))
            return 0;
        frame = at[0];
    }
    return 0;
}

// What the thread keeps of its walks; a fork child makes it anew. NULL: nothing, also while another walk is under way, which
// a signal handler has interrupted.
static struct unwind_memory *memory_of(struct producer_thread *t)
{
    if (!t->unwind && !t->walking) {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        struct unwind_memory *m = producer_mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (m == MAP_FAILED)
            return NULL;
        madvise(m, sizeof *m, MADV_DONTFORK);
        madvise(m, sizeof *m, MADV_DONTDUMP);
        m->first = UNWIND_KEPT;
        t->unwind = m;
    }
    return t->walking ? NULL : t->unwind;
}

// Walks from the wrapper's caller outwards. Returns the number of addresses in frames[], at least 1.
static uint32_t walk(struct producer_thread *t, uintptr_t caller, uintptr_t frame, uint64_t *frames)
{
    uintptr_t at = producer_depth > 1 ? wrapper_frame(t, frame, caller) : 0;
    frames[0] = caller;
    if (!at)
        return 1;
    if (++t->walks % WATCH_WALKS == 0)
        unwind_watch();
    struct unwind_cursor c = {.frame = {caller, at + 2 * sizeof(uintptr_t), *(const uintptr_t *)at, at},
                              .low = at,
                              .high = t->stack_high,
                              .memory = memory_of(t)};
    uint32_t walking = t->walking;
    t->walking = 1;
    producer_compiler_fence();
    uint32_t n = unwind_walk(&c, frames, producer_depth);
    producer_compiler_fence();
    t->walking = walking;
    while (n > 1 && frames[n - 1] < LOWEST_CODE)
        n--;
    return n;
}

// The id of a site: a polynomial in an odd constant, whose powers do not wait for the addresses; then the finaliser of
// MurmurHash3 (Austin Appleby), so that the lower bits depend on all. One address is its own id.
static uint64_t id_of(const uint64_t *frames, uint32_t n)
{
    const uint64_t multiplier = 0xd6e8feb86659fd93;
    uint64_t hash = 0, power = 1;
    if (n == 1 && producer_depth == 1)
        return frames[0];
    for (uint32_t i = 0; i < n; i++) {
        hash += frames[i] * power;
        power *= multiplier;
    }
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccd;
    hash ^= hash >> 33;
    return hash & codec_mask(CODEC_NOTE_BITS);
}

void producer_site_find(struct producer_site *site, struct producer_thread *t, const void *caller, const void *frame)
{
    site->n = walk(t, (uintptr_t)caller, (uintptr_t)frame, site->frames);
    site->id = id_of(site->frames, site->n);
}

bool producer_put_called(unsigned kind, uint64_t size, uint64_t address, const void *caller)
{
    struct producer_thread *t = producer_tls.thread;
    struct producer_stream *stream = &t->streams[0];
    uint64_t frames[SPOOL_MAX_DEPTH];
    if (producer_tls.busy || !t->live)
        return false;
    producer_tls.busy = PRODUCER_WRITING;
    producer_compiler_fence();
    uint32_t n = walk(t, (uintptr_t)caller, (uintptr_t)__builtin_frame_address(0), frames);
    uint64_t id = id_of(frames, n);
    uint64_t *w = stream->pos, stamp = clock_counter() >> CODEC_STAMP_SHIFT,
             rel = codec_relative(address, stream->state.base);
    uint64_t odd = (codec_epoch(stamp) ^ stream->fast_epoch) | size >> CODEC_SIZE_BITS | rel >> CODEC_REL_BITS;
    bool done = !odd && !producer_no_room(w) && !producer_no_room(w + 1) &&
                producer_site_seen(producer_inherited.sites, producer_inherited.session, id);
    if (done) {
        w[0] = codec_note(HT_NOTE_SITE, id);
        w[1] = codec_sized(kind, stamp, size, rel);
        producer_publish(w + 1);
        stream->pos = w + 2;
    }
    producer_compiler_fence();
    producer_tls.busy = 0;
    return done;
}

// Where programs without frame pointers leave anything in the register, the chain ends at the first address that is not
// code. `caller` is code for certain.
static uint32_t frames_of_code(struct producer_sites *sites, const struct producer_site *site)
{
    uint32_t n = 1;
    while (n < site->n && producer_maps_has(sites, site->frames[n]))
        n++;
    return n;
}

static bool all_known(struct producer_sites *sites, const struct producer_site *site)
{
    for (uint32_t i = 0; i < site->n; i++) {
        if (!producer_maps_has(sites, site->frames[i]))
            return false;
    }
    return true;
}

// Addresses that lie nowhere are common in programs without frame pointers, or with code made at run time: the more
// there were, the rarer the look at the mappings.
static bool is_worth_a_scan(struct producer_sites *sites)
{
    uint32_t misses = ++sites->misses;
    return misses <= SCANS_AT_ONCE || (misses & (misses - 1)) == 0 || misses % 4096 == 0;
}

// A trace that has begun anew holds no definitions.
static void forget_older(struct producer_sites *sites)
{
    uint32_t now = atomic_load_explicit(&producer_inherited.session->restarts, memory_order_relaxed);
    if (atomic_load_explicit(&sites->restarts, memory_order_relaxed) == now)
        return;
    for (size_t i = 0; i < PRODUCER_SEEN_SITES; i++)
        atomic_store_explicit(&sites->seen[i], 0, memory_order_relaxed);
    sites->n_ranges = 0;
    atomic_store_explicit(&sites->restarts, now, memory_order_relaxed);
}

void producer_site_define(struct producer_process *p, struct producer_thread *t, struct producer_stream *stream,
                          const struct producer_site *site)
{
    struct producer_sites *sites = producer_inherited.sites;
    uint32_t n = site->n;
    if (atomic_exchange_explicit(&sites->scanning, 1, memory_order_acquire) == 0) {
        forget_older(sites);
        if (!all_known(sites, site) && is_worth_a_scan(sites))
            producer_maps_scan(sites, p, t, stream);
        n = frames_of_code(sites, site);
        atomic_store_explicit(&sites->scanning, 0, memory_order_release);
    }
    const struct event ev = {.kind = HT_STACK,
                             .value = site->id,
                             .text = (const char *)site->frames,
                             .text_bytes = n * (uint32_t)sizeof site->frames[0]};
    producer_stream_put(p, t, stream, &ev);
    uint64_t place = (site->id ^ site->id >> 16) % PRODUCER_SEEN_SITES;
    if (atomic_load_explicit(&sites->seen[place], memory_order_relaxed))
        place ^= 1;
    atomic_store_explicit(&sites->seen[place], site->id, memory_order_relaxed);
}
