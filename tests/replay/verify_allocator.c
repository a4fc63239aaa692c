// libtest-verify.so: an allocator that checks its callers. It never reuses an address, so it
// detects every wrong free. A free is wrong if the block is unknown or was freed, if the size or
// alignment differs from the allocation, or if the function does not match the allocating function.
// The library then prints the error and aborts. At exit it writes the counts of calls of each kind
// by the program (without its libraries) and the number of live blocks to the file $VERIFY_COUNTS.
#include "trace/event/event.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT      __attribute__((visibility("default")))

#define ARENA_BYTES ((uint64_t)256 << 30)
#define LIVE        0x6576696c6576696cull
#define DEAD        0x6461656464616564ull

// The families of functions. A block may be freed only by a function of its family.
enum family { FAMILY_C, FAMILY_NEW, FAMILY_NEW_ARRAY, FAMILY_MASK = 15, PROGRAMS = 16 };

// Header directly before a block.
struct head {
    _Atomic uint64_t state; // LIVE, or DEAD after the block was freed
    uint64_t size, align;   // requested size and alignment; align is 0 if not specified
    uint64_t family;        // enum family, plus PROGRAMS if the program itself allocated the block
};
_Static_assert(sizeof(struct head) == 32, "keeps blocks aligned to 16");

static char *_Atomic arena;
static _Atomic uint64_t used;
static _Atomic int64_t live_blocks;
static _Atomic uint64_t calls[HT_KIND_LIMIT];

static _Noreturn void fail(const char *what)
{
    static const char prefix[] = "verify: ";
    ssize_t n = write(STDERR_FILENO, prefix, sizeof prefix - 1);
    n = write(STDERR_FILENO, what, strlen(what));
    n = write(STDERR_FILENO, "\n", 1);
    (void)n;
    abort();
}

static char *get_arena(void)
{
    char *at = atomic_load(&arena), *made;
    if (at)
        return at;
    made = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED)
        fail("no memory");
    return atomic_compare_exchange_strong(&arena, &at, made) ? made : at;
}

// Returns true if the address is in the executable's code.
static bool is_program(const void *address)
{
    static _Atomic uintptr_t from, to;
    if (!atomic_load(&to)) {
        const ElfW(Phdr) *h = (const ElfW(Phdr) *)getauxval(AT_PHDR);
        uintptr_t base = (uintptr_t)h, end = 0;
        size_t n = getauxval(AT_PHNUM);
        for (size_t i = 0; i < n; i++) {
            if (h[i].p_type == PT_PHDR)
                base -= h[i].p_vaddr;
            else if (h[i].p_type == PT_LOAD && h[i].p_vaddr + h[i].p_memsz > end)
                end = h[i].p_vaddr + h[i].p_memsz;
        }
        atomic_store(&from, base);
        atomic_store(&to, base + end);
    }
    return (uintptr_t)address >= atomic_load(&from) && (uintptr_t)address < atomic_load(&to);
}

// Counts a call. Returns PROGRAMS if the program itself makes the call, otherwise 0.
static unsigned count_call(unsigned kind, const void *caller)
{
    if (!is_program(caller))
        return 0;
    atomic_fetch_add_explicit(&calls[kind], 1, memory_order_relaxed);
    return PROGRAMS;
}

#define COUNT(kind) count_call(kind, __builtin_return_address(0))

static void *allocate(size_t size, size_t align, unsigned family)
{
    size_t to = align < 16 ? 16 : align;
    if (align & (align - 1))
        fail("alignment is not a power of two");
    if (size > ARENA_BYTES / 4)
        return NULL;
    uint64_t at = atomic_fetch_add(&used, (size + to + sizeof(struct head) + 31) & ~(uint64_t)15);
    if (at > ARENA_BYTES / 2)
        return NULL;
    uintptr_t block =
        ((uintptr_t)get_arena() + at + sizeof(struct head) + to - 1) & ~(uintptr_t)(to - 1);
    struct head *h = (struct head *)block - 1;
    h->size = size;
    h->align = align;
    h->family = family;
    atomic_store(&h->state, LIVE);
    if (family & PROGRAMS)
        atomic_fetch_add(&live_blocks, 1);
    return (void *)block;
}

static struct head *head_of(void *block)
{
    if ((uintptr_t)block - (uintptr_t)get_arena() >= ARENA_BYTES || (uintptr_t)block % 16)
        fail("unknown block freed");
    return (struct head *)block - 1;
}

