#ifndef HEAPTAPE_CAPTURE_WRAP_CXX_H
#define HEAPTAPE_CAPTURE_WRAP_CXX_H

#include <stdbool.h>

// Finds the operators that come next. The first call of an operator does it, too; at the start it is done where no
// other thread can hold the loader's lock.
void wrap_cxx_resolve(void);

// Do the operators allocate through malloc, as far as that can be known?
bool wrap_cxx_is_malloc(void);

#endif
