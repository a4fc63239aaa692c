// Hash of a symbol name in DT_GNU_HASH tables of ELF objects. Must not allocate or lock, because
// the capture library includes this header.
#pragma once

#include <stdint.h>

static inline uint32_t gnu_hash(const char *name)
{
    uint32_t h = 5381;
    for (; *name; name++)
        h = h * 33 + (unsigned char)*name;
    return h;
}
