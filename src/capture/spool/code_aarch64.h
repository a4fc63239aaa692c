// Instructions of aarch64 that contain a displacement.
#pragma once

#include <stdint.h>

#define CODE_B    0x14000000u // b, with 26 bits of displacement in units of 4 bytes
#define CODE_ADRP 0x90000000u // adrp x0, with a displacement in units of 4096 bytes

// Returns the signed number in the lowest `bits` bits.
static inline int64_t code_extend_sign(uint64_t number, unsigned bits)
{
    return (int64_t)(number << (64 - bits)) >> (64 - bits);
}

// Returns the displacement of adr in bytes, and of adrp in pages.
static inline int64_t code_address_displacement(uint32_t code)
{
    return code_extend_sign((code >> 3 & 0x1ffffc) | (code >> 29 & 3), 21);
}
