#include "report/wrapper_use.h"

#include "analysis/symbols/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_bytes(const void *a, const void *b)
{
    const struct wrapper_use *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return strcmp(x->wrapper->function.function, y->wrapper->function.function);
}

static void add_site(struct wrapper_use *u, const struct by_site_totals *t)
{
    u->calls += t->calls;
    u->bytes += t->bytes;
    u->peak_bytes += t->peak_bytes;
    u->end_bytes += t->live_bytes;
}

// Adds a site to the wrappers inside its shown function. A wrapper that calls itself counts only
// once.
static void add_stack(struct wrapper_use *all, size_t n, const struct stack *stack,
                      const struct by_site_totals *t, uint8_t *seen)
{
    memset(seen, 0, n);
    for (size_t i = 0; i < stack->shown; i++) {
        if (!stack->functions[i].wrapper)
            continue;
        uint64_t key = wrappers_key(&stack->functions[i]);
        for (size_t k = 0; k < n; k++) {
            if (all[k].wrapper->key == key && !seen[k]++)
                add_site(&all[k], t);
        }
    }
}

static int add_stacks(struct wrapper_use *all, size_t n, const struct by_site *totals,
                      struct symbols *symbols)
{
    struct stack stack = {0};
    uint8_t *seen = calloc(n + 1, sizeof *seen);
    int rc = seen ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < totals->n_sites; i++) {
        rc = stack_read(&stack, symbols, i);
        if (rc == 0)
            add_stack(all, n, &stack, &totals->sites[i], seen);
    }
    stack_release(&stack);
    free(seen);
    return rc;
}

struct wrapper_use *wrapper_use_new(const struct by_site *totals, struct symbols *symbols,
                                    size_t *n)
{
    if (symbols_find_wrappers(symbols) < 0)
        return NULL;
    const struct wrappers *w = symbols_wrappers(symbols);
    struct wrapper_use *all = calloc(w->n + 1, sizeof *all);
    for (size_t i = 0; all && i < w->n; i++)
        all[i].wrapper = &w->list[i];
    if (!all || add_stacks(all, w->n, totals, symbols) < 0) {
        free(all);
        return NULL;
    }
    qsort(all, w->n, sizeof *all, by_bytes);
    *n = w->n;
    return all;
}
