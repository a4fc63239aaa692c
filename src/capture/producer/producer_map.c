// The mapping of the spool. The mapping grows with use, because RLIMIT_AS may limit the address
// space. No file descriptor is kept open, because programs may close all descriptors. Instead,
// mremap(2) with an old size of 0 creates a new mapping of the file from an existing mapping.
#include "capture/producer/producer_private.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define STEP_BYTES  ((size_t)PRODUCER_STEP_CHUNKS * SPOOL_CHUNK_BYTES)
#define FIRST_BYTES (SPOOL_HEADER_BYTES + STEP_BYTES)

static bool is_below(__rlimit_resource_t resource, size_t bytes)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur < bytes;
}

bool producer_memory_is_scarce(size_t bytes)
{
    enum { LIMIT_TIMES = 16 };
    return is_below(RLIMIT_DATA, LIMIT_TIMES * bytes) || is_below(RLIMIT_AS, LIMIT_TIMES * bytes);
}

// Private mappings except units, for producer_private_bytes. If the table is full, additional
// mappings are not counted.
static struct {
    _Atomic uintptr_t start; // 0 if unused
    _Atomic size_t bytes;
} mappings[64];

enum { MAPPINGS = sizeof mappings / sizeof *mappings };

// Maps zeroed memory, and does not add it to `mappings`. Returns NULL if out of memory.
static void *map_zeroed(size_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *made = producer_mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (made == MAP_FAILED)
        return NULL;
    // After mlockall(MCL_FUTURE), the memory would count towards the program's RLIMIT_MEMLOCK.
    // MADV_DONTNEED fails only if the memory is locked. A filter of system calls may forbid
    // munlock.
    const struct producer_inherited *in = &producer_inherited;
    if (!in->filtered && !in->attached && madvise(made, bytes, MADV_DONTNEED))
        syscall(SYS_munlock, made, bytes);
    return made;
}

void *producer_map_private(size_t bytes)
{
    void *made = map_zeroed(bytes);
    for (unsigned i = 0; made && i < MAPPINGS; i++) {
        uintptr_t unused = 0;
        if (!atomic_compare_exchange_strong(&mappings[i].start, &unused, (uintptr_t)made))
            continue;
        atomic_store(&mappings[i].bytes, bytes);
        break;
    }
    return made;
}

void producer_unmap_private(void *at, size_t bytes)
{
    for (unsigned i = 0; i < MAPPINGS; i++) {
        if (atomic_load(&mappings[i].start) != (uintptr_t)at)
            continue;
        atomic_store(&mappings[i].bytes, 0);
        atomic_store(&mappings[i].start, 0);
    }
    producer_munmap(at, bytes);
}

// Returns the number of resident pages among the pages with the numbers [first, end). See
// pagemap.rst in the kernel's documentation.
static uint64_t count_resident(int pagemap, uint64_t first, uint64_t end)
{
    const uint64_t present = 1ull << 63, exclusive = 1ull << 56; // not set for a zero page
    enum { ENTRIES = 512 }; // entries per system call; a call itself takes as long as 300 entries
    uint64_t entries[ENTRIES], pages = 0;
    for (long got; first < end; first += (uint64_t)got / 8) {
        uint64_t n = end - first < ENTRIES ? end - first : ENTRIES;
        got = syscall(SYS_pread64, pagemap, entries, n * 8, first * 8);
        if (got < 8)
            break;
        for (long i = 0; i < got / 8; i++)
            pages += (entries[i] & (present | exclusive)) == (present | exclusive);
    }
    return pages;
}

uint64_t producer_private_bytes(void)
{
    extern char __bss_start[] __attribute__((visibility("hidden")));
    extern char _end[] __attribute__((visibility("hidden")));
    uint64_t page = getauxval(AT_PAGESZ);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    // Skip the first page of .bss, which may belong to the file's mapping.
    uint64_t pages =
        count_resident(fd, (uintptr_t)__bss_start / page + 1, ((uintptr_t)_end + page - 1) / page);
    for (unsigned i = 0; i < MAPPINGS; i++) {
        uint64_t start = atomic_load(&mappings[i].start), bytes = atomic_load(&mappings[i].bytes);
        pages += count_resident(fd, start / page, (start + bytes + page - 1) / page);
    }
    for (unsigned i = 0; i < PRODUCER_REGIONS; i++) {
        uint64_t start = producer_region_start(&producer_regions[i]);
        if (start)
            pages += count_resident(fd, start / page, (start + PRODUCER_REGION_UNITS) / page);
    }
    syscall(SYS_close, fd);
    return pages * page;
}

// Makes the memory zero in a fork child, and omits it from core dumps. Returns false before Linux
// 4.14.
static bool wipe_on_fork(void *at, size_t bytes)
{
    madvise(at, bytes, MADV_DONTDUMP);
    return madvise(at, bytes, MADV_WIPEONFORK) == 0;
}

void *producer_map_units(size_t bytes)
{
    void *made = map_zeroed(bytes);
    if (!made || wipe_on_fork(made, bytes))
        return made;
    producer_munmap(made, bytes);
    return NULL;
}

