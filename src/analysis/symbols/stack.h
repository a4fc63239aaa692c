// The functions on a call site's stack, and the function that represents the call site in all
// outputs.
#pragma once

#include "analysis/symbols/symbols.h"

// Functions of a stack, innermost first, including inlined functions. The strings are borrowed from
// the struct symbols.
struct stack {
    struct symbol *functions;
    size_t n, capacity;
    size_t shown; // index of the function that represents the call site
};

// Reads the stack of a call site into *to, which must be all zero or hold another stack. to->n is 0
// if the site has no stack or if `s` is NULL. Returns 0 or -ENOMEM.
int stack_read(struct stack *to, struct symbols *s, uint64_t number);
void stack_release(struct stack *to);

// Returns the index of the function that represents `n` functions, which begin with the innermost
// function. The result is the innermost function of the program that is not an allocation wrapper.
// If all functions of the program are wrappers, the result is the outermost wrapper. If there is no
// function of the program, the result is function 0. If the chosen function is in node's or
// Python's executable and a script's function has called it, the result is the script's function.
size_t stack_shown(const struct symbol *functions, size_t n);

// Finds recursion at the start of `n` > 0 functions. Sets *period to the number of functions in the
// repeated sequence. Returns the number of consecutive repetitions. If there is no recursion, both
// numbers are 1.
size_t stack_repeats(const struct symbol *functions, size_t n, size_t *period);

// Copies the shown function of a call site to *to. Returns false if the site has no stack,
// if `s` is NULL, or when out of memory.
bool stack_site(struct symbols *s, uint64_t number, struct symbol *to);

// Like stack_site, but returns a string with the function and its location, or NULL.
enum { STACK_SITE_BYTES = 200 };
const char *stack_site_text(struct symbols *s, uint64_t number, char text[STACK_SITE_BYTES]);

// Writes the shown function of a call site and the functions of the program that called it, at most
// three functions: "get (a.c:28) < add (a.c:60) ×3 < main (a.c:90)". If stack_site would return
// false, `text` is empty.
enum { STACK_PATH_BYTES = 300 };
void stack_path(struct symbols *s, uint64_t number, char text[STACK_PATH_BYTES]);
