// Table of the allocation wrappers that call sites omit.
#ifndef HEAPTAPE_TEXT_WRAPPERS_H
#define HEAPTAPE_TEXT_WRAPPERS_H

#include "report/wrapper_use.h"

// Prints the table of `stat --wrappers`. If there are no wrappers, prints a line instead.
void wrappers_print(const struct wrapper_use *all, size_t n);

#endif
