// Call sites: walks the stack and caches which sites are defined.
#include "capture/producer/producer_site.h"
#include "base/seed.h"
#include "capture/producer/producer_private.h"
#include "capture/unwind/unwind_python.h"

#include <sys/mman.h>
#include <sys/syscall.h>

uint32_t producer_depth;
uint64_t producer_sample_bytes;

enum {
    OWN_FRAMES = 8, // frames of this library between the walk and the wrapper
    SCANS_AT_ONCE = 16,
    SCAN_YIELDS = 1000,
    PREFETCHED_SITES = 8,
    WATCH_WALKS = 1024, // walks per thread between checks for unloaded objects
};

// The main thread's stack grows up to its limit; only this part of the stack is read.
#define MAIN_STACK_BYTES (128ull << 20)

void producer_sites_start(uint32_t depth, uint64_t sample_bytes)
{
    struct producer_inherited *in = &producer_inherited;
    if (depth == 0 || in->sites)
        return;
    if (!producer_map_wiped((void *_Atomic *)&in->sites, sizeof *in->sites))
        return;
    producer_sample_bytes = sample_bytes;
    producer_depth = depth < SPOOL_MAX_DEPTH ? depth : SPOOL_MAX_DEPTH;
}

void producer_sites_stop(void)
{
    struct producer_inherited *in = &producer_inherited;
    if (in->sites)
        producer_unmap_private(in->sites, sizeof *in->sites);
    in->sites = NULL;
    producer_depth = 0;
}

// Finds the bounds of the stack that contains `sp`. While the thread runs on that stack, the memory
// from a frame to the end of the stack can be read safely.
static void find_stack(struct producer_thread *t, uintptr_t sp)
{
    struct producer_sites *sites = producer_inherited.sites;
    struct producer_mapping m;
    if (atomic_exchange_explicit(&sites->scanning, 1, memory_order_acquire))
        return;
    bool found = producer_maps_find(sites, sp, &m);
    atomic_store_explicit(&sites->scanning, 0, memory_order_release);
    t->stack_low = t->stack_high = UINTPTR_MAX; // no stack: do not search again
    if (!found)
        return;
    // The C library places a thread's control block at the end of the thread's stack. Memory above
    // it may belong to a mapping that another thread can unmap.
    uintptr_t thread = (uintptr_t)__builtin_thread_pointer();
    if (m.grows) {
        t->stack_low = m.end - MAIN_STACK_BYTES;
        t->stack_high = m.end;
    } else if (thread > sp && thread < m.end) {
        t->stack_low = m.start;
        t->stack_high = thread;
    }
}

static inline bool is_on_stack(const struct producer_thread *t, uintptr_t frame)
{
    return frame - t->stack_low < t->stack_high - t->stack_low;
}

// Draws from an exponential distribution: −ln of a number in (0, 1]. The number is composed of its
// leading zero bits and a mantissa m in [1, 2), with ln m = 2 artanh((m − 1) / (m + 1)). The error
// of the series is below 10⁻⁷.
static int64_t draw_bytes(uint64_t *state, uint64_t mean)
{
    const double ln2 = 0.69314718055994531, most = 0x1p62;
    uint64_t zeros_of = seed_next(state) | 1, bits = seed_next(state) >> 12;
    double m = 1 + (double)bits * 0x1p-52, z = (m - 1) / (m + 1), q = z * z;
    double ln_m =
        2 * z *
        (1 + q * (1 / 3. + q * (1 / 5. + q * (1 / 7. + q * (1 / 9. + q * (1 / 11. + q / 13.))))));
    double bytes = (double)mean * (ln2 * (__builtin_clzll(zeros_of) + 1) - ln_m);
    return bytes < most ? (int64_t)bytes : (int64_t)most;
}

