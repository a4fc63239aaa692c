// Control of the recording from inside the traced program. Nothing needs to be linked: without libheaptape.so preloaded,
// the calls do nothing and return 0. `heaptape ctl` offers the same operations from outside.
//
// Each call applies to all threads of the calling process, and to the processes that it forks afterwards. After exec, a
// process is recorded as the recording was started.
//
// heaptape_mark(text), heaptape_pause(), heaptape_resume(), heaptape_unpause(), heaptape_start(), heaptape_stop(),
// heaptape_sync(), heaptape_reset(), heaptape_status(); heaptape_pool_alloc(pool, block, size),
// heaptape_pool_free(pool, block), heaptape_pool_reset(pool).
//
// The functions that return an int return 0 or an errno value: ENOENT if the process is not recorded, ENODATA if recording
// has turned itself off, EPIPE if the recorder has ended.
#ifndef HEAPTAPE_HEAPTAPE_H
#define HEAPTAPE_HEAPTAPE_H

// No macro has the name of a function, so that classes and structs may have members of these names.
#if !defined(HEAPTAPE_LIBRARY) && !defined(__PIC__) && !defined(__PIE__)
#include <dlfcn.h>
#include <stddef.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(HEAPTAPE_LIBRARY)
// libheaptape.so defines the functions itself.
void heaptape_mark(const char *text);
#define HEAPTAPE_CONTROL(result, name, none)          result heaptape_##name(void);
#define HEAPTAPE_POOL(name, parameters, types, given) void heaptape_pool_##name parameters;
#elif defined(__PIC__) || defined(__PIE__)
// The inline functions have symbols of their own: heaptape_mark is the library's.
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

// Records a mark with this text (at most 1024 bytes of it) at this point of the calling thread. NULL means an empty text.
static inline void heaptape_mark(const char *text)
{
    if (heaptape_library_mark)
        heaptape_library_mark(text);
}
#else
// In code that is not position-independent the linker settles a weak symbol that nobody defines: it would be NULL in
// every run.
#define HEAPTAPE_CONTROL(result, name, none)                                                       \
    static inline result heaptape_##name(void)                                                     \
    {                                                                                              \
        result (*found)(void);                                                                     \
        void *symbol = dlsym(NULL, "heaptape_" #name);                                             \
        __builtin_memcpy(&found, &symbol, sizeof found);                                           \
        return found ? found() : none;                                                             \
    }

// The calls that are made often look once.
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

// A pool (arena, region, zone) hands out blocks of memory that it has from malloc or mmap, and often frees them all at once.
// These calls record its blocks, so that `heaptape stat --by pool` can say which line has how much of it. `pool` is any
// address that stands for the pool. The memory below is recorded as ever, and is what a replay asks for.

// The pool has handed out `block`, of `size` bytes. NULL, of an allocation that failed, is recorded but counts as no block.
HEAPTAPE_POOL(alloc, (const void *pool, const void *block, __SIZE_TYPE__ size),
              (const void *, const void *, __SIZE_TYPE__), (pool, block, size))

// The block goes back to the pool. To be called before the pool can hand it out again.
HEAPTAPE_POOL(free, (const void *pool, const void *block), (const void *, const void *),
              (pool, block))

// All blocks of the pool go back to it, or the pool ends.
HEAPTAPE_POOL(reset, (const void *pool), (const void *), (pool))
#undef HEAPTAPE_POOL
#undef HEAPTAPE_FOUND

// Pauses recording in all threads. Pausing is exact: no call of the malloc API and no mark that begins after
// heaptape_pause has returned is recorded, and every one that begins after heaptape_resume has returned is recorded. A call
// in progress meanwhile may be recorded or not; a realloc is recorded completely or not at all. Thread starts and exits are
// always recorded. The trace does not know blocks that were allocated during a pause when they are freed after it.
HEAPTAPE_CONTROL(int, pause, 0)

// Resumes recording after heaptape_pause. EPERM after heaptape_stop.
HEAPTAPE_CONTROL(int, resume, 0)

// The same; the name follows glibc's mtrace_unpause.
HEAPTAPE_CONTROL(int, unpause, 0)

// Starts recording, also after heaptape_stop and in a program run by `heaptape record --start=paused`.
HEAPTAPE_CONTROL(int, start, 0)

// Pauses and then syncs.
HEAPTAPE_CONTROL(int, stop, 0)

// Returns when all events so far, of all threads of the process, are in the trace file. Without a recorder it returns at
// once, since the spool is the file.
HEAPTAPE_CONTROL(int, sync, 0)

// Empties the trace file: discards what was recorded so far, of all processes of the recording. ENOTSUP if the trace is
// not a regular file or there is no recorder.
HEAPTAPE_CONTROL(int, reset, 0)

enum heaptape_state {
    HEAPTAPE_NONE = 0,
    HEAPTAPE_RECORDING = 1,
    HEAPTAPE_PAUSED = 2,
    HEAPTAPE_STOPPED = 3
};

// The state of this process's recording; HEAPTAPE_NONE if it is not recorded.
HEAPTAPE_CONTROL(enum heaptape_state, status, HEAPTAPE_NONE)
#undef HEAPTAPE_CONTROL

#ifdef __cplusplus
}
#endif

#endif
