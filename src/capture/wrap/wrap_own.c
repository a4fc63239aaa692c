// Records allocators whose calls do not lead to the wrappers. These are allocators in the
// executable (a statically linked jemalloc, tcmalloc or mimalloc, or the program's own allocator),
// and functions of libraries with a known prefix or a name of --wrap.
#include "capture/libc/objects.h"
#include "capture/wrap/redirect.h"
#include "capture/wrap/wrap.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LIBRARIES = 16 };

// An object that is loaded at startup and stays loaded until the startup ends.
struct own_object {
    uintptr_t base, start;
    const char *path;
};

// Objects that define an allocator, found in a callback.
struct own_search {
    const struct spool_wrap *names; // functions of --wrap, or NULL
    struct own_object executable;
    const uint8_t *build_id; // build ID of the executable, or NULL
    bool has_prefixed;       // the executable exports a malloc with a known prefix
    bool found;              // the executable was visited
    bool in_libraries;       // functions with prefixes in libraries are recorded
    struct own_object libraries[MAX_LIBRARIES];
    size_t n_libraries;
};

static const uint8_t *find_build_id(const struct object *o, const ElfW(Phdr) * s)
{
    const uint8_t *at = (const uint8_t *)(o->base + s->p_vaddr), *end = at + s->p_memsz;
    const ElfW(Nhdr) * note;
    if (!object_contains(o, at, s->p_memsz))
        return NULL;
    while (end - at >= (long)sizeof *note) {
        note = (const ElfW(Nhdr) *)(const void *)at;
        const uint8_t *name = at + sizeof *note, *content = name + ((note->n_namesz + 3u) & ~3u);
        if (note->n_namesz > 64 || note->n_descsz > 4096)
            return NULL;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz == WRAP_BUILD_ID_BYTES &&
            note->n_namesz == 4 && content + WRAP_BUILD_ID_BYTES <= end &&
            memcmp(name, "GNU", 4) == 0)
            return content;
        at = content + ((note->n_descsz + 3u) & ~3u);
    }
    return NULL;
}

static bool has_prefixed(const struct object *o)
{
    bool found = false;
    for (size_t i = 1; i < ENTRIES_PREFIXES && !found; i++)
        found = object_find_function(o, entries_malloc_names[i]);
    return found;
}

static bool has_named(const struct object *o, const struct spool_wrap *names)
{
    bool found = false;
    for (size_t i = 0; names && i < SPOOL_WRAPPED && !found; i++)
        found = names->names[i][0] && object_find_function(o, names->names[i]);
    return found;
}

static void visit_executable(const struct object *o, struct own_search *s)
{
    s->executable = (struct own_object){o->base, o->start, "/proc/self/exe"};
    s->has_prefixed = has_prefixed(o);
    for (size_t i = 0; i < o->n_segments && !s->build_id; i++) {
        if (o->segments[i].p_type == PT_NOTE)
            s->build_id = find_build_id(o, &o->segments[i]);
    }
}

// The executable is the first object.
static int visit_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct own_search *s = data;
    struct object o;
    (void)size;
    object_read(&o, info);
    if (!s->found)
        visit_executable(&o, s);
    else if (s->n_libraries < MAX_LIBRARIES && !next_is_allocator((const void *)o.start) &&
             ((s->in_libraries && has_prefixed(&o)) || has_named(&o, s->names)))
        s->libraries[s->n_libraries++] = (struct own_object){o.base, o.start, o.path};
    s->found = true;
    return 0;
}

static bool has_own_malloc(const struct own_search *s, int file)
{
    struct next_object by;
    if (s->names || s->has_prefixed || (next_is_bypassed(&by) && by.start == s->executable.start))
        return true;
    return wrap_has_hidden_malloc(file, s->build_id);
}

static bool redirects_malloc(const struct entries_plan *plan)
{
    uint32_t i = 0;
    while (i < plan->n_entries &&
           (plan->entries[i].family || plan->entries[i].function != HT_MALLOC))
        i++;
    return i < plan->n_entries;
}

// Removes functions with libc's names from the plan. The symbols of the program decide which
// object's functions with libc's names are called.
static void drop_libc_names(struct entries_plan *plan)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_entries && i < ENTRIES_MAX; i++) {
        if (plan->entries[i].family)
            plan->entries[n++] = plan->entries[i];
    }
    plan->n_entries = n;
}

// Redirects the functions of an object by a plan. Returns true if functions with libc's names are
// redirected.
static bool apply_plan(struct entries_plan *plan, const struct own_object *o, bool is_executable)
{
    if (!is_executable)
        drop_libc_names(plan);
    return redirect_apply(plan, o->base) == 0 && redirects_malloc(plan);
}

// Redirects the functions of an object by a plan of the recorder.
static void redirect_object(const struct own_object *o, const struct own_search *s)
{
    static struct entries_plan plan;
    bool is_executable = o == &s->executable;
    int file = wrap_open_file(o->path);
    bool is_own = !is_executable || (file >= 0 && has_own_malloc(s, file));
    enum producer_plan found = is_own ? producer_read_plan(file, &plan) : PRODUCER_NO_PLAN;
    if (found == PRODUCER_PLAN_IS_LATE && !s->names)
        producer_set_bypass(is_executable ? "the executable" : o->path);
    else if (found == PRODUCER_HAS_PLAN && apply_plan(&plan, o, is_executable))
        producer_set_bypass("");
    if (file >= 0)
        close(file);
}

void wrap_own_allocator(void)
{
    // An allocator other than libc's may call functions with prefixes. These calls are not events.
    struct own_search s = {.names = producer_wrap(),
                           .in_libraries = next_is_libc((const void *)next.malloc)};
    uint32_t was = producer_enter(PRODUCER_MUTED);
    if (wrap_entry_thunk(0)) {
        dl_iterate_phdr(visit_object, &s);
        redirect_object(&s.executable, &s);
        for (size_t i = 0; i < s.n_libraries; i++)
            redirect_object(&s.libraries[i], &s);
        redirect_start();
        if (s.names)
            wrap_set_names(s.names, false);
    }
    producer_leave(was);
}
