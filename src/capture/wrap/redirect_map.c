// Chooses the wrappers of redirected functions, and maps the area that their jumps lead to.
#include "capture/libc/objects.h"
#include "capture/producer/producer.h"
#include "capture/wrap/next.h"
#include "capture/wrap/redirect.h"
#include "capture/wrap/spaces.h"
#include "capture/wrap/wrap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { STEP_BYTES = 1 << 21 }; // distance between two addresses that are tried for an area
// Distance within which a jump reaches every byte of an object and an area.
#define REACH_BYTES ((uintptr_t)(ENTRIES_REACH - (1 << 20)))

static _Atomic bool adding; // true while a thread is adding functions

// Results of the search for the object of a plan.
struct redirect_objects {
    const struct entries_plan *plan;
    uintptr_t base;
    bool matches;       // the object at `base` contains the bytes that the plan expects
    bool is_libc;       // the object at `base` is a C library of another namespace
    bool is_executable; // the object at `base` is the executable, which is the first object
    size_t visited;
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

// Visits the objects of the first namespace. The object of the plan may be in another namespace, so
// spaces_find searches for that object first.
static bool visit_object(const struct object *o, void *context)
{
    struct redirect_objects *objects = context;
    struct object other;
    if (!objects->visited && spaces_find(objects->base, &other)) {
        objects->matches = is_expected(&other, objects->plan);
        objects->is_libc = object_find_function(&other, "gnu_get_libc_version");
    }
    if (o->base == objects->base && is_expected(o, objects->plan))
        objects->matches = true;
    objects->is_executable |= !objects->visited++ && o->base == objects->base;
    if (object_spans(o, (uintptr_t)&redirect_table))
        objects->own = *o;
    return false;
}

// If the address range is free, maps the area there. Returns 0 on failure.
static uintptr_t map_at(uintptr_t at, size_t bytes)
{
    void *p = (void *)syscall(SYS_mmap, at, bytes, PROT_READ | PROT_EXEC,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0l);
    if (p == MAP_FAILED)
        return 0;
    if ((uintptr_t)p == at)
        return at;
    // Linux before 4.17 treats the address as a hint, and may have mapped the area elsewhere.
    syscall(SYS_munmap, p, bytes);
    errno = EEXIST;
    return 0;
}

// Tries the plan's place first. Then tries places below the object, because sbrk's heap may grow
// above an executable.
static uintptr_t map_in_reach(const struct entries_plan *plan, uintptr_t base)
{
    uintptr_t end = base + plan->span, lowest = end > REACH_BYTES ? end - REACH_BYTES : STEP_BYTES;
    const uintptr_t from[] = {base, base + REACH_BYTES}, to[] = {lowest, end};
    uintptr_t area = map_at(base + (uintptr_t)plan->place, plan->area_bytes);
    for (unsigned i = 0; i < 2; i++) {
        uintptr_t at = from[i] & -(uintptr_t)STEP_BYTES;
        while (!area && errno == EEXIST && at > to[i] + STEP_BYTES)
            area = map_at(at -= STEP_BYTES, plan->area_bytes);
    }
    return area;
}

// Returns true if heaptape has attached to the program, and the program's symbols lead to the
// function.
static bool is_first(const struct redirect_function *f, const struct entries_entry *e)
{
    return next_is_injected() && !e->family && !e->arguments[0] &&
           (uintptr_t)next_find_definition(entries_symbol(e->function), &redirect_table) == f->at;
}

// Chooses how calls of a function are recorded. A wrapper of the event table forwards to the
// function that the program's symbols lead to. Any other function therefore needs a thunk.
// Allocator functions of the executable also need a thunk, because the code of the executable may
// expect that a call leaves some registers unchanged.
static void choose_wrapper(struct redirect_function *f, const struct entries_entry *e,
                           const struct redirect_objects *objects)
{
    bool first = is_first(f, e);
    bool has_thunk =
        !first || (objects->is_executable && entries_class(e->function) != HT_CLASS_NONE);
    f->wrapper = has_thunk
                     ? wrap_entry_thunk((size_t)(f - redirect_table.all))
                     : (uintptr_t)object_find_function(&objects->own, entries_symbol(e->function));
    f->mark = first ? 0 : e->named ? PRODUCER_NAMED : PRODUCER_UNSIZED;
}

// Returns true for operators new, and for functions with a prefix, such as mi_new_n.
static bool may_throw(const struct entries_entry *e)
{
    return e->family || strncmp(entries_symbol(e->function), "_Zn", 3) == 0;
}

static void add_functions(const struct redirect_objects *objects, size_t first, uintptr_t area)
{
    const struct entries_plan *plan = objects->plan;
    for (uint32_t i = 0; i < plan->n_entries; i++) {
        const struct entries_entry *e = &plan->entries[i];
        struct redirect_function *f = &redirect_table.all[first + i];
        redirect_table.entries[first + i] = (struct entries_redirected){objects->base, area, *e};
        f->at = objects->base + e->at;
        f->base = objects->base;
        f->trampoline = area + e->trampoline;
        f->area = area;
        f->function = e->function;
        f->family = e->family;
        memcpy(f->letters, e->arguments, sizeof e->arguments);
        f->arguments = f->letters[0] ? f->letters : entries_letters(e->function);
        f->throws = may_throw(e);
        f->in_libc = objects->is_libc;
        choose_wrapper(f, e, objects);
        f->wanted = true;
        f->slot = (_Atomic uintptr_t *)(area + e->slot);
        atomic_store_explicit(f->slot, f->trampoline, memory_order_relaxed);
    }
    if (objects->is_libc)
        producer_watch_threads();
    if (first == redirect_count())
        atomic_store_explicit(&redirect_table.n, first + plan->n_entries, memory_order_release);
}

static bool is_in_reach(uintptr_t area, const struct entries_plan *plan, uintptr_t base)
{
    return area + REACH_BYTES >= base + plan->span && area + plan->area_bytes <= base + REACH_BYTES;
}

// Returns the index of the first function that this plan redirected in an object that has been
// unloaded. The area of these functions can be reused: it is in reach of the object at `base`. If
// there are no such functions, returns the number of all functions.
static size_t find_unloaded(const struct entries_plan *plan, uintptr_t base)
{
    size_t n = redirect_count();
    for (size_t first = 0; first + plan->n_entries <= n; first++) {
        const struct redirect_function *f = &redirect_table.all[first];
        const uintptr_t area = f->area;
        uint32_t i = 0;
        while (i < plan->n_entries && !f[i].at && f[i].area == area &&
               f[i].trampoline == area + plan->entries[i].trampoline &&
               (uintptr_t)f[i].slot == area + plan->entries[i].slot)
            i++;
        if (i == plan->n_entries && is_in_reach(area, plan, base))
            return first;
    }
    return n;
}

// If all functions of the plan are already redirected, returns the plan's area, else 0. If any of
// the functions is redirected, sets *some. Updates `wanted` of the redirected functions.
static uintptr_t find_area(const struct entries_plan *plan, uintptr_t base, bool *some)
{
    uintptr_t area = 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < plan->n_entries; i++) {
        const struct entries_entry *e = &plan->entries[i];
        struct redirect_function *f = redirect_find(base + e->at);
        if (f)
            f->wanted = f->function == e->function;
        if (f && f->trampoline == f->area + e->trampoline && (!area || area == f->area)) {
            area = f->area;
            known++;
        }
        *some = *some || f;
    }
    return known == plan->n_entries ? area : 0;
}

