// Interface between libheaptape.so and `heaptape record --pid`, which loads the library into a
// running process and calls these exported functions (src/capture/wrap/attach.c) in a thread of the
// process:
//
//       int heaptape_attach(const char *session_dir, const struct spool_wrap *names)
// Starts recording the process in the session of that directory. If `names` is not NULL, functions
// with these names are wrapped too. Returns 0 or an errno; on error the process is unchanged.
// ENOLINK: one of these functions is not called through the loader's tables by any object.
//
//       int heaptape_end(void)
// Stops recording. All other threads must be stopped, and none of them in the middle of a record.
// Returns 0, or ENOTSUP if the program was started with the library. Afterwards the caller must
// copy `state` from the calling thread to all other threads.
//
//       uint32_t heaptape_recorder(void)
// Returns the PID of the process's live recorder, or 0.
//
//       int heaptape_detach(uint32_t by)
// Call after heaptape_end, with the PID of the heaptape that detaches. Calls that begin afterwards
// bypass the library. Threads may still be inside its functions. Returns 0.
//
//       int heaptape_clear(void)
// Call after heaptape_detach, while all other threads are stopped and none of them is in the middle
// of a record. Frees everything that the recording allocated. Returns 0, or EAGAIN if that is not
// possible yet.
//
//       const struct spool_thread *heaptape_thread(void)
// Returns the calling thread's struct.
//
//       int heaptape_list(const struct spool_block *blocks, size_t n)
// Records live blocks. All other threads must be stopped, and none of them inside a wrapper.
// Returns 0, or EAGAIN if the process is not being recorded.
#ifndef HEAPTAPE_SPOOL_ATTACH_H
#define HEAPTAPE_SPOOL_ATTACH_H

#include <stddef.h>
#include <stdint.h>

// The library is loaded into a running process through a descriptor's path, so that the process's
// file system does not have to contain it. If that is forbidden, it is loaded from a file with this
// name in the session directory. The library recognizes from its own path that it was loaded in one
// of these ways.
#define SPOOL_ATTACHED_FD   "/proc/self/fd/"
#define SPOOL_ATTACHED_FILE "libheaptape-attached.so"

// Allocator functions that can be wrapped under another name: X(symbol in the event table or
// USABLE_SIZE, name).
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

// Names to wrap; "" if the function is not wrapped.
struct spool_wrap {
    char names[SPOOL_WRAPPED][SPOOL_WRAP_BYTES];
};

// Parses "je_malloc=malloc,je_free=free". Returns 0, -EINVAL, or -EEXIST if a function or a name
// occurs twice.
int spool_parse_wrap(const char *text, struct spool_wrap *to);

struct spool_block {
    uint64_t address, size;
};

// State of a thread. Its offset from the thread pointer is the same in all threads.
struct spool_thread {
    void *state;
    uint32_t busy; // SPOOL_THREAD_WRITING is set while the thread is writing a record
};
enum { SPOOL_THREAD_WRITING = 1 };

#endif
