#include "capture/wrap/redirect.h"

#include "capture/producer/producer.h"
#include "capture/wrap/spaces.h"

#include <stdatomic.h>

struct redirect_table redirect_table;

void redirect_set_named(unsigned i, const struct spool_wrapped *named, void *real)
{
    struct redirect_function *f = &redirect_table.all[REDIRECT_MAX + i];
    f->function = named->function;
    f->arguments = entries_letters(named->function);
    f->mark = PRODUCER_NAMED;
    f->family = named->family;
    __atomic_store_n(&f->trampoline, (uintptr_t)real, __ATOMIC_RELEASE);
}

size_t redirect_count(void)
{
    return atomic_load_explicit(&redirect_table.n, memory_order_acquire);
}

const struct entries_redirected *heaptape_entries(uint64_t *n)
{
    *n = redirect_count();
    return redirect_table.entries;
}

struct redirect_function *redirect_find(uintptr_t at)
{
    size_t n = at ? redirect_count() : 0;
    for (size_t i = 0; i < n; i++) {
        if (redirect_table.all[i].at == at)
            return &redirect_table.all[i];
    }
    return NULL;
}

static bool is_redirected(const struct object *o)
{
    size_t i = 0, n = redirect_count();
    while (i < n && !object_spans(o, redirect_table.all[i].at))
        i++;
    return i < n;
}

bool redirect_has_prefixed(const struct object *o)
{
    bool found = object_find_function(o, "mallocx");
    for (size_t i = 1; i < ENTRIES_PREFIXES && !found; i++)
        found = object_find_function(o, entries_malloc_names[i]);
    return found;
}

bool redirect_misses(const struct object *o)
{
    return redirect_has_prefixed(o) && !producer_is_allocator((const void *)o->start) &&
           !is_redirected(o);
}

void redirect_forget(size_t i)
{
    redirect_table.all[i].at = 0;
    redirect_table.entries[i].entry.bytes = 0;
}

void redirect_forget_unloaded(void)
{
    for (size_t i = 0, n = redirect_count(); i < n; i++) {
        if (!spaces_is_loaded(redirect_table.all[i].base))
            redirect_forget(i);
    }
}

void redirect_start(void (*examine)(void))
{
    for (size_t i = 0, n = redirect_count(); i < n; i++) {
        const struct redirect_function *f = &redirect_table.all[i];
        uintptr_t wrapper = f->function == ENTRIES_LOADS ? (uintptr_t)examine : f->wrapper;
        if (wrapper && f->wanted)
            atomic_store_explicit(f->slot, wrapper, memory_order_release);
    }
}

void redirect_stop(void)
{
    for (size_t i = 0, n = redirect_count(); i < n; i++) {
        struct redirect_function *f = &redirect_table.all[i];
        f->wanted = false;
        atomic_store_explicit(f->slot, f->trampoline, memory_order_release);
    }
}

void *redirect_real(void *function)
{
    const struct redirect_function *f = redirect_find((uintptr_t)function);
    return f ? (void *)f->trampoline : function;
}