enum { ANY = -1 };

static void deallocate(void *block, int64_t size, int64_t align, enum family family)
{
    if (!block)
        return;
    struct head *h = head_of(block);
    uint64_t live = LIVE;
    if (!atomic_compare_exchange_strong(&h->state, &live, DEAD))
        fail(live == DEAD ? "block freed twice" : "unknown block freed");
    if (size != ANY && (uint64_t)size != h->size)
        fail("block freed with another size");
    if (align != ANY && (uint64_t)align != h->align)
        fail("block freed with another alignment");
    if ((h->family & FAMILY_MASK) != family)
        fail("block freed by a function of another family");
    if (h->family & PROGRAMS)
        atomic_fetch_sub(&live_blocks, 1);
}

static void *resize(void *old, size_t size, unsigned who)
{
    void *block = size || !old ? allocate(size, 0, FAMILY_C | who) : NULL;
    if (old) {
        size_t had = head_of(old)->size;
        deallocate(old, ANY, ANY, FAMILY_C);
        if (block)
            memcpy(block, old, had < size ? had : size);
    }
    return block;
}

EXPORT void *malloc(size_t size)
{
    return allocate(size, 0, FAMILY_C | COUNT(HT_MALLOC));
}

EXPORT void free(void *block)
{
    COUNT(HT_FREE);
    deallocate(block, ANY, ANY, FAMILY_C);
}

EXPORT void *calloc(size_t count, size_t size)
{
    return allocate(count * size, 0, FAMILY_C | COUNT(HT_CALLOC));
}

EXPORT void *realloc(void *old, size_t size)
{
    return resize(old, size, COUNT(HT_REALLOC));
}

EXPORT void *reallocarray(void *old, size_t count, size_t size)
{
    return resize(old, count * size, COUNT(HT_REALLOCARRAY));
}

EXPORT void *memalign(size_t align, size_t size)
{
    return allocate(size, align, FAMILY_C | COUNT(HT_MEMALIGN));
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
    return allocate(size, align, FAMILY_C | COUNT(HT_ALIGNED_ALLOC));
}

EXPORT int posix_memalign(void **block, size_t align, size_t size)
{
    if (align < sizeof(void *))
        fail("alignment is too small");
    *block = allocate(size, align, FAMILY_C | COUNT(HT_POSIX_MEMALIGN));
    return *block ? 0 : ENOMEM;
}

EXPORT void *valloc(size_t size)
{
    return allocate(size, 4096, FAMILY_C | COUNT(HT_VALLOC));
}

EXPORT void *pvalloc(size_t size)
{
    return allocate(size, 4096, FAMILY_C | COUNT(HT_PVALLOC));
}

// The C++ and C23 functions, under their linker names.
#define ALLOCATE(kind, symbol, family)                                                             \
    EXPORT void *symbol(size_t size);                                                              \
    EXPORT void *symbol(size_t size)                                                               \
    {                                                                                              \
        return allocate(size, 0, (family) | COUNT(kind));                                          \
    }
#define ALLOCATE_ALIGNED(kind, symbol, family)                                                     \
    EXPORT void *symbol(size_t size, size_t align);                                                \
    EXPORT void *symbol(size_t size, size_t align)                                                 \
    {                                                                                              \
        return allocate(size, align, (family) | COUNT(kind));                                      \
    }
#define DEALLOCATE(kind, symbol, family)                                                           \
    EXPORT void symbol(void *block);                                                               \
    EXPORT void symbol(void *block)                                                                \
    {                                                                                              \
        COUNT(kind);                                                                               \
        deallocate(block, ANY, ANY, family);                                                       \
    }
#define DEALLOCATE_SIZED(kind, symbol, family)                                                     \
    EXPORT void symbol(void *block, size_t size);                                                  \
    EXPORT void symbol(void *block, size_t size)                                                   \
    {                                                                                              \
        COUNT(kind);                                                                               \
        deallocate(block, (int64_t)size, ANY, family);                                             \
    }
#define DEALLOCATE_ALIGNED(kind, symbol, family)                                                   \
    EXPORT void symbol(void *block, size_t align);                                                 \
    EXPORT void symbol(void *block, size_t align)                                                  \
    {                                                                                              \
        COUNT(kind);                                                                               \
        deallocate(block, ANY, (int64_t)align, family);                                            \
    }
