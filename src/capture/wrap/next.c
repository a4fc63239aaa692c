// Finds the real functions.
#include "capture/wrap/next.h"

#include "capture/libc/libc.h"
#include "capture/libc/objects.h"
#include "capture/producer/producer.h"
#include "capture/spool/attach.h"
#include "capture/wrap/redirect.h"
#include "capture/wrap/wrap.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static _Atomic uint32_t resolving, resolved;

// The real functions. `next` contains trampolines instead of functions that are redirected.
static struct next real;

// The C library. next_resolve finds it together with the functions, so that a forked child does not
// have to wait for the loader's lock later.
static struct next_object libc_object;

// The real functions, or their trampolines if they are redirected.
static struct next redirected;

static bool is_inside(const struct next_object *object, uintptr_t at)
{
    return at >= object->start && at < object->end;
}

#define BOOT(result, name, parameters, names)                                                      \
    static result boot_##name parameters                                                           \
    {                                                                                              \
        next_resolve();                                                                            \
        return next.name names;                                                                    \
    }
NEXT_TABLE(BOOT)
#undef BOOT

#define BOOT_FIELD(result, name, parameters, names) .name = boot_##name,
struct next next = {NEXT_TABLE(BOOT_FIELD)};
#undef BOOT_FIELD

static bool is_path_of_injected(const char *path)
{
    return strncmp(path, SPOOL_ATTACHED_FD, strlen(SPOOL_ATTACHED_FD)) == 0 ||
           strstr(path, "/" SPOOL_ATTACHED_FILE);
}

bool next_is_injected(void)
{
    static _Atomic int known; // 0: not checked yet, 1: no, 2: yes
    struct next_object self;
    if (!known)
        known = next_object_of(&known, &self) && is_path_of_injected(self.path) ? 2 : 1;
    return known == 2;
}

struct definition_search {
    const char *name;
    uintptr_t except; // address in the object that is skipped
    bool follows;     // also skip the objects before that object
    void *found;
};

static bool search_definition(const struct object *o, void *context)
{
    struct definition_search *s = context;
    if (object_spans(o, s->except))
        s->follows = false;
    else if (!s->follows)
        s->found = object_find_function(o, s->name);
    return s->found;
}

void *next_find_definition(const char *name, const void *except)
{
    struct definition_search s = {.name = name, .except = (uintptr_t)except};
    objects_visit(search_definition, &s);
    return s.found;
}

// Returns the function's first definition after this library in load order, like dlsym(RTLD_NEXT),
// which may allocate. If this library was loaded late, searches all other objects.
static void *find_next(const char *symbol)
{
    struct definition_search s = {
        .name = symbol, .except = (uintptr_t)&resolved, .follows = !next_is_injected()};
    objects_visit(search_definition, &s);
    return s.found;
}

