// Little-endian loads and stores at any alignment. Must not allocate, because the capture library
// includes this header.
#pragma once

#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the formats are little-endian; a big-endian host needs swaps here");

#define BYTES_ACCESSORS(bits)                                                                      \
    static inline uint##bits##_t get_u##bits(const void *p)                                        \
    {                                                                                              \
        uint##bits##_t v;                                                                          \
        memcpy(&v, p, sizeof v);                                                                   \
        return v;                                                                                  \
    }                                                                                              \
    static inline void put_u##bits(void *p, uint##bits##_t v)                                      \
    {                                                                                              \
        memcpy(p, &v, sizeof v);                                                                   \
    }
BYTES_ACCESSORS(16)
BYTES_ACCESSORS(32)
BYTES_ACCESSORS(64)
#undef BYTES_ACCESSORS
