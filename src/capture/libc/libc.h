// The functions of the C library that the capture library calls.
//
// A preloaded library can define any function of libc. Its definition may allocate, lock, or call
// dlopen, which would deadlock inside malloc. Therefore the capture library imports no function of
// libc. libc.c defines, with hidden visibility, each libc function that the capture library calls:
// as a raw system call, or as a call of libc's own definition, found in libc's symbol table.
// string.c defines the functions that need nothing of libc.
#ifndef HEAPTAPE_LIBC_LIBC_H
#define HEAPTAPE_LIBC_LIBC_H

#include <stdbool.h>

// Returns an address in the C library of the process.
const void *libc_address(void);

#endif
