// The function that the null allocator exports beside the malloc API.
#ifndef HEAPTAPE_PLAYER_NULL_ALLOCATOR_H
#define HEAPTAPE_PLAYER_NULL_ALLOCATOR_H

#include <stdbool.h>

#include <stdint.h>

#define NULL_INIT_SYMBOL "heaptape_null_init"
#define NULL_REAL_SYMBOL "heaptape_null_real"

// Before the first heaptape_null_real: the largest block that will be allocated. 0, or a negative errno.
int heaptape_null_init(uint64_t max_block_bytes);

// True: this thread's allocations return memory of their own from now on, as libc needs it. False: they return only an
// address. Threads that start after the first call with false begin like that.
void heaptape_null_real(bool real);

#endif