bool producer_site_choose(uint64_t size)
{
    struct producer_tls *tls = &producer_tls;
    bool first = !tls->random;
    if (!producer_depth) {
        // Stays undecided until the process has joined the session, which may request stacks.
        uint32_t was = producer_enter(PRODUCER_WRITING);
        tls->stack_left = tls->thread->live ? INT64_MAX : -1;
        producer_leave(was);
        return false;
    }
    if (!producer_sample_bytes)
        return true;
    if (first)
        tls->random = clock_counter() ^ (uintptr_t)tls << 20;
    tls->stack_left = draw_bytes(&tls->random, producer_sample_bytes);
    // The distribution is memoryless, so the start of the first interval does not matter.
    return !first || (tls->stack_left = (int64_t)((uint64_t)tls->stack_left - size)) < 0;
}

// Returns true if `frame` is a plausible frame of this library. The library is built with frame
// pointers, so the frame contains the caller's frame pointer and the return address.
static bool is_frame(const struct producer_thread *t, uintptr_t frame, uintptr_t below)
{
    return frame > below && frame <= t->stack_high - 2 * sizeof(uintptr_t) &&
           frame % sizeof(uintptr_t) == 0;
}

// Returns the frame of the wrapper whose return address is `caller`. Returns 0 if the chain of
// frame pointers does not lead there, such as on the stack of a signal handler or coroutine.
static uintptr_t wrapper_frame(struct producer_thread *t, uintptr_t frame, uintptr_t caller)
{
    if (!t->live)
        return 0;
    if (!t->stack_high)
        find_stack(t, frame);
    if (!is_on_stack(t, frame) || !is_frame(t, frame, 0))
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

// Returns the thread's cache for stack walks. A fork child creates its own cache. Returns NULL if
// out of memory, behind a filter, or in a signal handler, which may have interrupted a walk.
static struct unwind_memory *thread_memory(struct producer_thread *t,
                                           const struct producer_stream *stream)
{
    if (stream != &t->streams[0] || t->no_unwind)
        return NULL;
    if (!t->unwind && producer_inherited.filtered)
        return NULL;
    if (!t->unwind) {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        struct unwind_memory *m =
            producer_mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, flags, -1, 0);
        t->no_unwind = m == MAP_FAILED;
        if (t->no_unwind)
            return NULL;
        madvise(m, sizeof *m, MADV_DONTFORK);
        madvise(m, sizeof *m, MADV_DONTDUMP);
        unwind_memory_init(m);
        t->unwind = m;
    }
    return t->unwind;
}

// Walks the stack of a coroutine or a signal handler in copies that the kernel makes. Returns false
// if the walk is not permitted now, or if the chain of frame pointers does not lead to the wrapper.
static bool walk_copies(const struct producer_writer *w, struct unwind_registers *from,
                        struct unwind_stack *to)
{
    struct unwind_memory *m = producer_depth > 1 && w->t->live && !is_on_stack(w->t, from->fp)
                                  ? thread_memory(w->t, w->stream)
                                  : NULL;
    if (!m || producer_sandbox_chunks(w->p) || producer_inherited.filtered)
        return false;
    struct unwind_cursor c = {.memory = m, .window = &m->window};
    uint64_t frame = from->fp, outer = frame, below = 0, caller = from->pc;
    m->window.bytes = m->window.fills = 0;
    m->window.pid = (uint32_t)w->p->pid;
    for (unsigned i = 0; i < OWN_FRAMES && outer > below && c.from.pc != caller; i++) {
        frame = outer;
        if (!unwind_read_word(&c, frame, &outer) || !unwind_read_word(&c, frame + 8, &c.from.pc))
            break;
        below = frame;
    }
    if (c.from.pc != caller)
        return false;
    c.from.sp = frame + 16;
    c.from.fp = outer;
    unwind_walk(&c, producer_depth, to);
    return true;
}

// Checks for unloaded objects at intervals. Do not call during a walk. Does nothing in a child of a
// multithreaded process: a thread that exists only in the parent may have locked the loader.
static inline void check_unloaded(struct producer_thread *t)
{
    if (producer_unlikely(++t->walks % WATCH_WALKS == 0) && !producer_inherited.forked &&
        unwind_check_unloaded())
        unwind_python_find();
}

