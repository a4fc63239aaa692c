// Memory and symbols of another process, read from that memory: what the loader has there needs no file, and is right in
// containers, too.
#ifndef HEAPTAPE_ATTACH_REMOTE_H
#define HEAPTAPE_ATTACH_REMOTE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { REMOTE_NAME = 128 };

// Of a loaded object with dynamic symbols, its tables. A thread that stands still must not wait until they are read again.
struct remote_object {
    uint64_t map; // of the loader
    uint64_t base;
    char name[REMOTE_NAME]; // of its file, the start
    uint64_t symbols, strings, hash, versions;
    uint32_t head[4]; // of the hash table
};

struct remote_found {
    const char *name;
    uint64_t at;
};

enum { REMOTE_FOUND = 16 };

struct remote_range {
    uint64_t start, end;
};

struct remote {
    pid_t pid;
    int memory;            // /proc/PID/mem
    uint64_t entry;        // where the program began
    uint64_t loader, libc; // bases of the dynamic linker and of the C library
    uint64_t r_debug;
    struct remote_object *objects; // in the order of loading
    size_t n_objects, capacity;
    struct remote_found found[REMOTE_FOUND]; // functions that have been looked up
    size_t n_found;
};

// Waits 2 s for a program that is being loaded. 0, or a negative errno: -ESRCH, -EACCES, -ENOTSUP (statically linked, or of
// another kind than this program).
int remote_open(struct remote *r, pid_t pid, struct err *e);
void remote_close(struct remote *r);

// Has the process ended, or executed another program, since remote_open? Then nothing can be read or written.
bool remote_is_over(const struct remote *r);

// Says so in the place of what failed because of it. Returns -ESRCH.
int remote_set_over(const struct remote *r, struct err *e);

bool remote_read(const struct remote *r, uint64_t at, void *to, size_t bytes);
bool remote_write(const struct remote *r, uint64_t at, const void *from, size_t bytes);

// Address of the function in the first object, in the order of loading, that defines it; 0: none does. Objects that have been
// loaded since remote_open are not searched. `name` is kept.
uint64_t remote_function(struct remote *r, const char *name);

// The same in the last object that defines it, of all that are loaded now.
uint64_t remote_last_function(struct remote *r, const char *name);

// Objects that define the function.
size_t remote_count(const struct remote *r, const char *name);

// Is the address in code of the dynamic linker, or of the C library?
bool remote_is_libc(const struct remote *r, uint64_t address);

// Where the object lies that has the function; both 0: none has.
struct remote_range remote_object_of(const struct remote *r, uint64_t function);

#endif