bool next_find(const char *symbol, void **to)
{
    // Also search the C++ libraries: a library loaded with RTLD_LOCAL is not among the next
    // objects.
    static const char *const runtimes[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    void *found = next_is_injected() ? find_next(symbol) : dlsym(RTLD_NEXT, symbol);
    for (size_t i = 0; !found && i < sizeof runtimes / sizeof *runtimes; i++) {
        void *handle = libc_open_library(runtimes[i], RTLD_NOLOAD | RTLD_LAZY);
        // Keep the handle open, so that the function is not unloaded.
        if (handle)
            found = dlsym(handle, symbol);
    }
    if (found)
        *to = found;
    return found;
}

size_t (*next_usable_size)(void *block);

_Atomic bool next_operators_are_malloc;

static void look_up_usable_size(const struct next_object *allocator)
{
    struct next_object object;
    void *found = find_next("malloc_usable_size");
    // If the allocator lacks the function, do not pass the allocator's blocks to libc's version.
    if (found && next_object_of(found, &object) && object.start == allocator->start)
        next_usable_size = (size_t(*)(void *))found;
}

static uint64_t foreign_kinds; // bit set of event kinds

// Returns true if the allocator in use lacks the function of this kind, so blocks come from libc.
static bool is_foreign(unsigned kind)
{
    return kind < 64 && (foreign_kinds >> kind & 1);
}

static void look_up_foreign(const struct next_object *allocator)
{
    const struct {
        enum event_kind kind;
        void *function;
    } rare[] = {{HT_MEMALIGN, (void *)real.memalign},
                {HT_ALIGNED_ALLOC, (void *)real.aligned_alloc},
                {HT_POSIX_MEMALIGN, (void *)real.posix_memalign},
                {HT_VALLOC, (void *)real.valloc},
                {HT_PVALLOC, (void *)real.pvalloc}};
    for (size_t i = 0; i < sizeof rare / sizeof *rare; i++) {
        uintptr_t at = (uintptr_t)rare[i].function;
        if (at < allocator->start || at >= allocator->end)
            foreign_kinds |= 1ull << rare[i].kind;
    }
}

bool next_is_bypassed(struct next_object *by)
{
    struct next_object self;
    const void *first = next_is_injected() ? NULL : next_find_definition("malloc", NULL);
    return first && next_object_of(first, by) && next_object_of(&resolved, &self) &&
           by->start != self.start;
}

static bool is_operator(unsigned kind)
{
    return strncmp(event_infos[kind].symbol, "_Z", 2) == 0;
}

// Returns the usable size of a block. Calls only the allocator itself, and only with its own
// blocks.
static size_t block_usable_size(unsigned kind, void *block)
{
    if (is_foreign(kind) || (is_operator(kind) && !next_operators_are_malloc))
        return 0;
    // At its first call, tcmalloc's malloc_usable_size allocates an object, which is not an event.
    uint32_t was = producer_enter(PRODUCER_IN_ALLOCATOR);
    size_t size = next_usable_size(block);
    producer_leave(was);
    return size;
}

// Objects that were loaded at startup. They need no check: they stay loaded, and RTLD_DEEPBIND
// applies to opened objects only.
static struct {
    size_t objects;
    unsigned long long loads; // the loader's count of loaded objects at startup
} first;

static bool count_object(const struct object *o, void *context)
{
    (void)context;
    first.objects++;
    first.loads = o->loads;
    return false;
}

static void look_up_functions(void)
{
#define LOOK_UP(result, name, parameters, names) real.name = (result(*) parameters)find_next(#name);
    NEXT_TABLE(LOOK_UP)
#undef LOOK_UP
    struct next_object object;
    if (next_object_of((void *)real.malloc, &object)) {
        producer_set_object(PRODUCER_OBJECT_ALLOCATOR, object.start, object.end);
        producer_set_allocator(object.path);
        look_up_usable_size(&object);
        look_up_foreign(&object);
        if (next_usable_size)
            producer_usable = block_usable_size;
    }
    if (next_object_of(&resolved, &object)) {
        producer_set_library(object.path, HEAPTAPE_BIN_FROM_LIBEXEC);
        producer_set_object(PRODUCER_OBJECT_OWN, object.start, object.end);
        if (next_is_bypassed(&object))
            producer_set_bypass(object.path[0] ? object.path : "the executable");
    }
    next_object_of(libc_address(), &libc_object);
    producer_set_rseq(libc_rseq_offset());
    objects_visit(count_object, NULL);
}

// Forward to a redirected allocator, for callers that have not set PRODUCER_IN_ALLOCATOR. These
// functions set the bit, so that calls from one redirected function to another are not events.
static void *marked_malloc(size_t size)
{
    uint32_t was = producer_enter(PRODUCER_IN_ALLOCATOR);
    void *p = redirected.malloc(size);
    producer_leave(was);
    return p;
}

static void *marked_aligned_alloc(size_t align, size_t size)
{
    uint32_t was = producer_enter(PRODUCER_IN_ALLOCATOR);
    void *p = redirected.aligned_alloc(align, size);
    producer_leave(was);
    return p;
}

static void marked_free(void *p)
{
    uint32_t was = producer_enter(PRODUCER_IN_ALLOCATOR);
    redirected.free(p);
    producer_leave(was);
}

// Replaces redirected functions with their trampolines. If the allocator is not libc's, its
// functions may call each other through their entries, so malloc, aligned_alloc and free are
// replaced with marked functions.
static void choose_trampolines(struct next *chosen)
{
    struct next_object allocator;
#define CHOOSE(result, name, parameters, names)                                                    \
    chosen->name = (result(*) parameters)redirect_real((void *)chosen->name);
    NEXT_TABLE(CHOOSE)
#undef CHOOSE
    redirected = *chosen;
    if (redirected.malloc == real.malloc || !next_object_of((void *)real.malloc, &allocator) ||
        is_inside(&allocator, (uintptr_t)libc_address()))
        return;
    chosen->malloc = marked_malloc;
    chosen->aligned_alloc = marked_aligned_alloc;
    chosen->free = marked_free;
}

static void install_functions(void)
{
    struct next chosen = real;
    choose_trampolines(&chosen);
#define INSTALL(result, name, parameters, names)                                                   \
    __atomic_store_n(&next.name, chosen.name, __ATOMIC_RELEASE);
    NEXT_TABLE(INSTALL)
#undef INSTALL
}

void next_resolve(void)
{
    if (atomic_load_explicit(&resolved, memory_order_acquire))
        return;
    int saved_errno = errno;
    if (atomic_exchange(&resolving, 1) == 0) {
        look_up_functions();
        install_functions();
        atomic_store_explicit(&resolved, 1, memory_order_release);
    }
    while (!atomic_load_explicit(&resolved, memory_order_acquire))
        sched_yield();
    errno = saved_errno;
}

void next_bind(void)
{
    if (atomic_load_explicit(&resolved, memory_order_acquire))
        install_functions();
}

bool next_is_libc(const void *address)
{
    return is_inside(&libc_object, (uintptr_t)address);
}

#if defined(__aarch64__)
uintptr_t next_call_target(const void *caller)
{
    enum { BL = 37, BITS = 26 };
    const uint32_t call = ((const uint32_t *)caller)[-1];
    int32_t words = (int32_t)(call << (32 - BITS)) >> (32 - BITS);
    return call >> BITS == BL ? (uintptr_t)caller + (uintptr_t)(intptr_t)(words - 1) * 4 : 0;
}
#else
uintptr_t next_call_target(const void *caller)
{
    enum { CALL = 0xe8, DISPLACEMENT_BYTES = 4 };
    const uint8_t *displacement = (const uint8_t *)caller - DISPLACEMENT_BYTES;
    int32_t distance;
    memcpy(&distance, displacement, sizeof distance);
    return displacement[-1] == CALL ? (uintptr_t)caller + (uintptr_t)(intptr_t)distance : 0;
}
#endif

// Only the C library's allocator calls free directly. Other functions of the C library call free
// through the loader's tables.
bool next_is_cache_free(const void *caller)
{
    return redirected.free != real.free && next_is_libc(caller) &&
           next_call_target(caller) == (uintptr_t)real.free;
}

static bool match_object(const struct object *o, void *context)
{
    struct next_object *object = context;
    if (!object_spans(o, object->start))
        return false;
    object->start = o->start;
    object->end = o->end;
    // Do not use strncpy: AddressSanitizer's strncpy aborts the program while its runtime is
    // starting. The name of the main program is empty.
    size_t n = strnlen(o->path, sizeof object->path - 1);
    memcpy(object->path, o->path, n);
    return true;
}

bool next_object_of(const void *address, struct next_object *object)
{
    *object = (struct next_object){.start = (uintptr_t)address};
    return objects_visit(match_object, object);
}

static bool match_name(const struct object *o, void *context)
{
    const char *name = strrchr(o->path, '/'), *want = context;
    return name && strncmp(name + 1, want, strlen(want)) == 0;
}

bool next_is_loaded(const char *name)
{
    return objects_visit(match_name, (void *)name);
}

// State of the search for objects that call the real functions directly.
struct deepbound_search {
    size_t objects; // number of objects visited
    bool found;     // a direct call was found in the current object
};

static bool is_malloc_function(const char *name)
{
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        const struct event_info *info = &event_infos[kind];
        bool of_blocks = info->class == HT_CLASS_ALLOC || info->class == HT_CLASS_FREE ||
                         info->class == HT_CLASS_RESIZE;
        if (of_blocks && info->symbol[0] && !is_operator(kind) && strcmp(name, info->symbol) == 0)
            return true;
    }
    return false;
}

