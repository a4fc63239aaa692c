// Names of code addresses that a file carries with it: of code that no file holds (JIT compilers), and those that
// `symbolize` has looked up. Layout: docs/reference/trace-format.md, "NAMES".
#ifndef HEAPTAPE_TRACE_NAMES_H
#define HEAPTAPE_TRACE_NAMES_H

#include "base/buf.h"
#include "base/map.h"

#include <stddef.h>
#include <stdint.h>

// A function, or one that was inlined into it: offsets of its texts in `texts`.
struct names_function {
    size_t function, file; // the file of the source is "" when it is not known
    uint32_t line;
};

// `bytes` of code from an address on, in one module.
struct names_entry {
    uint64_t start, bytes;
    uint32_t module; // its number from 1; 0: whatever lies there
    uint32_t n;      // functions, the innermost first
    size_t first;    // of these
};

// All zero is an empty set.
struct names {
    struct names_entry *entries;
    struct names_function *functions;
    size_t n_entries, n_functions;
    size_t entries_capacity, functions_capacity;
    struct buf texts;   // each ended by NUL
    struct map by_hash; // of texts → offset + 1
};

enum {
    NAMES_TEXT_BYTES = 4096,    // longer texts are cut
    NAMES_FUNCTIONS = 64,       // of an entry
    NAMES_FRAME_BYTES = 4 << 20 // of a frame's payload, about
};

void names_release(struct names *n);

// Begins an entry, and adds a function to the entry begun last: texts of `function_bytes` and `file_bytes`, which end at a
// NUL at the latest. 0 or -ENOMEM.
int names_begin(struct names *n, uint32_t module, uint64_t start, uint64_t bytes);
int names_function(struct names *n, const char *function, size_t function_bytes, const char *file,
                   size_t file_bytes, uint32_t line);

static inline const char *names_text(const struct names *n, size_t offset)
{
    return (const char *)n->texts.data + offset;
}

// Adds all of another set, whose modules come `shift` numbers later here. 0 or -ENOMEM.
int names_copy(struct names *to, const struct names *from, uint32_t shift);

// Entries by their addresses. Borrows the names, which must not change.
struct names_index {
    const struct names *names;
    uint32_t *order;
};

int names_index_init(struct names_index *x, const struct names *n); // 0 or -ENOMEM
void names_index_release(struct names_index *x);

// The entry of the module that holds the address; of several the one that begins last, and of these the one added last.
// NULL: there is none.
const struct names_entry *names_find(const struct names_index *x, uint32_t module,
                                     uint64_t address);

// Appends the payload of a frame: the entries from number *entry on, as much as fits NAMES_FRAME_BYTES, and moves it on.
// 0 or -ENOMEM.
int names_put(struct buf *b, const struct names *n, uint32_t process, size_t *entry);

// Adds what a frame holds. *process is the number of its process image. 0, -EBADMSG, -ENOMEM.
int names_get(const uint8_t *at, size_t n, struct names *to, uint32_t *process);

#endif
