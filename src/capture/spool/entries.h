// A plan that redirects functions of one loaded object by replacing their first instructions.
// `heaptape` makes the plan from the object's file (src/record/entries/). The capture library
// checks the plan and applies it in the traced process (src/capture/wrap/redirect.c).
//
// The replaced bytes of a function become a jump to its stub. The stub jumps through a slot. The
// slot contains the address of the function's trampoline (idle) or of a wrapper (recording). The
// trampoline executes the replaced instructions and continues after them. One 8-byte store to the
// slot switches the function. When a recording ends and all threads are stopped, `heaptape`
// restores the original bytes. Stubs, trampolines and slots stay valid.
//
// If a function starts with an instruction at which indirect jumps may land (endbr64 on x86-64, bti
// or paciasp on aarch64), that instruction stays in place, and the jump follows it. A plan does not
// depend on the load address, so it can be stored under the object's build ID.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define ENTRIES_MAGIC 0x317972746e655448ull // "HTentry1"

enum {
    ENTRIES_MAX = 96,             // entries of a plan
    ENTRIES_MAX_FIXUPS = 384,     // displacements in the area's code that point into the object
    ENTRIES_MAX_BYTES = 16,       // replaced bytes of a function
    ENTRIES_MAX_CODE = 8192,      // bytes of code in the area; a multiple of the unit
    ENTRIES_UNIT_BYTES = 4096,    // unit of code and places; the unit of adrp on aarch64
    ENTRIES_KEEP_BYTES = 4,       // size of an instruction that stays before the jump
    ENTRIES_NO_INSTRUCTION = 255, // in `moved`: this byte is not the first byte of an instruction
    ENTRIES_NAMESPACES = 16,      // DL_NNS of glibc: maximum number of namespaces of dlmopen
};

// The jump of this machine: its size, the number of bytes that are written last and at once, and
// the byte that fills code that is never executed. The pages of an area have the maximum page size
// of the machine's kernels.
#if defined(__aarch64__)
enum {
    ENTRIES_JUMP_BYTES = 4,
    ENTRIES_LAST_BYTES = 4,
    ENTRIES_FILL = 0,
    ENTRIES_PAGE_BYTES = 65536
};
#define ENTRIES_REACH (UINT64_C(1) << 27) // a jump reaches addresses within this distance
#else
enum {
    ENTRIES_JUMP_BYTES = 5,
    ENTRIES_LAST_BYTES = 1,
    ENTRIES_FILL = 0xcc,
    ENTRIES_PAGE_BYTES = 4096
};
#define ENTRIES_REACH (UINT64_C(1) << 31)
#endif

// Other functions that the library wraps. They have no event kind: X(number, SYMBOL, symbol). The
// numbers follow the event kinds.
#define ENTRIES_CONTROL_TABLE(X)                                                                   \
    X(256, PRCTL, "prctl")                                                                         \
    X(257, EXIT, "_exit")                                                                          \
    X(258, DLCLOSE, "dlclose")                                                                     \
    X(259, LOADS, "_dl_debug_state") /* the loader calls it when the list of objects changes */    \
    X(260, SYSCALL, "syscall")
enum entries_control {
#define ENTRIES_ROW(number, SYMBOL, symbol) ENTRIES_##SYMBOL = number,
    ENTRIES_CONTROL_TABLE(ENTRIES_ROW)
#undef ENTRIES_ROW
        ENTRIES_FUNCTION_LIMIT,
};

// Allocators whose functions have libc's names with a prefix: X(family, prefix, additional
// functions in src/record/entries/functions.c).
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

// Names of malloc with each prefix. The first name has no prefix.
extern const char *const entries_malloc_names[ENTRIES_PREFIXES];

struct entries_entry {
    uint64_t at;         // address of the function, relative to the object's base
    uint32_t trampoline; // offsets in the area
    uint32_t stub;
    uint32_t slot; // a multiple of 8, in the last page of the area
    // event kind (event_table.h) or enum entries_control, which selects the wrapper
    uint16_t function;
    // 0 for the names of libc and C++; for other values, see src/record/entries/plan.h. Recorded as
    // the note `allocator`.
    uint16_t family;
    uint8_t bytes; // number of replaced bytes: complete instructions, including `keep`
    uint8_t keep;  // bytes that stay before the jump: 0 or ENTRIES_KEEP_BYTES
    // The function's arguments if they differ from the arguments of the event's function, else all
    // 0. Each letter is an argument: p (block), b (block that is resized in place; the function
    // returns its new size, which is less than the argument s if it could not grow), s (size), c
    // (count), a (alignment), f (flags of jemalloc's mallocx), x (passed on). A plan contains
    // functions with letters only if `reordered` in struct entries_names is set.
    char arguments[6];
    bool named; // function of --wrap; only --wrap's malloc_usable_size accepts its blocks
    uint8_t was[ENTRIES_MAX_BYTES]; // original contents of the replaced bytes, padded with 0
    // For each replaced byte, the offset of the moved instruction from `trampoline`, or
    // ENTRIES_NO_INSTRUCTION. A thread that is stopped at the replaced byte continues at the moved
    // instruction.
    uint8_t moved[ENTRIES_MAX_BYTES];
};

