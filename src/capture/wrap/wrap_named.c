// Functions of --wrap: a second allocator, whose functions have other names. Functions that are not
// redirected are wrapped through the loader's tables.
#include "capture/wrap/next.h"
#include "capture/wrap/redirect.h"
#include "capture/wrap/wrap.h"

#include <string.h>

static struct spool_wrap wrapped; // functions that are wrapped through the tables

void wrap_set_names(const struct spool_wrap *names, bool wraps)
{
    wrapped = names && wraps ? *names : (struct spool_wrap){0};
    producer_named_usable = NULL;
    for (unsigned i = 0; names && i < names->n; i++) {
        const struct spool_wrapped *item = &names->items[i];
        void *real = next_find_definition(item->name, &wrapped);
        if (real && !item->function) // heaptape only calls malloc_usable_size
            producer_named_usable = (size_t(*)(void *))real;
        else if (real)
            redirect_set_named(i, item, real);
    }
}

void *wrap_find_named(const char *name)
{
    for (unsigned i = 0; i < wrapped.n; i++) {
        if (strcmp(wrapped.items[i].name, name) == 0 && wrapped.items[i].function)
            return (void *)wrap_entry_thunk(REDIRECT_MAX + i);
    }
    return NULL;
}
