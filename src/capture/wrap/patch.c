// Patches the objects of a running program. Finds the slots in the loader's tables through which
// the objects call malloc functions, and stores the wrappers' addresses in these slots.
#include "capture/wrap/patch.h"

#include "capture/libc/objects.h"
#include "capture/producer/producer.h"
#include "capture/wrap/next.h"
#include "capture/wrap/redirect.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MAX_WRAPPERS = 128,
    MAX_SLOTS = 1 << 18,
    CHECK_NS = 10000000, // between checks for newly loaded objects
};

// A slot that holds a wrapper's address.
struct slot {
    uintptr_t *at, was;
};

static struct {
    struct slot *slots;
    size_t n;
    uintptr_t main_start, main_end;    // the executable
    unsigned long long loads, unloads; // the loader's counters at the last check
    struct {
        void *wrapper, *real;
    } wrappers[MAX_WRAPPERS]; // the wrappers used so far
    size_t n_wrappers;
    void *(*find_named)(const char *name);
} patch;

static _Atomic bool patching;
static _Atomic uint64_t checked_ns;
static _Atomic bool patched;

// Returns the function that this name referred to before the patch, or NULL.
static void *find_real(void *wrapper, const char *name)
{
    for (size_t i = 0; i < patch.n_wrappers; i++) {
        if (patch.wrappers[i].wrapper == wrapper)
            return patch.wrappers[i].real;
    }
    void *real = next_find_definition(name, &patch);
    if (patch.n_wrappers < MAX_WRAPPERS) {
        patch.wrappers[patch.n_wrappers].wrapper = wrapper;
        patch.wrappers[patch.n_wrappers++].real = real;
    }
    return real;
}

static void write_slot(const struct object *o, uintptr_t *slot, uintptr_t value)
{
    const uintptr_t bytes = getauxval(AT_PAGESZ), page = (uintptr_t)slot & -bytes;
    bool sealed = page >= (o->relro_start & -bytes) && page < (o->relro_end & -bytes);
    if (sealed && syscall(SYS_mprotect, page, bytes, PROT_READ | PROT_WRITE))
        return;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (sealed)
        syscall(SYS_mprotect, page, bytes, PROT_READ);
}

// Returns true if the slot leads to the real function. Slots that lead to an object's own allocator
// are not patched. The slot of a function that has not been called yet points to a stub. The stub
// is in the object itself, or in an executable that is not position-independent. Both kinds of stub
// lead to the real function.
static bool leads_to_real(const struct object *o, const char *name, uintptr_t value, uintptr_t real)
{
    bool own = object_spans(o, value),
         of_main = value >= patch.main_start && value < patch.main_end;
    return value == real || (own && !object_find_function(o, name)) || (of_main && !own);
}

static void *find_wrapper(const struct object *own, const char *name)
{
    void *named = patch.find_named(name);
    return named ? named : object_find_function(own, name);
}

static void patch_slot(const struct object *o, const char *name, uintptr_t *slot, void *context)
{
    void *wrapper = find_wrapper(context, name), *real = wrapper ? find_real(wrapper, name) : NULL;
    uintptr_t value = __atomic_load_n(slot, __ATOMIC_RELAXED);
    if (!real || redirect_real(real) != real || !value || value == (uintptr_t)wrapper ||
        patch.n == MAX_SLOTS || !leads_to_real(o, name, value, (uintptr_t)real))
        return;
    patch.slots[patch.n++] = (struct slot){slot, value};
    write_slot(o, slot, (uintptr_t)wrapper);
}

// Returns true for the loader. The loader calls only its own malloc functions, and passes their
// blocks to no other object.
static bool is_loader(const struct object *o)
{
    return o->base == getauxval(AT_BASE);
}

static bool find_own(const struct object *o, void *own)
{
    if (!o->path[0]) {
        patch.main_start = o->start;
        patch.main_end = o->end;
    }
    if (object_spans(o, (uintptr_t)&patch))
        *(struct object *)own = *o;
    patch.loads = o->loads;
    patch.unloads = o->unloads;
    return false;
}

// A function to call for each slot of the objects whose calls are patched.
struct slot_visit {
    void (*visit)(const struct object *o, const char *name, uintptr_t *slot, void *context);
    void *context;
};

