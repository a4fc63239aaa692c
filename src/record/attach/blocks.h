// The live blocks of glibc's malloc in another process, found in its memory: chunk by chunk through all arenas, less those in
// fastbins and in the threads' caches. Reads only.
#ifndef HEAPTAPE_ATTACH_BLOCKS_H
#define HEAPTAPE_ATTACH_BLOCKS_H

#include "capture/spool/attach.h"
#include "record/attach/remote.h"

#include <sys/user.h>

struct blocks {
    struct spool_block *all; // ordered by address; sizes are the usable ones
    size_t n, capacity;
};

// Can the blocks of this process be found, whose glibc has this version? 0, or -ENOTSUP with the text set: its malloc is
// another one, or the version is not known. No thread has to stand still for it.
int blocks_check(struct remote *r, const char *version, struct err *e);

// Is the address in one of malloc's functions? They are those between malloc and malloc_info, and some that are not exported.
bool blocks_is_malloc(struct remote *r, uint64_t address);

// After blocks_check. All threads stand outside of malloc, with these registers. 0, or a negative errno: -EAGAIN (one of them is
// in the kernel for malloc: later), -ENOTSUP (not every word is as this version of glibc leaves it, so nothing is listed), -ENOMEM.
int blocks_find(struct blocks *b, struct remote *r, const struct user_regs_struct *threads,
                size_t n, struct err *e);

void blocks_release(struct blocks *b);

#endif
