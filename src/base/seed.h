// A random number for hash tables whose keys come from files: nobody can choose keys that meet in one place.
#ifndef HEAPTAPE_BASE_SEED_H
#define HEAPTAPE_BASE_SEED_H

#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

// Odd, and the same at each call in a process. From the 16 random bytes that the kernel gives to each process
// (getauxval(3), AT_RANDOM), which needs neither a system call nor a descriptor.
static inline uint64_t seed_random(void)
{
    uint64_t seed = 0;
    const void *bytes = (const void *)getauxval(AT_RANDOM);
    if (bytes)
        memcpy(&seed, bytes, sizeof seed);
    return (seed ^ 0x9e3779b97f4a7c15u) | 1;
}

#endif
