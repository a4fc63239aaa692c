// Finds the live blocks of glibc's malloc in the memory of another process: walks the chunks of all
// arenas and excludes those in fastbins and thread caches. Only reads.
#ifndef HEAPTAPE_ATTACH_BLOCKS_H
#define HEAPTAPE_ATTACH_BLOCKS_H

#include "capture/spool/attach.h"
#include "record/attach/remote.h"

#include <sys/user.h>

struct blocks {
    struct spool_block *all; // sorted by address; usable sizes
    size_t n, capacity;
};

// Checks that the process uses the malloc of its glibc, and that this version is supported. Returns
// 0, or -ENOTSUP with `e` set. The threads may run.
int blocks_check(struct remote *r, const char *version, struct err *e);

// Returns true if `address` is in malloc's code: the functions from malloc to malloc_info and the
// internal ones next to them.
bool blocks_is_malloc(struct remote *r, uint64_t address);

// Call after blocks_check. Requires that all threads are stopped outside malloc; `threads` are
// their registers. Returns 0, or a negative errno: -EAGAIN (a thread is in a system call of malloc:
// retry), -ENOTSUP (the heap differs from what this glibc version leaves; nothing is listed),
// -ENOMEM.
int blocks_find(struct blocks *b, struct remote *r, const struct user_regs_struct *threads,
                size_t n, struct err *e);

void blocks_release(struct blocks *b);

#endif