// Waits for another thread's scan, which takes about 0.1 ms. After SCAN_YIELDS tries, returns
// false. A signal handler does not wait, because it may have interrupted the scan.
static bool lock_scan(const struct producer_writer *w, struct producer_sites *sites)
{
    bool filtered = producer_sandbox_chunks(w->p) || producer_inherited.filtered,
         in_handler = w->stream != &w->t->streams[0];
    for (unsigned i = 0; atomic_exchange_explicit(&sites->scanning, 1, memory_order_acquire); i++) {
        if (in_handler || i == SCAN_YIELDS)
            return false;
        if (!filtered)
            syscall(SYS_sched_yield);
    }
    return true;
}

// If objects were unloaded since the last scan, or if a walk found code at an unloaded object's
// address, scans the mappings, because the addresses may now belong to other code.
static void check_replaced(const struct producer_writer *w, bool found_gone)
{
    struct producer_sites *sites = producer_inherited.sites;
    uint32_t age = atomic_load_explicit(&unwind_age, memory_order_acquire);
    if (!producer_unlikely(found_gone ||
                           atomic_load_explicit(&sites->age, memory_order_relaxed) != age) ||
        !lock_scan(w, sites))
        return;
    bool starts = !atomic_load_explicit(&sites->age, memory_order_relaxed) && age > 1;
    if (starts)
        producer_maps_start(sites);
    else if (sites->n_ranges)
        producer_maps_scan(sites, w);
    atomic_store_explicit(&sites->age, age + starts, memory_order_relaxed);
    atomic_store_explicit(&sites->scanning, 0, memory_order_release);
}

static bool is_any_gone(const struct unwind_stack *stack)
{
    for (uint32_t i = 0; i < stack->n; i++) {
        if (unwind_is_gone(stack->codes[i]))
            return true;
    }
    return false;
}

// Returns the site of the cursor's stack.
static inline uint64_t walk_site(struct unwind_cursor *c)
{
    uint64_t site = unwind_walk_site(c, producer_depth);
    return producer_unlikely(unwind_python_is_loaded()) ? unwind_python_site(site, c) : site;
}

bool producer_put_calloc(uint64_t count, uint64_t size, uint64_t address, const void *caller,
                         const void *frame)
{
    producer_tls.stack_left = (int64_t)((uint64_t)producer_tls.stack_left - count * size);
    if (producer_tls.stack_left < 0)
        return producer_put_with_stack(HT_CALLOC, count, size, address, caller, frame);
    bool done = producer_put_rebased(HT_CALLOC, count, size, address, 0);
    producer_tls.decided = done ? PRODUCER_UNDECIDED : PRODUCER_WITHOUT_STACK;
    return done;
}

bool producer_put_noted(unsigned kind, uint64_t size, uint64_t address, unsigned allocator)
{
    producer_tls.stack_left = (int64_t)((uint64_t)producer_tls.stack_left - size);
    if (producer_tls.stack_left < 0 &&
        ((producer_depth && !producer_sample_bytes) || producer_site_choose(size))) {
        producer_tls.decided = PRODUCER_WITH_STACK;
        return false;
    }
    bool done = producer_put_rebased(kind, 1, size, address, allocator);
    producer_tls.decided = done || !producer_depth ? PRODUCER_UNDECIDED : PRODUCER_WITHOUT_STACK;
    return done;
}

static bool is_seen(uint64_t id)
{
    return producer_site_seen(producer_inherited.sites, producer_inherited.spool, id);
}

