// Names of code addresses: those that the trace or workload holds, and by libdw those of the recorded modules' files, if
// they are still the ones that ran, or of where debug files are kept (folders given; .build-id folders of the system;
// debuginfod, if DEBUGINFOD_URLS is set).
#ifndef HEAPTAPE_ANALYSIS_SYMBOLS_H
#define HEAPTAPE_ANALYSIS_SYMBOLS_H

#include "workload/sites.h"

#include <stdbool.h>

struct symbols;

// Where an address lies. Texts are borrowed until symbols_free.
struct symbol {
    const char *
        function; // demangled; OBJECT+0xOFFSET in its file if it is not known, or the address outside of objects
    const char *file; // of the source, "" when it is not known
    int line;
    const char *module; // path, "" when it lay in none
    bool known;         // a function was found
    bool
        library; // of the allocator, of a language's own library (std::, Rust's alloc), or in a system library
};

// What a text says behind the function: the source, or else the object, which an OBJECT+0xOFFSET names already. Else "".
const char *symbols_file(const struct symbol *s);

// Folders where the recorded files or their debug files are looked for first, parted by colons: by build id as
// DIR/.build-id/xx/yyy and yyy.debug, by their recorded path below DIR, by their name in DIR. Borrowed; for all symbols
// that are made from then on. NULL: none.
void symbols_debug_dirs(const char *dirs);

// The sites are borrowed; `exe`, which may be NULL, is the recorded program's executable. NULL when out of memory.
struct symbols *symbols_new(const struct workload_sites *sites, const char *exe);
void symbols_free(struct symbols *s);

// The functions of a frame, the innermost one first: several where calls were inlined. 0 when out of memory.
size_t symbols_of(struct symbols *s, const struct workload_frame *f, const struct symbol **found);

// The innermost function of the stack of a call site outside of libraries; where there is none the innermost one. False:
// none is known, or `s` is NULL. The site's modules were known when `s` was made.
bool symbols_site(struct symbols *s, const struct workload_sites *sites, uint64_t number,
                  struct symbol *to);

// The same as a text, with where it is. NULL: none is known.
enum { SYMBOLS_FUNCTION_BYTES = 200 };
const char *symbols_site_function(struct symbols *s, const struct workload_sites *sites,
                                  uint64_t site, char text[SYMBOLS_FUNCTION_BYTES]);

// Is a function, by its name, one of a language's own library, or of the allocator? Where inlined functions are not known,
// the line is theirs, so it does not tell.
bool symbols_is_library(const char *function);

// Modules that have no usable file: how many of the frames asked for lay in such, and the first one's path; NULL: none.
uint64_t symbols_missing(const struct symbols *s, const char **path);

// Calls `note` with a line about the first file that was refused, if any was: a pipe or a device with the name of a debug
// file, or a file whose compressed sections are out of proportion.
void symbols_note_refused(void (*note)(const char *text));

#endif
