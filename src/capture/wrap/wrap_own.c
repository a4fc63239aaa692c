// Redirects allocators whose calls would bypass the wrappers: allocators in the executable (the
// program's own allocator, or jemalloc, tcmalloc or mimalloc linked statically), functions of
// libraries with a known prefix or a name of --wrap, and C libraries of other namespaces. Objects
// that the program opens are examined before their code runs. This works because the loader calls a
// function, which is also redirected, when its list of objects has changed.
#include "base/elf_note.h"
#include "capture/libc/libc.h"
#include "capture/libc/objects.h"
#include "capture/wrap/redirect.h"
#include "capture/wrap/spaces.h"
#include "capture/wrap/wrap.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_LIBRARIES = 16 };

static _Atomic bool watched; // objects are examined when the program opens them

// Objects with functions to redirect.
enum own_role {
    OWN_EXECUTABLE,
    OWN_LIBRARY, // not the malloc in use; operators are called through the program's symbols
    OWN_LIBC,    // defines malloc for the objects of another namespace
    OWN_LOADER,
};

// Objects that define an allocator, found in a callback. They stay loaded during startup.
struct own_search {
    const struct spool_wrap *names; // functions of --wrap, or NULL
    struct object executable;
    const uint8_t *build_id; // build ID of the executable, or NULL
    bool has_prefixed;       // the executable exports a malloc with a known prefix
    bool found;              // the executable was visited
    bool in_libraries;       // functions with prefixes in libraries are recorded
    struct object libraries[MAX_LIBRARIES];
    size_t n_libraries;
};

static const uint8_t *find_build_id(const struct object *o, const ElfW(Phdr) * s)
{
    const uint8_t *notes = (const uint8_t *)(o->base + s->p_vaddr);
    uint32_t bytes;
    const uint8_t *id =
        object_contains(o, notes, s->p_memsz) ? elf_note_build_id(notes, s->p_memsz, &bytes) : NULL;
    return id && bytes == WRAP_BUILD_ID_BYTES ? id : NULL;
}

// If the object calls functions with prefixes that the malloc in use defines, and these functions
// are not redirected, reports that the calls are not recorded. Call only if the malloc in use is
// not libc's.
static bool note_calls(const struct object *o, void *context)
{
    const void *found =
        producer_is_allocator((const void *)o->start) ? NULL : next_find_prefixed_call(o, true);
    struct next_object by;
    (void)context;
    if (found && redirect_real((void *)found) == found && next_object_of(found, &by))
        producer_set_bypass(by.path);
    return found;
}

static bool has_named(const struct object *o, const struct spool_wrap *names)
{
    bool found = false;
    for (size_t i = 0; names && i < names->n && !found; i++)
        found = object_find_function(o, names->items[i].name);
    return found;
}

static void visit_executable(const struct object *o, struct own_search *s)
{
    s->executable = *o;
    s->has_prefixed = redirect_has_prefixed(o);
    for (size_t i = 0; i < o->n_segments && !s->build_id; i++) {
        if (o->segments[i].p_type == PT_NOTE)
            s->build_id = find_build_id(o, &o->segments[i]);
    }
}

// Returns true if the symbol table of a library, which the loader does not read, has a malloc with
// a prefix.
static bool has_hidden(const char *path)
{
    if (entries_is_system_library(path))
        return false;
    int file = wrap_open_file(path);
    bool found = file >= 0 && wrap_has_hidden_prefix(file);
    if (file >= 0)
        close(file);
    return found;
}

static bool is_library_wanted(const struct own_search *s, const struct object *o)
{
    return !producer_is_allocator((const void *)o->start) &&
           ((s->in_libraries && (redirect_has_prefixed(o) || has_hidden(o->path))) ||
            has_named(o, s->names));
}

// The executable is the first object.
static bool visit_object(const struct object *o, void *context)
{
    struct own_search *s = context;
    if (!s->found)
        visit_executable(o, s);
    else if (s->n_libraries < MAX_LIBRARIES && is_library_wanted(s, o))
        s->libraries[s->n_libraries++] = *o;
    s->found = true;
    return false;
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

static bool is_chosen(const struct entries_entry *e, enum own_role role)
{
    if (role == OWN_LOADER || e->function == ENTRIES_LOADS)
        return role == OWN_LOADER && e->function == ENTRIES_LOADS;
    return role != OWN_LIBRARY || e->family || e->arguments[0] ||
           (entries_class(e->function) != HT_CLASS_NONE &&
            strncmp(entries_symbol(e->function), "_Z", 2) != 0);
}

static void choose_entries(struct entries_plan *plan, enum own_role role)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_entries && i < ENTRIES_MAX; i++) {
        if (is_chosen(&plan->entries[i], role))
            plan->entries[n++] = plan->entries[i];
    }
    plan->n_entries = n;
}

static bool has_one_thread(void)
{
    struct stat st;
    return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3; // ".", "..", and one thread
}

