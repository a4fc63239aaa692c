// Random numbers. The seed is for hash tables whose keys come from files: it prevents an attacker
// from choosing colliding keys.
#pragma once

#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

// Returns an odd number that is constant within a process. Uses the 16 random bytes that the kernel
// passes to each process (AT_RANDOM in getauxval(3)), so no system call and no descriptor are
// needed.
static inline uint64_t seed_random(void)
{
    uint64_t seed = 0;
    const void *bytes = (const void *)getauxval(AT_RANDOM);
    if (bytes)
        memcpy(&seed, bytes, sizeof seed);
    return (seed ^ 0x9e3779b97f4a7c15u) | 1;
}

// Returns the next number of a sequence that is identical on every platform (SplitMix64 of Steele,
// Lea and Flood, 2014).
static inline uint64_t seed_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
