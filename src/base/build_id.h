// Build IDs of ELF files.
#pragma once

#include <stdint.h>

// Returns the GNU build ID of the ELF file at `path` in hexadecimal, or NULL if it is missing or
// cannot be read. The caller must free the result. Not thread-safe.
char *build_id_of(const char *path);

// Like build_id_of, but reads an ELF object whose header is at offset `start` of `fd`. The offset
// is 0 for a file, and an address for a process's memory. Thread-safe.
char *build_id_at(int fd, uint64_t start);
