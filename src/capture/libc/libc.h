// The functions of the C library that the capture library calls.
//
// A preloaded library can define any function of libc, and its definition may allocate, take a lock, or call dlopen: called from
// inside malloc, it would wait for itself. The capture library imports no function of libc for that reason. libc.c defines each
// function of libc that the library calls, hidden: as a raw system call, or by a call of libc's own definition, which it finds in
// libc's symbol table. string.c defines those that need nothing of libc.
#ifndef HEAPTAPE_LIBC_LIBC_H
#define HEAPTAPE_LIBC_LIBC_H

#include <stdbool.h>

// An address in the C library of the process.
const void *libc_address(void);

#endif
