// Build IDs of ELF files.
#ifndef HEAPTAPE_RECORD_BUILD_ID_H
#define HEAPTAPE_RECORD_BUILD_ID_H

#include <stdint.h>

// Returns the GNU build ID in hexadecimal, which the caller frees, or NULL if it is missing or
// cannot be read. Not thread-safe.
char *build_id_of(const char *path);

// Like build_id_of, but reads an ELF object from a descriptor. Its header is at offset `start`,
// which is 0 for a file and an address for the memory of a process. Thread-safe.
char *build_id_at(int fd, uint64_t start);

#endif
