// libtest-buggy.so: libc's allocator with a bug that heaptape replay --verify must find. $BUG names
// the bug, which starts at call number $BUG_AT of its function:
//   overlap     malloc returns memory inside the previously returned block
//   handout     malloc returns a live block of another thread
//   scribble    malloc writes into the previously returned block
//   small       malloc returns overlapping blocks, each half the requested size
//   around      malloc returns a block around a smaller live block
//   usable      malloc_usable_size returns less than was requested
//   beyond      malloc_usable_size also counts 64 bytes after the block
//   huge        malloc_usable_size returns 1 TiB
//   misaligned  malloc returns a multiple of 8 only
//   unaligned   memalign and its relatives ignore the alignment
//   zero        calloc leaves a byte nonzero
//   content     realloc loses the second half of the contents
#include "replay/libc_allocator.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BIG = 64, ARENA_BYTES = 1 << 20 };

static const char *bug = "";
static _Atomic long left;

// The last large block that malloc returned, if it is still live.
static struct {
    char *_Atomic block;
    _Atomic size_t size;
    char *_Atomic thread; // address of a thread-local variable, which identifies the thread
} latest;
static __thread char own;

static _Alignas(512) char arena[ARENA_BYTES];
static _Atomic size_t arena_used, arena_size; // arena_size: of the last block in the arena

__attribute__((constructor)) static void init(void)
{
    const char *at = getenv("BUG_AT");
    bug = getenv("BUG") ? getenv("BUG") : "";
    left = at ? atol(at) : 0;
}

// Returns true if the selected bug is `name` and must show in this call.
static bool is(const char *name)
{
    return strcmp(bug, name) == 0 && atomic_fetch_sub(&left, 1) <= 0;
}

static char *wrong_malloc(size_t size)
{
    char *before = latest.block;
    arena_size = size;
    if (size >= 16 && is("misaligned"))
        return (char *)__libc_malloc(size + 8) + 8;
    if (size >= BIG && is("small")) {
        size_t at = atomic_fetch_add(&arena_used, (size / 2 + 15) & ~(size_t)15);
        return at + size <= ARENA_BYTES ? arena + at : NULL;
    }
    // The two blocks begin in different words of the player's bitmap, which has a bit for each 8
    // bytes.
    if (size >= BIG && is("around"))
        return arena + (size < 512 ? 512 : 256);
    if (!before)
        return NULL;
    if (is("overlap"))
        return before + 16;
    if (latest.thread != &own && size <= latest.size && is("handout"))
        return before;
    if (is("scribble"))
        before[latest.size / 2] ^= 1;
    return NULL;
}

EXPORT void *malloc(size_t size)
{
    char *block = wrong_malloc(size);
    if (block)
        return block;
    block = __libc_malloc(size);
    if (size >= BIG) {
        latest.size = size;
        latest.thread = &own;
        latest.block = block;
    }
    return block;
}

EXPORT void free(void *block)
{
    char *expected = block;
    atomic_compare_exchange_strong(&latest.block, &expected, NULL);
    if ((uintptr_t)block - (uintptr_t)arena >= ARENA_BYTES)
        __libc_free(block);
}

EXPORT void *calloc(size_t count, size_t size)
{
    char *block = __libc_calloc(count, size);
    if (block && count > 0 && size > 0 && is("zero"))
        block[count * size - 1] = 1;
    return block;
}

EXPORT void *realloc(void *old, size_t size)
{
    if (!old || size < BIG || !is("content"))
        return __libc_realloc(old, size);
    size_t had = malloc_usable_size(old);
    char *block = __libc_malloc(size);
    memset(block, 0, size);
    memcpy(block, old, (had < size ? had : size) / 2);
    return block;
}

EXPORT void *memalign(size_t align, size_t size)
{
    // Returns an address that is a multiple of 32, but not of the alignment.
    if (align > 32 && is("unaligned"))
        return (char *)__libc_memalign(2 * align, size + 32) + 32;
    return __libc_memalign(align, size);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
    return memalign(align, size);
}

EXPORT int posix_memalign(void **block, size_t align, size_t size)
{
    *block = memalign(align, size);
    return *block ? 0 : ENOMEM;
}

EXPORT size_t malloc_usable_size(void *block)
{
    if ((uintptr_t)block - (uintptr_t)arena < ARENA_BYTES)
        return arena_size;
    // libc stores the size of a block and three flags before the block.
    size_t size = block ? (((size_t *)block)[-1] & ~(size_t)7) - sizeof(size_t) : 0;
    if (size < BIG)
        return size;
    return is("usable") ? 1 : is("beyond") ? size + 64 : is("huge") ? 1ull << 40 : size;
}
