// Reads heaptape's traces (.ht) and workloads (.htw). Link with libheaptape-trace (pkg-config
// heaptape-trace).
//
//       heaptape_trace *t;
//       const heaptape_event *e;
//       int rc = heaptape_trace_open(&t, "a.ht");
//       while (rc >= 0 && (rc = heaptape_trace_next_event(t, &e)) > 0)
//           … e->operation, e->size …
//       if (rc < 0)
//           fprintf(stderr, "%s\n", heaptape_trace_error(t));
//       heaptape_trace_close(t);
//
// Functions that return int or int64_t return a negative errno value on errors;
// heaptape_trace_error then returns the text. Structs that the library returns are borrowed. Later
// versions may append members to them, so never copy a struct by its compiled-in size, and never
// make arrays of them. The rest of this header is stable within a major version. A handle may be
// used by one thread at a time; different handles are independent. After fork, only the process
// that opened a handle may use it.
//
// Memory use is bounded by the number of live blocks, threads and call sites, not by the length of
// the file. heaptape_trace_next_event and heaptape_trace_read_columns start a thread that reads
// ahead. The thread blocks all signals and exits in heaptape_trace_close.
#ifndef HEAPTAPE_TRACE_H
#define HEAPTAPE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heaptape_trace heaptape_trace;

// Kinds of files.
enum { HEAPTAPE_TRACE_FILE = 1, HEAPTAPE_WORKLOAD_FILE = 2 };

// Values of numbers that are unknown or that the operation does not have. Used where 0 is a valid
// value.
#define HEAPTAPE_NONE64 UINT64_MAX
#define HEAPTAPE_NONE32 UINT32_MAX

// Bits of heaptape_event.known, and columns of heaptape_trace_read_columns with the width of their
// items. docs/reference/tables.md describes the same columns in the table "events", where
// "operation" is called "kind". As in that table, values of 2^63 or more, which occur only in
// invalid calls, are stored as 2^63 - 1.
enum heaptape_column_id {
    HEAPTAPE_COLUMN_PROCESS = 0,        // uint32_t
    HEAPTAPE_COLUMN_EVENT = 1,          // uint64_t
    HEAPTAPE_COLUMN_TIME_NS = 2,        // uint64_t
    HEAPTAPE_COLUMN_THREAD = 3,         // uint32_t
    HEAPTAPE_COLUMN_OPERATION = 4,      // uint8_t
    HEAPTAPE_COLUMN_SIZE = 5,           // uint64_t
    HEAPTAPE_COLUMN_COUNT = 6,          // uint64_t
    HEAPTAPE_COLUMN_ALIGN = 7,          // uint64_t
    HEAPTAPE_COLUMN_USABLE_SIZE = 8,    // uint64_t
    HEAPTAPE_COLUMN_ADDRESS = 9,        // uint64_t
    HEAPTAPE_COLUMN_FREED_ADDRESS = 10, // uint64_t
    HEAPTAPE_COLUMN_FREED_BLOCK = 11,   // uint64_t
    HEAPTAPE_COLUMN_SITE = 12,          // uint32_t
    HEAPTAPE_COLUMN_FAILED = 13,        // uint8_t
    HEAPTAPE_COLUMN_ERROR = 14,         // uint8_t
    HEAPTAPE_COLUMN_TEXT = 15,          // only a bit of `known`; cannot be read as a column
    // uint32_t; not a member of heaptape_event. Each item is the value of heaptape_event.known,
    // limited to the columns that are read together.
    HEAPTAPE_COLUMN_KNOWN = 16
};

// An event. The events of a process are in a valid total order. If the bit of a member in `known`
// (1u << HEAPTAPE_COLUMN_…) is not set, the member is 0, except freed_block, which is
// HEAPTAPE_NONE64.
typedef struct heaptape_event {
    // Nanoseconds since the start of the recording or, in a workload, of the process.
    uint64_t time_ns;
    uint64_t event;         // number in the process, from 0
    uint64_t size;          // requested bytes of all elements
    uint64_t count;         // requested elements
    uint64_t align;         // requested alignment in bytes; for pool.*, the number of the pool
    uint64_t usable_size;   // malloc_usable_size of the block, if recorded
    uint64_t address;       // allocated address, the result; traces only
    uint64_t freed_address; // address that was freed or resized; traces only
    uint64_t freed_block;   // `event` of the call that allocated the freed or resized block
    const char *text;       // text of a mark or name of a thread, or NULL; borrowed like the event
    uint32_t known;
    uint32_t process;  // number in the file, from 0
    uint32_t thread;   // number in the process, from 0
    uint32_t site;     // call site of an allocation, from 1; 0 if not recorded
    uint8_t operation; // see heaptape_trace_operation_name
    uint8_t failed;    // 1: the call failed and allocated nothing
    uint8_t error;     // errno of a failed call, or the result of posix_memalign
} heaptape_event;

