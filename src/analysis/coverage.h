// Share of a program's bytes whose stacks reach the program's own objects, and the objects where
// other stacks end.
#ifndef HEAPTAPE_ANALYSIS_COVERAGE_H
#define HEAPTAPE_ANALYSIS_COVERAGE_H

#include "analysis/by_site.h"
#include "workload/sites.h"

struct coverage_bytes {
    uint64_t allocated, at_peak, at_end;
};

// Object of the outermost address of stacks that do not reach the program.
struct coverage_object {
    char *path; // owned; text in brackets if there is no file
    struct coverage_bytes bytes;
    uint64_t sites;
};

// All zero is empty.
struct coverage {
    bool known;            // call sites were recorded
    uint64_t sample_bytes; // one sampled allocation per this many bytes; 0: all
    struct coverage_bytes all, reached;
    struct coverage_bytes
        loading; // library constructors, before the first allocation of the program
    struct coverage_object *objects; // sorted by coverage_finish
    size_t n_objects, objects_capacity;
};

void coverage_release(struct coverage *c);

// Returns true if the module belongs to the program: its executable, a file in the same folder, or
// a file outside of the library folders of the system. `exe` may be NULL. The capture library does
// not belong to the program.
bool coverage_is_own(const struct workload_module *m, const char *exe);

// Adds the sites of a process after by_site_finish. Returns 0 or -ENOMEM.
int coverage_add(struct coverage *c, const struct by_site *b, const struct workload_sites *sites,
                 const char *exe);

// Adds a process without call sites. Returns 0 or -ENOMEM.
int coverage_add_unknown(struct coverage *c, const struct coverage_bytes *bytes);

// Sorts the objects by allocated bytes, largest first.
void coverage_finish(struct coverage *c);

// Returns the share per 1000, rounded down so that 1000 means all. Returns 1000 if `all` is 0.
unsigned coverage_permille(uint64_t reached, uint64_t all);

#endif
