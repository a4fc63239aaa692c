// Functions that the null allocator exports in addition to the malloc API.
#pragma once

#include <stdbool.h>

#include <stdint.h>

#define NULL_INIT_SYMBOL "heaptape_null_init"
#define NULL_REAL_SYMBOL "heaptape_null_real"

// Call before the first heaptape_null_real(). Pass the size of the largest block. Returns 0, or a
// negative errno.
int heaptape_null_init(uint64_t max_block_bytes);

// If true, this thread's allocations return real memory, which libc needs. If false, they return
// only an address. After the first call with false, new threads start in that mode.
void heaptape_null_real(bool real);
