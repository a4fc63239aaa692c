// Allocator functions of an object: their addresses, from its dynamic symbols, its other symbols
// and its debug file.
#ifndef HEAPTAPE_ENTRIES_FIND_H
#define HEAPTAPE_ENTRIES_FIND_H

#include "record/entries/functions.h"
#include "record/entries/image.h"

struct find_function {
    const struct functions_row *row;
    enum entries_family family;
    uint64_t at;      // virtual address
    uint64_t bytes;   // size of the code; 0: unknown
    uint64_t next;    // lowest address of a symbol above `at`, or UINT64_MAX
    bool is_indirect; // an ifunc: `at` is the function that chooses the implementation
    bool is_dynamic;  // found in the dynamic symbols
    bool is_alias;    // a previous function of the list has this address
    // Set if the function consists of a jump: the address of its code, which other functions may
    // enter without the jump. The list then also contains a function with that address.
    uint64_t target;
    bool is_target;
    bool is_inside; // a target inside another function, whose calls are not those of `row`
};

enum { FIND_MAX = 512 };

// Functions in the order of their addresses. Aliases follow their function, which is the one with
// the lowest family and event kind.
struct find_list {
    struct find_function functions[FIND_MAX];
    size_t n;
};

// Finds the functions. Returns 0, or -ENOMEM.
int find_functions(const struct entries_image *i, const struct functions *names,
                   struct find_list *to);

#endif
