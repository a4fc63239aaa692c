// Reads traces (.ht) and workloads (.htw) of heaptape: link with libheaptape-trace (pkg-config heaptape-trace).
//
//     heaptape_trace *t;
//     const heaptape_event *e;
//     int rc = heaptape_trace_open(&t, "a.ht");
//     while (rc >= 0 && (rc = heaptape_trace_next_event(t, &e)) > 0)
//         … e->operation, e->size …
//     if (rc < 0)
//         fprintf(stderr, "%s\n", heaptape_trace_error(t));
//     heaptape_trace_close(t);
//
// Functions that return int or int64_t return a negative errno value on errors; heaptape_trace_error is then its text.
// Structs that the library returns are borrowed, and may get more members at their ends in later versions: never copy one by
// a size that was compiled in, and never make an array of them. Everything else of this header stays as it is within a major
// version. A handle is for one thread at a time; different handles are independent. After fork, only the process that opened a
// handle may use it.
//
// Memory is bounded by live blocks, threads and call sites, not by the length of the file. heaptape_trace_next_event and
// heaptape_trace_read_columns start a thread that reads ahead; it handles no signals and ends in heaptape_trace_close.
#ifndef HEAPTAPE_TRACE_H
#define HEAPTAPE_TRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heaptape_trace heaptape_trace;

// Of files.
enum { HEAPTAPE_TRACE_FILE = 1, HEAPTAPE_WORKLOAD_FILE = 2 };

// A number that is not known or that the operation does not have, where 0 has a meaning.
#define HEAPTAPE_NONE64 UINT64_MAX
#define HEAPTAPE_NONE32 UINT32_MAX

// Bits of heaptape_event.known, and the columns of heaptape_trace_read_columns with the width of their items. The names are
// those of the table events (docs/reference/tables.md), where each is described, but that "operation" is "kind" there. Numbers
// are those of the table: of 2^63 and more, which only broken calls have, they are 2^63 - 1.
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
    HEAPTAPE_COLUMN_TEXT = 15,          // only a bit of known: it cannot be read as a column
    HEAPTAPE_COLUMN_KNOWN =
        16 // uint32_t; only a column: heaptape_event.known, of the columns that are read with it
};

// One event of the valid total order of its process. Members without their bit in `known` (1u << HEAPTAPE_COLUMN_…) are 0,
// freed_block is HEAPTAPE_NONE64.
typedef struct heaptape_event {
    uint64_t time_ns;       // since the start of the recording, in a workload of its process
    uint64_t event;         // number in its process, from 0
    uint64_t size;          // requested bytes, of all elements
    uint64_t count;         // requested elements
    uint64_t align;         // requested alignment in bytes; of pool.* the number of the pool
    uint64_t usable_size;   // malloc_usable_size of the block, where it was recorded
    uint64_t address;       // that was allocated: the result. Of traces only
    uint64_t freed_address; // that was freed or resized. Of traces only
    uint64_t freed_block; // `event` of the event that allocated the block that was freed or resized
    const char *text;     // of a mark, name of a thread; NULL: none. Borrowed like the event
    uint32_t known;
    uint32_t process;  // number in the file, from 0
    uint32_t thread;   // number in its process, from 0
    uint32_t site;     // call site of an allocation, from 1; 0: not recorded
    uint8_t operation; // see heaptape_trace_operation_name
    uint8_t failed;    // 1: the call allocated nothing because it failed
    uint8_t error;     // errno of a failed call, or the result of posix_memalign
} heaptape_event;

// Flags of heaptape_op.
enum {
    HEAPTAPE_OP_FAILED = 1,       // the recorded call failed: no block was allocated
    HEAPTAPE_OP_FROM_NULL = 2,    // realloc(NULL, n): `slot` is allocated, nothing is freed
    HEAPTAPE_OP_FREED = 4,        // realloc(p, 0) that freed p and returned NULL
    HEAPTAPE_OP_MOVED = 8,        // a realloc whose result had another address when it was recorded
    HEAPTAPE_OP_SIZE_UNKNOWN = 16 // a preexisting block whose size was not recorded
};

// An operation that has to be finished before another one: number `op` of its thread, from 0.
typedef struct heaptape_dependency {
    uint64_t op;
    uint32_t thread;
    uint32_t reserved;
} heaptape_dependency;

// One operation of a workload, which names blocks by slots: a slot holds one block at a time.
typedef struct heaptape_op {
    uint64_t
        time_ns; // since the start of the process; HEAPTAPE_NONE64: the workload has no timestamps
    uint64_t op; // number in its thread, from 0
    uint64_t size;         // requested bytes, of all elements; 0 where the operation has none
    uint64_t count, align; // as in heaptape_event
    uint64_t
        value; // operand of operations that do not allocate: of thread.create the number of the new thread
    const heaptape_dependency
        *dependencies; // on operations of other threads; borrowed like the operation
    const char *text;  // of a mark, name of a thread; NULL: none. Borrowed likewise
    uint32_t n_dependencies;
    uint32_t thread;
    uint32_t slot; // allocated, freed or resized (a realloc keeps its slot); HEAPTAPE_NONE32: none
    uint32_t site; // call site of an allocation, from 1; 0: not recorded
    uint8_t operation;
    uint8_t flags; // HEAPTAPE_OP_…
    uint8_t error; // errno of a failed call, or the result of posix_memalign
} heaptape_op;

