// Functions that the null allocator exports in addition to the malloc API.
#ifndef HEAPTAPE_PLAYER_NULL_ALLOCATOR_H
#define HEAPTAPE_PLAYER_NULL_ALLOCATOR_H

#include <stdbool.h>

#include <stdint.h>

#define NULL_INIT_SYMBOL "heaptape_null_init"
#define NULL_REAL_SYMBOL "heaptape_null_real"

// Call before the first heaptape_null_real(), passing the size of the largest block. Returns 0, or
// a negative errno.
int heaptape_null_init(uint64_t max_block_bytes);

// true: this thread's allocations return real memory, which libc needs. false: they return just an
// address. Threads that start after the first call with false start with false.
void heaptape_null_real(bool real);

#endif
