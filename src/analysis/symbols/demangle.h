// Demangles C++ and Rust names. The names are read from files, so the time and the memory are
// limited.
#pragma once

// Returns the demangled name, which the caller frees. Returns NULL if `name` is not mangled, if its
// demangled form is too large, or when out of memory.
char *demangle_new(const char *name);
