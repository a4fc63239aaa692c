// Names of code addresses. They come from the names stored in the trace or workload or, failing
// that, from the files of the recorded modules if their build IDs match. These files are searched
// for at their recorded paths, in the user's debug directories, in the system's .build-id
// directories, and through debuginfod if DEBUGINFOD_URLS is set.
#ifndef HEAPTAPE_ANALYSIS_SYMBOLS_H
#define HEAPTAPE_ANALYSIS_SYMBOLS_H

#include "workload/sites.h"

#include <stdbool.h>

struct symbols;

// An address's location. Strings are borrowed until symbols_free.
struct symbol {
    const char *function; // demangled; if unknown, OBJECT+0xOFFSET or the address
    const char *file;     // source file; "" if unknown
    int line;
    const char *module; // path; "" if outside all modules
    bool known;         // the function is known
    bool library;       // allocator, language runtime (std::, Rust's alloc) or system library
};

// Returns the location to print after the function: the source file; or the object, unless
// `function` already names it; or "".
const char *symbols_file(const struct symbol *s);

// Sets directories to search first, separated by colons. A file is found by its build ID, as
// DIR/.build-id/xx/yyy or yyy.debug; by its recorded path below DIR; or by its name in DIR.
// Borrowed; applies to all later calls of symbols_new. May be NULL.
void symbols_debug_dirs(const char *dirs);

// Borrows the sites. `exe` is the recorded program's executable, or NULL. Returns NULL when out of
// memory.
struct symbols *symbols_new(const struct workload_sites *sites, const char *exe);
void symbols_free(struct symbols *s);

// Returns the number of functions at a frame and sets *found to them, innermost first; there are
// several if calls were inlined. Returns 0 when out of memory.
size_t symbols_of(struct symbols *s, const struct workload_frame *f, const struct symbol **found);

// Finds the call site's innermost function outside libraries or, if there is none, the innermost
// function. The site's modules must have been known to symbols_new. Returns false if the site has
// no stack or if `s` is NULL.
bool symbols_site(struct symbols *s, const struct workload_sites *sites, uint64_t number,
                  struct symbol *to);

// Like symbols_site, but returns formatted text that includes the location, or NULL if the site has
// no stack.
enum { SYMBOLS_FUNCTION_BYTES = 200 };
const char *symbols_site_function(struct symbols *s, const struct workload_sites *sites,
                                  uint64_t site, char text[SYMBOLS_FUNCTION_BYTES]);

// Returns true if the module belongs to the program: its executable, a file in the same directory,
// or a file outside the system's library directories. The capture library does not belong to the
// program. `exe` may be NULL.
bool symbols_is_own(const struct workload_module *m, const char *exe);

// Returns true if the name belongs to a language runtime or an allocator. Where inlined functions
// are unknown, the source line may belong to them as well.
bool symbols_is_library(const char *function);

// Returns how many of the frames looked up are in modules without a usable file, and sets *path to
// the first such module, or to NULL.
uint64_t symbols_missing(const struct symbols *s, const char **path);

// If any file was refused, calls `note` with a line about the first one: a pipe or device named
// like a debug file, or a file that decompresses to a disproportionate size.
void symbols_note_refused(void (*note)(const char *text));

#endif
