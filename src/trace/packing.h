// Packs columns whose bytes have few different values into 4, 2 or 1 bits per item, so that they
// compress faster. Layout: docs/reference/trace-format.md, "Events".
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    PACKING_MAX = 3,     // an item has 8 >> packing bits; a packing of 0 stores bytes
    PACKING_VALUES = 16, // maximum number of different values
    // Bytes of extra space that packing_put needs after the packed bytes, and packing_get after the
    // items.
    PACKING_SLACK = 1024,
};

// Returns the size in bytes of n packed items plus the list of values.
static inline size_t packing_bytes(unsigned packing, size_t n)
{
    unsigned items = 1u << packing;
    return packing ? (n + items - 1) / items + (1u << (8 >> packing)) : n;
}

// Packs n items into `to`, which has space for packing_bytes(1, n) + PACKING_SLACK bytes. Returns
// the packing, or 0 if there are too few items, only one value, or too many values.
unsigned packing_put(const uint8_t *items, size_t n, uint8_t *to);

// Restores n items from packing_bytes(packing, n) bytes.
void packing_get(unsigned packing, const uint8_t *from, size_t n, uint8_t *items);
