// Jumps of aarch64. Displacements are parts of instructions: of b, in units of 4 bytes, and of
// adrp, in units of 4096 bytes.
#include "capture/spool/entries.h"

#include "base/bytes.h"
#include "capture/spool/code_aarch64.h"

#define B_MASK    0x03ffffffu // bits of the displacement
#define ADRP_MASK 0x60ffffe0u // the lowest 2 bits, and the other 19 bits

static bool shift_pages(uint8_t *at, int64_t distance)
{
    uint32_t code = get_u32(at);
    int64_t pages = code_address_displacement(code) - distance / 4096;
    put_u32(at, (code & ~ADRP_MASK) | (uint32_t)(pages & 3) << 29 |
                    (uint32_t)(pages >> 2 & 0x7ffff) << 5);
    return distance % 4096 == 0 && code_extend_sign((uint64_t)pages, 21) == pages;
}

bool entries_shift(uint8_t *at, int64_t distance)
{
    uint32_t code = get_u32(at);
    if ((code & ~(ADRP_MASK | 31)) == CODE_ADRP)
        return shift_pages(at, distance);
    int64_t words = code_extend_sign(code, 26) - distance / 4;
    put_u32(at, (code & ~B_MASK) | ((uint32_t)words & B_MASK));
    return distance % 4 == 0 && code_extend_sign((uint64_t)words, 26) == words;
}

bool entries_make_jump(const struct entries_entry *e, uint64_t base, uint64_t area,
                       uint8_t to[ENTRIES_MAX_BYTES])
{
    memcpy(to, e->was, ENTRIES_MAX_BYTES);
    put_u32(to + e->keep, CODE_B);
    return entries_shift(to + e->keep, (int64_t)(base + e->at + e->keep - (area + e->stub)));
}
