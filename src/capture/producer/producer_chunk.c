// Allocates chunks, waits for the recorder to free chunks, and hands full chunks to the recorder.
#include "capture/producer/producer_private.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum {
    WAIT_MS = 100,   // between two checks that the recorder is alive
    LOOK_EACH = 256, // number of dropped events between checks that the recorder is alive
    // Maximum number of chunks for a sandboxed process. If the process has no recorder, there is no
    // other limit.
    MOST_FETCHED = 256,
};

#define SCARCE_WAIT_NS 2000000000u // maximum wait for a chunk that may never be freed
// Maximum time for the recorder to find this spool.
#define FOUND_WAIT_NS 5000000000u

static int futex(const _Atomic uint32_t *word, int op, uint32_t value,
                 const struct timespec *timeout)
{
    return (int)syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

void producer_chunk_done(struct producer_process *p, struct spool_chunk *chunk)
{
    // Pairs with the recorder's acquire. All words are written before this store.
    atomic_store_explicit(&chunk->state, SPOOL_CHUNK_DONE, memory_order_release);
    uint32_t n = atomic_fetch_add(&p->header->wakeups, 1) + 1;
    bool wakes = n % SPOOL_CHUNKS_A_WAKE == 0 ||
                 atomic_load_explicit(&p->header->quiet, memory_order_relaxed);
    if (wakes && !producer_sandbox_chunks(p))
        futex(&producer_inherited.futexes->wakeups, FUTEX_WAKE, 1, NULL);
}

static struct spool_chunk *pop_free(struct producer_process *p)
{
    _Atomic uint64_t *free_top = &p->header->free_top;
    uint64_t top = atomic_load_explicit(free_top, memory_order_acquire);
    while ((uint32_t)top) {
        uint32_t index = (uint32_t)top - 1;
        if (index >= atomic_load_explicit(&p->open_chunks, memory_order_relaxed))
            return NULL;
        struct spool_chunk *chunk = producer_chunk_at(&producer_inherited, index);
        // `next` may be stale if another thread has popped the chunk. Then the tag differs and the
        // exchange fails.
        uint64_t next = __atomic_load_n(&chunk->next_free, __ATOMIC_RELAXED) | ((top >> 32) + 1)
                                                                                   << 32;
        if (atomic_compare_exchange_weak_explicit(free_top, &top, next, memory_order_acquire,
                                                  memory_order_acquire))
            return chunk;
    }
    return NULL;
}

// Returns the number of chunks that the process may use now. Unless the spool is too small, the
// limit exceeds the number of chunks that live threads can own. Therefore, if all chunks are in
// use, the recorder can free some of them.
static uint32_t chunk_limit(const struct producer_process *p)
{
    uint32_t max = p->max_chunks, fetched = producer_sandbox_chunks(p);
    if (fetched)
        return fetched;
    if (p->flags & SPOOL_NO_RECORDER)
        return max;
    uint64_t live = atomic_load_explicit(&p->header->threads_live, memory_order_relaxed);
    uint64_t limit = SPOOL_BASE_CHUNKS + SPOOL_CHUNKS_A_THREAD * live;
    return limit < max ? (uint32_t)limit : max;
}

// Allocates the chunk's pages from `from` to `bytes`, so that a full file system causes an error
// here instead of a SIGBUS later.
static bool fetch_pages(struct spool_chunk *chunk, uint32_t from, uint32_t bytes)
{
    if (madvise((char *)chunk + from, bytes - from, MADV_POPULATE_WRITE) && errno != EINVAL)
        return false;
    chunk->ready_bytes = bytes;
    return true;
}

bool producer_chunk_populate(struct producer_process *p, struct spool_chunk *chunk, uintptr_t end)
{
    uint32_t bytes =
        (uint32_t)(end - (uintptr_t)chunk + SPOOL_PIECE_BYTES - 1) & -(uint32_t)SPOOL_PIECE_BYTES;
    return bytes <= chunk->ready_bytes || producer_sandbox_chunks(p) ||
           fetch_pages(chunk, chunk->ready_bytes, bytes);
}

// Makes chunk `index` accessible, and allocates its first piece or, if `whole` is set, all its
// pages. Chunks are opened in order.
static bool open_chunk(struct producer_process *p, uint32_t index, bool whole)
{
    if (index < producer_sandbox_chunks(p))
        return true;
    uint32_t open = atomic_load_explicit(&p->open_chunks, memory_order_acquire);
    struct spool_chunk *chunk = producer_map_chunk(&producer_inherited, index);
    if (!chunk)
        return false;
    if (index >= open) {
        uint32_t start = index / PRODUCER_STEP_CHUNKS * PRODUCER_STEP_CHUNKS,
                 end = start + PRODUCER_STEP_CHUNKS;
        if (end > p->max_chunks)
            end = p->max_chunks;
        if (mprotect(producer_chunk_at(&producer_inherited, start),
                     (size_t)(end - start) * SPOOL_CHUNK_BYTES, PROT_READ | PROT_WRITE))
            return false;
        atomic_compare_exchange_strong_explicit(&p->open_chunks, &open, end, memory_order_release,
                                                memory_order_relaxed);
    }
    return fetch_pages(chunk, 0, whole ? SPOOL_CHUNK_BYTES : SPOOL_PIECE_BYTES);
}

// Opens all chunks that the threads may ever use, because a sandboxed process cannot open chunks
// later.
static void populate_all(struct producer_process *p)
{
    uint32_t n = 0, limit = chunk_limit(p);
    limit = limit < MOST_FETCHED ? limit : MOST_FETCHED;
    while (n < limit && open_chunk(p, n, true))
        n++;
    atomic_store_explicit(&p->sandboxed, n, memory_order_relaxed);
    atomic_store(&p->header->sandboxed, 1);
}

enum { FETCHED = 1, FILTERED = 2, SANDBOX = 4 }; // bits returned by producer_before_sandbox

unsigned producer_before_sandbox(bool now)
{
    int saved_errno = errno;
    unsigned changes = 0;
    struct producer_process *p = producer_current();
    if (producer_has_state(p, PRODUCER_RUNNING) && !producer_sandbox_chunks(p)) {
        populate_all(p);
        producer_owners_sandbox();
        changes |= FETCHED;
    }
    if (!producer_inherited.sandbox)
        syscall(SYS_prctl, PR_GET_NAME, producer_inherited.name, 0, 0, 0);
    changes |= now && !producer_inherited.filtered ? FILTERED : 0;
    changes |= producer_inherited.sandbox ? 0 : SANDBOX;
    producer_inherited.filtered |= now;
    producer_inherited.sandbox = true;
    errno = saved_errno;
    return changes;
}

void producer_sandbox_refused(unsigned changes)
{
    struct producer_process *p = producer_current();
    if (p && changes & FETCHED) {
        atomic_store_explicit(&p->sandboxed, 0, memory_order_relaxed);
        atomic_store(&p->header->sandboxed, 0);
    }
    if (changes & FILTERED)
        producer_inherited.filtered = false;
    if (changes & SANDBOX)
        producer_inherited.sandbox = false;
}

// Returns a chunk that was never used, or NULL. Sets *scarce to true if the spool cannot grow: the
// other threads may then own all chunks.
static struct spool_chunk *acquire_fresh(struct producer_process *p, bool *scarce)
{
    _Atomic uint32_t *fresh_chunks = &p->header->fresh_chunks;
    uint32_t fresh = atomic_load_explicit(fresh_chunks, memory_order_relaxed);
    do {
        *scarce = fresh >= p->max_chunks;
        if (fresh >= chunk_limit(p))
            return NULL;
        *scarce = !open_chunk(p, fresh, false);
        if (*scarce)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(fresh_chunks, &fresh, fresh + 1,
                                                    memory_order_acq_rel, memory_order_relaxed));
    return producer_chunk_at(&producer_inherited, fresh);
}

// Sleeps until the recorder has freed a chunk since `sequence`, or for WAIT_MS.
static void wait_for_chunk(struct producer_process *p, uint32_t sequence, uint64_t *waited_ns)
{
    struct spool_header *header = p->header;
    uint64_t start = clock_monotonic_ns();
    if (producer_sandbox_chunks(p)) {
        while (atomic_load_explicit(&header->free_sequence, memory_order_acquire) == sequence &&
               clock_monotonic_ns() - start < WAIT_MS * 1000000)
            continue;
        *waited_ns += clock_monotonic_ns() - start;
        return;
    }
    const struct timespec timeout = {.tv_nsec = WAIT_MS * 1000000};
    producer_wake_recorder(p);
    atomic_fetch_add_explicit(&header->waiters, 1, memory_order_seq_cst);
    futex(&header->free_sequence, FUTEX_WAIT, sequence, &timeout);
    atomic_fetch_sub_explicit(&header->waiters, 1, memory_order_seq_cst);
    uint64_t ns = clock_monotonic_ns() - start;
    atomic_fetch_add_explicit(&header->waits, *waited_ns == 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&header->wait_ns, ns, memory_order_relaxed);
    *waited_ns += ns;
}

// Returns true if it is possible that the threads of a sandboxed process own all chunks. In that
// case, no chunk is freed while these threads are idle.
static bool threads_own_all(const struct producer_process *p)
{
    uint32_t fetched = producer_sandbox_chunks(p);
    uint64_t live = atomic_load_explicit(&p->header->threads_live, memory_order_relaxed);
    return fetched && live * SPOOL_CHUNKS_A_THREAD >= fetched;
}

// Returns the reason to stop waiting, or NULL.
static const char *reason_to_stop(const struct producer_process *p, bool scarce, uint64_t waited_ns)
{
    if (p->flags & SPOOL_NO_RECORDER)
        return "the spool is full";
    // The check is a system call, so do not make it for every event that is dropped under --lossy.
    if (producer_tls.thread->streams[0].lost % LOOK_EACH == 0 && !producer_has_recorder(p))
        return SPOOL_REASON_ENDED;
    if (atomic_load_explicit(&p->header->refused, memory_order_acquire))
        return "the recorder could not map its spool";
    if (waited_ns > FOUND_WAIT_NS &&
        !atomic_load_explicit(&p->header->adopted, memory_order_relaxed))
        return "the recorder did not find its spool";
    if (scarce && waited_ns > SCARCE_WAIT_NS)
        return "the spool has no space for a chunk per thread";
    if (waited_ns > SCARCE_WAIT_NS && threads_own_all(p))
        return "the sandbox of the program leaves no memory for more threads";
    return NULL;
}

struct spool_chunk *producer_chunk_acquire(struct producer_process *p, uint64_t *waited_ns)
{
    for (;;) {
        // Read the sequence before the stack of free chunks, so that a chunk freed after this line
        // ends the wait immediately.
        uint32_t sequence = atomic_load_explicit(&p->header->free_sequence, memory_order_seq_cst);
        bool scarce = false;
        if (!producer_has_state(p, PRODUCER_RUNNING))
            return NULL;
        bool refused = atomic_load_explicit(&p->header->refused, memory_order_acquire);
        struct spool_chunk *chunk = refused ? NULL : pop_free(p);
        if (!chunk && !refused)
            chunk = acquire_fresh(p, &scarce);
        if (chunk)
            return chunk;
        const char *reason = reason_to_stop(p, scarce, *waited_ns);
        if (reason)
            producer_process_off(p, reason);
        if (reason || (p->flags & SPOOL_LOSSY))
            return NULL;
        wait_for_chunk(p, sequence, waited_ns);
    }
}
