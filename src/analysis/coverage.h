// What share of a program's bytes has a stack that reaches the program's own objects, and in which objects the other
// stacks end.
#ifndef HEAPTAPE_ANALYSIS_COVERAGE_H
#define HEAPTAPE_ANALYSIS_COVERAGE_H

#include "analysis/by_site.h"
#include "workload/sites.h"

struct coverage_bytes {
    uint64_t allocated, at_peak, at_end;
};

// Where stacks end that do not reach the program: the object of their outermost address.
struct coverage_object {
    char *path; // owned; a text in brackets where it is no file
    struct coverage_bytes bytes;
    uint64_t sites;
};

// All zero is an empty count.
struct coverage {
    bool known; // call sites were recorded
    uint64_t
        sample_bytes; // 0: of all allocations; else of one per so many bytes, and all figures are estimates
    struct coverage_bytes all, reached;
    struct coverage_bytes
        loading; // of libraries' constructors, before the program's first allocation
    struct coverage_object *objects; // in no order until coverage_finish
    size_t n_objects, objects_capacity;
};

void coverage_release(struct coverage *c);

// Is the module an object of the program: its executable, a file in the executable's folder, or any other file that lies
// outside of the system's library folders? `exe` may be NULL. heaptape's own library is none.
bool coverage_is_own(const struct workload_module *m, const char *exe);

// Adds the sites of a process, whose counts are finished. 0 or -ENOMEM.
int coverage_add(struct coverage *c, const struct by_site *b, const struct workload_sites *sites,
                 const char *exe);

// Adds a process without call sites. 0 or -ENOMEM.
int coverage_add_unknown(struct coverage *c, const struct coverage_bytes *bytes);

// Sorts the objects: those first that hide most allocated bytes.
void coverage_finish(struct coverage *c);

// Of 1000; rounded down, so that 1000 means all. 1000 of nothing.
unsigned coverage_permille(uint64_t reached, uint64_t all);

#endif
