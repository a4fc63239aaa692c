// Names of code addresses. Names that the trace or workload contains take precedence. Other names
// are read from the files of the recorded modules, whose build IDs must match. These files are
// searched for at their recorded paths, in the user's debug directories, in the system's .build-id
// directories, and through debuginfod if DEBUGINFOD_URLS is set.
#pragma once

#include "workload/sites.h"

#include <stdbool.h>

struct symbols;

// Name of the object for code in a mapping without a file, for example code of a JIT compiler.
#define SYMBOLS_NO_FILE "[code without a file]"

// Type of a function's result: unknown; a pointer to void; a pointer to bytes (char); another
// pointer, a reference or an object; or any other type, including a pointer to constants.
enum symbols_result {
    SYMBOLS_RESULT_UNKNOWN,
    SYMBOLS_RESULT_VOID,
    SYMBOLS_RESULT_BYTES,
    SYMBOLS_RESULT_OBJECT,
    SYMBOLS_RESULT_OTHER
};

// Location of an address. Strings are borrowed until symbols_free.
struct symbol {
    // Demangled name. If the name is unknown, this is OBJECT+0xOFFSET, or the address if there is
    // no mapping.
    const char *function;
    const char *file; // source file; "" if unknown
    int line;
    const char *module; // path; "" if outside all modules
    bool known;         // `function` is a name
    // The function belongs to the allocator, a language runtime (std::, Rust's alloc) or a system
    // library.
    bool library;
    // The function allocates for its callers; valid after symbols_find_wrappers.
    bool wrapper;
    // A function of a script that an interpreter executes (codec_is_script).
    bool script;
    uint32_t code_bytes;  // size of the function's code; 0 if unknown or inlined
    uint64_t code_offset; // file offset of a function without a name, or 0 if unknown
    enum symbols_result result;
};

// Returns the location to print after the function: the source file, or the object if the source
// file is unknown. Returns "" if `function` already contains the object.
const char *symbols_file(const struct symbol *s);

// Sets directories to search first, separated by colons. A file is found by its build ID, as
// DIR/.build-id/xx/yyy or yyy.debug; by its recorded path below DIR; or by its name in DIR. `dirs`
// is borrowed, applies to all later calls of symbols_new, and may be NULL.
void symbols_debug_dirs(const char *dirs);

// Creates the table of names. The sites are borrowed. `exe` is the executable of the recorded
// program, or NULL. Returns NULL when out of memory.
struct symbols *symbols_new(const struct workload_sites *sites, const char *exe);
void symbols_free(struct symbols *s);

// Returns the number of functions at a frame and sets *found to them, innermost first. There are
// several functions if calls were inlined. Returns 0 when out of memory.
size_t symbols_of(struct symbols *s, const struct workload_frame *f, const struct symbol **found);

// Sets the code size and the result type of function number `index` of a frame. The recording
// stores names without code sizes and result types, so both are read from the module's file if the
// file is usable.
void symbols_complete(struct symbols *s, const struct workload_frame *f, size_t index,
                      struct symbol *to);

// Return the sites, the stack of a call site, and frame `i` of this stack. symbols_site returns a
// stack without frames if the number is 0 or undefined, or if `s` is NULL.
const struct workload_sites *symbols_sites(const struct symbols *s);
const struct workload_site *symbols_site(const struct symbols *s, uint64_t number);
const struct workload_frame *symbols_frame(const struct symbols *s,
                                           const struct workload_site *site, uint32_t i);

// Finds the allocation wrappers in all stacks. Searches again only if the number of sites has
// doubled since the last search. The sites' modules must have been known to symbols_new. Returns 0
// or -ENOMEM.
int symbols_find_wrappers(struct symbols *s);

// Adds the wrappers that were found in another recording, so that these functions are folded here
// as well. Returns 0 or -ENOMEM.
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

// Returns true if the name belongs to a language runtime or an allocator. If inlined functions are
// unknown, the source line may also belong to the runtime or allocator.
bool symbols_is_library(const char *function);

// Returns the number of looked-up frames in modules without a usable file. Sets *path to the first
// such module, or to NULL.
uint64_t symbols_missing(const struct symbols *s, const char **path);

// If a file was refused, calls `note` with a line about the first refused file. Files are refused
// if they are pipes or devices with the name of a debug file, or if they decompress to a
// disproportionate size.
void symbols_note_refused(void (*note)(const char *text));