#define DEALLOCATE_BOTH(kind, symbol, family, first, second)                                       \
    EXPORT void symbol(void *block, size_t first, size_t second);                                  \
    EXPORT void symbol(void *block, size_t first, size_t second)                                   \
    {                                                                                              \
        COUNT(kind);                                                                               \
        deallocate(block, (int64_t)size, (int64_t)align, family);                                  \
    }

ALLOCATE(HT_NEW, _Znwm, FAMILY_NEW)
ALLOCATE(HT_NEW_ARRAY, _Znam, FAMILY_NEW_ARRAY)
ALLOCATE(HT_NEW_NOTHROW, _ZnwmRKSt9nothrow_t, FAMILY_NEW)
ALLOCATE(HT_NEW_ARRAY_NOTHROW, _ZnamRKSt9nothrow_t, FAMILY_NEW_ARRAY)
ALLOCATE_ALIGNED(HT_NEW_ALIGNED, _ZnwmSt11align_val_t, FAMILY_NEW)
ALLOCATE_ALIGNED(HT_NEW_ARRAY_ALIGNED, _ZnamSt11align_val_t, FAMILY_NEW_ARRAY)
ALLOCATE_ALIGNED(HT_NEW_ALIGNED_NOTHROW, _ZnwmSt11align_val_tRKSt9nothrow_t, FAMILY_NEW)
ALLOCATE_ALIGNED(HT_NEW_ARRAY_ALIGNED_NOTHROW, _ZnamSt11align_val_tRKSt9nothrow_t, FAMILY_NEW_ARRAY)
DEALLOCATE(HT_DELETE, _ZdlPv, FAMILY_NEW)
DEALLOCATE(HT_DELETE_ARRAY, _ZdaPv, FAMILY_NEW_ARRAY)
DEALLOCATE(HT_DELETE_NOTHROW, _ZdlPvRKSt9nothrow_t, FAMILY_NEW)
DEALLOCATE(HT_DELETE_ARRAY_NOTHROW, _ZdaPvRKSt9nothrow_t, FAMILY_NEW_ARRAY)
DEALLOCATE_SIZED(HT_FREE_SIZED, free_sized, FAMILY_C)
DEALLOCATE_SIZED(HT_DELETE_SIZED, _ZdlPvm, FAMILY_NEW)
DEALLOCATE_SIZED(HT_DELETE_ARRAY_SIZED, _ZdaPvm, FAMILY_NEW_ARRAY)
DEALLOCATE_ALIGNED(HT_DELETE_ALIGNED, _ZdlPvSt11align_val_t, FAMILY_NEW)
DEALLOCATE_ALIGNED(HT_DELETE_ARRAY_ALIGNED, _ZdaPvSt11align_val_t, FAMILY_NEW_ARRAY)
DEALLOCATE_ALIGNED(HT_DELETE_ALIGNED_NOTHROW, _ZdlPvSt11align_val_tRKSt9nothrow_t, FAMILY_NEW)
DEALLOCATE_ALIGNED(HT_DELETE_ARRAY_ALIGNED_NOTHROW, _ZdaPvSt11align_val_tRKSt9nothrow_t,
                   FAMILY_NEW_ARRAY)
DEALLOCATE_BOTH(HT_FREE_ALIGNED_SIZED, free_aligned_sized, FAMILY_C, align, size)
DEALLOCATE_BOTH(HT_DELETE_SIZED_ALIGNED, _ZdlPvmSt11align_val_t, FAMILY_NEW, size, align)
DEALLOCATE_BOTH(HT_DELETE_ARRAY_SIZED_ALIGNED, _ZdaPvmSt11align_val_t, FAMILY_NEW_ARRAY, size,
                align)

__attribute__((destructor)) static void write_counts(void)
{
    const char *path = getenv("VERIFY_COUNTS");
    int64_t live = atomic_load(&live_blocks);
    uint64_t made[HT_KIND_LIMIT];
    if (!path)
        return;
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++)
        made[kind] = atomic_load(&calls[kind]);
    FILE *f = fopen(path, "we");
    if (!f)
        fail("cannot write the counts");
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (made[kind])
            fprintf(f, "call %s %llu\n", event_infos[kind].name, (unsigned long long)made[kind]);
    }
    fprintf(f, "live %lld\n", (long long)live);
    fclose(f);
}
