// Build IDs of ELF files.
#ifndef HEAPTAPE_BASE_BUILD_ID_H
#define HEAPTAPE_BASE_BUILD_ID_H

#include <stdint.h>

// Returns the GNU build ID in hexadecimal, or NULL if it is missing or cannot be read. The caller
// must free the result. Not thread-safe.
char *build_id_of(const char *path);

// Like build_id_of, but reads an ELF object from a descriptor. The object's header is at offset
// `start`. For a file, `start` is 0; for the memory of a process, it is an address. Thread-safe.
char *build_id_at(int fd, uint64_t start);

#endif