enum {
    HEAPTAPE_OP_FAILED = 1,       // the recorded call failed: no block was allocated
    HEAPTAPE_OP_FROM_NULL = 2,    // realloc(NULL, n): allocates `slot` and frees nothing
    HEAPTAPE_OP_FREED = 4,        // realloc(p, 0), which freed p and returned NULL
    HEAPTAPE_OP_MOVED = 8,        // a realloc that returned a new address when it was recorded
    HEAPTAPE_OP_SIZE_UNKNOWN = 16 // a preexisting block whose size was not recorded
};

// A dependency: operation number `op` of the thread, counted from 0, must finish before the
// operation that lists the dependency starts.
typedef struct heaptape_dependency {
    uint64_t op;
    uint32_t thread;
    uint32_t reserved;
} heaptape_dependency;

// An operation of a workload. Slots identify blocks: a slot holds one block at a time.
typedef struct heaptape_op {
    // Nanoseconds since the start of the process, or HEAPTAPE_NONE64 if the workload has no
    // timestamps.
    uint64_t time_ns;
    uint64_t op;           // number in the thread, from 0
    uint64_t size;         // requested bytes of all elements; 0 if the operation has no size
    uint64_t count, align; // as in heaptape_event
    // Operand of operations that do not allocate; for thread.create, the number of the new thread.
    uint64_t value;
    // Dependencies on other threads' operations; borrowed like the operation.
    const heaptape_dependency *dependencies;
    const char *text; // text of a mark or name of a thread, or NULL; borrowed like the operation
    uint32_t n_dependencies;
    uint32_t thread;
    // Slot allocated, freed or resized (a realloc keeps its slot), or HEAPTAPE_NONE32.
    uint32_t slot;
    uint32_t site; // call site of an allocation, from 1; 0 if not recorded
    uint8_t operation;
    uint8_t flags; // HEAPTAPE_OP_…
    uint8_t error; // errno of a failed call, or the result of posix_memalign
} heaptape_op;

// A process. Unknown strings are NULL, and unknown numbers are HEAPTAPE_NONE64.
typedef struct heaptape_process {
    uint32_t process, pid;
    uint64_t parent_pid;
    uint64_t forked_from; // pid of the parent whose blocks the process inherited
    const char *exe, *command, *allocator;
    uint64_t start_time_ns, end_time_ns, exit_status;
    uint64_t events;  // number of events except "preexisting" operations, as in `heaptape stat`
    uint64_t threads; // number of threads with events
    uint64_t lost_records;
    uint32_t sites; // number of call sites, which are numbered from 1
    // About early_events times of events are early by up to early_max_ns, and all others by up to
    // early_usual_ns, because the clock is not read at every event. 0: no times are early.
    uint64_t early_events, early_max_ns, early_usual_ns;
} heaptape_process;

typedef struct heaptape_thread {
    uint32_t thread;
    uint32_t tid; // 0 if unknown, as in workloads
} heaptape_thread;

// A stack frame. Strings are borrowed until the handle is closed or rewound.
typedef struct heaptape_frame {
    // Demangled name; OBJECT+0xOFFSET if the name is unknown; the address if it is outside all
    // objects.
    const char *function;
    const char *file;   // source file, or NULL if unknown
    const char *object; // path of the executable or library, or NULL if unknown
    uint64_t address;   // return address
    uint32_t line;      // line of the call in `file`, or 0 if unknown
    uint8_t known;      // 1: the function is known
    uint8_t library; // 1: code of the allocator, a language's runtime library, or a system library
    uint8_t wrapper; // 1: function of the program that allocates for its callers, such as xmalloc
} heaptape_frame;

