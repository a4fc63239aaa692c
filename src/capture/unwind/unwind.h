// Walks a stack by the unwind tables of the loaded objects (.eh_frame), frame by frame. Malloc-free and async-signal-safe;
// no table is built: the rule for a return address is interpreted when it is first met, and kept by the thread.
//
// The thread also keeps the frames that it has met, each with the caller that it had last. Where a frame's caller begins
// follows from its registers; that it is the same one is seen from the return address on the stack. So a stack that is met
// again is compared, one word a frame, and not walked. Of one stack, the path, it keeps all frames: the words that prove them, and
// their sites.
//
// Sources: DWARF 5, section 6.4; Linux Standard Base 5.0, sections 10.6 and 10.7; the psABI of x86-64.
#ifndef HEAPTAPE_CAPTURE_UNWIND_H
#define HEAPTAPE_CAPTURE_UNWIND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    UNWIND_RULES = 4096,  // in sets of four
    UNWIND_FRAMES = 1024, // in sets of two
    UNWIND_DEPTH = 128,
    UNWIND_WINDOW_BYTES = 4096,
    UNWIND_WINDOW_FILLS = 32, // of a walk: stacks are followed for at most so many windows
};

// A copy of a part of a stack that another thread may unmap, or whose end is not known: the kernel makes it, so that an
// address where nothing lies is an error and no fault.
struct unwind_window {
    uint64_t at, bytes;
    uint32_t pid; // whose memory it is: the process's own
    uint32_t fills;
    uint64_t words[UNWIND_WINDOW_BYTES / 8];
};

// A rule in 32 bits: the way to the CFA (the stack pointer before the call), the slot of the caller's frame pointer in words
// below the CFA (0: it is unchanged), and a number in words that the way needs. The return address lies right below the CFA.
enum {
    UNWIND_WAY_BITS = 3,
    UNWIND_SLOT_BITS = 6,
    UNWIND_SLOT_LOST = (1 << UNWIND_SLOT_BITS) - 1, // the frame pointer is somewhere else
    UNWIND_RULE_BITS = 32,
};

// A rule unpacked.
struct unwind_step {
    int32_t number;
    uint16_t slot; // in bytes
    uint8_t way;   // enum unwind_way
};

// A frame that was met: the address behind its call, and the stack pointer after that call. Two of them, a set, are a line of
// the cache.
struct unwind_frame {
    uint64_t pc, sp;
    uint16_t caller; // the last one, a guess: where it is in `frames`, in bytes
    uint16_t place;  // in the path, if the place says so too: where it is in `path`, in bytes
    int32_t number;  // these three: as in unwind_step
    uint16_t slot;
    uint8_t way;
    bool plain; // the caller's sp is sp + number
};

// A frame of a walk.
struct unwind_walked {
    struct unwind_frame *frame; // another one may have taken its place since
    uint64_t pc, sp;
    const uint64_t *fp; // where its frame pointer lies
};

// A frame of the path, which is kept of a stack: from here outwards all frames are the same again if `n_words` words are.
struct unwind_place {
    struct unwind_frame *frame; // NULL: of none
    uint64_t pc, sp, fp, site;
    uint32_t n_frames, n_words;
    bool needs_fp; // and if the frame pointer is `fp`
};

// A word of the stack, as it was.
struct unwind_word {
    const uint64_t *at;
    uint64_t word;
};

// What a thread keeps from walk to walk, 83 KiB.
struct unwind_memory {
    _Alignas(64) uint64_t rules[UNWIND_RULES]; // see unwind.c
    // The last one is the caller of those whose caller cannot be guessed.
    _Alignas(64) struct unwind_frame frames[UNWIND_FRAMES + 1];
    uint32_t age;
    uint32_t made; // frames so far: they take turns in the places of a set
    uint32_t path_n;
    bool far;                                   // the last walk went outside the path for long
    struct unwind_place path[UNWIND_DEPTH + 1]; // from the outermost frame, at 1, inwards
    struct unwind_word
        words[1 + 2 * UNWIND_DEPTH]; // from the outermost frame inwards; the first is none
    struct unwind_walked walked[UNWIND_DEPTH];
    struct unwind_window window; // for the stack of a coroutine or a signal
};

