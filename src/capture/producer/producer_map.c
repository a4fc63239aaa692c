// The spool's mapping, which grows with what is in use: address space under RLIMIT_AS is the program's. No file
// descriptor is kept, the program may close them all: a new mapping of the same file is made from an old one, as
// mremap(2) does with an old size of 0.
#include "capture/producer/producer_private.h"

#include <sys/mman.h>

#define STEP_BYTES  ((size_t)PRODUCER_STEP_CHUNKS * SPOOL_CHUNK_BYTES)
#define FIRST_BYTES (SPOOL_HEADER_BYTES + STEP_BYTES)

void *producer_map_wiped(void *_Atomic *to, size_t bytes)
{
    void *p = atomic_load_explicit(to, memory_order_acquire);
    if (p)
        return p;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *made = producer_mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (made == MAP_FAILED)
        return NULL;
    // Another thread may have been faster.
    if (madvise(made, bytes, MADV_WIPEONFORK) || !atomic_compare_exchange_strong(to, &p, made)) {
        producer_munmap(made, bytes);
        return p;
    }
    madvise(made, bytes, MADV_DONTDUMP);
    return made;
}

// Another mapping of the same memory, over what is at `to`.
static void *remap(void *from, size_t bytes, void *to)
{
    return (void *)syscall(SYS_mremap, from, 0ul, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
}

// Address space of `bytes`, aligned to the size of a chunk. NULL when there is none.
static char *reserve(size_t bytes)
{
    size_t room = bytes + SPOOL_CHUNK_BYTES;
    char *at =
        producer_mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)at & (SPOOL_CHUNK_BYTES - 1), after = SPOOL_CHUNK_BYTES - before;
    if (before)
        producer_munmap(at, before);
    producer_munmap(at + room - after, after);
    return at + before;
}

// Makes the mapping at `at`, of header and first chunks, the process's spool.
static struct spool_header *adopt(struct producer_inherited *in, char *at)
{
    madvise(at, FIRST_BYTES, MADV_DONTDUMP);
    in->spool = (struct spool_header *)at;
    atomic_store_explicit(&in->steps[0], (struct spool_chunk *)(at + SPOOL_HEADER_BYTES),
                          memory_order_release);
    return in->spool;
}

// Little more than the header is accessible at first: a program's mlockall must not fill the file with pages.
struct spool_header *producer_map_first(struct producer_inherited *in, int fd, uint32_t open_chunks)
{
    const size_t open_bytes = SPOOL_HEADER_BYTES + (size_t)open_chunks * SPOOL_CHUNK_BYTES;
    char *at = in->place ? in->place : reserve(FIRST_BYTES);
    in->place = NULL;
    if (!at)
        return NULL;
    if (producer_mmap(at, FIRST_BYTES, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) ==
            MAP_FAILED ||
        mprotect(at, open_bytes, PROT_READ | PROT_WRITE)) {
        producer_munmap(at, FIRST_BYTES);
        return NULL;
    }
    return adopt(in, at);
}

struct spool_header *producer_map_reserve(struct producer_inherited *in, unsigned slot)
{
    size_t before = spool_reserve_offset(slot), bytes = before + SPOOL_RESERVE_BYTES;
    char *from = reserve(bytes), *at;
    if (!from)
        return NULL;
    at = from + before;
    if (remap(in->reserves, bytes, from) == MAP_FAILED)
        return NULL; // as in map_next
    producer_munmap(from, before);
    const size_t open_bytes = SPOOL_HEADER_BYTES + (size_t)PRODUCER_OPEN_CHUNKS * SPOOL_CHUNK_BYTES;
    // The pages must be had for certain: a full file system would be a SIGBUS.
    if (mprotect(at + open_bytes, FIRST_BYTES - open_bytes, PROT_NONE) ||
        madvise(at, SPOOL_HEADER_BYTES, MADV_POPULATE_WRITE)) {
        producer_munmap(at, FIRST_BYTES);
        return NULL;
    }
    return adopt(in, at);
}

// Steps are mapped in order: the first that is not is the end.
void producer_leave_map(struct producer_inherited *in)
{
    struct spool_chunk *chunks;
    for (size_t i = 1; i < PRODUCER_MAX_STEPS; i++) {
        chunks = atomic_load_explicit(&in->steps[i], memory_order_relaxed);
        if (!chunks)
            break;
        producer_munmap(chunks, STEP_BYTES);
    }
    in->place = (char *)in->spool;
    producer_forget_map(in);
}

void producer_unmap_left(struct producer_inherited *in)
{
    if (in->place)
        producer_munmap(in->place, FIRST_BYTES);
    in->place = NULL;
}

void producer_forget_map(struct producer_inherited *in)
{
    for (size_t i = 0;
         i < PRODUCER_MAX_STEPS && atomic_load_explicit(&in->steps[i], memory_order_relaxed); i++)
        atomic_store_explicit(&in->steps[i], NULL, memory_order_relaxed);
    in->spool = NULL;
}

// Maps what follows in the file, beginning with a second mapping of the chunk before, which is dropped.
static bool map_next(struct producer_inherited *in, uint32_t step)
{
    struct spool_chunk *before = atomic_load_explicit(&in->steps[step - 1], memory_order_acquire);
    before += PRODUCER_STEP_CHUNKS - 1;
    char *from = reserve(SPOOL_CHUNK_BYTES + STEP_BYTES), *at = from + SPOOL_CHUNK_BYTES;
    if (!from)
        return false;
    struct spool_chunk *unmapped = NULL;
    // When it fails, the kernel may have dropped the reservation already, and the program may have the place by now.
    if (remap(before, SPOOL_CHUNK_BYTES + STEP_BYTES, from) == MAP_FAILED)
        return false;
    if (mprotect(from, SPOOL_CHUNK_BYTES + STEP_BYTES, PROT_NONE)) {
        producer_munmap(from, SPOOL_CHUNK_BYTES + STEP_BYTES);
        return false;
    }
    producer_munmap(from, SPOOL_CHUNK_BYTES);
    // Another thread may have been faster.
    if (!atomic_compare_exchange_strong_explicit(&in->steps[step], &unmapped,
                                                 (struct spool_chunk *)at, memory_order_acq_rel,
                                                 memory_order_acquire))
        producer_munmap(at, STEP_BYTES);
    return true;
}

struct spool_chunk *producer_map_chunk(struct producer_inherited *in, uint32_t index)
{
    for (uint32_t step = 1; step <= index / PRODUCER_STEP_CHUNKS; step++) {
        if (!atomic_load_explicit(&in->steps[step], memory_order_acquire) && !map_next(in, step))
            return NULL;
    }
    return producer_chunk_at(in, index);
}