// Destination of a column: the caller's array, with space for `rows` items of item_bytes bytes,
// aligned to their width.
typedef struct heaptape_column {
    uint32_t id;         // enum heaptape_column_id
    uint32_t item_bytes; // width of an item
    void *items;
} heaptape_column;

// Opens the trace, the workload, or the directory with a trace's segments at `path`; "-" is
// standard input. *t is set to a handle even on errors, so that the error message can be read; *t
// is NULL only if out of memory. Close the handle in either case.
int heaptape_trace_open(heaptape_trace **t, const char *path);
// Closes the handle. Does nothing if `t` is NULL.
void heaptape_trace_close(heaptape_trace *t);

// Returns to the first event. heaptape_trace_read_columns may then read other columns. Returns 0,
// -ESPIPE for input that can be read only once, such as a pipe, or another negative errno.
int heaptape_trace_rewind(heaptape_trace *t);

// Returns the text of the last error, as printed by heaptape after its name: "FILE: REASON, at byte
// N". Borrowed until the next call. Returns "out of memory" if `t` is NULL.
const char *heaptape_trace_error(const heaptape_trace *t);

// Returns HEAPTAPE_TRACE_FILE or HEAPTAPE_WORKLOAD_FILE, or 0 after an error of
// heaptape_trace_open.
int heaptape_trace_kind(const heaptape_trace *t);

// Reads the next event, borrowed until the next call. Returns 1, or 0 at the end. Returns -ENODATA
// for a truncated file, after its events. Events of different processes are interleaved; the events
// of each process are in a valid total order. Returns -EBUSY after heaptape_trace_read_columns or
// heaptape_trace_next_op, until a rewind.
int heaptape_trace_next_event(heaptape_trace *t, const heaptape_event **e);

// Writes the next events, at most `rows`, to the columns. Returns their number, which is less than
// `rows` only at the end or before an error. The next call then returns 0 or the error. All calls
// until a rewind must request the same columns, each once; otherwise, or if item_bytes is wrong,
// returns -EINVAL. Other columns are not computed.
int64_t heaptape_trace_read_columns(heaptape_trace *t, const heaptape_column *columns, size_t n,
                                    size_t rows);

// Reads the next operation of a workload, borrowed until the next call. Returns 1, or 0 at the end.
// Operations are in a valid total order. Returns -EPROTO for a trace: `heaptape convert` turns one
// of its processes into a workload.
int heaptape_trace_next_op(heaptape_trace *t, const heaptape_op **op);

// Returns the number of processes. Processes and threads are known after all events have been read.
// Before that, this function and the functions below read the file in a separate pass, or return
// -EAGAIN for a pipe. Results are borrowed until the handle is closed or rewound.
int64_t heaptape_trace_processes(heaptape_trace *t);
// Sets *process to process `i`, from 0, in file order. Returns 0, or -EINVAL if there is no such
// process.
int heaptape_trace_process(heaptape_trace *t, size_t i, const heaptape_process **process);
// Sets *to to a thread. `process` and `thread` are numbers as in events. Returns 0, or -EINVAL if
// there is no such process or thread.
int heaptape_trace_thread(heaptape_trace *t, uint32_t process, uint32_t thread,
                          const heaptape_thread **to);

// Sets *frame to the function that represents a call site: the innermost function outside libraries
// that is not an allocation wrapper. Returns 1, or 0 if the stack is unknown, or -EINVAL if there
// is no such process or site. This function and heaptape_trace_frame read debug information from
// the program's files, as heaptape does.
int heaptape_trace_site(heaptape_trace *t, uint32_t process, uint32_t site,
                        const heaptape_frame **frame);
// Sets *frame to frame `i` of a site's stack. Frame 0 is the innermost frame. Inlined functions
// have separate frames. Returns 1, or 0 if the stack has no such frame, or -EINVAL if there is no
// such process or site.
int heaptape_trace_frame(heaptape_trace *t, uint32_t process, uint32_t site, size_t i,
                         const heaptape_frame **frame);

// Returns the name of an operation, such as "malloc" or "free", or NULL if the number is unknown.
// Numbers never change.
const char *heaptape_trace_operation_name(unsigned operation);

// Returns 1 if the operation allocates or resizes a block, else 0.
int heaptape_trace_allocates(unsigned operation);

// Returns the version of heaptape, "MAJOR.MINOR.PATCH".
const char *heaptape_trace_version(void);

#ifdef __cplusplus
}
#endif

#endif
