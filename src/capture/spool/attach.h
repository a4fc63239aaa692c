// Interface between libheaptape.so and `heaptape record --pid`, which loads the library into a
// running process and calls these exported functions (src/capture/wrap/attach.c) in a thread of the
// process:
//
//       int heaptape_redirect(const struct entries_plan *plan, uint64_t base, uint64_t *area)
// Prepares the functions of the loaded object at `base` for redirection (entries.h) and sets *area
// to the address of the plan's area. Returns 0 or an errno (redirect_map). Then the caller writes
// the code of the area and, while all threads are stopped and none of them is among the replaced
// bytes, the jumps in the object.
//
//       int heaptape_attach(const char *session_dir, const struct spool_wrap *names, int tables)
// Starts recording the process in the session of that directory, by the redirected functions.
// `tables` (enum spool_tables) are the functions that are recorded through the loader's tables.
// `names` are the names of --wrap, or NULL. Returns 0 or an errno; on error nothing is recorded.
// ENOLINK: a function of `names` is not called through the tables by any object.
//
//       int heaptape_end(uint32_t by)
// Stops recording, for the heaptape with PID `by`. Calls that begin afterwards bypass the library.
// Other threads run, and may still use the memory of the recording. Returns 0, EALREADY if there is
// no such memory, or ENOTSUP if the program was started with the library.
//
//       uint32_t heaptape_recorder(void)
// Returns the PID of the process's live recorder, or 0.
//
//       int heaptape_clear(void)
// Frees everything that an ended recording allocated. Other threads run. Since heaptape_end, the
// caller must have found each of them once stopped outside the code of the library and without
// SPOOL_THREAD_WRITING, and must have set its `state` to that of the calling thread. Returns 0, or
// EAGAIN if a thread that was created during the recording has not started.
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

enum spool_tables {
    SPOOL_TABLES_REST = 1,  // wrapped functions that are not redirected
    SPOOL_TABLES_NAMES = 2, // functions of --wrap
};

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