// Search for a slot whose function is a malloc with a prefix, or mallocx.
struct slot_search {
    bool in_allocator; // consider functions that the malloc in use defines, or only others
    const void *found; // the function
};

static void check_prefixed(const struct object *o, const char *name, uintptr_t *slot, void *context)
{
    struct slot_search *s = context;
    bool is_other = strcmp(name, "mallocx") == 0;
    (void)o, (void)slot;
    for (size_t i = 1; i < ENTRIES_PREFIXES && !is_other; i++)
        is_other = strcmp(name, entries_malloc_names[i]) == 0;
    if (!is_other || s->found)
        return;
    const void *function = next_find_definition(name, s);
    s->found = producer_is_allocator(function) == s->in_allocator ? function : NULL;
}

const void *next_find_prefixed_call(const struct object *o, bool in_allocator)
{
    struct slot_search s = {.in_allocator = in_allocator};
    object_each_slot(o, check_prefixed, &s);
    return s.found;
}

static bool forwards_malloc(const struct object *o, void *context)
{
    (void)context;
    return producer_is_allocator((const void *)o->start) && next_find_prefixed_call(o, false);
}

bool next_records_libraries(void)
{
    return producer_is_allocator(libc_address()) || !objects_visit(forwards_malloc, NULL);
}

// Sets `found` if the slot leads directly to libc or the allocator. The slot of a function that has
// not been called yet may still lead to the object's own stub, and calls of a redirected function
// are recorded. Neither is a direct call.
static void check_slot(const struct object *o, const char *name, uintptr_t *slot, void *context)
{
    struct deepbound_search *s = context;
    void *target = (void *)__atomic_load_n(slot, __ATOMIC_RELAXED);
    (void)o;
    s->found |= is_malloc_function(name) && redirect_real(target) == target &&
                (producer_is_allocator(target) || next_is_libc(target));
}

// Returns true if no objects were loaded after startup.
static bool check_deepbound(const struct object *o, void *context)
{
    struct deepbound_search *s = context;
    s->found = false;
    if (s->objects++ < first.objects)
        return o->loads == first.loads;
    object_each_slot(o, check_slot, s);
    if (s->found)
        producer_add_deepbound(o->path);
    if (redirect_misses(o) && next_records_libraries())
        producer_set_bypass(o->path);
    return false;
}

next_mallinfo2_function next_mallinfo2(void)
{
    void *found = next_find_definition("mallinfo2", &resolved);
    bool is_of_glibc = producer_is_allocator(found) && producer_is_allocator(libc_address());
    return is_of_glibc ? (next_mallinfo2_function)found : NULL;
}

// If the holder of the loader's lock may no longer exist, the lock would never be released, so does
// nothing.
void next_report_deepbound(void)
{
    struct deepbound_search s = {0};
    if (atomic_load_explicit(&resolved, memory_order_acquire) && !producer_loader_may_be_locked())
        objects_visit(check_deepbound, &s);
}
