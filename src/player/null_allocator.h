// The function that the null allocator exports beside the malloc API.
#ifndef HEAPTAPE_PLAYER_NULL_ALLOCATOR_H
#define HEAPTAPE_PLAYER_NULL_ALLOCATOR_H

#include <stdbool.h>

#define NULL_REAL_SYMBOL "heaptape_null_real"

// True: this thread's allocations return memory of their own from now on, as libc needs it. False: they return only an
// address. Threads that start after the first call with false begin like that.
void heaptape_null_real(bool real);

#endif
