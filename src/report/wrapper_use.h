// Allocations through the wrappers that call sites omit.
#pragma once

#include "analysis/by_site.h"
#include "analysis/symbols/wrappers.h"

struct wrapper_use {
    const struct wrapper *wrapper;
    // Sums over the stacks that omit the wrapper.
    uint64_t calls, bytes, peak_bytes, end_bytes;
};

// Returns the wrappers in all stacks, in descending order of their allocated bytes. Sets *n to the
// number of wrappers. The caller frees the array. Returns NULL when out of memory.
struct wrapper_use *wrapper_use_new(const struct by_site *totals, struct symbols *symbols,
                                    size_t *n);

// Prints the table of `stat --wrappers`. If there are no wrappers, prints a line instead.
void wrapper_use_print(const struct wrapper_use *all, size_t n);