// Facts of a process. Texts are NULL where they are not known; numbers HEAPTAPE_NONE64.
typedef struct heaptape_process {
    uint32_t process, pid;
    uint64_t parent_pid;
    uint64_t forked_from; // pid of the process whose blocks it began with
    const char *exe, *command, *allocator;
    uint64_t start_time_ns, end_time_ns, exit_status;
    uint64_t events;  // without those of operation "preexisting", as `heaptape stat` counts them
    uint64_t threads; // with events
    uint64_t lost_records;
    uint32_t sites; // the numbers of its call sites are 1 to this
} heaptape_process;

typedef struct heaptape_thread {
    uint32_t thread;
    uint32_t tid; // 0: not known, as in workloads
} heaptape_thread;

// A function of a call stack. Texts are borrowed until the handle is closed or rewound.
typedef struct heaptape_frame {
    const char *
        function; // demangled; OBJECT+0xOFFSET if it is not known, or the address outside of objects
    const char *file;   // of the source; NULL: not known
    const char *object; // path of the executable or library; NULL: not known
    uint64_t address;   // where the call returns to
    uint32_t line;      // of the call in `file`; 0: not known
    uint8_t known;      // 1: a function was found
    uint8_t library;    // 1: of the allocator, a language's own library, or a system library
} heaptape_frame;

// Where a column goes: room for `rows` items of item_bytes bytes, aligned to their width. The caller's.
typedef struct heaptape_column {
    uint32_t id;         // enum heaptape_column_id
    uint32_t item_bytes; // width of the column's items
    void *items;
} heaptape_column;

// Opens the trace, the workload, or the folder of a trace's segments, at `path`; "-" is standard input. *t is a handle also
// after an error, so that its text can be read, and NULL only when out of memory; close it in either case.
int heaptape_trace_open(heaptape_trace **t, const char *path);
// NULL: nothing.
void heaptape_trace_close(heaptape_trace *t);

// Starts again before the first event, with other columns if wanted. ESPIPE for what can be read only once: a pipe.
int heaptape_trace_rewind(heaptape_trace *t);

// What the last call that failed has to say, as heaptape prints it behind its name: "FILE: what, at byte N". Borrowed until
// the next call. Of NULL: "out of memory".
const char *heaptape_trace_error(const heaptape_trace *t);

// HEAPTAPE_TRACE_FILE or HEAPTAPE_WORKLOAD_FILE; 0 after an error of heaptape_trace_open.
int heaptape_trace_kind(const heaptape_trace *t);

// The next event, borrowed until the next call: 1; 0 at the end. ENODATA for a file that is cut off, after its events. Events
// of several processes come interleaved; each process's are in a valid total order. Not to be mixed with the two
// functions that follow, before a rewind: EBUSY.
int heaptape_trace_next_event(heaptape_trace *t, const heaptape_event **e);

// Writes the next events, at most `rows` of them, to the columns, and returns how many: fewer than `rows` only at the end, then
// 0. Errors come after the events before them, by the next call. All calls up to a rewind have the same columns, each once;
// EINVAL if not, or if item_bytes is not the width. Columns that are not named are not computed.
int64_t heaptape_trace_read_columns(heaptape_trace *t, const heaptape_column *columns, size_t n,
                                    size_t rows);

// The next operation of a workload, borrowed until the next call: 1; 0 at the end. Operations are in a valid total
// order. EPROTO for a trace: `heaptape convert` makes a workload of one of its processes.
int heaptape_trace_next_op(heaptape_trace *t, const heaptape_op **op);

// Facts. They are known when all events have been read; before, the call reads the file in a pass of its own, or returns
// EAGAIN if it is a pipe. Results are borrowed until the handle is closed or rewound.
int64_t heaptape_trace_processes(heaptape_trace *t);
// `i` from 0 to below the number of processes, in the order of the file. 0 or EINVAL: there is no such process.
int heaptape_trace_process(heaptape_trace *t, size_t i, const heaptape_process **process);
// `process` and `thread` are the numbers that events have. 0 or EINVAL.
int heaptape_trace_thread(heaptape_trace *t, uint32_t process, uint32_t thread,
                          const heaptape_thread **to);

// The function that a call site is shown as: the innermost one outside of libraries. 1; 0: its stack is not known; EINVAL: there
// is no such process or site. This and heaptape_trace_frames read debug information of the program's files, as the program
// `heaptape` does.
int heaptape_trace_site(heaptape_trace *t, uint32_t process, uint32_t site,
                        const heaptape_frame **frame);
// Frame `i` of its stack, from 0, the innermost one first; inlined functions have frames of their own. 1; 0: there are no
// more; EINVAL as above.
int heaptape_trace_frame(heaptape_trace *t, uint32_t process, uint32_t site, size_t i,
                         const heaptape_frame **frame);

// The name of an operation: "malloc", "free", …; NULL: there is none of this number. Numbers never change.
const char *heaptape_trace_operation_name(unsigned operation);

// 1: the operation allocates or resizes a block; 0: it does not.
int heaptape_trace_allocates(unsigned operation);

// "MAJOR.MINOR.PATCH" of heaptape.
const char *heaptape_trace_version(void);

#ifdef __cplusplus
}
#endif

#endif
