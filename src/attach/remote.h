// Memory and symbols of another process, read from that memory: what the loader has there needs no file, and is right in
// containers, too.
#ifndef HEAPTAPE_ATTACH_REMOTE_H
#define HEAPTAPE_ATTACH_REMOTE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct remote {
    pid_t pid;
    int memory;            // /proc/PID/mem
    uint64_t entry;        // where the program began
    uint64_t loader, libc; // bases of the dynamic linker and of the C library
    uint64_t r_debug;
};

// 0, or a negative errno: -ESRCH, -EACCES, -ENOTSUP (statically linked, or of another kind than this program).
int remote_open(struct remote *r, pid_t pid, struct err *e);
void remote_close(struct remote *r);

bool remote_read(const struct remote *r, uint64_t at, void *to, size_t bytes);
bool remote_write(const struct remote *r, uint64_t at, const void *from, size_t bytes);

// Address of the function in the first object, in the order of loading, that defines it; 0: none does.
uint64_t remote_function(const struct remote *r, const char *name);

// Is the address in code of the dynamic linker, or of the C library?
bool remote_is_libc(const struct remote *r, uint64_t address);

#endif
