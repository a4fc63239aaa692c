// Coverage of stacks: how many bytes have stacks that reach the program's own objects, and where
// the other stacks end.
#pragma once

#include "analysis/by_site.h"
#include "workload/sites.h"

struct coverage_bytes {
    uint64_t allocated, at_peak, at_end;
};

// An object where stacks end before they reach the program: the object contains the outermost
// addresses of these stacks.
struct coverage_object {
    char *path; // owned; a description in brackets if the object has no file
    struct coverage_bytes bytes;
    uint64_t sites;
};

// Interpreters whose functions have no names unless the interpreter writes a perf map.
// X(enumerator, name in JSON).
#define COVERAGE_RUNTIME_TABLE(X)                                                                  \
    X(PYTHON, "python")                                                                            \
    X(NODE, "node")                                                                                \
    X(JAVA, "java")

enum coverage_runtime {
#define HT_X(number, name) COVERAGE_##number,
    COVERAGE_RUNTIME_TABLE(HT_X)
#undef HT_X
        COVERAGE_RUNTIMES
};
extern const char *const coverage_runtime_names[COVERAGE_RUNTIMES];

// Allocated bytes of the stacks that contain functions of an interpreter. `named` counts only
// stacks that also contain a named function in code without a file.
struct coverage_interpreted {
    uint64_t allocated, named;
};

// Stacks that are complete, but cannot contain code of the program. X(enumerator, name in JSON,
// allocator of the bytes, rest of the sentence).
#define COVERAGE_OTHER_TABLE(X)                                                                    \
    X(LOADING, "loading", "constructors of libraries allocated",                                   \
      ", before the program's first allocation")                                                   \
    X(THREADS, "threads", "threads of libraries allocated", "")                                    \
    X(BEFORE, "before", "the program allocated", " before the recording")

enum coverage_other {
#define HT_X(other, name, allocated, rest) COVERAGE_##other,
    COVERAGE_OTHER_TABLE(HT_X)
#undef HT_X
        COVERAGE_OTHERS
};
extern const struct coverage_text {
    const char *name, *allocated, *rest;
} coverage_texts[COVERAGE_OTHERS];

// An all-zero struct is empty.
struct coverage {
    bool known; // call sites were recorded
    // Mean number of allocated bytes per sampled allocation; 0 if all allocations are recorded.
    uint64_t sample_bytes;
    struct coverage_bytes all, reached, other[COVERAGE_OTHERS];
    struct coverage_interpreted interpreted[COVERAGE_RUNTIMES];
    struct coverage_object *objects; // sorted by coverage_finish
    size_t n_objects, objects_capacity;
};

void coverage_release(struct coverage *c);

// Adds a process's sites. Call after by_site_finish. Returns 0 or -ENOMEM.
int coverage_add(struct coverage *c, const struct by_site *b, const struct workload_sites *sites,
                 const char *exe);

// Adds a process that has no call sites. Returns 0 or -ENOMEM.
int coverage_add_unknown(struct coverage *c, const struct coverage_bytes *bytes);

// Sorts the objects by allocated bytes, largest first.
void coverage_finish(struct coverage *c);

// Returns reached / all in thousandths. The result is rounded down, so 1000 means all. Returns 1000
// if `all` is 0.
unsigned coverage_permille(uint64_t reached, uint64_t all);