void *producer_map_wiped(void *_Atomic *to, size_t bytes)
{
    void *p = atomic_load_explicit(to, memory_order_acquire);
    if (p)
        return p;
    void *made = producer_map_private(bytes);
    if (!made)
        return NULL;
    // Another thread may have set *to in the meantime.
    if (!wipe_on_fork(made, bytes) || !atomic_compare_exchange_strong(to, &p, made)) {
        producer_unmap_private(made, bytes);
        return p;
    }
    return made;
}

// Maps the memory at `from` a second time, replacing the mapping at `to`.
static void *remap(void *from, size_t bytes, void *to)
{
    return (void *)syscall(SYS_mremap, from, 0ul, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
}

// Reserves `bytes` of address space, aligned to the size of a chunk. Returns NULL if there is not
// enough address space.
static char *reserve_space(size_t bytes)
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

// Makes the mapping at `at`, which contains the header and the first chunks, the process's spool.
static struct spool_header *set_spool(struct producer_inherited *in, char *at)
{
    madvise(at, FIRST_BYTES, MADV_DONTDUMP);
    in->spool = (struct spool_header *)at;
    atomic_store_explicit(&in->steps[0], (struct spool_chunk *)(at + SPOOL_HEADER_BYTES),
                          memory_order_release);
    return in->spool;
}

// Chunks from `open_chunks` on are not accessible, because the file may have no space for them.
struct spool_header *producer_map_first(struct producer_inherited *in, int fd, uint32_t open_chunks)
{
    const size_t open_bytes = SPOOL_HEADER_BYTES + (size_t)open_chunks * SPOOL_CHUNK_BYTES;
    char *at = in->place ? in->place : reserve_space(FIRST_BYTES);
    in->place = NULL;
    if (!at)
        return NULL;
    if (producer_mmap(at, FIRST_BYTES, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) ==
            MAP_FAILED ||
        mprotect(at, open_bytes, PROT_READ | PROT_WRITE)) {
        producer_munmap(at, FIRST_BYTES);
        return NULL;
    }
    return set_spool(in, at);
}

struct spool_header *producer_map_reserve(struct producer_inherited *in, unsigned slot)
{
    size_t before = spool_reserve_offset(slot), bytes = before + SPOOL_RESERVE_BYTES;
    char *from = reserve_space(bytes), *at;
    if (!from)
        return NULL;
    at = from + before;
    if (remap(in->reserves, bytes, from) == MAP_FAILED)
        return NULL; // do not unmap the address range (see map_next)
    producer_munmap(from, before);
    producer_munmap(at + FIRST_BYTES, SPOOL_RESERVE_BYTES - FIRST_BYTES);
    // Allocate the pages now, because a full file system would raise SIGBUS later.
    if (madvise(at, SPOOL_HEADER_BYTES, MADV_POPULATE_WRITE)) {
        producer_munmap(at, FIRST_BYTES);
        return NULL;
    }
    return set_spool(in, at);
}

// Steps are mapped in order, so the mapping ends before the first unmapped step.
void producer_map_release(struct producer_inherited *in)
{
    struct spool_chunk *chunks;
    for (size_t i = 1; i < PRODUCER_MAX_STEPS; i++) {
        chunks = atomic_load_explicit(&in->steps[i], memory_order_relaxed);
        if (!chunks)
            break;
        producer_munmap(chunks, STEP_BYTES);
    }
    in->place = (char *)in->spool;
    producer_map_forget(in);
}

void producer_map_unreserve(struct producer_inherited *in)
{
    if (in->place)
        producer_munmap(in->place, FIRST_BYTES);
    in->place = NULL;
}

void producer_map_forget(struct producer_inherited *in)
{
    for (size_t i = 0;
         i < PRODUCER_MAX_STEPS && atomic_load_explicit(&in->steps[i], memory_order_relaxed); i++)
        atomic_store_explicit(&in->steps[i], NULL, memory_order_relaxed);
    in->spool = NULL;
}

// Maps the next step. mremap needs a chunk that is already mapped, so the new mapping begins with
// the chunk before the step. That chunk is then unmapped again.
static bool map_next(struct producer_inherited *in, uint32_t step)
{
    struct spool_chunk *before = atomic_load_explicit(&in->steps[step - 1], memory_order_acquire);
    before += PRODUCER_STEP_CHUNKS - 1;
    char *from = reserve_space(SPOOL_CHUNK_BYTES + STEP_BYTES), *at = from + SPOOL_CHUNK_BYTES;
    if (!from)
        return false;
    struct spool_chunk *unmapped = NULL;
    // Do not unmap the address range after a failure: the kernel may already have dropped the
    // reservation, and the program may have mapped other memory there.
    if (remap(before, SPOOL_CHUNK_BYTES + STEP_BYTES, from) == MAP_FAILED)
        return false;
    if (mprotect(from, SPOOL_CHUNK_BYTES + STEP_BYTES, PROT_NONE)) {
        producer_munmap(from, SPOOL_CHUNK_BYTES + STEP_BYTES);
        return false;
    }
    producer_munmap(from, SPOOL_CHUNK_BYTES);
    // Another thread may have mapped the step in the meantime.
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
