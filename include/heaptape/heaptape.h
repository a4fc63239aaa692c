// Control of a running capture, from inside the program. Nothing needs to be linked: where libheaptape.so is not
// preloaded, the calls do nothing and return 0. The verbs are those of glibc's mtrace_*; `heaptape ctl` has them, too.
//
// All of them mean the calling process: all its threads, and by inheritance the processes that it forks from then on. A
// program that is started by exec begins as its recording did.
//
// They return 0, or an errno value: ENOENT when the process is not recorded, ENODATA when tracing has turned itself off,
// EPIPE when the recorder is gone.
#ifndef HEAPTAPE_HEAPTAPE_H
#define HEAPTAPE_HEAPTAPE_H

#ifdef __cplusplus
extern "C" {
#endif

#define HEAPTAPE_WEAK __attribute__((weak))

// Puts a mark with this text (its first 1024 bytes) into the trace, at this point of the calling thread. NULL is an
// empty text.
void heaptape_mark(const char *text) HEAPTAPE_WEAK;

#if defined(__PIC__) || defined(__PIE__)
#define heaptape_mark(text) (heaptape_mark ? heaptape_mark(text) : (void)0)
// Through a variable: a caller who does not want the result need not say so.
#define HEAPTAPE_CALL(name)                                                                                            \
    __extension__({                                                                                                    \
        int heaptape_result_ = name ? (int)name() : 0;                                                                 \
        heaptape_result_;                                                                                              \
    })
#else
// In code that is not position-independent the linker settles a weak symbol that nobody defines: it would be NULL in
// every run.
void *dlsym(void *handle, const char *symbol)
#if defined(__cplusplus) && defined(__THROW)
    __THROW
#endif
    ;
static inline void heaptape_find_mark(const char *text)
{
    static void (*found)(const char *);
    static int looked;
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
        *(void **)&found = dlsym((void *)0, "heaptape_mark");
        __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
    }
    if (found)
        found(text);
}
#define heaptape_mark(text) heaptape_find_mark(text)

static inline int heaptape_find_and_call(const char *name)
{
    int (*found)(void);
    *(void **)&found = dlsym((void *)0, name);
    return found ? found() : 0;
}
#define HEAPTAPE_CALL(name) heaptape_find_and_call(#name)
#endif

// Pausing is exact: no call of the malloc API, and no mark, that starts after heaptape_pause has returned is recorded,
// in any thread, and every one that starts after heaptape_unpause has returned is. One that is under way meanwhile may be
// recorded or not; a realloc is recorded whole or not at all. Births and ends of threads are always recorded. Blocks that
// are taken while recording is paused are unknown to the trace when they are freed after it.
int heaptape_pause(void) HEAPTAPE_WEAK;
#define heaptape_pause() HEAPTAPE_CALL(heaptape_pause)

// EPERM after heaptape_stop.
int heaptape_unpause(void) HEAPTAPE_WEAK;
#define heaptape_unpause() HEAPTAPE_CALL(heaptape_unpause)

// As unpause, and the only one that goes on after stop, or begins after `heaptape record --start=paused`.
int heaptape_start(void) HEAPTAPE_WEAK;
#define heaptape_start() HEAPTAPE_CALL(heaptape_start)

// As pause and then sync.
int heaptape_stop(void) HEAPTAPE_WEAK;
#define heaptape_stop() HEAPTAPE_CALL(heaptape_stop)

// Returns when every event up to here, of all threads of the process, is in the file. Waits as long as the recorder
// lives. Without a recorder the spool is the file.
int heaptape_sync(void) HEAPTAPE_WEAK;
#define heaptape_sync() HEAPTAPE_CALL(heaptape_sync)

// Begins the file anew: what was recorded so far is thrown away, of all processes of the recording. ENOTSUP when the
// trace goes to a pipe or device, or there is no recorder.
int heaptape_reset(void) HEAPTAPE_WEAK;
#define heaptape_reset() HEAPTAPE_CALL(heaptape_reset)

enum heaptape_state { HEAPTAPE_NONE = 0, HEAPTAPE_RECORDING = 1, HEAPTAPE_PAUSED = 2, HEAPTAPE_STOPPED = 3 };

// HEAPTAPE_NONE: this process is not recorded.
enum heaptape_state heaptape_status(void) HEAPTAPE_WEAK;
#define heaptape_status() ((enum heaptape_state)HEAPTAPE_CALL(heaptape_status))

#ifdef __cplusplus
}
#endif

#endif
