// Redirects the allocator's functions in a running process. Manages the plans for the process's
// objects (capture/spool/entries.h), the jumps in its code, and threads that are stopped among the
// replaced instructions.
#pragma once

#include "base/err.h"
#include "capture/spool/attach.h"
#include "capture/spool/entries.h"
#include "record/attach/tracees.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLANS_MAX = 16, PLANS_WHY_BYTES = 200 };

struct plans_object {
    struct entries_plan *plan; // owned
    uint64_t base, area;
    bool pending;  // the jumps are not stored yet
    bool is_empty; // a killed attach did not write the area's code
    // Functions of --wrap that are redirected, as in struct entries_result.
    uint32_t named;
};

struct plans {
    struct plans_object objects[PLANS_MAX];
    size_t n;
    // Why some functions are recorded through the loader's tables, or "" if all functions are
    // redirected.
    char missing[PLANS_WHY_BYTES];
    // Why the executable's allocator is not recorded, or "". Set only if the program calls this
    // allocator directly, not through dynamic symbols.
    char unrecorded[PLANS_WHY_BYTES];
};

// Makes plans for the functions that the program calls, and for functions with the names in `wrap`,
// which may be NULL. Lists in `missing` the functions that cannot be redirected. Returns 0, or
// -ENOMEM. The caller must release *p in both cases.
int plans_find(struct plans *p, const struct remote *r, const struct spool_wrap *wrap,
               struct err *e);

// Returns true if all functions in `wrap` are redirected.
bool plans_have_names(const struct plans *p, const struct spool_wrap *wrap);

void plans_release(struct plans *p);

// Records in `missing` that the functions of an object cannot be redirected.
void plans_miss_object(struct plans *p, struct plans_object *o, const char *why);

// Moves the planned area to the nearest unmapped memory below the object, if there is any in reach.
// Call while all threads are stopped. Otherwise the library searches for unmapped memory, by system
// calls that each stop at this tracer, while the threads wait.
void plans_choose_place(struct plans_object *o, const struct remote *r);

// Writes the code of an object's area, which is mapped at `area`. Sets `pending`, unless all jumps
// are already stored. Returns 0, -ERANGE, or -EACCES if the process's memory cannot be written.
int plans_write_code(struct plans_object *o, const struct remote *r, uint64_t area);

// Adds the functions that the library has already redirected. The library lists them in a table of
// `n` functions at `at`. If a detach has restored the bytes of a function, its jump is pending,
// unless an attach was killed before it wrote the area's code (plans_write_code writes it). Omits
// objects beyond PLANS_MAX. Returns false if the table cannot be read.
bool plans_add_redirected(struct plans *p, const struct remote *r, uint64_t at, uint64_t n);

// Replaces the jumps of all objects with the original bytes. Call while all threads are stopped.
void plans_restore(const struct plans *p, const struct remote *r);

// Removes the entries whose bytes are already replaced. Returns true if it removed entries and
// others remain.
bool plans_drop_redirected(struct plans_object *o, const struct remote *r);

// Moves the stopped threads out of the bytes that will be replaced. `*caller` is the program
// counter at which thread `tid` will continue. Returns false, with all threads unchanged, if a
// thread cannot be moved at the moment.
bool plans_move_threads(const struct plans *p, const struct tracees *t, pid_t tid,
                        uint64_t *caller);

// Returns the address where a thread at `pc` must continue so that its current call is not
// recorded: an address in the trampoline if `pc` is the entry of a redirected function, else `pc`.
// The caller may be another function of the allocator that was called before the recording began.
uint64_t plans_skip_entry(const struct plans *p, uint64_t pc);

// Returns true if the address is in a stub or trampoline.
bool plans_have_code(const struct plans *p, uint64_t pc);

// Stores the jumps of all pending objects. Call while all threads are stopped, after
// plans_move_threads. Does not change objects whose bytes have changed since the plan was made.
void plans_store_jumps(struct plans *p, const struct remote *r);
