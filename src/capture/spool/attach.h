// How libheaptape.so is used by `heaptape record --pid`, which loads it into a process that runs already and has a thread of that
// process call what is exported for it (src/capture/wrap/patch.c):
//
//     int heaptape_attach(const char *session_dir, const struct spool_wrap *names)
// begins the recording of the process in the session of the directory, with functions of other names if `names` is not NULL. 0
// or an errno, then nothing has changed; ENOLINK: no object calls one of these through the loader's tables.
//     int heaptape_end(void)
// ends it, while all other threads are stopped and none of them is writing. 0, or ENOTSUP: the program was started with the
// library. Afterwards `state` of all threads must be made that of the calling one.
//     uint32_t heaptape_recorder(void)
// returns the PID of the recorder that records the process and lives; 0: there is none.
//     int heaptape_detach(uint32_t by)
// after heaptape_end, by the process `by`: calls that begin from then on go past the library, whose functions some threads may still be in. 0.
//     int heaptape_clear(void)
// after that, while all other threads are stopped and none of them is writing, gives back all that the recording had. 0, or
// EAGAIN: later.
//     const struct spool_thread *heaptape_thread(void)
// returns the calling thread's.
//     int heaptape_list(const struct spool_block *blocks, size_t n)
// records blocks that are live, while all other threads are stopped and none of them is in a wrapper. 0, or EAGAIN: there is no
// recording.
#ifndef HEAPTAPE_SPOOL_ATTACH_H
#define HEAPTAPE_SPOOL_ATTACH_H

#include <stddef.h>
#include <stdint.h>

// The library is loaded into a process that runs by a descriptor, so that the file need not be in the process's file system; where
// that is forbidden, from a file of this name in the session's directory. By its path it knows how it came.
#define SPOOL_ATTACHED_FD   "/proc/self/fd/"
#define SPOOL_ATTACHED_FILE "libheaptape-attached.so"

// Functions of an allocator that may be wrapped by another name. X(symbol of the event table or USABLE_SIZE, name)
#define SPOOL_WRAP_TABLE(X)                                                                        \
    X(MALLOC, malloc)                                                                              \
    X(CALLOC, calloc)                                                                              \
    X(REALLOC, realloc)                                                                            \
    X(FREE, free)                                                                                  \
    X(MEMALIGN, memalign)                                                                          \
    X(ALIGNED_ALLOC, aligned_alloc)                                                                \
    X(POSIX_MEMALIGN, posix_memalign)                                                              \
    X(USABLE_SIZE, malloc_usable_size)
enum {
#define SPOOL_WRAP_ROW(SYMBOL, name) SPOOL_WRAP_##SYMBOL,
    SPOOL_WRAP_TABLE(SPOOL_WRAP_ROW)
#undef SPOOL_WRAP_ROW
        SPOOL_WRAPPED,
    SPOOL_WRAP_BYTES = 64,
};

// Their names, "" where there is none.
struct spool_wrap {
    char names[SPOOL_WRAPPED][SPOOL_WRAP_BYTES];
};

// "je_malloc=malloc,je_free=free". 0, -EINVAL, or -EEXIST: a function or a name comes twice.
int spool_parse_wrap(const char *text, struct spool_wrap *to);

struct spool_block {
    uint64_t address, size;
};

// Of a thread, at the same distance from its thread pointer in all threads.
struct spool_thread {
    void *state;
    uint32_t busy; // SPOOL_THREAD_WRITING: it is in the middle of a record
};
enum { SPOOL_THREAD_WRITING = 1 };

#endif
