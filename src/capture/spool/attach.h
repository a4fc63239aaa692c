// Interface between libheaptape.so and `heaptape record --pid`. heaptape loads the library into a
// running process and calls the exported functions at the end of this header in a thread of the
// process.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct entries_plan;
struct entries_redirected;

// heaptape loads the library into a running process through the path of a descriptor
// (SPOOL_ATTACHED_FD), because the process's file system may not contain the library. If
// memfd_create is forbidden, heaptape loads the file SPOOL_ATTACHED_FILE in the session directory.
// The library recognizes both cases from its own path.
#define SPOOL_ATTACHED_FD   "/proc/self/fd/"
#define SPOOL_ATTACHED_FILE "libheaptape-attached.so"

enum {
    SPOOL_WRAPPED = 32, // functions that --wrap can name
    SPOOL_WRAP_BYTES = 64,
};

// A function of --wrap: an allocator function with another name.
struct spool_wrapped {
    char name[SPOOL_WRAP_BYTES];
    uint16_t function; // event kind, or 0 for malloc_usable_size
    uint16_t family;   // as in struct entries_entry; set by entries_set_families
};

struct spool_wrap {
    struct spool_wrapped items[SPOOL_WRAPPED];
    uint32_t n;
};

// Parses "je_malloc=malloc,0x401130=free". A function is named as in the event table or as the
// linker names it, for example "new" or "_Znwm". Several names can have the same function, except
// malloc_usable_size. Returns 0, -EINVAL, -E2BIG if there are more than SPOOL_WRAPPED names, or
// -EEXIST if a name or malloc_usable_size occurs twice.
int spool_parse_wrap(const char *text, struct spool_wrap *to);

// Returns the virtual address that a name such as "0x401130" contains, or 0 for other names. Names
// of functions do not begin with a digit.
uint64_t spool_wrap_address(const char *name);

enum spool_tables {
    SPOOL_TABLES_REST = 1,  // wrapped functions that are not redirected
    SPOOL_TABLES_NAMES = 2, // functions of --wrap
};

struct spool_block {
    uint64_t address, size;
};

// State of a thread. The struct has the same offset from the thread pointer in all threads.
struct spool_thread {
    void *state;
    uint32_t busy; // SPOOL_THREAD_WRITING is set while the thread is writing a record
};
enum { SPOOL_THREAD_WRITING = 1 };

#pragma GCC visibility push(default)

// Prepares the functions of the loaded object at `base` for redirection (entries.h) and sets *area
// to the address of the plan's area. Returns 0 or a positive errno (redirect_map). Afterwards, the
// caller writes the code of the area. The caller then stops all threads outside the replaced bytes,
// and writes the jumps into the object.
int heaptape_redirect(const struct entries_plan *plan, uint64_t base, uint64_t *area);

// Returns the redirected functions, and sets *n to their number. While all threads are stopped, the
// caller may replace the jumps of these functions with the original bytes, or restore the jumps.
const struct entries_redirected *heaptape_entries(uint64_t *n);

// Starts recording the process through the redirected functions. `session_dir` is the directory of
// the session. `tables` (enum spool_tables) selects functions that are recorded through the
// loader's tables. `names` are the names of --wrap, or NULL. Returns 0 or a positive errno. After
// an error, nothing is recorded. ENOLINK: no object calls a function of `names` through the tables.
int heaptape_attach(const char *session_dir, const struct spool_wrap *names, int tables);

// Records live blocks. All other threads must be stopped outside the wrappers. Returns 0, or EAGAIN
// if the process is not being recorded.
int heaptape_list(const struct spool_block *blocks, size_t n);

// Returns the PID of the process's live recorder, or 0.
uint32_t heaptape_recorder(void);

// Stops recording on behalf of the heaptape process with PID `by`. Calls that begin afterwards
// bypass the library. The other threads keep running, and may still use the memory of the
// recording. Returns 0, EALREADY if there is neither a recording nor memory of an ended recording,
// or ENOTSUP if the program was started with the library.
int heaptape_end(uint32_t by);

// Frees everything that an ended recording allocated, while the other threads keep running. Since
// heaptape_end, the caller must have stopped each of these threads at least once, outside the
// library's code and without SPOOL_THREAD_WRITING, and set its `state` to the calling thread's
// `state`. Returns 0, or EAGAIN if a thread that was created during the recording has not started.
int heaptape_clear(void);

// Returns the calling thread's struct.
const struct spool_thread *heaptape_thread(void);

#pragma GCC visibility pop