bool producer_put_with_stack(unsigned kind, uint64_t count, uint64_t size, uint64_t address,
                             const void *caller, const void *frame)
{
    // Assume that this is the wrapper's frame. If the compiler moved the call into a function
    // called by the wrapper, the comparison with at[1] fails.
    const uint64_t *at = frame;
    if (producer_unlikely(!producer_depth || producer_sample_bytes) &&
        !producer_site_choose(count * size)) {
        bool done = producer_put_rebased(kind, count, size, address, 0);
        // The process joins the session at its first event. Until then, producer_depth is unknown.
        producer_tls.decided =
            done || !producer_depth ? PRODUCER_UNDECIDED : PRODUCER_WITHOUT_STACK;
        return done;
    }
    producer_tls.decided = PRODUCER_WITH_STACK;
    struct producer_thread *t = producer_tls.thread;
    struct producer_stream *stream =
        producer_begin(at[1] != (uintptr_t)caller || !is_on_stack(t, (uintptr_t)frame), false);
    if (!stream)
        return false;
    uint64_t *w = stream->pos, ticks = producer_read_for(stream, address, count * size),
             stamp = ticks >> CODEC_STAMP_SHIFT;
    uint64_t odd = (codec_epoch(stamp) ^ stream->fast_epoch) | producer_odd_block(count, size);
    bool done = false;
    // The four words are a base, two notes and the record.
    if (!odd && t->unwind && producer_has_room(w, 4) && unwind_is_current(t->unwind)) {
        struct unwind_cursor c = {.from = {at[1], (uintptr_t)(at + 2), at[0]}, .memory = t->unwind};
        c.low = c.from.sp;
        c.high = t->stack_high;
        check_unloaded(t);
        uint64_t id = walk_site(&c);
        bool seen = is_seen(id) && unwind_is_current(t->unwind);
        t->undefined = !seen;
        done = seen && codec_put_base(&stream->state, &w, address);
        producer_tls.decided = done ? PRODUCER_UNDECIDED : PRODUCER_WITH_STACK;
        if (done) {
            *w++ = codec_note(HT_NOTE_SITE, id);
            if (count != 1)
                *w++ = codec_note(HT_NOTE_COUNT, count);
            *w++ = codec_sized(kind, stamp, size, codec_relative(address, stream->state.base));
            producer_publish(stream, w);
            if (producer_cost_is_due(t))
                producer_cost_add(producer_inherited.spool, clock_counter() - ticks);
        }
    }
    producer_compiler_fence();
    producer_tls.busy = 0;
    return done;
}

static bool is_code(const struct producer_sites *sites, uint64_t address)
{
    return producer_maps_has(sites, address) || codec_is_script(address);
}

static bool all_in_mappings(struct producer_sites *sites, const struct unwind_stack *stack,
                            uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!is_code(sites, stack->codes[i]))
            return false;
    }
    return true;
}

// In programs without frame pointers, or with code generated at run time, addresses outside all
// mappings are common. Therefore scans become rarer with each miss.
static bool is_worth_a_scan(struct producer_sites *sites)
{
    uint32_t misses = ++sites->misses;
    return misses <= SCANS_AT_ONCE || (misses & (misses - 1)) == 0 || misses % 4096 == 0;
}

// If the trace was reset, it no longer contains any definitions, so forgets them all.
static void forget_older(struct producer_sites *sites)
{
    uint32_t now = atomic_load_explicit(&producer_inherited.spool->restarts, memory_order_relaxed);
    if (atomic_load_explicit(&sites->restarts, memory_order_relaxed) == now)
        return;
    uint32_t mask =
        atomic_load_explicit(&sites->seen_mask, memory_order_relaxed) | (PRODUCER_SEEN_FIRST - 1);
    for (uint32_t i = 0; i <= mask; i++)
        atomic_store_explicit(&sites->seen[i], 0, memory_order_relaxed);
    atomic_store_explicit(&sites->n_seen, 0, memory_order_relaxed);
    sites->n_ranges = 0;
    atomic_store_explicit(&sites->restarts, now, memory_order_relaxed);
}

// Defines the sites of the innermost `n` frames.
static void put_frames(const struct producer_writer *w, const uint64_t *codes, uint32_t n,
                       uint64_t outer)
{
    _Static_assert(UNWIND_DEPTH * sizeof *codes <= CODEC_MAX_TEXT_BYTES, "a stack fits in a text");
    const struct event ev = {.kind = HT_FRAMES,
                             .size = outer,
                             .text = (const char *)codes,
                             .text_bytes = n * (uint32_t)sizeof *codes};
    producer_stream_put(w, &ev);
}

// Defines the sites of the innermost `n` frames by their IDs. Each ID is a hash of the whole stack.
// `outer` is the site of the caller of these frames, or 0 if the stack is cut there.
static void put_sites(const struct producer_writer *w, const struct unwind_stack *stack, uint32_t n,
                      uint64_t outer)
{
    while (n-- > 0) {
        const struct event ev = {
            .kind = HT_FRAME, .ptr = stack->codes[n], .size = outer, .value = stack->sites[n]};
        producer_stream_put(w, &ev);
        outer = ev.value;
    }
}

