// What the null allocator exports beside the malloc API.
#ifndef HEAPTAPE_PLAYER_NULL_ALLOCATOR_H
#define HEAPTAPE_PLAYER_NULL_ALLOCATOR_H

#include <stdbool.h>

#define NULL_REAL_SYMBOL "heaptape_null_real"

// True: this thread's allocations get memory of their own from now on, as libc needs it. False: they get nothing but an
// address, which is what threads begin with once this was called for the first time with false.
void heaptape_null_real(bool real);

#endif