// A redirected function of a loaded object at `base`, with an area at `area`. entry.bytes is 0 if
// the object was unloaded.
struct entries_redirected {
    uint64_t base, area;
    struct entries_entry entry;
};

// The area contains the code pages, followed by the pages with the slots. It is mapped at base +
// place, or elsewhere within ENTRIES_REACH of the object. If the area is mapped D bytes above base
// + place, the library subtracts D from the displacement at each offset in `fixups`
// (entries_shift). Each of these displacements points into the object. The library also stores the
// addresses of the trampolines in the slots, and computes the jumps in the object.
struct entries_plan {
    uint64_t magic;
    int64_t place;       // relative to the object's base, a multiple of ENTRIES_UNIT_BYTES
    uint64_t span;       // end of the part of the object that the code refers to, relative to base
    uint32_t code_bytes; // a multiple of ENTRIES_UNIT_BYTES, at most ENTRIES_MAX_CODE
    uint32_t area_bytes; // code_bytes, rounded up to pages, and a page for the slots
    uint32_t n_entries, n_fixups;
    struct entries_entry entries[ENTRIES_MAX];
    uint32_t fixups[ENTRIES_MAX_FIXUPS];
    uint8_t code[ENTRIES_MAX_CODE];
};

// Returns the offset, in the area, of the page with the slots.
static inline uint32_t entries_slots(const struct entries_plan *p)
{
    return p->area_bytes - ENTRIES_PAGE_BYTES;
}

// Sets `name` to the name of the file, in the session directory, that contains an object's plan.
// `file` is the status of the object's file. If the named file is empty, the object has no plan.
// Only the recorder creates these files.
enum { ENTRIES_FILE_BYTES = 24 };
void entries_name_file(const struct stat *file, char name[ENTRIES_FILE_BYTES]);

// Returns true if `path` is in a library directory of the distribution. The libraries there have
// dynamic symbols only, so they cannot hide an allocator with prefixed names.
bool entries_is_system_library(const char *path);

// Returns HT_CLASS_ALLOC, HT_CLASS_FREE or HT_CLASS_RESIZE, or HT_CLASS_NONE if the function is not
// an allocator function.
unsigned entries_class(unsigned function);

// Returns the arguments of an allocator function, in the format of entries_entry.arguments, or ""
// for other functions.
const char *entries_letters(unsigned function);

// Returns the name of a wrapped function in family 0, or NULL if the library does not wrap the
// function.
const char *entries_symbol(unsigned function);

// Returns true if all offsets and counts of the plan are within their limits, no entries overlap,
// and every slot and stub belongs to one entry. Does not read the object.
bool entries_are_valid(const struct entries_plan *plan);

// Subtracts the distance, in bytes, from a displacement: 32 bits on x86-64, an instruction on
// aarch64. Returns false if the result does not fit. (entries_x86_64.c, entries_aarch64.c)
bool entries_shift(uint8_t *displacement, int64_t distance);

// Adapts the code of a valid plan to an area at base + place + distance. If a displacement cannot
// span the distance, returns false and leaves the code undefined.
bool entries_relocate(struct entries_plan *plan, int64_t distance);

// Writes the new contents of the entry's replaced bytes, for an object at `base` and an area at
// `area`. Returns false if the stub is out of reach. (entries_x86_64.c, entries_aarch64.c)
bool entries_make_jump(const struct entries_entry *entry, uint64_t base, uint64_t area,
                       uint8_t to[ENTRIES_MAX_BYTES]);

// Returns the address where a thread that is stopped at `pc` must continue if the bytes of the
// entry are replaced: `pc` itself if the instruction at `pc` stays in place, else an address in the
// trampoline. Returns 0 if no instruction starts at `pc`.
uint64_t entries_move(const struct entries_entry *entry, uint64_t base, uint64_t area, uint64_t pc);
