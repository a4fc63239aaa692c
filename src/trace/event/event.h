// Event kinds and the decoded event.
#pragma once

#include "trace/event/event_table.h"

#include <stdbool.h>
#include <stdint.h>

#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...) HT_##SYMBOL = wire,
enum event_kind { HT_EVENT_TABLE(HT_X) HT_KIND_LIMIT = 256 };
#undef HT_X

enum event_class {
    HT_CLASS_NONE = 0, // unused kind
    HT_CLASS_ALLOC,    // kinds that allocate a block
    HT_CLASS_FREE,     // kinds that free a block
    HT_CLASS_RESIZE,   // kinds that free a block and allocate another block
    // Record of the first half of a RESIZE, which frees the old block. Never counts as an event.
    HT_CLASS_HALF,
    HT_CLASS_MAP,    // mappings made by the program
    HT_CLASS_THREAD, // thread starts and exits
    HT_CLASS_MARK,   // marks, and calls to allocator statistics and settings functions
    HT_CLASS_POOL,   // pool allocations: parts of blocks or mappings of the program
    HT_CLASS_META,   // records about the recording itself; never counted
};

enum event_stamp { HT_STAMP_BEFORE, HT_STAMP_AFTER, HT_STAMP_BOTH };
enum event_form { HT_FORM_NONE, HT_FORM_SIZED, HT_FORM_PLAIN };

// Name of an argument in dump, JSON and the documentation.
struct event_argument {
    const char *name; // NULL if the argument has the name of its field
    bool is_signed;
};

#define HT_NAMED(text)                                                                             \
    {                                                                                              \
        (text), false                                                                              \
    }
#define HT_SIGNED(text)                                                                            \
    {                                                                                              \
        (text), true                                                                               \
    }

struct event_arguments {
    struct event_argument size, count, align, value;
};

struct event_info {
    const char *name;   // NULL if the kind is unused
    const char *symbol; // wrapped function, or ""
    uint8_t class;      // enum event_class
    uint8_t stamp;      // enum event_stamp
    uint8_t form;       // enum event_form
    uint8_t fields;     // HT_F_*
};

// For blocks of at least this size, the used bytes are recorded and replayed. Smaller blocks share
// most of their pages with other blocks.
enum { HT_BIG_SIZE_BITS = 14, HT_BIG_BYTES = 1 << HT_BIG_SIZE_BITS };

// Limit on the note `allocator`. Higher numbers occur only in corrupt files.
enum { HT_ALLOCATORS = 32 };

enum { HT_FIRST_NOTE = 27, HT_NOTES = 5 }; // first tag of a note; number of notes

// Indices of event.notes.
#define HT_X(tag, SYMBOL, name) HT_NOTE_##SYMBOL = (tag)-HT_FIRST_NOTE,
enum event_note { HT_NOTE_TABLE(HT_X) };
#undef HT_X

// Names of the notes, or NULL.
extern const char *const event_note_names[HT_NOTES];

// Bits of the note `path`, as in glibc's branch dj/malloc.
enum event_path {
    HT_PATH_THREAD_CACHE,
    HT_PATH_CPU_CACHE,
    HT_PATH_CPU_CACHE_2,
    HT_PATH_SBRK,
    HT_PATH_MMAP,
    HT_PATH_MUNMAP,
    HT_PATH_MALLOC_FREE, // a realloc that called malloc and free
    HT_PATH_HOOK,
    HT_PATH_UNSORTED_ADD,
    HT_PATH_UNSORTED_REMOVE,
    HT_PATH_UNSORTED_EMPTY,
    HT_PATH_FASTBIN_ADD,
    HT_PATH_FASTBIN_REMOVE,
    HT_PATH_CONSOLIDATE,
    HT_PATHS,
};

// Names of the bits, for example "thread_cache".
extern const char *const event_path_names[HT_PATHS];

// Facts about the kinds, indexed by kind. Rows of unused kinds are zero.
extern const struct event_info event_infos[HT_KIND_LIMIT];

// Arguments, indexed by kind.
extern const struct event_arguments event_arguments[HT_KIND_LIMIT];

// Returns the argument of a kind that is stored in `field`: HT_F_SIZE, HT_F_COUNT, HT_F_ALIGN or
// HT_F_VALUE.
struct event_argument event_argument(unsigned kind, unsigned field);

// Returns the kind with this name, or -1.
int event_kind_by_name(const char *name);

// Returns true if a later version may have assigned the number to a kind. The numbers 0 to 3 never
// denote kinds.
static inline bool event_is_unknown(unsigned kind)
{
    return kind > 3 && !event_infos[kind].name;
}

// Returns true if records of the kind count as events. HALF and META records do not.
static inline bool event_counts(unsigned kind)
{
    unsigned class = event_infos[kind].class;
    return class != HT_CLASS_NONE && class != HT_CLASS_HALF && class != HT_CLASS_META;
}

// Returns true if the kind defines call sites or the modules that contain them.
static inline bool event_defines_sites(unsigned kind)
{
    return kind == HT_FRAMES || kind == HT_FRAME || kind == HT_STACK || kind == HT_MODULE;
}

// Returns true if the kind records the used bytes of a block.
static inline bool event_has_residency(unsigned kind)
{
    return kind == HT_RESIDENCY || kind == HT_RESIDENCY_STEP || kind == HT_RESIDENCY_UNCHANGED;
}

// Returns true if the text of the kind is an array of 8-byte return addresses.
static inline bool event_has_frames(unsigned kind)
{
    return kind == HT_FRAMES || kind == HT_STACK;
}

// Parent in a thread.start if the thread's creation was not recorded.
#define HT_NO_THREAD UINT32_MAX

// A call decoded from a trace. Fields that the kind does not have are 0.
struct event {
    uint64_t stamp;  // in units of 2^stamp_shift ticks; for RESIZE, the time of the allocation
    uint64_t ptr;    // address freed; for RESIZE, the trace reader copies it from the HALF record
    uint64_t size;   // bytes; for calloc and reallocarray, bytes of one element
    uint64_t count;  // elements; 1 in calloc's one-word form; see event_argument
    uint64_t align;  // bytes
    uint64_t result; // address allocated; 0 if the call failed or only freed a block
    uint64_t value;
    uint64_t notes[HT_NOTES]; // values below 2^59; 0 if not recorded
    const char *text;         // not terminated; borrowed from the decoded words
    uint32_t text_bytes;
    uint8_t kind;  // enum event_kind
    uint8_t error; // errno, or the result of posix_memalign; 0 on success
};

// Returns the allocator with this number in a file, or 0 if the number is not known.
static inline uint8_t event_valid_allocator(uint64_t number)
{
    return number < HT_ALLOCATORS ? (uint8_t)number : 0;
}

// Returns the allocator of the function that was called, or 0 for the process's malloc.
static inline uint8_t event_allocator(const uint64_t notes[HT_NOTES])
{
    return event_valid_allocator(notes[HT_NOTE_ALLOCATOR]);
}

// Returns the requested bytes: `size` or, if the kind has a count, `size` times `count`, limited to
// UINT64_MAX.
static inline uint64_t event_requested(unsigned kind, uint64_t size, uint64_t count)
{
    uint64_t product;
    if (!(event_infos[kind].fields & HT_F_COUNT))
        return size;
    return __builtin_mul_overflow(size, count, &product) ? UINT64_MAX : product;
}
