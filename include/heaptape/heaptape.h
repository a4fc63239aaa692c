// Control of the recording from inside the traced program. Nothing needs to be linked: without libheaptape.so preloaded,
// the calls do nothing and return 0. `heaptape ctl` offers the same operations from outside.
//
// Each call applies to all threads of the calling process, and to the processes that it forks afterwards. After exec, a
// process is recorded as the recording was started.
//
// heaptape_mark(text), heaptape_pause(), heaptape_resume(), heaptape_unpause(), heaptape_start(), heaptape_stop(),
// heaptape_sync(), heaptape_reset(), heaptape_status().
//
// The functions return 0 or an errno value: ENOENT if the process is not recorded, ENODATA if recording has turned itself
// off, EPIPE if the recorder has ended.
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
#define HEAPTAPE_CONTROL(result, name, none) result heaptape_##name(void);
#elif defined(__PIC__) || defined(__PIE__)
// The inline functions have symbols of their own: heaptape_mark is the library's.
#define HEAPTAPE_CONTROL(result, name, none)                                                                           \
    result heaptape_library_##name(void) __asm__("heaptape_" #name) __attribute__((weak));                             \
    static inline result heaptape_##name(void) __asm__("heaptape_inline_" #name);                                      \
    static inline result heaptape_##name(void)                                                                         \
    {                                                                                                                  \
        return heaptape_library_##name ? heaptape_library_##name() : none;                                             \
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
#define HEAPTAPE_CONTROL(result, name, none)                                                                           \
    static inline result heaptape_##name(void)                                                                         \
    {                                                                                                                  \
        result (*found)(void);                                                                                         \
        void *symbol = dlsym(NULL, "heaptape_" #name);                                                                 \
        __builtin_memcpy(&found, &symbol, sizeof found);                                                               \
        return found ? found() : none;                                                                                 \
    }

static inline void heaptape_mark(const char *text)
{
    static void (*found)(const char *);
    static int looked;
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
        void *symbol = dlsym(NULL, "heaptape_mark");
        __builtin_memcpy(&found, &symbol, sizeof found);
        __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
    }
    if (found)
        found(text);
}
#endif

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

enum heaptape_state { HEAPTAPE_NONE = 0, HEAPTAPE_RECORDING = 1, HEAPTAPE_PAUSED = 2, HEAPTAPE_STOPPED = 3 };

// The state of this process's recording; HEAPTAPE_NONE if it is not recorded.
HEAPTAPE_CONTROL(enum heaptape_state, status, HEAPTAPE_NONE)
#undef HEAPTAPE_CONTROL

#ifdef __cplusplus
}
#endif

#endif
