// Walks a stack by the unwind tables of the loaded objects (.eh_frame), frame by frame. Malloc-free and async-signal-safe;
// no table is built: the rule for a return address is interpreted when it is first met, and kept by the thread.
//
// The thread also keeps the frames that it has met, each with its caller's. A frame's caller is where it was, and has the
// callers that it had, if the return address in memory is still the same. So a stack that is met again is compared,
// one word a frame, and not walked. Each frame has the hash of its stack: of the return addresses from it outwards.
//
// Sources: DWARF 5, section 6.4; Linux Standard Base 5.0, sections 10.6 and 10.7; the psABI of x86-64.
#ifndef HEAPTAPE_CAPTURE_UNWIND_H
#define HEAPTAPE_CAPTURE_UNWIND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    UNWIND_RULES = 4096,
    UNWIND_FRAMES = 1024, // in sets of two
    UNWIND_DEPTH = 128,
    UNWIND_ID_BITS = 59,
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

// A rule in 29 bits: the way to the CFA (the stack pointer before the call), the slot of the caller's frame pointer in words
// below the CFA (0: it is unchanged), and a number in words that the way needs. The return address lies right below the CFA.
// The bit above is of a frame.
enum {
    UNWIND_WAY_BITS = 3,
    UNWIND_SLOT_BITS = 6,
    UNWIND_SLOT_LOST = (1 << UNWIND_SLOT_BITS) - 1, // the frame pointer is somewhere else
    UNWIND_RULE_BITS = 29,
    UNWIND_NEEDS_FP = 1 << 29, // which callers a frame has depends on its fp
};

// In `parent_tag`, not in `tag`: the fp that the caller needs is read from the rule's slot.
#define UNWIND_COMPARES_FP 0x80000000u

// A frame that was met: the address behind its call, and its registers after that call.
struct unwind_frame {
    uint64_t pc, sp;
    uint64_t fp; // constant while UNWIND_NEEDS_FP is set
    struct unwind_frame *parent;
    uint64_t hash;            // of the stack from here outwards
    uint32_t tag, parent_tag; // a frame is the parent that it was as long as its tag is parent_tag; 0: not linked
    uint32_t rule;
    uint16_t depth; // frames of the stack from here outwards
    uint16_t walk;  // lower bits of the number of the last walk that met it
};

// What a thread keeps from walk to walk, 92 KiB.
struct unwind_memory {
    uint64_t rules[UNWIND_RULES]; // see unwind.c
    struct unwind_frame frames[UNWIND_FRAMES];
    struct unwind_frame root; // the parent of outermost frames
    uint32_t tags, age;
    uint32_t turns; // of calls to other callers than the kept one
    uint16_t walk;
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
    struct unwind_window *window; // NULL: [low, high) can be read; else it is not looked at, and rules alone are kept
};

// A stack, from the innermost frame outwards: return addresses, and for each the hash of the stack from there outwards. For
// code that a signal has interrupted the address is 1 more than the instruction's, so that in each case the byte before it
// belongs to the call.
struct unwind_stack {
    uint32_t n;
    uint64_t codes[UNWIND_DEPTH], hashes[UNWIND_DEPTH];
};

// Makes it ready, when all of it is zero.
void unwind_memory_init(struct unwind_memory *m);

// For another stack: what is kept of the old one must not be read there.
void unwind_forget_frames(struct unwind_memory *m);

// Walks from the cursor's frame outwards, at most max ≤ UNWIND_DEPTH frames, at least 1.
void unwind_walk(struct unwind_cursor *c, uint32_t max, struct unwind_stack *to);

// A word of the stack, where the cursor may read it.
bool unwind_read_word(const struct unwind_cursor *c, uint64_t at, uint64_t *to) __attribute__((visibility("hidden")));

// Grows when objects are unloaded: rules that are older may be of another object's code. Written by capture's dlclose and by
// unwind_watch.
extern _Atomic uint32_t unwind_age __attribute__((visibility("hidden")));

// Looks whether objects have been unloaded without dlclose being called by that name, as libc does for its own. Takes the
// loader's lock: now and then is enough.
void unwind_watch(void);