// Defines the stack and its mappings in the stream, except the parts that are already defined. A
// walk along frame pointers may be wrong, so the stack is cut at the first address that is not
// code. The wrapper's caller is always code.
static void define_stack(const struct producer_writer *w, const struct unwind_stack *stack)
{
    struct producer_sites *sites = producer_inherited.sites;
    uint32_t fresh = 1, n;
    // In most stacks, only a few innermost frames are new. Fetch their entries in parallel.
    for (uint32_t i = 1; i < stack->n && i <= PREFETCHED_SITES; i++)
        __builtin_prefetch(&sites->seen[producer_site_place(sites, stack->sites[i])], 1);
    // The mappings of the stack must be in the trace before its definition.
    bool locked = lock_scan(w, sites);
    if (locked)
        forget_older(sites);
    while (fresh < stack->n && !is_seen(stack->sites[fresh]))
        fresh++;
    uint64_t outer = fresh < stack->n ? stack->sites[fresh] : stack->generation;
    n = fresh;
    if (locked && !all_in_mappings(sites, stack, fresh)) {
        if (is_worth_a_scan(sites))
            producer_maps_scan(sites, w);
        for (n = 1; n < fresh && is_code(sites, stack->codes[n]);)
            n++;
    }
    if (locked)
        atomic_store_explicit(&sites->scanning, 0, memory_order_release);
    uint64_t second = n > 1 ? stack->sites[1] : outer;
    if (n < fresh) {
        put_sites(w, stack, n, 0);
    } else if (stack->sites[0] == codec_site(second, stack->codes[0])) {
        put_frames(w, stack->codes, n, outer);
    } else {
        if (n > 1)
            put_frames(w, stack->codes + 1, n - 1, outer);
        put_sites(w, stack, 1, second);
    }
    while (n-- > 0)
        producer_site_add(sites, stack->sites[n]);
}

uint64_t producer_site_find(const struct producer_writer *w, const void *caller, const void *frame)
{
    struct unwind_stack stack;
    _Static_assert((int)UNWIND_DEPTH == (int)SPOOL_MAX_DEPTH,
                   "a walk has at most as many frames as a request");
    struct unwind_cursor c = {.from = {.pc = (uintptr_t)caller, .fp = (uintptr_t)frame}};
    uintptr_t at =
        producer_depth > 1 ? wrapper_frame(w->t, (uintptr_t)frame, (uintptr_t)caller) : 0;
    if (at)
        check_unloaded(w->t);
    check_replaced(w, false);
    if (at) {
        c.from.sp = c.low = at + 2 * sizeof(uintptr_t);
        c.from.fp = *(const uintptr_t *)at;
        c.high = w->t->stack_high;
        c.memory = thread_memory(w->t, w->stream);
        uint64_t id = c.memory && !w->t->undefined ? walk_site(&c) : 0;
        if (id && is_seen(id) && unwind_is_current(c.memory))
            return id;
        w->t->undefined = false;
    }
    if (at || !walk_copies(w, &c.from, &stack))
        unwind_walk(&c, at ? producer_depth : 1, &stack);
    if (c.memory)
        c.memory->found_gone = false;
    if (producer_unlikely(is_any_gone(&stack)))
        check_replaced(w, true);
    // Another thread may have noticed during the walk that code was replaced.
    if (producer_unlikely(stack.generation !=
                          atomic_load_explicit(&unwind_generation, memory_order_relaxed)) &&
        (at || !walk_copies(w, &c.from, &stack)))
        unwind_walk(&c, at ? producer_depth : 1, &stack);
    uint64_t id = c.memory && at ? unwind_python_site(stack.sites[0], &c) : stack.sites[0];
    if (is_seen(id))
        return id;
    if (id != stack.sites[0])
        producer_python_splice(w, &c, &stack, producer_depth);
    stack.sites[0] = id; // the ID of a stack with Python functions is not the hash of its addresses
    define_stack(w, &stack);
    return id;
}