// A frame as its caller will find its registers.
struct unwind_registers {
    uint64_t pc, sp, fp;
};

struct unwind_cursor {
    struct unwind_registers from;
    uintptr_t low, high;          // all that is read of the stack lies in [low, high)
    struct unwind_memory *memory; // NULL: nothing is kept
    struct unwind_window *
        window; // NULL: [low, high) can be read; else it is not looked at, and rules alone are kept
};

// A stack, from the innermost frame outwards: return addresses, and for each the site of the stack from there outwards (codec_site). For
// code that a signal has interrupted the address is 1 more than the instruction's, so that in each case the byte before it
// belongs to the call.
struct unwind_stack {
    uint32_t n;
    uint64_t codes[UNWIND_DEPTH], sites[UNWIND_DEPTH];
};

// Makes it ready, when all of it is zero.
void unwind_memory_init(struct unwind_memory *m);

// For another stack: what is kept of the old one must not be read there.
void unwind_forget_frames(struct unwind_memory *m);

// Walks from the cursor's frame outwards, at most max ≤ UNWIND_DEPTH frames, at least 1.
void unwind_walk(struct unwind_cursor *c, uint32_t max, struct unwind_stack *to);

// The site of the stack that unwind_walk finds; with memory and without window.
uint64_t unwind_walk_site(struct unwind_cursor *c, uint32_t max)
    __attribute__((visibility("hidden")));

// A word of the copy, which is made anew where it does not hold it.
bool unwind_read_copy(struct unwind_window *w, uint64_t at, uint64_t *to)
    __attribute__((visibility("hidden")));

// A word of the stack, where the cursor may read it.
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

// Grows when objects are unloaded: rules that are older may be of another object's code. Written by capture's dlclose and by
// unwind_watch.
extern _Atomic uint32_t unwind_age __attribute__((visibility("hidden")));

// Looks whether objects have been unloaded without dlclose being called by that name, as libc does for its own. Takes the
// loader's lock: now and then is enough.
void unwind_watch(void);

static inline uint64_t unwind_read(uint64_t at)
{
    return *(const uint64_t *)at;
}

// How a frame's caller is found: unwind_tables.c makes a rule of an object's tables, and unwind.c follows it.
enum unwind_way {
    WAY_UNKNOWN, // no table: along the frame pointer, if it looks like one
    WAY_SP,      // the CFA is sp + number
    WAY_FP,      // fp + number
    WAY_ALIGNED, // in memory at fp + number: the function has realigned its stack, and *fp is the caller's fp
    WAY_SIGNAL,  // the registers are in the kernel's frame at sp
    WAY_END,     // the outermost frame
    WAY_BROKEN,  // a table that is not understood
    WAY_NOTHING, // no code: what is called outermost "returns" there
};

enum {
    NUMBER_SHIFT = UNWIND_WAY_BITS + UNWIND_SLOT_BITS,
    NUMBER_BITS = UNWIND_RULE_BITS - NUMBER_SHIFT,
    WORD = 8,
    LOWEST_CODE = 4096, // addresses below it are none
};

static inline uint32_t unwind_make_rule(enum unwind_way way, uint32_t slot, int64_t number)
{
    uint32_t words = (uint32_t)(number / WORD) & ((1u << NUMBER_BITS) - 1);
    return (uint32_t)way | slot << UNWIND_WAY_BITS | words << NUMBER_SHIFT;
}

// [fp] is the caller's fp, and above it is the return address.
static inline uint32_t unwind_unknown_rule(void)
{
    return unwind_make_rule(WAY_UNKNOWN, 2, 2 * WORD);
}

static inline struct unwind_step unwind_step_of(uint32_t rule)
{
    const int above = 32 - UNWIND_RULE_BITS;
    return (struct unwind_step){.way = rule & ((1 << UNWIND_WAY_BITS) - 1),
                                .slot = (rule >> UNWIND_WAY_BITS & UNWIND_SLOT_LOST) * WORD,
                                .number =
                                    ((int32_t)(rule << above) >> (above + NUMBER_SHIFT)) * WORD};
}

// The rule for code at `pc`, from the tables of its object.
uint32_t unwind_find_rule(uint64_t pc) __attribute__((visibility("hidden")));

#endif
