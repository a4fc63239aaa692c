// Libraries that an allocator needs and that a recorded program may have loaded as well, and the
// libraries of allocators.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Sets of libraries. Bits are wire values and never reused; bit i is the i-th name below.
enum {
    LIBRARIES_STDCXX = 0x3, // the C++ libraries of GCC and LLVM
    LIBRARIES_CXX = 0x1f,   // these, and the libraries that they need
    LIBRARIES_ALLOCATORS = 0x1e0,
};

// Returns the bit of the library with this path, or 0. Other text may follow the path.
static inline uint64_t libraries_bit(const char *path)
{
    static const char *const names[] = {"/libstdc++.so", "/libc++.so",   "/libc++abi.so",
                                        "/libgcc_s.so",  "/libm.so",     "/libjemalloc",
                                        "/libtcmalloc",  "/libmimalloc", "/libtbbmalloc"};
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; slash && i < sizeof names / sizeof *names; i++) {
        if (strncmp(slash, names[i], strlen(names[i])) == 0)
            return 1ull << i;
    }
    return 0;
}
