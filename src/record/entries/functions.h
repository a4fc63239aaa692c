// Names of allocator functions: names of libc and C++, which are rows of the event table, and names
// of known families.
#pragma once

#include "base/map.h"
#include "record/entries/plan.h"

struct functions_row {
    char name[SPOOL_WRAP_BYTES];
    enum entries_family family;
    uint16_t function; // as in struct entries_entry, or 0 for malloc_usable_size
    char arguments[7]; // as in struct entries_entry
    uint32_t named;    // bits 1 << index in struct spool_wrap; set if the user named the function
    uint64_t at;       // virtual address, if the user named the function by its address
};

enum { FUNCTIONS_BEGINNINGS = 4096 };

// The names to find. Initialize with zeros.
struct functions {
    struct functions_row *rows;
    size_t n, capacity;
    struct map by_name; // maps the hash of a name to its index + 1
    // Set of bits that represent the first characters of the names. If the bit of a symbol is not
    // set, the symbol is skipped before its hash is computed.
    uint64_t beginnings[FUNCTIONS_BEGINNINGS / 64];
};

// Fills in the table. Returns 0, or -ENOMEM. The caller must release the table in both cases.
int functions_init(struct functions *f, const struct entries_names *names);
void functions_release(struct functions *f);

// Returns the row of a symbol, or NULL. Ignores the symbol's version ("malloc@@GLIBC_2.2.5") and
// the mangling of Rust's allocator functions. If `suffix` is not NULL, also finds the functions
// that compilers derive from a function, and sets *suffix to their suffix (".isra.0") or to "".
const struct functions_row *functions_find(const struct functions *f, const char *symbol,
                                           const char **suffix);
