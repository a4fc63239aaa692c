// Build ids of ELF files.
#ifndef HEAPTAPE_RECORD_BUILD_ID_H
#define HEAPTAPE_RECORD_BUILD_ID_H

// The GNU build id of the file in hexadecimal digits, which the caller frees; NULL when it has none or cannot be read. One
// thread at a time.
char *build_id_of(const char *path);

#endif
