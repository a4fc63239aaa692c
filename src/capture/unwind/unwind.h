// Walks a stack frame by frame with the unwind tables of the loaded objects (.eh_frame). Does not
// allocate and is async-signal-safe. Builds no table: a thread interprets the rule for a return
// address when it first needs the rule, and then caches it.
//
// The thread also caches the frames that it has walked, each with its most recent caller. A frame's
// registers determine where its caller's frame begins, and the return address on the stack shows
// whether the cached caller is still the caller. Therefore, if the stack is known, one comparison
// per frame replaces the walk. All frames of one stack, called the path, are cached together with
// their sites and with the words that prove that the frames are unchanged.
//
// Sources: DWARF 5, section 6.4; Linux Standard Base 5.0, sections 10.6 and 10.7; x86-64 psABI.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    UNWIND_RULES = 4096,  // in sets of four
    UNWIND_FRAMES = 1024, // in sets of two
    UNWIND_DEPTH = 128,
    UNWIND_SCRIPTS = 256,
    UNWIND_WINDOW_BYTES = 4096,
    UNWIND_WINDOW_FILLS = 32, // maximum number of window fills in one walk
};

// A copy of part of a stack. Used if another thread may unmap the stack, or if the end of the stack
// is unknown. The kernel makes the copy, so that an unmapped address causes an error instead of a
// fault.
struct unwind_window {
    uint64_t at, bytes;
    uint32_t pid; // pid of this process, for process_vm_readv
    uint32_t fills;
    uint64_t words[UNWIND_WINDOW_BYTES / 8];
};

// A rule packed into 32 bits. It contains the way to compute the CFA (the stack pointer before the
// call), an operand in words, and the slot: the distance in words from the caller's saved frame
// pointer up to the CFA, or 0 if the register is unchanged. The return address is right below the
// CFA.
enum {
    UNWIND_WAY_BITS = 3,
    UNWIND_SLOT_BITS = 6,
    UNWIND_SLOT_LOST = (1 << UNWIND_SLOT_BITS) - 1, // the frame pointer was saved elsewhere
    UNWIND_RULE_BITS = 32,
};

// An unpacked rule.
struct unwind_step {
    int32_t number;
    uint16_t slot; // in bytes
    uint8_t way;   // enum unwind_way
};

// A cached frame, identified by its call's return address and the stack pointer after the call. A
// set of two frames fills a cache line.
struct unwind_frame {
    uint64_t pc, sp;
    uint16_t caller; // guess: the most recent caller, as a byte offset in `frames`
    uint16_t place;  // byte offset in `path`; valid if that entry refers back to this frame
    int32_t number;  // number, slot and way are as in unwind_step
    uint16_t slot;
    uint8_t way;
    bool plain; // the caller's sp is sp + number
};

// A frame of the current walk.
struct unwind_walked {
    struct unwind_frame *frame; // another frame may have replaced it in the meantime
    uint64_t pc, sp;
    const uint64_t *fp; // where the frame pointer of the frame is stored
};

// A frame of the path. If the first n_words of `words` have not changed, neither this frame nor any
// outer frame has changed.
struct unwind_place {
    struct unwind_frame *frame; // NULL if unused
    uint64_t pc, sp, fp, site;
    uint32_t n_frames, n_words;
    bool needs_fp; // the frame is unchanged only if the frame pointer also equals `fp`
};

// A word of the stack, as it was when cached.
struct unwind_word {
    const uint64_t *at;
    uint64_t word;
};

// A thread's cache between walks (90 KiB).
struct unwind_memory {
    _Alignas(64) uint64_t rules[UNWIND_RULES]; // see unwind.c
    // The last element is used as the caller of frames for which there is no guess.
    _Alignas(64) struct unwind_frame frames[UNWIND_FRAMES + 1];
    uint32_t age, generation; // values of unwind_age and unwind_generation
    // Number of frames created. New frames alternate between the two entries of a set.
    uint32_t made;
    uint32_t path_n;
    bool far;        // many frames of the last walk were not on the path
    bool found_gone; // a walk found code at the address of an unloaded object
    // path[1] is the outermost frame; inner frames follow
    struct unwind_place path[UNWIND_DEPTH + 1];
    // Words in the order of the path. words[0] is a sentinel.
    struct unwind_word words[1 + 2 * UNWIND_DEPTH];
    struct unwind_walked walked[UNWIND_DEPTH];
    struct unwind_window window; // for stacks of coroutines and signal handlers
    // `sps`: stack pointers of the frames that unwind_walk found with the cache. `codes`: space for
    // the caller of unwind_walk.
    uint64_t sps[UNWIND_DEPTH], codes[UNWIND_DEPTH];
    // Cache of the addresses of script functions. The key is the frame's unwind_python_key.
    struct {
        uint64_t key, address;
    } scripts[UNWIND_SCRIPTS];
    char text[1024];
};

// Registers of a frame.
struct unwind_registers {
    uint64_t pc, sp, fp;
};

struct unwind_cursor {
    struct unwind_registers from;
    uintptr_t low, high;          // bounds of the stack: only [low, high) is read
    struct unwind_memory *memory; // NULL if nothing is cached
    // If NULL, [low, high) is readable. Otherwise low and high are ignored, and only rules are
    // cached.
    struct unwind_window *window;
};

