// Control of the recording from inside the traced program. Nothing needs to be linked: without libheaptape.so preloaded,
// the calls do nothing and return 0. `heaptape ctl` offers the same operations from outside.
//
// Each call applies to all threads of the calling process, and to the processes that it forks afterwards. After exec, a
// process is recorded as the recording was started.
//
// The functions return 0 or an errno value: ENOENT if the process is not recorded, ENODATA if recording has turned itself
// off, EPIPE if the recorder has ended.
#ifndef HEAPTAPE_HEAPTAPE_H
#define HEAPTAPE_HEAPTAPE_H

#ifdef __cplusplus
extern "C" {
#endif

#define HEAPTAPE_WEAK __attribute__((weak))

// Records a mark with this text (at most 1024 bytes of it) at this point of the calling thread. NULL means an empty text.
void heaptape_mark(const char *text) HEAPTAPE_WEAK;

#if defined(__PIC__) || defined(__PIE__)
#define heaptape_mark(text) (heaptape_mark ? heaptape_mark(text) : (void)0)
// The variable avoids a warning where the result is not used.
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

// Pauses recording in all threads. Pausing is exact: no call of the malloc API and no mark that begins after
// heaptape_pause has returned is recorded, and every one that begins after heaptape_resume has returned is recorded. A call
// in progress meanwhile may be recorded or not; a realloc is recorded completely or not at all. Thread starts and exits are
// always recorded. The trace does not know blocks that were allocated during a pause when they are freed after it.
int heaptape_pause(void) HEAPTAPE_WEAK;
#define heaptape_pause() HEAPTAPE_CALL(heaptape_pause)

// Resumes recording after heaptape_pause. EPERM after heaptape_stop.
int heaptape_resume(void) HEAPTAPE_WEAK;
#define heaptape_resume() HEAPTAPE_CALL(heaptape_resume)

// The same; the name follows glibc's mtrace_unpause.
int heaptape_unpause(void) HEAPTAPE_WEAK;
#define heaptape_unpause() HEAPTAPE_CALL(heaptape_unpause)

// Starts recording, also after heaptape_stop and in a program run by `heaptape record --start=paused`.
int heaptape_start(void) HEAPTAPE_WEAK;
#define heaptape_start() HEAPTAPE_CALL(heaptape_start)

// Pauses and then syncs.
int heaptape_stop(void) HEAPTAPE_WEAK;
#define heaptape_stop() HEAPTAPE_CALL(heaptape_stop)

// Returns when all events so far, of all threads of the process, are in the trace file. Without a recorder it returns at
// once, since the spool is the file.
int heaptape_sync(void) HEAPTAPE_WEAK;
#define heaptape_sync() HEAPTAPE_CALL(heaptape_sync)

// Empties the trace file: discards what was recorded so far, of all processes of the recording. ENOTSUP if the trace is
// not a regular file or there is no recorder.
int heaptape_reset(void) HEAPTAPE_WEAK;
#define heaptape_reset() HEAPTAPE_CALL(heaptape_reset)

enum heaptape_state { HEAPTAPE_NONE = 0, HEAPTAPE_RECORDING = 1, HEAPTAPE_PAUSED = 2, HEAPTAPE_STOPPED = 3 };

// The state of this process's recording; HEAPTAPE_NONE if it is not recorded.
enum heaptape_state heaptape_status(void) HEAPTAPE_WEAK;
#define heaptape_status() ((enum heaptape_state)HEAPTAPE_CALL(heaptape_status))

#ifdef __cplusplus
}
#endif

#endif
