#include "report/profile.h"

#include <errno.h>
#include <stdlib.h>

void profile_stacks_release(struct profile_stacks *t)
{
    free(t->frames);
    free(t->stacks);
    free(t->samples);
    map_release(&t->by_address);
    map_release(&t->by_stack);
    *t = (struct profile_stacks){0};
}

// Returns the number of the first frame of an address, or -ENOMEM. Sets *n to the number of frames.
// The frames are consecutive, innermost first.
static int64_t frames_of(struct profile_stacks *t, struct symbols *symbols,
                         const struct workload_frame *f, size_t *n)
{
    const struct symbol *found;
    uint64_t key = workload_sites_key(f), first = map_get(&t->by_address, key);
    *n = symbols_of(symbols, f, &found);
    if (first)
        return (int64_t)first - 1;
    if (!*n || HT_GROW(&t->frames, &t->frames_capacity, t->n_frames + *n) < 0 ||
        map_put(&t->by_address, key, t->n_frames + 1) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < *n; i++)
        t->frames[t->n_frames + i] = found[i];
    t->n_frames += *n;
    return (int64_t)(t->n_frames - *n);
}

static int push_frame(struct profile_stacks *t, uint32_t *stack, uint32_t frame)
{
    uint64_t key = (uint64_t)*stack << 32 | frame, number = map_get(&t->by_stack, key);
    if (!number) {
        if (HT_GROW(&t->stacks, &t->stacks_capacity, t->n_stacks + 1) < 0 ||
            map_put(&t->by_stack, key, t->n_stacks + 1) < 0)
            return -ENOMEM;
        t->stacks[t->n_stacks] = (struct profile_stack){*stack, frame};
        number = ++t->n_stacks;
    }
    *stack = (uint32_t)number - 1;
    return 0;
}

// Returns the frame "(unknown)", for bytes without a stack.
static int64_t unknown_frame(struct profile_stacks *t)
{
    uint64_t first = map_get(&t->by_address, 0);
    if (first)
        return (int64_t)first - 1;
    if (HT_GROW(&t->frames, &t->frames_capacity, t->n_frames + 1) < 0 ||
        map_put(&t->by_address, 0, t->n_frames + 1) < 0)
        return -ENOMEM;
    t->frames[t->n_frames++] = (struct symbol){.function = "(unknown)", .file = "", .module = ""};
    return (int64_t)t->n_frames - 1;
}

int profile_stacks_add(struct profile_stacks *t, size_t number, struct symbols *symbols,
                       uint64_t weight)
{
    const struct workload_site *site = symbols_site(symbols, number);
    uint32_t stack = PROFILE_NO_STACK;
    int64_t first = 0;
    int rc = HT_GROW(&t->samples, &t->samples_capacity, t->n_samples + 1);
    for (uint32_t i = site->n; rc == 0 && i-- > 0;) {
        size_t n;
        first = frames_of(t, symbols, symbols_frame(symbols, site, i), &n);
        for (rc = first < 0 ? -ENOMEM : 0; rc == 0 && n-- > 0;)
            rc = push_frame(t, &stack, (uint32_t)first + (uint32_t)n);
    }
    if (rc == 0 && !site->n) {
        first = unknown_frame(t);
        rc = first < 0 ? -ENOMEM : push_frame(t, &stack, (uint32_t)first);
    }
    if (rc == 0)
        t->samples[t->n_samples++] = (struct profile_sample){weight, stack};
    t->total += weight;
    return rc;
}
