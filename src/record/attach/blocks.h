// Finds the live blocks of glibc's malloc in another process: walks the chunks of all arenas and
// excludes fastbins and thread caches. Only reads.
#ifndef HEAPTAPE_ATTACH_BLOCKS_H
#define HEAPTAPE_ATTACH_BLOCKS_H

#include "capture/spool/attach.h"
#include "record/attach/remote.h"

#include <sys/user.h>

struct blocks {
    struct spool_block *all; // sorted by address; usable sizes
    size_t n, capacity;
};

// Checks that the process uses the malloc of a supported glibc. Returns 0, or -ENOTSUP with `e`
// set. The threads may run.
int blocks_check(struct remote *r, const char *version, struct err *e);

// True for the functions from malloc to malloc_info and the internal ones around them.
bool blocks_is_malloc(struct remote *r, uint64_t address);

// After blocks_check, with all threads stopped outside malloc; `threads` are their registers.
// Returns 0, or a negative errno: -EAGAIN (a thread is in a system call of malloc), -ENOTSUP (the
// heap is not as this glibc leaves it; nothing is listed), -ENOMEM.
int blocks_find(struct blocks *b, struct remote *r, const struct user_regs_struct *threads,
                size_t n, struct err *e);

void blocks_release(struct blocks *b);

#endif
