// Finds the allocator functions of one ELF object and plans how to redirect them
// (capture/spool/entries.h). The object is untrusted, so every offset, size and instruction is
// checked. x86-64 and aarch64 only.
#pragma once

#include "base/err.h"
#include "capture/spool/attach.h"
#include "capture/spool/entries.h"

#include <stddef.h>
#include <stdint.h>

// Families of functions: X(SYMBOL, name). ENTRIES_FAMILY_SYMBOL is `family` in the plan and the
// note `allocator` in traces, so a row is never moved or removed. If an allocator defines functions
// with libc's names as well as functions with a prefix, all belong to ENTRIES_FAMILY_LIBC, because
// their blocks come from the same heap.
#define ENTRIES_FAMILY_TABLE(X)                                                                    \
    X(LIBC, "")                                                                                    \
    X(USER, "--wrap")                                                                              \
    X(JEMALLOC, "jemalloc")                                                                        \
    X(JEMALLOC_RUST, "jemalloc of Rust")                                                           \
    X(MIMALLOC, "mimalloc")                                                                        \
    X(TCMALLOC, "tcmalloc")                                                                        \
    X(RPMALLOC, "rpmalloc")                                                                        \
    X(SNMALLOC, "snmalloc")                                                                        \
    X(TBBMALLOC, "tbbmalloc")                                                                      \
    X(DLMALLOC, "dlmalloc")                                                                        \
    X(NEDMALLOC, "nedmalloc")                                                                      \
    X(MOZJEMALLOC, "mozjemalloc")                                                                  \
    X(RUST, "Rust")
enum entries_family {
#define ENTRIES_FAMILY_ROW(SYMBOL, name) ENTRIES_FAMILY_##SYMBOL,
    ENTRIES_FAMILY_TABLE(ENTRIES_FAMILY_ROW)
#undef ENTRIES_FAMILY_ROW
        ENTRIES_FAMILIES,
};

// Returns the name of an allocator that an event notes: "malloc" for 0, else the family's name.
const char *entries_allocator_name(unsigned allocator);

// Returns the allocator with this name, or -1.
int entries_allocator_by_name(const char *name);

// The families that are recorded. Rust's functions usually forward to another allocator, whose
// calls are recorded.
#define ENTRIES_RECORDED_FAMILIES (~(1u << ENTRIES_FAMILY_RUST))

// Sets the family of each name: the family that has a function with this name, otherwise
// ENTRIES_FAMILY_USER.
void entries_set_families(struct spool_wrap *wrap);

// The functions to find.
struct entries_names {
    // Functions that the user named, or NULL. If a function also belongs to a family in `families`,
    // it stays in that family.
    const struct spool_wrap *wrap;
    // The object is the executable. Names of `wrap` that begin with "0x" are addresses in it.
    bool addresses;
    // Bits 1 << ENTRIES_FAMILY_*.
    uint32_t families;
    // Also find functions whose arguments differ from the arguments of the event's function, such
    // as mi_malloc_aligned(size, align); see `arguments` in struct entries_entry.
    bool reordered;
    // Also find the other functions that the library wraps, such as mmap and pthread_create
    // (entries_symbol), if they are dynamic symbols.
    bool wrapped;
    // The process has a shadow stack. Refuse functions with a call among the first instructions,
    // because the trampoline would replace the call's return address.
    bool shadow_stack;
};

// An ELF object. If `file` is not -1, tables and code are read from that file, which must be the
// mapped file. Otherwise they are read from the memory of the process.
struct entries_object {
    const char *path; // for messages
    int file;
    int memory;      // /proc/PID/mem, or -1
    uint64_t header; // address of the object's ELF header in the process, or 0
};

// Reasons for a refusal: X(SYMBOL, text). The text completes the sentence "NAME cannot be
// redirected at its entry: ".
#define ENTRIES_REASON_TABLE(X)                                                                    \
    X(OUTSIDE, "the address is not in an executable segment")                                      \
    X(INDIRECT, "the loader chooses the function at run time (ifunc)")                             \
    X(SHORT, "the function is shorter than a jump")                                                \
    X(JUMPED_TO, "a jump leads into its first bytes")                                              \
    X(UNKNOWN, "an instruction cannot be decoded")                                                 \
    X(UNMOVABLE, "an instruction depends on its address")                                          \
    X(CALL, "a call is among the first instructions")                                              \
    X(BREAKPOINT, "a debugger or another tool has changed its first bytes")                        \
    X(REACH, "the object is too large for a jump")                                                 \
    X(OVERLAP, "its first bytes belong to another function too")                                   \
    X(LONG, "the first instructions are too long")                                                 \
    X(TOO_MANY, "the object has too many allocator functions")                                     \
    X(ALIAS, "another function has the same code, and its name is recorded")                       \
    X(COPY, "the compiler has changed its arguments (link it as a shared library)")
enum entries_reason {
#define ENTRIES_REASON_ROW(SYMBOL, text) ENTRIES_REASON_##SYMBOL,
    ENTRIES_REASON_TABLE(ENTRIES_REASON_ROW)
#undef ENTRIES_REASON_ROW
        ENTRIES_REASONS,
};

extern const char *const entries_reason_texts[ENTRIES_REASONS];

struct entries_refusal {
    char name[SPOOL_WRAP_BYTES]; // the symbol without its version and mangling
    uint64_t at;                 // address relative to the object's base
    enum entries_family family;
    enum entries_reason reason;
    bool is_dynamic; // found in the dynamic symbols of the object
};

// The plan of an object. Initialize with zeros.
struct entries_result {
    struct entries_plan *plan; // NULL if no function can be redirected
    uint64_t base;             // base of the object in the process; 0 if `header` is 0
    // Address of each family's malloc_usable_size, relative to base, or 0.
    uint64_t usable_size[ENTRIES_FAMILIES];
    struct entries_refusal *refused;
    size_t n_refused;
    // Bits 1 << index of the functions in `wrap` that the plan redirects.
    uint32_t named;
};

void entries_result_release(struct entries_result *r);

// Makes the plan of an object. Fills in *to, which the caller must release even after an error.
// Returns 0, even if the object defines none of the functions. Returns -ENOEXEC if the object is
// not a valid ELF object of this machine, -ENOTSUP on machines other than x86-64 and aarch64, or
// another negative errno. The message names the object.
int entries_plan_object(const struct entries_object *object, const struct entries_names *names,
                        struct entries_result *to, struct err *e);

// Returns false if the file is an ELF object with only dynamic symbols, and has no separate debug
// file with symbols.
bool entries_have_symbols(const char *path);
