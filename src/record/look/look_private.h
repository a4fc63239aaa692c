// Steps of look_take.
#pragma once

#include "record/look/look.h"
#include "trace/pages.h"

// Resident pages of anonymous memory.
struct look_resident {
    const struct trace_pages *pages;
    uint64_t *before; // number of resident pages in earlier runs; owned
};

struct look_range {
    uint64_t start, end;
};

// A mapping of any kind.
struct look_map {
    uint64_t start, end, rss_bytes;
    enum look_owner owner;
    bool is_anonymous, is_writable, is_guard, is_brk;
    size_t name; // index in look_maps.names
};

struct look_maps {
    struct look_map *all; // sorted by address
    size_t n, capacity;
    struct look_name *names;
    size_t n_names, names_capacity;
    struct trace_pages pages;
    struct look_resident resident;
    struct look_range *heap; // malloc's memory, sorted by look_maps_finish
    size_t n_heap, heap_capacity;
    bool is_cut; // the time limit was reached
};

// Reads /proc/PID/smaps and pagemap. The caller must release *m, even on failure. Returns 0 or a
// negative errno.
int look_maps_read(struct look_maps *m, pid_t pid, uint64_t max_ns);
void look_maps_release(struct look_maps *m);

// Adds a range of malloc's memory. Returns 0 or -ENOMEM.
int look_maps_add_heap(struct look_maps *m, uint64_t start, uint64_t end);

// Marks the mappings that are stacks of threads. If the program runs on stacks in its heap, as Go
// does, `in_heap` is true, and only mappings above a guard are stacks.
void look_maps_find_stacks(struct look_maps *m, pid_t pid, bool in_heap);

// Sets the owners outside malloc, the names and the stacks of *l. Call after look_heap_read.
int look_maps_finish(struct look_maps *m, struct look *l);

// Returns the mapping that contains the address, or NULL.
struct look_map *look_maps_find(const struct look_maps *m, uint64_t address);

// Returns true if the page of the address is resident.
bool look_resident_has(const struct look_resident *r, uint64_t address);

// Returns the end of the run of resident pages that contains the address, or the address if its
// page is not resident.
uint64_t look_resident_end(const struct look_resident *r, uint64_t address);

// Returns the first address at or after `address` whose page is resident, or UINT64_MAX.
uint64_t look_resident_next(const struct look_resident *r, uint64_t address);

// Returns the resident bytes of the whole pages between two addresses.
uint64_t look_resident_bytes(const struct look_resident *r, uint64_t from, uint64_t to);

// Reads the state of malloc. Sets l->heap and the owners that belong to malloc, and adds malloc's
// memory to *m. Sets why_not if reading memory is not permitted. Returns 0, -ENOMEM or -ESRCH.
int look_heap_read(struct look *l, struct look_maps *m, uint64_t until_ns, struct err *e);

struct remote;

// Reads the segments of mimalloc. If a segment was recognized, sets l->heap and the owners that
// belong to mimalloc. Returns 0 or -ENOMEM.
int look_mimalloc_read(struct look *l, struct look_maps *m, const struct remote *remote,
                       uint64_t until_ns);

// Returns the process's language runtime, or NULL if no runtime was recognized.
const struct software_runtime *look_runtime(pid_t pid, const struct look_maps *m);

// Returns a number that changes when the process executes another program.
uint64_t look_image(pid_t pid);

// Sets the members of *l that describe the descendants.
void look_children_read(struct look *l);

// Copies the command line with spaces between the arguments, or the name of the process.
void look_command(pid_t pid, char *to, size_t room);
