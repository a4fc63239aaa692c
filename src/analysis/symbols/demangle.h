// Readable names of C++ and Rust functions. Names come from files, so time and memory are bounded.
#ifndef HEAPTAPE_DEBUG_DEMANGLE_H
#define HEAPTAPE_DEBUG_DEMANGLE_H

// Returns the name for the caller to free. NULL if it is not mangled, or too large in its readable form, or when out of
// memory.
char *demangle_new(const char *name);

#endif
