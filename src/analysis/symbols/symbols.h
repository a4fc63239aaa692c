// Names of code addresses. They come from the names stored in the trace or workload or, failing
// that, from the files of the recorded modules if their build IDs match. These files are searched
// for at their recorded paths, in the user's debug directories, in the system's .build-id
// directories, and through debuginfod if DEBUGINFOD_URLS is set.
#ifndef HEAPTAPE_ANALYSIS_SYMBOLS_H
#define HEAPTAPE_ANALYSIS_SYMBOLS_H

#include "workload/sites.h"

#include <stdbool.h>

struct symbols;

// Object of code in a mapping without a file, for example of a JIT compiler.
#define SYMBOLS_NO_FILE "[code without a file]"

// Type of the result of a function: unknown; a pointer to void; a pointer to bytes (char); another
// pointer, a reference or an object; anything else, or a pointer to constants.
enum symbols_result {
    SYMBOLS_RESULT_UNKNOWN,
    SYMBOLS_RESULT_VOID,
    SYMBOLS_RESULT_BYTES,
    SYMBOLS_RESULT_OBJECT,
    SYMBOLS_RESULT_OTHER
};

// An address's location. Strings are borrowed until symbols_free.
struct symbol {
    // Demangled; if unknown, OBJECT+0xOFFSET, or the address if the mapping is unknown.
    const char *function;
    const char *file; // source file; "" if unknown
    int line;
    const char *module;   // path; "" if outside all modules
    bool known;           // the function is known
    bool library;         // allocator, language runtime (std::, Rust's alloc) or system library
    bool wrapper;         // allocates for its callers; known after symbols_find_wrappers
    uint32_t code_bytes;  // size of the function's code; 0 if unknown or inlined
    uint64_t code_offset; // file offset of a function without a name; 0: unknown
    enum symbols_result result;
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

// Sets the code size and the result type of function number `index` of a frame. Both are unknown if
// the function's name is stored in the recording; they are then read from the module's file, if
// that file is usable.
void symbols_complete(struct symbols *s, const struct workload_frame *f, size_t index,
                      struct symbol *to);

// Finds the allocation wrappers in all stacks of `sites`, unless they are known and the number of
// sites has not doubled since. The sites' modules must have been known to symbols_new. Returns 0 or
// -ENOMEM.
int symbols_find_wrappers(struct symbols *s, const struct workload_sites *sites);

// Also folds the wrappers that were found in another recording. Returns 0 or -ENOMEM.
int symbols_add_wrappers(struct symbols *s, const struct symbols *from);

// Returns the wrappers that symbols_find_wrappers found.
struct wrappers;
const struct wrappers *symbols_wrappers(const struct symbols *s);

// Returns the name without its return type, "f<char>(int)" for "int f<char>(int)", and sets *n to
// its length without the parameters.
const char *symbols_bare_name(const char *function, size_t *n);

// Returns true if the module belongs to the program: its executable, a file in the same directory,
// or a file outside the system's library directories. The capture library does not belong to the
// program. `exe` may be NULL.
bool symbols_is_own(const struct workload_module *m, const char *exe);

// Returns true if the name belongs to a language runtime or an allocator. Where inlined functions
// are unknown, the source line may belong to them as well.
bool symbols_is_library(const char *function);

// Returns the number of looked-up frames in modules without a usable file, and sets *path to the
// first such module, or to NULL.
uint64_t symbols_missing(const struct symbols *s, const char **path);

// If any file was refused, calls `note` with a line about the first one: a pipe or device named
// like a debug file, or a file that decompresses to a disproportionate size.
void symbols_note_refused(void (*note)(const char *text));

#endif
