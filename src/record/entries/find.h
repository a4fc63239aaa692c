// Finds the allocator functions of an object, in its dynamic symbols, its other symbols and its
// debug file.
#pragma once

#include "record/entries/functions.h"
#include "record/entries/image.h"

struct find_function {
    const struct functions_row *row;
    enum entries_family family;
    uint64_t at;      // virtual address
    uint64_t bytes;   // size of the code, or 0 if unknown
    uint64_t next;    // lowest address of a symbol above `at`, or UINT64_MAX
    bool is_indirect; // an ifunc: `at` is the function that chooses the implementation
    bool is_dynamic;  // found in the dynamic symbols
    // A copy with other arguments than the function, or a part of the function. The object has no
    // symbol of the function itself.
    bool is_copy;
    bool is_alias; // a previous function in the list has the same address
    // If the function only jumps to other code, the target of the jump. Other functions may enter
    // the code there without the jump, so the list also contains a function with that address.
    uint64_t target;
    bool is_target;
    // A target inside another function; calls to that function are not calls to `row`.
    bool is_inside;
};

enum {
    FIND_MAX = 512,
};

// Functions, sorted by address. Among functions with the same address, the function with the lowest
// family and event kind comes first; the others are its aliases.
struct find_list {
    struct find_function functions[FIND_MAX];
    size_t n;
};

// Finds the functions. Returns 0, or -ENOMEM.
int find_functions(const struct entries_image *i, const struct functions *names,
                   struct find_list *to);