static bool visit_object(const struct object *o, void *context)
{
    const struct slot_visit *v = context;
    if (!object_spans(o, (uintptr_t)&patch) && !is_loader(o))
        object_each_slot(o, v->visit, v->context);
    return false;
}

// Patches all slots. Calls in progress are not affected.
static int patch_all(void)
{
    struct object own = {0};
    size_t bytes = MAX_SLOTS * sizeof *patch.slots;
    if (!patch.slots) {
        void *p = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0l);
        if (p == MAP_FAILED)
            return ENOMEM;
        patch.slots = p;
    }
    objects_visit(find_own, &own);
    objects_visit(visit_object, &(struct slot_visit){patch_slot, &own});
    return 0;
}

static void unpatch_slot(const struct object *o, const char *name, uintptr_t *slot, void *context)
{
    uintptr_t value = __atomic_load_n(slot, __ATOMIC_RELAXED);
    void *wrapper = find_wrapper(context, name);
    if (!wrapper || value != (uintptr_t)wrapper)
        return;
    // Search for the last entry, because the object may have been unloaded and another object
    // loaded at this address.
    for (size_t i = patch.n; i-- > 0;) {
        if (patch.slots[i].at == slot) {
            write_slot(o, slot, patch.slots[i].was);
            return;
        }
    }
    write_slot(o, slot, (uintptr_t)find_real(wrapper, name));
}

static void unpatch_all(void)
{
    struct object own = {0};
    if (!patch.slots)
        return;
    objects_visit(find_own, &own);
    objects_visit(visit_object, &(struct slot_visit){unpatch_slot, &own});
    patch.n = 0;
    syscall(SYS_munmap, patch.slots, MAX_SLOTS * sizeof *patch.slots);
    patch.slots = NULL;
}

// Number of slots through which each function in `names` is called.
struct name_count {
    const struct spool_wrap *names;
    unsigned places[SPOOL_WRAPPED];
};

static void count_slot(const struct object *o, const char *name, uintptr_t *slot, void *context)
{
    struct name_count *c = context;
    (void)o, (void)slot;
    for (unsigned i = 0; i < c->names->n; i++)
        c->places[i] += strcmp(c->names->items[i].name, name) == 0;
}

bool patch_names_are_called(const struct spool_wrap *names)
{
    struct name_count count = {.names = names};
    bool called = true;
    objects_visit(visit_object, &(struct slot_visit){count_slot, &count});
    for (unsigned i = 0; i < names->n; i++)
        called = called && (!names->items[i].function || count.places[i]);
    return called;
}

static bool has_changed(const struct object *o, void *context)
{
    (void)context;
    return o->loads != patch.loads || o->unloads != patch.unloads;
}

// Patches objects that were loaded since the last check. Does nothing in a child of a multithreaded
// process: the loader's lock may be held by a thread that exists only in the parent.
static void patch_new_objects(void)
{
    if (producer_loader_may_be_locked() || atomic_exchange(&patching, true))
        return;
    uint32_t was = producer_enter(PRODUCER_MUTED);
    if (objects_visit(has_changed, NULL) && atomic_load(&patched))
        patch_all();
    producer_leave(was);
    atomic_store(&patching, false);
}

void patch_check_objects(void)
{
    if (!atomic_load_explicit(&patched, memory_order_relaxed))
        return;
    // Called at every free, so use CLOCK_MONOTONIC_COARSE. Reading this clock takes a tenth of the
    // time of CLOCK_MONOTONIC, and the clock lags by only a few milliseconds.
    uint64_t now = clock_ns(CLOCK_MONOTONIC_COARSE),
             last = atomic_load_explicit(&checked_ns, memory_order_relaxed);
    if (now - last < CHECK_NS || !atomic_compare_exchange_strong(&checked_ns, &last, now))
        return;
    int saved_errno = errno;
    patch_new_objects();
    errno = saved_errno;
}

int patch_install(void *(*find_named)(const char *name))
{
    patch.find_named = find_named;
    patch.n_wrappers = 0;
    return patch_all();
}

void patch_start_checks(void)
{
    atomic_store(&patched, true);
}

void patch_remove(void)
{
    atomic_store(&patched, false);
    // Wait for another thread that is checking for new objects.
    while (atomic_exchange(&patching, true))
        syscall(SYS_sched_yield);
    unpatch_all();
    atomic_store(&patching, false);
}
