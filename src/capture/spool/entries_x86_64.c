// Jumps of x86-64 with displacements of 32 bits.
#include "capture/spool/entries.h"

#include <string.h>

enum { JMP_REL32 = 0xe9 };

bool entries_shift(uint8_t *at, int64_t distance)
{
    int32_t displacement;
    memcpy(&displacement, at, sizeof displacement);
    int64_t moved = displacement - distance;
    displacement = (int32_t)moved;
    memcpy(at, &displacement, sizeof displacement);
    return displacement == moved;
}

bool entries_make_jump(const struct entries_entry *e, uint64_t base, uint64_t area,
                       uint8_t to[ENTRIES_MAX_BYTES])
{
    int64_t far =
        (int64_t)(area + e->stub) - (int64_t)(base + e->at + e->keep + ENTRIES_JUMP_BYTES);
    int32_t displacement = (int32_t)far;
    memcpy(to, e->was, ENTRIES_MAX_BYTES);
    memset(to + e->keep, ENTRIES_FILL, (size_t)(e->bytes - e->keep));
    to[e->keep] = JMP_REL32;
    memcpy(to + e->keep + 1, &displacement, sizeof displacement);
    return displacement == far;
}
