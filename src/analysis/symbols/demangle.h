// Demangles C++ and Rust names. Names come from files, so time and memory are bounded.
#ifndef HEAPTAPE_DEBUG_DEMANGLE_H
#define HEAPTAPE_DEBUG_DEMANGLE_H

// Returns the demangled name, to be freed by the caller, or NULL if `name` is not mangled, its
// demangled form is too large, or memory is exhausted.
char *demangle_new(const char *name);

#endif
