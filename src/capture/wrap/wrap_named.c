// Functions of --wrap: a second allocator, whose functions have other names. Functions that are not
// redirected are wrapped through the loader's tables.
#include "capture/wrap/next.h"
#include "capture/wrap/redirect.h"
#include "capture/wrap/wrap.h"

#include <string.h>

static struct spool_wrap wrapped; // functions that are wrapped through the tables

void wrap_set_names(const struct spool_wrap *names, bool wraps)
{
    enum { HT_USABLE_SIZE = HT_FREE }; // heaptape only calls this function
    static const uint16_t kinds[SPOOL_WRAPPED] = {
#define ROW(SYMBOL, name) HT_##SYMBOL,
        SPOOL_WRAP_TABLE(ROW)
#undef ROW
    };
    wrapped = names && wraps ? *names : (struct spool_wrap){0};
    producer_named_usable = NULL;
    for (unsigned i = 0; names && i < SPOOL_WRAPPED; i++) {
        void *real = names->names[i][0] ? next_find_definition(names->names[i], &wrapped) : NULL;
        if (real && i == SPOOL_WRAP_USABLE_SIZE)
            producer_named_usable = (size_t(*)(void *))real;
        else if (real)
            redirect_set_named(i, kinds[i], real);
    }
}

void *wrap_find_named(const char *name)
{
    for (unsigned i = 0; i < SPOOL_WRAPPED; i++) {
        if (strcmp(wrapped.names[i], name) == 0 && *name && i != SPOOL_WRAP_USABLE_SIZE)
            return (void *)wrap_entry_thunk(REDIRECT_MAX + i);
    }
    return NULL;
}
