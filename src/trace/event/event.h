// Event kinds and the decoded event.
#ifndef HEAPTAPE_EVENT_EVENT_H
#define HEAPTAPE_EVENT_EVENT_H

#include "trace/event/event_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...) HT_##SYMBOL = wire,
enum event_kind { HT_EVENT_TABLE(HT_X) HT_KIND_LIMIT = 256 };
#undef HT_X

enum event_class {
    HT_CLASS_NONE = 0, // no such kind
    HT_CLASS_ALLOC,    // allocates a block
    HT_CLASS_FREE,     // releases a block
    HT_CLASS_RESIZE,   // releases one and allocates one
    HT_CLASS_HALF, // the release half of a RESIZE: a record of the trace, no event of its own, never counted
    HT_CLASS_MAP,    // the program's own mappings
    HT_CLASS_THREAD, // starts and exits
    HT_CLASS_MARK,   // what the program or its allocator's statistics calls mark
    HT_CLASS_POOL,   // what the program hands out itself of blocks or mappings that it has
    HT_CLASS_META,   // facts about the recording itself; never counted
};

enum event_stamp { HT_STAMP_BEFORE, HT_STAMP_AFTER, HT_STAMP_BOTH };
enum event_form { HT_FORM_NONE, HT_FORM_SIZED, HT_FORM_PLAIN };

// An argument of a kind: its name in dump, JSON and documents.
struct event_argument {
    const char *name; // NULL: as the field
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
    const char *name;   // NULL: no such kind
    const char *symbol; // wrapped function, "" when none
    uint8_t class;      // enum event_class
    uint8_t stamp;      // enum event_stamp
    uint8_t form;       // enum event_form
    uint8_t fields;     // HT_F_*
};

// Big blocks, of which it is recorded and replayed how much the program uses: smaller ones have too few pages of their own
// to matter.
enum { HT_BIG_SIZE_BITS = 14, HT_BIG_BYTES = 1 << HT_BIG_SIZE_BITS };

enum { HT_FIRST_NOTE = 28, HT_NOTES = 4 }; // tags, and places for their values

// Places in event.notes.
#define HT_X(tag, SYMBOL, name) HT_NOTE_##SYMBOL = (tag)-HT_FIRST_NOTE,
enum event_note { HT_NOTE_TABLE(HT_X) };
#undef HT_X

// Names of the notes; NULL where there is none.
extern const char *const event_note_names[HT_NOTES];

// Bits of the note `path`: those of glibc's dj/malloc branch, from 0 on.
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

// By bit: "thread_cache".
extern const char *const event_path_names[HT_PATHS];

// Indexed by kind; rows without a kind are all zero.
extern const struct event_info event_infos[HT_KIND_LIMIT];

// Indexed by kind, as event_infos.
extern const struct event_arguments event_arguments[HT_KIND_LIMIT];

// The name and sign of one of the numbers of a kind: HT_F_SIZE, HT_F_COUNT, HT_F_ALIGN or HT_F_VALUE.
struct event_argument event_argument(unsigned kind, unsigned field);

// The kind of that name, or -1.
int event_kind_by_name(const char *name);

// True for a wire number that a later version may have given to a kind: 0 to 3 are never kinds.
static inline bool event_is_unknown(unsigned kind)
{
    return kind > 3 && !event_infos[kind].name;
}

// Is it counted as an event? HALF and META records are not.
static inline bool event_counts(unsigned kind)
{
    unsigned class = event_infos[kind].class;
    return class != HT_CLASS_NONE && class != HT_CLASS_HALF && class != HT_CLASS_META;
}

// Does it define call sites, or what they lie in?
static inline bool event_defines_sites(unsigned kind)
{
    return kind == HT_FRAMES || kind == HT_FRAME || kind == HT_STACK || kind == HT_MODULE;
}

// Does it say how much of a block is used?
static inline bool event_has_residency(unsigned kind)
{
    return kind == HT_RESIDENCY || kind == HT_RESIDENCY_STEP || kind == HT_RESIDENCY_UNCHANGED;
}

// Is its text return addresses, of 8 bytes each?
static inline bool event_has_frames(unsigned kind)
{
    return kind == HT_FRAMES || kind == HT_STACK;
}

// The parent of a thread whose creation was not recorded, in a thread.start.
#define HT_NO_THREAD UINT32_MAX

// One call, decoded from a trace. Fields that the kind does not have are 0.
struct event {
    uint64_t stamp; // in units of 2^stamp_shift ticks; of a RESIZE, that of its acquire half
    uint64_t
        ptr; // address released; of a RESIZE filled in by the trace reader from its release half
    uint64_t size;   // bytes; of calloc and reallocarray, of one element
    uint64_t count;  // elements; 1 for calloc's one-word form; see event_argument
    uint64_t align;  // bytes
    uint64_t result; // address allocated, 0 when the call failed or freed only
    uint64_t value;
    uint64_t notes[HT_NOTES]; // 0: not recorded; below 2^59
    const char *text;         // not terminated; borrowed from the words decoded
    uint32_t text_bytes;
    uint8_t kind;  // enum event_kind
    uint8_t error; // errno, or posix_memalign's return; 0 when the call did not fail
};

// Bytes that the program asked for with this call: size, or the product for the kinds with a count
// (saturating).
static inline uint64_t event_requested(unsigned kind, uint64_t size, uint64_t count)
{
    uint64_t product;
    if (!(event_infos[kind].fields & HT_F_COUNT))
        return size;
    return __builtin_mul_overflow(size, count, &product) ? UINT64_MAX : product;
}

#endif
