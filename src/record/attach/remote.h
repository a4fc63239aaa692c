// Memory and symbols of another process. Reads the loader's data from memory instead of files, so
// it also works in containers.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { REMOTE_NAME = 128 };

// Tables of a loaded object. Cached, because stopped threads would have to wait while the tables
// are read again.
struct remote_object {
    uint64_t map; // address of the loader's link_map
    uint64_t base;
    char name[REMOTE_NAME]; // start of the file name
    uint64_t symbols, strings, hash, versions;
    uint32_t head[4]; // start of the hash table
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
    uint64_t entry;        // entry point of the program
    uint64_t tls_bytes;    // size of the program's thread-local variables, without its libraries
    uint64_t loader, libc; // base addresses of the dynamic loader and libc, one object in musl
    uint64_t r_debug;
    struct remote_object *objects; // in load order
    size_t n_objects, capacity;
    struct remote_found found[REMOTE_FOUND]; // cache of functions that were looked up
    size_t n_found;
};

// Opens a process. Waits up to 2 s for a program that is being loaded. Returns 0, or a negative
// errno: -ESRCH, -EACCES, -ENOTSUP (statically linked, or for another machine).
int remote_open(struct remote *r, pid_t pid, struct err *e);
void remote_close(struct remote *r);

// Returns true if the process has ended or called exec since remote_open; its memory is then
// inaccessible.
bool remote_is_over(const struct remote *r);

// Replaces the error with a message that the process has ended. Returns -ESRCH.
int remote_set_over(const struct remote *r, struct err *e);

bool remote_read(const struct remote *r, uint64_t at, void *to, size_t bytes);
bool remote_write(const struct remote *r, uint64_t at, const void *from, size_t bytes);

// Returns the address of the function's first definition in load order, or 0. Ignores objects
// loaded after remote_open. Keeps the pointer `name`.
uint64_t remote_function(struct remote *r, const char *name);

// Like remote_function, but without its cache.
uint64_t remote_first_function(const struct remote *r, const char *name);

// Returns the address of the last definition among all objects that are loaded now, or 0.
uint64_t remote_last_function(struct remote *r, const char *name);

// Returns the number of objects that define the function.
size_t remote_count(const struct remote *r, const char *name);

bool remote_is_libc(const struct remote *r, uint64_t address);

// Finds the object that defines malloc in the next namespace of dlmopen. `list` is r_debug in the
// first call, and the previous result in later calls. Returns 0 if there are no more namespaces.
// Only glibc 2.35 and later versions list namespaces. o->base is 0 if no object of the namespace
// defines malloc.
uint64_t remote_next_space(const struct remote *r, uint64_t list, struct remote_object *o);

// Returns true if the object defines the function.
bool remote_defines(const struct remote *r, const struct remote_object *o, const char *name);

// Returns the range of an object. Both bounds are 0 if the range is not known.
struct remote_range remote_range_of(const struct remote *r, const struct remote_object *o);

// Returns the range of the object that contains the function. Both bounds are 0 if no object
// contains it.
struct remote_range remote_object_of(const struct remote *r, uint64_t function);

// Returns the address of unused bytes after the code of an object, or 0. The bytes are zero and
// executable, because the kernel maps whole pages.
uint64_t remote_find_padding(const struct remote *r, size_t bytes);
