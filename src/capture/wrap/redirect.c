#include "capture/wrap/redirect.h"

#include "capture/libc/objects.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum {
    MAX_FUNCTIONS = 2 * ENTRIES_MAX,
    STEP_BYTES = 1 << 21, // between two places that are tried for an area
};
// Distance within which a jump reaches every byte of an object and an area.
#define REACH_BYTES ((uintptr_t)0x7ff00000)

// A redirected function. Constant once `n` includes it.
struct function {
    uintptr_t at, trampoline, wrapper, area;
    _Atomic uintptr_t *slot;
};

// Only one thread at a time adds functions.
static struct {
    struct function all[MAX_FUNCTIONS];
    _Atomic size_t n;
} redirected;

static size_t count_functions(void)
{
    return atomic_load_explicit(&redirected.n, memory_order_acquire);
}

static const struct function *find_function(uintptr_t at)
{
    size_t n = count_functions();
    for (size_t i = 0; i < n; i++) {
        if (redirected.all[i].at == at)
            return &redirected.all[i];
    }
    return NULL;
}

// Objects that a plan is checked against.
struct redirect_objects {
    const struct entries_plan *plan;
    uintptr_t base;
    bool matches;      // the object at `base` contains the bytes that the plan expects
    struct object own; // this library
};

static bool is_code(const struct object *o, uintptr_t at, size_t bytes)
{
    for (size_t i = 0; i < o->n_segments; i++) {
        const ElfW(Phdr) *s = &o->segments[i];
        uintptr_t offset = at - o->base - s->p_vaddr;
        if (s->p_type == PT_LOAD && (s->p_flags & PF_X) && offset < s->p_memsz &&
            bytes <= s->p_memsz - offset)
            return object_contains(o, (const void *)at, bytes);
    }
    return false;
}

static bool is_expected(const struct object *o, const struct entries_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_entries; i++) {
        const struct entries_entry *e = &plan->entries[i];
        uintptr_t at = o->base + e->at;
        if (!is_code(o, at, e->bytes) || memcmp((const void *)at, e->was, e->bytes) != 0)
            return false;
    }
    return true;
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct redirect_objects *objects = data;
    struct object o;
    (void)size;
    object_read(&o, info);
    if (o.base == objects->base && is_expected(&o, objects->plan))
        objects->matches = true;
    if ((uintptr_t)&redirected >= o.start && (uintptr_t)&redirected < o.end)
        objects->own = o;
    return 0;
}

// Maps the area at an address if that is free. Returns 0 on failure.
static uintptr_t map_at(uintptr_t at, size_t bytes)
{
    void *p = (void *)syscall(SYS_mmap, at, bytes, PROT_READ | PROT_EXEC,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0l);
    if (p == MAP_FAILED)
        return 0;
    if ((uintptr_t)p == at)
        return at;
    // Before Linux 4.17, the address is only a hint.
    syscall(SYS_munmap, p, bytes);
    errno = EEXIST;
    return 0;
}

// Tries the place of the plan, then places below the object, since the heap of sbrk may grow above
// an executable.
static uintptr_t map_in_reach(const struct entries_plan *plan, uintptr_t base)
{
    uintptr_t end = base + plan->span, lowest = end > REACH_BYTES ? end - REACH_BYTES : STEP_BYTES;
    uintptr_t area = map_at(base + (uintptr_t)plan->place, plan->area_bytes);
    uintptr_t at = base & -(uintptr_t)STEP_BYTES;
    while (!area && errno == EEXIST && at > lowest + STEP_BYTES) {
        at -= STEP_BYTES;
        area = map_at(at, plan->area_bytes);
    }
    at = (base + REACH_BYTES) & -(uintptr_t)STEP_BYTES;
    while (!area && errno == EEXIST && at > end + STEP_BYTES) {
        at -= STEP_BYTES;
        area = map_at(at, plan->area_bytes);
    }
    return area;
}

static void add_functions(const struct entries_plan *plan, uintptr_t base, uintptr_t area,
                          const struct object *own)
{
    size_t n = count_functions();
    for (uint32_t i = 0; i < plan->n_entries; i++) {
        const struct entries_entry *e = &plan->entries[i];
        struct function *f = &redirected.all[n + i];
        f->at = base + e->at;
        f->trampoline = area + e->trampoline;
        f->area = area;
        f->wrapper = (uintptr_t)object_find_function(own, entries_symbol(e->function));
        f->slot = (_Atomic uintptr_t *)(area + e->slot);
        atomic_store_explicit(f->slot, f->trampoline, memory_order_relaxed);
    }
    atomic_store_explicit(&redirected.n, n + plan->n_entries, memory_order_release);
}

// Returns the area of the plan if all its functions are redirected already, else 0. Sets *some if
// any function is.
static uintptr_t find_area(const struct entries_plan *plan, uintptr_t base, bool *some)
{
    uintptr_t area = 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < plan->n_entries; i++) {
        const struct entries_entry *e = &plan->entries[i];
        const struct function *f = find_function(base + e->at);
        if (f && f->trampoline == f->area + e->trampoline && (!area || area == f->area)) {
            area = f->area;
            known++;
        }
        *some = *some || f;
    }
    return known == plan->n_entries ? area : 0;
}

int redirect_map(const struct entries_plan *plan, uintptr_t base, uintptr_t *area)
{
    struct redirect_objects objects = {.plan = plan, .base = base};
    bool some = false;
    if (!entries_are_valid(plan))
        return EINVAL;
    *area = find_area(plan, base, &some);
    if (*area)
        return 0;
    if (some)
        return EEXIST;
    if (count_functions() + plan->n_entries > MAX_FUNCTIONS)
        return ENOSPC;
    dl_iterate_phdr(visit_object, &objects);
    if (!objects.matches)
        return ENOEXEC;
    *area = map_in_reach(plan, base);
    if (!*area)
        return errno == EEXIST ? ENOMEM : errno;
    if (syscall(SYS_mprotect, *area + plan->code_bytes, plan->area_bytes - plan->code_bytes,
                PROT_READ | PROT_WRITE)) {
        int error = errno;
        syscall(SYS_munmap, *area, plan->area_bytes);
        return error;
    }
    add_functions(plan, base, *area, &objects.own);
    return 0;
}

void redirect_start(void)
{
    for (size_t i = 0, n = count_functions(); i < n; i++) {
        const struct function *f = &redirected.all[i];
        if (f->wrapper)
            atomic_store_explicit(f->slot, f->wrapper, memory_order_release);
    }
}

void redirect_stop(void)
{
    for (size_t i = 0, n = count_functions(); i < n; i++) {
        const struct function *f = &redirected.all[i];
        atomic_store_explicit(f->slot, f->trampoline, memory_order_release);
    }
}

void *redirect_real(void *function)
{
    const struct function *f = find_function((uintptr_t)function);
    return f ? (void *)f->trampoline : function;
}
