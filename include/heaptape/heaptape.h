// Controls recording from inside the traced program. No library has to be linked: unless
// libheaptape.so is preloaded, the calls do nothing and return 0. `heaptape ctl` offers the same
// operations from outside.
//
// Each call applies to all threads of the calling process, and to processes that it forks later.
// After exec, recording in a process returns to its initial state.
//
// heaptape_mark(text), heaptape_pause(), heaptape_resume(), heaptape_unpause(), heaptape_start(),
// heaptape_stop(), heaptape_sync(), heaptape_reset(), heaptape_status(); heaptape_pool_alloc(pool,
// block, size), heaptape_pool_free(pool, block), heaptape_pool_reset(pool).
//
// Functions that return an int return 0 or an errno value: ENOENT if the process is not recorded,
// ENODATA if recording has turned itself off, EPIPE if the recorder has ended.
#ifndef HEAPTAPE_HEAPTAPE_H
#define HEAPTAPE_HEAPTAPE_H

// The functions are not macros, so that classes and structs may have members with these names.
#if !defined(HEAPTAPE_LIBRARY) && !defined(__PIC__) && !defined(__PIE__)
#include <dlfcn.h>
#include <stddef.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(HEAPTAPE_LIBRARY)
// libheaptape.so defines the functions.
void heaptape_mark(const char *text);
#define HEAPTAPE_CONTROL(result, name, none)          result heaptape_##name(void);
#define HEAPTAPE_POOL(name, parameters, types, given) void heaptape_pool_##name parameters;
#elif defined(__PIC__) || defined(__PIE__)
// The inline functions have different symbols, because the library defines heaptape_mark etc.
#define HEAPTAPE_CONTROL(result, name, none)                                                       \
    result heaptape_library_##name(void) __asm__("heaptape_" #name) __attribute__((weak));         \
    static inline result heaptape_##name(void) __asm__("heaptape_inline_" #name);                  \
    static inline result heaptape_##name(void)                                                     \
    {                                                                                              \
        return heaptape_library_##name ? heaptape_library_##name() : none;                         \
    }

#define HEAPTAPE_POOL(name, parameters, types, given)                                              \
    void heaptape_library_pool_##name parameters __asm__("heaptape_pool_" #name)                   \
        __attribute__((weak));                                                                     \
    static inline void heaptape_pool_##name parameters __asm__("heaptape_inline_pool_" #name);     \
    static inline void heaptape_pool_##name parameters                                             \
    {                                                                                              \
        if (heaptape_library_pool_##name)                                                          \
            heaptape_library_pool_##name given;                                                    \
    }

void heaptape_library_mark(const char *text) __asm__("heaptape_mark") __attribute__((weak));
static inline void heaptape_mark(const char *text) __asm__("heaptape_inline_mark");

// Records a mark with this text (at most 1024 bytes) in the calling thread. NULL means an empty
// string.
static inline void heaptape_mark(const char *text)
{
    if (heaptape_library_mark)
        heaptape_library_mark(text);
}
#else
// In code that is not position-independent, the linker resolves an undefined weak symbol to NULL,
// even if the library is preloaded. Therefore the functions are looked up at run time.
#define HEAPTAPE_CONTROL(result, name, none)                                                       \
    static inline result heaptape_##name(void)                                                     \
    {                                                                                              \
        result (*found)(void);                                                                     \
        void *symbol = dlsym(NULL, "heaptape_" #name);                                             \
        __builtin_memcpy(&found, &symbol, sizeof found);                                           \
        return found ? found() : none;                                                             \
    }

// For frequent calls, the function is looked up only once.
#define HEAPTAPE_FOUND(types, name)                                                                \
    static void(*found) types;                                                                     \
    static int looked;                                                                             \
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {                                             \
        void *symbol = dlsym(NULL, name);                                                          \
        __builtin_memcpy(&found, &symbol, sizeof found);                                           \
        __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);                                            \
    }

#define HEAPTAPE_POOL(name, parameters, types, given)                                              \
    static inline void heaptape_pool_##name parameters                                             \
    {                                                                                              \
        HEAPTAPE_FOUND(types, "heaptape_pool_" #name)                                              \
        if (found)                                                                                 \
            found given;                                                                           \
    }

static inline void heaptape_mark(const char *text)
{
    HEAPTAPE_FOUND((const char *), "heaptape_mark")
    if (found)
        found(text);
}
#endif

// A pool (arena, region, zone) subdivides memory that it gets from malloc or mmap, and often frees
// all its blocks at once. These calls record a pool's blocks, so that `heaptape stat --by pool` can
// show the memory per line of code. `pool` is any address that identifies the pool. The pool's own
// memory is recorded as usual; a replay allocates that memory, not the blocks.

// Call after the pool has allocated `block`, of `size` bytes. NULL (a failed allocation) is
// recorded but does not count as a block.
HEAPTAPE_POOL(alloc, (const void *pool, const void *block, __SIZE_TYPE__ size),
              (const void *, const void *, __SIZE_TYPE__), (pool, block, size))

// Call when the pool frees `block`, before the pool can reuse the block.
HEAPTAPE_POOL(free, (const void *pool, const void *block), (const void *, const void *),
              (pool, block))

// Call when the pool frees all its blocks, or is destroyed.
HEAPTAPE_POOL(reset, (const void *pool), (const void *), (pool))
#undef HEAPTAPE_POOL
#undef HEAPTAPE_FOUND

// Pauses recording in all threads. The boundaries are exact: a call to the malloc API or a mark
// that begins after heaptape_pause has returned is not recorded; a call or mark that begins after
// heaptape_resume has returned is recorded. A call in progress at either time may or may not be
// recorded, but a realloc is recorded completely or not at all. Thread starts and exits are always
// recorded. If a block is allocated during a pause and freed later, the trace contains the free but
// not the allocation.
HEAPTAPE_CONTROL(int, pause, 0)

// Resumes recording after heaptape_pause. Returns EPERM after heaptape_stop.
HEAPTAPE_CONTROL(int, resume, 0)

// Alias for heaptape_resume, named after glibc's mtrace_unpause.
HEAPTAPE_CONTROL(int, unpause, 0)

// Starts recording, even after heaptape_stop or in a program run by `heaptape record
// --start=paused`.
HEAPTAPE_CONTROL(int, start, 0)

// Pauses recording, then waits like heaptape_sync.
HEAPTAPE_CONTROL(int, stop, 0)

// Waits until the trace file contains all events that the threads of the process have recorded so
// far. If there is no recorder, returns immediately, because the events are already in the spool
// file.
HEAPTAPE_CONTROL(int, sync, 0)

// Empties the trace file: discards everything recorded so far, for all processes of the recording.
// Returns ENOTSUP if the trace is not a regular file or there is no recorder.
HEAPTAPE_CONTROL(int, reset, 0)

enum heaptape_state {
    HEAPTAPE_NONE = 0,
    HEAPTAPE_RECORDING = 1,
    HEAPTAPE_PAUSED = 2,
    HEAPTAPE_STOPPED = 3
};

// Returns the state of recording in this process, or HEAPTAPE_NONE if the process is not recorded.
HEAPTAPE_CONTROL(enum heaptape_state, status, HEAPTAPE_NONE)
#undef HEAPTAPE_CONTROL

#ifdef __cplusplus
}
#endif

#endif