// The hash of a stack of one more frame. 0 is that of none.
static inline uint64_t unwind_hash(uint64_t outer, uint64_t pc)
{
    return outer * 0xd6e8feb86659fd93u + pc;
}

// A stack's id: of its hash, so that each bit depends on all. Never 0.
static inline uint64_t unwind_id(uint64_t hash)
{
    return ((hash ^ hash >> 32) * 0x9e3779b97f4a7c15u >> (64 - UNWIND_ID_BITS)) | 1;
}

static inline size_t unwind_place(uint64_t pc, uint64_t sp)
{
    _Static_assert(UNWIND_FRAMES == 1 << 10, "of 64 bits 9 are left, and one chooses in the set");
    return ((pc + sp) * 0x9e3779b97f4a7c15u >> 55) * 2;
}

static inline uint64_t unwind_read(uint64_t at)
{
    return *(const uint64_t *)at;
}

static inline uint32_t unwind_slot(const struct unwind_frame *f)
{
    return f->rule >> UNWIND_WAY_BITS & UNWIND_SLOT_LOST;
}

// Is the frame's caller what it was?
static inline __attribute__((always_inline)) bool unwind_is_linked(const struct unwind_frame *f)
{
    const struct unwind_frame *p = f->parent;
    uint32_t differs = f->parent_tag ^ p->tag;
    if (differs && (differs != UNWIND_COMPARES_FP || unwind_read(p->sp - 8 * (uint64_t)unwind_slot(f)) != p->fp))
        return false;
    return unwind_read(p->sp - 8) == p->pc;
}

// The frame kept of that place, or NULL.
static inline const struct unwind_frame *unwind_find(const struct unwind_memory *m, uint64_t pc, uint64_t sp)
{
    const struct unwind_frame *f = &m->frames[unwind_place(pc, sp)];
    if (__builtin_expect(f->pc == pc && f->sp == sp, 1))
        return f;
    f++;
    return f->pc == pc && f->sp == sp ? f : NULL;
}

// The frame that `f`, which is linked to another, was called from this time; NULL if it must be walked to.
const struct unwind_frame *unwind_other_caller(struct unwind_memory *m, const struct unwind_frame *f)
    __attribute__((visibility("hidden")));

// The hash of the stack if the thread has met all its frames and it has at most `max` ≤ UNWIND_DEPTH of them; else 0.
static inline __attribute__((always_inline)) uint64_t unwind_known(struct unwind_memory *m,
                                                                   const struct unwind_registers *from, uint32_t max)
{
    const struct unwind_frame *f = unwind_find(m, from->pc, from->sp), *path[UNWIND_DEPTH], **at = path;
    if (!f || ((f->rule & UNWIND_NEEDS_FP) && f->fp != from->fp) ||
        m->age != atomic_load_explicit(&unwind_age, memory_order_relaxed))
        return 0;
    const struct unwind_frame **turn = path,
                              *e = f; // path, up to the last frame that was not called from where it was before
    // As long as the links hold, so do the hash and the depth.
    while (f->depth <= max - (uint32_t)(turn - path)) {
        const struct unwind_frame **end = turn + f->depth;
        for (; at != end && unwind_is_linked(e); e = e->parent)
            *at++ = e;
        if (at == end) {
            uint64_t hash = f->hash;
            while (turn != path)
                hash = unwind_hash(hash, (*--turn)->pc);
            return hash;
        }
        *at++ = e;
        f = e = unwind_other_caller(m, e);
        if (!e)
            return 0;
        turn = at;
    }
    return 0;
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

static inline enum unwind_way unwind_way_of(uint32_t rule)
{
    return (enum unwind_way)(rule & ((1 << UNWIND_WAY_BITS) - 1));
}

static inline int64_t unwind_number_of(uint32_t rule)
{
    const int above = 32 - UNWIND_RULE_BITS;
    return (int64_t)((int32_t)(rule << above) >> (above + NUMBER_SHIFT)) * WORD;
}

// The rule for code at `pc`, from the tables of its object.
uint32_t unwind_find_rule(uint64_t pc) __attribute__((visibility("hidden")));

#endif