// Redirects the functions of an object with a plan from the recorder. Other threads must not
// execute the object's code. At the start of the program, this function checks that there are no
// other threads.
static void redirect_object(const struct object *o, enum own_role role, const struct own_search *s)
{
    static struct entries_plan plan;
    bool is_executable = role == OWN_EXECUTABLE, failed;
    int file = wrap_open_file(is_executable ? "/proc/self/exe" : o->path);
    bool is_own = !is_executable || (file >= 0 && has_own_malloc(s, file));
    enum producer_plan found = is_own ? producer_read_plan(file, &plan) : PRODUCER_NO_PLAN;
    failed = found == PRODUCER_PLAN_IS_LATE && !s->names;
    if (found == PRODUCER_HAS_PLAN) {
        choose_entries(&plan, role);
        failed = plan.n_entries &&
                 (!(watched || has_one_thread()) || redirect_apply(&plan, o->base) != 0);
        if (is_executable && !failed && redirects_malloc(&plan)) {
            producer_set_bypass("");
            producer_set_allocator("");
        }
    }
    if (failed && role != OWN_LOADER)
        producer_set_bypass(is_executable ? "the executable" : o->path);
    if (file >= 0)
        close(file);
}

static struct own_search begin_search(void)
{
    return (struct own_search){.names = producer_wrap(), .in_libraries = next_records_libraries()};
}

void wrap_own_allocator(void)
{
    struct own_search s = begin_search();
    uint32_t was = producer_enter(PRODUCER_MUTED);
    objects_visit(visit_object, &s);
    redirect_object(&s.executable, OWN_EXECUTABLE, &s);
    for (size_t i = 0; i < s.n_libraries; i++)
        redirect_object(&s.libraries[i], OWN_LIBRARY, &s);
    redirect_start(wrap_own_loads);
    if (!producer_is_allocator(libc_address()))
        objects_visit(note_calls, NULL);
    if (s.names)
        wrap_set_names(s.names, false);
    producer_leave(was);
}

// Number of objects in each namespace that were examined, or existed when the watch began. Used by
// the thread that holds the loader's lock.
static size_t examined[ENTRIES_NAMESPACES];

static size_t count_objects(const struct r_debug *list)
{
    size_t n = 0;
    for (const struct link_map *m = list->r_map; m; m = m->l_next)
        n++;
    return n;
}

// Examines the objects that were appended to a namespace. Their constructors have not run.
static void examine_space(const struct own_search *s, const struct r_debug *list, size_t *before)
{
    bool has_malloc = list == libc_objects() || *before;
    size_t n = 0;
    for (const struct link_map *m = list->r_map; m; m = m->l_next) {
        struct object o;
        if (n++ < *before || !m->l_name || !*m->l_name || !spaces_read(&o, m))
            continue;
        if (!has_malloc && object_find_function(&o, "malloc")) {
            has_malloc = true;
            redirect_object(&o, OWN_LIBC, s);
        } else if (is_library_wanted(s, &o)) {
            redirect_object(&o, OWN_LIBRARY, s);
        }
        // Names are looked up in the first namespace.
        if (list == libc_objects() && !producer_is_allocator(libc_address()))
            note_calls(&o, NULL);
    }
    if (n < *before)
        redirect_forget_unloaded();
    *before = n;
}

void wrap_own_loads(void)
{
    int saved_errno = errno;
    const struct space *at = (const struct space *)libc_objects();
    if (!watched || !producer_may_open_files())
        return;
    uint32_t was = producer_enter(PRODUCER_MUTED);
    struct own_search s = begin_search();
    for (size_t i = 0; at && i < ENTRIES_NAMESPACES; i++, at = spaces_next(at)) {
        if (at->list.r_state == RT_CONSISTENT)
            examine_space(&s, &at->list, &examined[i]);
    }
    redirect_start(wrap_own_loads);
    producer_leave(was);
    errno = saved_errno;
}

// Counts the objects. The loader's lock must be held.
static bool begin_watch(const struct object *o, void *context)
{
    const struct space *at = (const struct space *)libc_objects();
    (void)o, (void)context;
    for (size_t i = 0; i < ENTRIES_NAMESPACES; i++, at = at ? spaces_next(at) : NULL)
        examined[i] = at ? count_objects(&at->list) : 0;
    watched = true;
    return true;
}

void wrap_own_watch(void)
{
    objects_visit(begin_watch, NULL);
}

static bool find_loader(const struct object *o, void *loader)
{
    *(struct object *)loader = *o;
    return o->base == libc_objects()->r_ldbase;
}

void wrap_own_watch_first(void)
{
    static _Atomic unsigned state; // 1 while a thread is busy here, 2 afterwards
    struct object loader;
    unsigned none = 0;
    if (producer_tls.busy & PRODUCER_MUTED || next_is_injected() || !producer_may_open_files())
        return;
    if (atomic_compare_exchange_strong(&state, &none, 1)) {
        int saved_errno = errno;
        uint32_t was = producer_enter(PRODUCER_MUTED);
        struct own_search s = begin_search();
        wrap_own_watch();
        if (objects_visit(find_loader, &loader))
            redirect_object(&loader, OWN_LOADER, &s);
        redirect_start(wrap_own_loads);
        wrap_own_watch();
        producer_leave(was);
        errno = saved_errno;
        atomic_store(&state, 2);
    }
    while (atomic_load(&state) == 1)
        sched_yield();
}
