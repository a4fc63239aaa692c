// A plan that redirects functions of one loaded object by replacing their first instructions.
// `heaptape` makes the plan from the object's file (src/record/entries/); the capture library
// checks the plan and applies it in the traced process (src/capture/wrap/redirect.c).
//
// The replaced bytes of a function become a jump to its stub. The stub jumps through a slot, which
// contains the address of the function's trampoline (idle) or of a wrapper (recording). The
// trampoline executes the replaced instructions and continues behind them. One 8-byte store to the
// slot switches the function. Patched code is never restored.
//
// An endbr64 at the start of a function stays there, and the jump follows the endbr64. A plan does
// not depend on the load address, so that it can be kept with the object's build ID.
#ifndef HEAPTAPE_SPOOL_ENTRIES_H
#define HEAPTAPE_SPOOL_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define ENTRIES_MAGIC 0x317972746e655448ull // "HTentry1"

enum {
    ENTRIES_MAX = 96,             // entries of a plan
    ENTRIES_MAX_FIXUPS = 384,     // displacements in the area's code that refer to the object
    ENTRIES_MAX_BYTES = 16,       // replaced bytes of a function
    ENTRIES_MAX_CODE = 8192,      // bytes of code in the area; a multiple of the page size
    ENTRIES_JUMP_BYTES = 5,       // jmp rel32
    ENTRIES_ENDBR_BYTES = 4,      // endbr64
    ENTRIES_PAGE_BYTES = 4096,    // the area consists of whole pages
    ENTRIES_NO_INSTRUCTION = 255, // in `moved`: no instruction starts at this byte
};

// Functions without an event kind that the library also wraps: X(number, SYMBOL, symbol). The
// numbers follow the event kinds.
#define ENTRIES_CONTROL_TABLE(X)                                                                   \
    X(256, PRCTL, "prctl")                                                                         \
    X(257, EXIT, "_exit")                                                                          \
    X(258, DLCLOSE, "dlclose")
enum entries_control {
#define ENTRIES_ROW(number, SYMBOL, symbol) ENTRIES_##SYMBOL = number,
    ENTRIES_CONTROL_TABLE(ENTRIES_ROW)
#undef ENTRIES_ROW
        ENTRIES_FUNCTION_LIMIT,
};

// Allocators whose functions have the names of libc's functions with a prefix: X(family, prefix,
// additional functions in src/record/entries/functions.c).
#define ENTRIES_PREFIX_TABLE(X)                                                                    \
    X(LIBC, "", jemalloc_rows)                                                                     \
    X(JEMALLOC, "je_", jemalloc_rows)                                                              \
    X(JEMALLOC_RUST, "_rjem_", jemalloc_rows)                                                      \
    X(MIMALLOC, "mi_", mimalloc_rows)                                                              \
    X(TCMALLOC, "tc_", tcmalloc_rows)                                                              \
    X(RPMALLOC, "rp", rpmalloc_rows)                                                               \
    X(SNMALLOC, "sn_", snmalloc_rows)                                                              \
    X(TBBMALLOC, "scalable_", tbbmalloc_rows)                                                      \
    X(DLMALLOC, "dl", NULL)                                                                        \
    X(NEDMALLOC, "ned", NULL)

enum {
#define ENTRIES_ROW(family, prefix, rows) +1
    ENTRIES_PREFIXES = 0 ENTRIES_PREFIX_TABLE(ENTRIES_ROW)
#undef ENTRIES_ROW
};

// Names of malloc with the prefixes. The first one has no prefix.
extern const char *const entries_malloc_names[ENTRIES_PREFIXES];

struct entries_entry {
    uint64_t at;         // address of the function, relative to the object's base
    uint32_t trampoline; // offsets in the area
    uint32_t stub;
    uint32_t slot;     // a multiple of 8, not below code_bytes
    uint16_t function; // event kind (event_table.h) or enum entries_control: selects the wrapper
    uint16_t family;   // 0: names of libc and C++; others: see src/record/entries/
    uint8_t bytes;     // replaced bytes: whole instructions, including `keep`
    uint8_t keep;      // bytes in front of the jump that stay: 0, or ENTRIES_ENDBR_BYTES
    // One letter for each argument if they differ from those of the event's function: p (block), s
    // (size), c (count), a (alignment), f (flags of jemalloc's mallocx), x (passed on). All 0 if
    // they do not differ. A plan contains functions with letters only on request
    // (`reordered` in struct entries_names).
    char arguments[6];
    bool named;                     // a function of --wrap, with the usable sizes of --wrap
    uint8_t was[ENTRIES_MAX_BYTES]; // original contents of the replaced bytes, padded with 0
    // For each replaced byte, the offset of the same instruction from `trampoline`, or
    // ENTRIES_NO_INSTRUCTION. A thread that is stopped at this byte continues there.
    uint8_t moved[ENTRIES_MAX_BYTES];
};

// The area contains the code pages and then the pages with the slots. It is mapped at base + place,
// or elsewhere within 2 GiB of the object. In an area that is mapped D bytes above base + place,
// the library decreases the 32-bit displacement at each offset in `fixups` by D. Each displacement
// refers to the object. The library also initializes the slots with the addresses of the
// trampolines, and computes the jumps in the object.
struct entries_plan {
    uint64_t magic;
    int64_t place;       // relative to the object's base, a multiple of the page size
    uint64_t span;       // size of the object in memory: its end, relative to base
    uint32_t code_bytes; // whole pages, at most ENTRIES_MAX_CODE
    uint32_t area_bytes; // whole pages: code_bytes and at least one page for the slots
    uint32_t n_entries, n_fixups;
    struct entries_entry entries[ENTRIES_MAX];
    uint32_t fixups[ENTRIES_MAX_FIXUPS];
    uint8_t code[ENTRIES_MAX_CODE];
};

// Name in the session directory of the plan of an object's file. An empty file: the object has no
// plan. Only the recorder creates these files.
enum { ENTRIES_FILE_BYTES = 24 };
void entries_name_file(const struct stat *file, char name[ENTRIES_FILE_BYTES]);

// Returns the letters of the arguments of an event's allocator function, as in `arguments` of
// struct entries_entry; "" for other functions.
const char *entries_letters(unsigned function);

// Returns the name in family 0 of a function that the library wraps, or NULL.
const char *entries_symbol(unsigned function);

// Returns true if all offsets and counts of the plan are within their limits, no entries overlap,
// and every slot and stub belongs to one entry. Does not read the object.
bool entries_are_valid(const struct entries_plan *plan);

// Adapts the code of a valid plan to an area at base + place + distance. Returns false if a
// displacement does not reach that far; then the code is undefined.
bool entries_relocate(struct entries_plan *plan, int64_t distance);

// Writes the new contents of the entry's replaced bytes, for an object at `base` and an area at
// `area`. Returns false if the stub is out of reach.
bool entries_make_jump(const struct entries_entry *entry, uint64_t base, uint64_t area,
                       uint8_t to[ENTRIES_MAX_BYTES]);

// Returns the address where a thread that is stopped at `pc` must continue if the bytes of the
// entry are replaced: `pc` itself if it is not among these bytes or if the bytes at `pc` stay, else
// an address in the trampoline. Returns 0 if no instruction starts at `pc`.
uint64_t entries_move(const struct entries_entry *entry, uint64_t base, uint64_t area, uint64_t pc);

#endif
