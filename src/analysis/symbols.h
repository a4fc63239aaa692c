// Names of code addresses, by libdw: from the files of the recorded modules, if they are still those that ran, or from
// where debug files are kept (.build-id folders; debuginfod, if DEBUGINFOD_URLS is set).
#ifndef HEAPTAPE_ANALYSIS_SYMBOLS_H
#define HEAPTAPE_ANALYSIS_SYMBOLS_H

#include "workload/sites.h"

#include <stdbool.h>

struct symbols;

// Where an address lies. Texts are borrowed until symbols_free.
struct symbol {
    const char *function; // demangled; the address as text when it is not known
    const char *file;     // of the source, "" when it is not known
    int line;
    const char *module; // path, "" when it lay in none
};

// The sites are borrowed. NULL when out of memory.
struct symbols *symbols_new(const struct workload_sites *sites);
void symbols_free(struct symbols *s);

// The functions of a frame, the innermost one first: several where calls were inlined. 0 when out of memory.
size_t symbols_of(struct symbols *s, const struct workload_frame *f, const struct symbol **found);

// Modules that have no usable file: how many of the frames asked for lay in such, and the first one's path; NULL: none.
uint64_t symbols_missing(const struct symbols *s, const char **path);

#endif
