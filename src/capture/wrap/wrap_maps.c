// Wrappers for the program's own mappings, for `heaptape record --maps`. libc calls internal
// functions to map memory for its malloc and for thread stacks, so the wrappers do not see these
// calls. Mappings that the allocator in use makes are recognized by the caller's address and
// excluded.
#undef _FILE_OFFSET_BITS // otherwise mmap is an alias of mmap64, but this file wraps both
#include "capture/wrap/next.h"
#include "capture/wrap/wrap.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

// Records the event unless the allocator or libc made the call. Calls inside libc reach the
// wrappers only if the functions are redirected.
static void record_unless_allocator(const struct event *ev, const void *caller)
{
    if (wrap_has_thread() && !producer_is_allocator(caller) && !next_is_libc(caller))
        producer_record(ev, caller);
}

// Records a call that returned `p`. On errors, sbrk also returns the value of MAP_FAILED.
static void record_mapped(struct event ev, const void *p, const void *caller)
{
    bool failed = p == MAP_FAILED;
    ev.result = failed ? 0 : (uintptr_t)p;
    ev.error = failed ? (uint8_t)errno : 0;
    record_unless_allocator(&ev, caller);
}

// Describes a mapping as in /proc/PID/maps, for example "rw-p anonymous". Each word fits in
// HOW_BYTES.
enum { HOW_BYTES = 16 };

static uint32_t describe_mapping(char how[HOW_BYTES], int protection, int flags)
{
    how[0] = protection & PROT_READ ? 'r' : '-';
    how[1] = protection & PROT_WRITE ? 'w' : '-';
    how[2] = protection & PROT_EXEC ? 'x' : '-';
    how[3] = (flags & MAP_TYPE) == MAP_PRIVATE ? 'p' : 's';
    if (!(flags & MAP_ANONYMOUS))
        return 4;
    memcpy(how + 4, " anonymous", 10);
    return 14;
}

static WRAP_COLD void *record_mmap(void *at, size_t bytes, int protection, int flags, void *p,
                                   const void *caller)
{
    char how[HOW_BYTES];
    const struct event ev = {.kind = HT_MMAP,
                             .ptr = (uintptr_t)at,
                             .size = bytes,
                             .text = how,
                             .text_bytes = describe_mapping(how, protection, flags)};
    record_mapped(ev, p, caller);
    return p;
}

WRAPPER void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *p = next.mmap(at, bytes, protection, flags, fd, offset);
    return producer_wants_maps() ? record_mmap(at, bytes, protection, flags, p, WRAP_CALLER) : p;
}

_Static_assert(sizeof(off_t) == 8, "mmap64 is mmap");
WRAPPER void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *p = next.mmap(at, bytes, protection, flags, fd, offset);
    return producer_wants_maps() ? record_mmap(at, bytes, protection, flags, p, WRAP_CALLER) : p;
}

// Like every call that releases memory, munmap is recorded before the call, so its result is not
// known yet.
WRAPPER int munmap(void *at, size_t bytes)
{
    if (producer_wants_maps()) {
        const struct event ev = {.kind = HT_MUNMAP, .ptr = (uintptr_t)at, .size = bytes};
        record_unless_allocator(&ev, WRAP_CALLER);
    }
    return next.munmap(at, bytes);
}

WRAPPER void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    void *to = flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) ? va_arg(more, void *) : NULL;
    va_end(more);
    void *p = next.mremap(old, old_bytes, bytes, flags, to);
    if (producer_wants_maps()) {
        const struct event ev = {
            .kind = HT_MREMAP, .ptr = (uintptr_t)old, .size = old_bytes, .count = bytes};
        record_mapped(ev, p, WRAP_CALLER);
    }
    return p;
}

WRAPPER int brk(void *end)
{
    int rc = next.brk(end);
    if (producer_wants_maps()) {
        const struct event ev = {
            .kind = HT_BRK, .ptr = (uintptr_t)end, .error = rc ? (uint8_t)errno : 0};
        record_unless_allocator(&ev, WRAP_CALLER);
    }
    return rc;
}

WRAPPER void *sbrk(intptr_t change)
{
    void *p = next.sbrk(change);
    if (producer_wants_maps())
        record_mapped((struct event){.kind = HT_SBRK, .value = (uint64_t)change}, p, WRAP_CALLER);
    return p;
}
