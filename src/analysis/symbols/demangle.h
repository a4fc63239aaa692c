// Demangles C++ and Rust names. Names come from files, so time and memory are bounded.
#ifndef HEAPTAPE_DEBUG_DEMANGLE_H
#define HEAPTAPE_DEBUG_DEMANGLE_H

// Returns the demangled name, which the caller frees, or NULL if `name` is not mangled, if its
// demangled form is too large, or when out of memory.
char *demangle_new(const char *name);

#endif
