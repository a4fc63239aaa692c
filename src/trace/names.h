// Names for code addresses, stored in a file: names of JIT-compiled code, or names that `symbolize`
// resolved. Layout: docs/reference/trace-format.md, "NAMES".
#pragma once

#include "base/buf.h"
#include "base/map.h"

#include <stddef.h>
#include <stdint.h>

// A function or inlined function. `function` and `file` are offsets in names.texts.
struct names_function {
    size_t function, file; // source file; "" if unknown
    uint32_t line;
};

// Names of the code at [start, start + bytes) in a module.
struct names_entry {
    uint64_t start, bytes;
    uint32_t module; // number of the module, from 1, or 0 for any code at the address
    uint32_t n;      // number of functions, innermost first
    size_t first;    // index of the innermost function
};

// A zeroed struct is an empty set.
struct names {
    struct names_entry *entries;
    struct names_function *functions;
    size_t n_entries, n_functions;
    size_t entries_capacity, functions_capacity;
    struct buf texts;   // strings, each terminated by NUL
    struct map by_hash; // maps the hash of a string to its offset plus 1
};

enum {
    NAMES_TEXT_BYTES = 4096,    // longer strings are truncated
    NAMES_FUNCTIONS = 64,       // limit per entry
    NAMES_FRAME_BYTES = 4 << 20 // approximate limit of a payload
};

void names_release(struct names *n);

// names_begin starts an entry; names_function adds a function to the entry. Strings end at the
// first NUL or, without a NUL, after function_bytes and file_bytes. Both functions return 0 or
// -ENOMEM.
int names_begin(struct names *n, uint32_t module, uint64_t start, uint64_t bytes);
int names_function(struct names *n, const char *function, size_t function_bytes, const char *file,
                   size_t file_bytes, uint32_t line);

static inline const char *names_text(const struct names *n, size_t offset)
{
    return (const char *)n->texts.data + offset;
}

// Appends all entries of another set and adds `shift` to their module numbers. Returns 0 or
// -ENOMEM.
int names_copy(struct names *to, const struct names *from, uint32_t shift);

// Index of entries by address. The names are borrowed and must not change.
struct names_index {
    const struct names *names;
    uint32_t *order;
};

int names_index_init(struct names_index *x, const struct names *n); // returns 0 or -ENOMEM
void names_index_release(struct names_index *x);

// Returns the entry that contains the address in the module, or NULL. If several entries contain
// the address, chooses the entry with the highest start address; if there is a tie, the entry that
// was appended last.
const struct names_entry *names_find(const struct names_index *x, uint32_t module,
                                     uint64_t address);

// Appends the payload of a frame with entries from *entry on, up to NAMES_FRAME_BYTES, and advances
// *entry. Returns 0 or -ENOMEM.
int names_put(struct buf *b, const struct names *n, uint32_t process, size_t *entry);

// Appends the entries of a payload. Sets *process to the number of the process image. Returns 0,
// -EBADMSG or -ENOMEM.
int names_get(const uint8_t *at, size_t n, struct names *to, uint32_t *process);
