// Finds the live blocks of glibc's malloc in another process: reads the chunks of all arenas and
// excludes the blocks in fastbins and thread caches. Does not change the process.
#pragma once

#include "capture/spool/attach.h"
#include "record/attach/machine.h"

struct blocks {
    struct spool_block *all; // sorted by address; sizes are usable sizes
    size_t n, capacity;
};

// Checks that the process uses the malloc of a supported glibc. The threads may be running. Returns
// 0, or -ENOTSUP with `e` set.
int blocks_check(struct remote *r, const char *version, struct err *e);

// Returns true if the address is in a function between malloc and malloc_info, or in an internal
// function next to them.
bool blocks_is_malloc(struct remote *r, uint64_t address);

// Finds the live blocks. Call after blocks_check, with all threads stopped outside malloc.
// `threads` has the registers of each thread. Returns 0, or a negative errno: -EAGAIN (a thread is
// in a system call made by malloc), -ENOTSUP (the heap is not in a valid state for this glibc;
// nothing is listed), -ENOMEM.
int blocks_find(struct blocks *b, struct remote *r, const struct machine_registers *threads,
                size_t n, struct err *e);

void blocks_release(struct blocks *b);
