// The libc functions that the capture library calls.
//
// A preloaded library can override any libc function with a version that allocates, locks, or calls
// dlopen, which would deadlock inside malloc. The capture library therefore imports nothing from
// libc. libc.c defines, with hidden visibility, each libc function that the capture library calls.
// The definition either makes a raw system call or forwards to libc's definition, which it finds in
// libc's symbol table. string.c defines the functions that do not depend on libc.
#pragma once

#include <stddef.h>

// Returns an address inside the process's C library.
const void *libc_address(void);

// Returns the offset of a thread's struct rseq from its thread pointer. Returns 0 if the C library
// does not register struct rseq with the kernel. glibc 2.35 and later versions register it.
ptrdiff_t libc_rseq_offset(void);

// Calls the C library's dlopen instead of the wrapper.
void *libc_open_library(const char *path, int flags);

struct link_map;
struct object;
struct r_debug;

// Returns the loader's list of objects, or NULL. Other threads may change the list at any time,
// unless the calling thread holds the loader's lock.
const struct r_debug *libc_objects(void);

// Fills in *o from an entry of the list that libc_objects returns. The first mapped bytes of the
// object must be its ELF header.
void libc_read_object(struct object *o, const struct link_map *map);