// A stack, from the innermost frame outwards. Each frame has a return address, and the site of the
// stack from that frame outwards (codec_site). If a signal interrupted the code, the address is the
// interrupted instruction's address plus 1, so that the byte before the address always belongs to
// the call or instruction.
struct unwind_stack {
    uint32_t n, generation;
    uint64_t codes[UNWIND_DEPTH], sites[UNWIND_DEPTH];
};

// Initializes a zeroed cache.
void unwind_memory_init(struct unwind_memory *m);

// Call when the thread runs on another stack, so that addresses cached for the old stack are not
// read.
void unwind_drop_frames(struct unwind_memory *m);

// Walks outwards from the cursor's frame. Stores at least 1 and at most `max` frames. Requires max
// <= UNWIND_DEPTH.
void unwind_walk(struct unwind_cursor *c, uint32_t max, struct unwind_stack *to);

// Returns the site of the stack that unwind_walk would return. The cursor must have a cache
// (`memory`) and no window.
uint64_t unwind_walk_site(struct unwind_cursor *c, uint32_t max)
    __attribute__((visibility("hidden")));

// Reads a word of the copied stack, refilling the window if it does not contain the word.
bool unwind_read_copy(struct unwind_window *w, uint64_t at, uint64_t *to)
    __attribute__((visibility("hidden")));

// Reads a word of the stack. Returns false if the cursor must not read it.
static inline bool unwind_read_word(const struct unwind_cursor *c, uint64_t at, uint64_t *to)
{
    if (at % 8)
        return false;
    if (c->window)
        return unwind_read_copy(c->window, at, to);
    if (at < c->low || at > c->high - 8)
        return false;
    *to = *(const uint64_t *)at;
    return true;
}

// Incremented when objects are unloaded, by the dlclose wrapper and by unwind_check_unloaded. Older
// cached rules may describe code of an unloaded object.
extern _Atomic uint32_t unwind_age __attribute__((visibility("hidden")));

// The site used as the caller of the outermost frame (CODEC_GENERATIONS). After a change, increment
// unwind_age.
extern _Atomic uint32_t unwind_generation __attribute__((visibility("hidden")));

// Range of addresses that contains all unloaded objects whose sites are known.
extern _Atomic uint64_t unwind_gone_start __attribute__((visibility("hidden")));
extern _Atomic uint64_t unwind_gone_bytes __attribute__((visibility("hidden")));

// Returns true if an unloaded object may have contained the address.
static inline bool unwind_is_gone(uint64_t pc)
{
    return pc - atomic_load_explicit(&unwind_gone_start, memory_order_acquire) <
           atomic_load_explicit(&unwind_gone_bytes, memory_order_acquire);
}

// Returns false if code may have been replaced before or during the last walk with this cache. The
// walk may then have found a site of the replaced code.
static inline bool unwind_is_current(const struct unwind_memory *m)
{
    return !m->found_gone && m->age == atomic_load_explicit(&unwind_age, memory_order_acquire);
}

// Detects objects that were unloaded without a call to the wrapped dlclose. libc unloads its own
// objects in this way. Acquires the loader's lock, so call it rarely. Returns true if objects were
// loaded since the last call.
bool unwind_check_unloaded(void);

static inline uint64_t unwind_read(uint64_t at)
{
    return *(const uint64_t *)at;
}

// Method of finding a frame's caller. unwind_tables.c derives a rule from an object's tables, and
// unwind.c applies it.
enum unwind_way {
    WAY_UNKNOWN, // there is no table: follow the frame pointer if it looks valid
    WAY_SP,      // CFA = sp + number
    WAY_FP,      // CFA = fp + number
    // The function realigned its stack. The CFA is stored at fp + number, and the caller's fp at
    // fp.
    WAY_ALIGNED,
    WAY_SIGNAL,  // the registers are in the kernel's signal frame at sp
    WAY_END,     // outermost frame
    WAY_BROKEN,  // the table has unsupported contents
    WAY_NOTHING, // not code: the "return address" of the outermost function
};

enum {
    NUMBER_SHIFT = UNWIND_WAY_BITS + UNWIND_SLOT_BITS,
    NUMBER_BITS = UNWIND_RULE_BITS - NUMBER_SHIFT,
    WORD = 8,
    LOWEST_CODE = 4096, // code is never below this address
};

static inline uint32_t unwind_make_rule(enum unwind_way way, uint32_t slot, int64_t number)
{
    uint32_t words = (uint32_t)(number / WORD) & ((1u << NUMBER_BITS) - 1);
    return (uint32_t)way | slot << UNWIND_WAY_BITS | words << NUMBER_SHIFT;
}

// Returns the rule for code without tables. Assumes that fp points to the caller's fp and that the
// return address is above it.
static inline uint32_t unwind_unknown_rule(void)
{
    return unwind_make_rule(WAY_UNKNOWN, 2, 2 * WORD);
}

static inline struct unwind_step unwind_unpack_rule(uint32_t rule)
{
    const int above = 32 - UNWIND_RULE_BITS;
    return (struct unwind_step){.way = rule & ((1 << UNWIND_WAY_BITS) - 1),
                                .slot = (rule >> UNWIND_WAY_BITS & UNWIND_SLOT_LOST) * WORD,
                                .number =
                                    ((int32_t)(rule << above) >> (above + NUMBER_SHIFT)) * WORD};
}

// Returns the rule for code at `pc`, from the tables of its object.
uint32_t unwind_find_rule(uint64_t pc) __attribute__((visibility("hidden")));