// Maps the area of a plan that has been checked.
static int map_area(const struct redirect_objects *objects, uintptr_t *area)
{
    const struct entries_plan *plan = objects->plan;
    bool some = false;
    *area = find_area(plan, objects->base, &some);
    if (*area)
        return 0;
    if (some)
        return EEXIST;
    if (!objects->matches)
        return ENOEXEC;
    size_t first = find_unloaded(plan, objects->base);
    if (first < redirect_count()) {
        *area = redirect_table.all[first].area;
        add_functions(objects, first, *area);
        return 0;
    }
    if (first + plan->n_entries > REDIRECT_MAX)
        return ENOSPC;
    *area = map_in_reach(plan, objects->base);
    if (!*area)
        return errno == EEXIST ? ENOMEM : errno;
    if (syscall(SYS_mprotect, *area + entries_slots(plan), (size_t)ENTRIES_PAGE_BYTES,
                PROT_READ | PROT_WRITE)) {
        int error = errno;
        syscall(SYS_munmap, *area, plan->area_bytes);
        return error;
    }
    add_functions(objects, first, *area);
    return 0;
}

int redirect_map(const struct entries_plan *plan, uintptr_t base, uintptr_t *area)
{
    struct redirect_objects objects = {.plan = plan, .base = base};
    if (!entries_are_valid(plan))
        return EINVAL;
    if (atomic_exchange(&adding, true))
        return EBUSY;
    objects_visit(visit_object, &objects);
    int error = map_area(&objects, area);
    atomic_store(&adding, false);
    return error;
}

// Writes through /proc/self/mem, so that the code never becomes writable in the address space. The
// last bytes written complete the jump atomically, because a thread may be executing the replaced
// function: the loader's _dl_debug_state, which does nothing but return.
static bool write_code(struct entries_plan *plan, uintptr_t base, uintptr_t area)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC);
    bool done = fd >= 0 && syscall(SYS_pwrite64, fd, plan->code, (size_t)plan->code_bytes, area) ==
                               (long)plan->code_bytes;
    for (uint32_t i = 0; done && i < plan->n_entries; i++) {
        const struct entries_entry *e = &plan->entries[i];
        uint8_t jump[ENTRIES_MAX_BYTES];
        const long rest = e->bytes - e->keep - ENTRIES_LAST_BYTES;
        const uint8_t *code = jump + e->keep;
        const uintptr_t at = base + e->at + e->keep;
        done = entries_make_jump(e, base, area, jump) &&
               syscall(SYS_pwrite64, fd, code + ENTRIES_LAST_BYTES, rest,
                       at + ENTRIES_LAST_BYTES) == rest &&
               syscall(SYS_pwrite64, fd, code, (long)ENTRIES_LAST_BYTES, at) == ENTRIES_LAST_BYTES;
    }
    if (fd >= 0)
        close(fd);
    return done;
}

int redirect_apply(struct entries_plan *plan, uintptr_t base)
{
    uintptr_t area;
    int error = redirect_map(plan, base, &area);
    if (error)
        return error;
    if (!entries_relocate(plan, (int64_t)(area - (base + (uintptr_t)plan->place))))
        error = ERANGE;
    else if (!write_code(plan, base, area))
        error = EIO;
    for (size_t i = 0, n = redirect_count(); error && i < n; i++) {
        if (redirect_table.all[i].base == base)
            redirect_forget(i);
    }
    return error;
}
