// Build IDs of ELF files.
#ifndef HEAPTAPE_RECORD_BUILD_ID_H
#define HEAPTAPE_RECORD_BUILD_ID_H

// Returns the GNU build ID in hexadecimal, which the caller frees, or NULL if it is missing or
// cannot be read. Not thread-safe.
char *build_id_of(const char *path);

#endif
