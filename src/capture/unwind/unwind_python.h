// Reads the calling thread's Python functions from the frames of the CPython interpreter. Does not
// allocate and is async-signal-safe.
//
// Reads only the state of the calling thread. The thread itself executes the frames, so the frames
// and their code objects exist until the allocation returns, even if the thread does not hold the
// GIL. Supports CPython 3.11 to 3.13, except builds without a GIL.
#pragma once

#include "capture/unwind/unwind.h"

struct unwind_python_layout;

// Layout of the loaded interpreter, or NULL if there is no interpreter of a known version.
extern const struct unwind_python_layout *_Atomic unwind_python
    __attribute__((visibility("hidden")));

static inline bool unwind_python_is_loaded(void)
{
    return atomic_load_explicit(&unwind_python, memory_order_acquire);
}

// Searches the loaded objects for an interpreter. Acquires the loader's lock, so call it rarely.
void unwind_python_find(void);

// Call before an object may be unloaded. If the result is true, call unwind_python_find afterwards.
static inline bool unwind_python_forget(void)
{
    return atomic_exchange(&unwind_python, NULL);
}

// Combines the site of the native stack with the Python functions that the thread executes. Returns
// `site` if the thread executes no Python function.
uint64_t unwind_python_site(uint64_t site, const struct unwind_cursor *c)
    __attribute__((visibility("hidden")));

// The Python frames of one call of the interpreter's evaluator.
struct unwind_python_group {
    uint64_t frame;  // innermost frame
    uint64_t end;    // the frame that follows the outermost frame of the group
    uint64_t anchor; // address in the native frame of the evaluator
    uint64_t cframe; // the evaluator's _PyCFrame, before Python 3.13
};

// unwind_python_first stores the innermost group, and unwind_python_outer replaces *g with the next
// outer group. Both functions return false if there is no such group.
bool unwind_python_first(struct unwind_python_group *g, const struct unwind_cursor *c);
bool unwind_python_outer(struct unwind_python_group *g, const struct unwind_cursor *c);

// Returns a number that identifies the function and line of the frame while its code object exists.
// Another code object at the same address usually has different attributes and a different number.
uint64_t unwind_python_key(uint64_t frame);

// Returns the caller of a frame. The caller of the outermost frame of a group is the group's end.
uint64_t unwind_python_caller(uint64_t frame);

enum { UNWIND_PYTHON_TEXT_BYTES = 768 };

// Stores the name of the frame's function, a NUL and the path of its source file in `text`. The
// name and the path may be truncated. Sets *line to the executed line, or 0 if unknown. Returns the
// number of bytes, or 0 if the frame is invalid.
uint32_t unwind_python_describe(uint64_t frame, char text[UNWIND_PYTHON_TEXT_BYTES],
                                uint32_t *line);
