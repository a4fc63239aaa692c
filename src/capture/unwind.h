// Walks a stack by the unwind tables of the loaded objects (.eh_frame), frame by frame. Malloc-free and async-signal-safe;
// no table is built: the rule for a return address is interpreted when it is first met, and kept by the thread.
//
// Sources: DWARF 5, section 6.4; Linux Standard Base 5.0, sections 10.6 and 10.7; the psABI of x86-64.
#ifndef HEAPTAPE_CAPTURE_UNWIND_H
#define HEAPTAPE_CAPTURE_UNWIND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    UNWIND_RULES = 4096,
    UNWIND_DEPTH = 128,
    UNWIND_KEPT = 2 * UNWIND_DEPTH,
};

// How to find the caller of the code at `pc`: see unwind.c. `age` is that of the loaded objects when it was read.
struct unwind_rule {
    uint64_t pc;
    uint32_t rule, age;
};

// A frame: where it will go on, its registers then, and where in memory its fp was read: 0 when it is the callee's.
struct unwind_frame {
    uint64_t pc, sp, fp, fp_at;
};

// What a thread keeps from walk to walk, 76 KiB: the rules of the code on its stack, and the last walk's frames, the
// outermost one at the end.
struct unwind_memory {
    struct unwind_rule rules[UNWIND_RULES];
    struct unwind_frame kept[UNWIND_KEPT], fresh[UNWIND_DEPTH];
    uint32_t first, age; // of the kept frames; UNWIND_KEPT: there are none
    bool whole;          // they go as far as the stack does
};

struct unwind_cursor {
    struct unwind_frame frame;
    uintptr_t low, high;          // all that is read of the stack lies in [low, high)
    struct unwind_memory *memory; // NULL: nothing is kept
    bool interrupted;             // frame.pc is where a signal came, not behind a call
};

// Writes the return addresses from the cursor's frame outwards to codes[max], max ≤ UNWIND_DEPTH, and returns their number,
// at least 1. Frames that are unchanged since the last walk are only compared.
uint32_t unwind_walk(struct unwind_cursor *c, uint64_t *codes, uint32_t max);

// Grows when objects are unloaded: rules that are older may be of another object's code. Written by capture's dlclose and by
// unwind_watch.
extern _Atomic uint32_t unwind_age __attribute__((visibility("hidden")));

// Looks whether objects have been unloaded without dlclose being called by that name, as libc does for its own. Takes the
// loader's lock: now and then is enough.
void unwind_watch(void);

#endif
