// Build IDs of ELF files.
#ifndef HEAPTAPE_RECORD_BUILD_ID_H
#define HEAPTAPE_RECORD_BUILD_ID_H

#include <stdint.h>

// Returns the GNU build ID in hexadecimal, which the caller frees, or NULL if it is missing or
// cannot be read. Not thread-safe.
char *build_id_of(const char *path);

// Likewise for the ELF object whose header is at `start` in the descriptor: 0 in a file, an address
// in the memory of a process. Thread-safe.
char *build_id_at(int fd, uint64_t start);

#endif
