// A trace or workload as tables of rows, for `sql` and `export --table`. The macros below define
// the columns of the tables. docs/reference/tables.md describes the tables, and a test checks that
// the page agrees with the macros.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tables_type {
    TABLES_INTEGER, // 64 bits, signed; a larger value becomes the maximum
    TABLES_BOOLEAN, // 0 or 1
    TABLES_NAME,    // text from a static table
    TABLES_TEXT,    // text from the file
};

// Each macro calls X(SYMBOL, name, type, unit, meaning) for each column of a table, in order.
// `meaning` states when the column is NULL.
// clang-format off
#define TABLES_EVENTS(X) \
    X(PROCESS, "process", INTEGER, "", "number of the process in the file, see processes") \
    X(EVENT, "event", INTEGER, "", "number of the event in its process, from 0, in a valid total order") \
    X(TIME, "time_ns", INTEGER, "ns", "since the start of the recording or, in a workload, of its process; NULL without timestamps") \
    X(THREAD, "thread", INTEGER, "", "number of the thread in its process, from 0") \
    X(KIND, "kind", NAME, "", "function or kind of event, as in the trace format") \
    X(SIZE, "size", INTEGER, "bytes", "requested bytes, for calloc and reallocarray of all elements; NULL if the kind has no size") \
    X(COUNT, "count", INTEGER, "", "requested elements; NULL for other kinds") \
    X(ALIGN, "align", INTEGER, "bytes", "requested alignment, for pool.* the number of the pool; NULL if the kind has neither") \
    X(USABLE, "usable_size", INTEGER, "bytes", "malloc_usable_size of the block; NULL if not recorded, and in workloads") \
    X(ADDRESS, "address", INTEGER, "", "address that was allocated; NULL if none, and in workloads") \
    X(FREED_ADDRESS, "freed_address", INTEGER, "", "address that was freed or resized; NULL if none, and in workloads") \
    X(FREED_BLOCK, "freed_block", INTEGER, "", "block that was freed or resized, see blocks.block; NULL if none") \
    X(SITE, "site", INTEGER, "", "call site of an allocation, see sites; NULL if not recorded") \
    X(FAILED, "failed", BOOLEAN, "", "whether the call allocated nothing because it failed") \
    X(ERROR, "error", INTEGER, "", "errno of a failed call, or the result of posix_memalign; NULL if not recorded") \
    X(TEXT, "text", TEXT, "", "text of a mark, name of a thread; NULL if none")

#define TABLES_BLOCKS(X) \
    X(PROCESS, "process", INTEGER, "", "number of the process in the file, see processes") \
    X(BLOCK, "block", INTEGER, "", "number of the event that allocated the block: its key in its process") \
    X(ALLOC_TIME, "alloc_time_ns", INTEGER, "ns", "as events.time_ns; NULL without timestamps, and if preexisting") \
    X(FREE_EVENT, "free_event", INTEGER, "", "number of the event that freed or resized it; NULL if live at the end") \
    X(FREE_TIME, "free_time_ns", INTEGER, "ns", "as events.time_ns; NULL without timestamps, and if live at the end") \
    X(ALLOC_THREAD, "alloc_thread", INTEGER, "", "number of the thread that allocated it, in stat's count if preexisting") \
    X(FREE_THREAD, "free_thread", INTEGER, "", "number of the thread that freed or resized it; NULL if live at the end") \
    X(ALLOC_KIND, "alloc_kind", NAME, "", "kind of the event that allocated it; NULL if preexisting and not known") \
    X(FREE_KIND, "free_kind", NAME, "", "kind of the event that freed or resized it; NULL if live at the end") \
    X(SIZE, "size", INTEGER, "bytes", "requested bytes; NULL if preexisting and not known") \
    X(ALIGN, "align", INTEGER, "bytes", "requested alignment; NULL for other kinds") \
    X(USABLE, "usable_size", INTEGER, "bytes", "malloc_usable_size after the allocation; NULL if not recorded, and in workloads") \
    X(ADDRESS, "address", INTEGER, "", "address of the block; NULL in workloads") \
    X(SITE, "site", INTEGER, "", "call site that allocated it, see sites; NULL if not recorded") \
    X(PREEXISTING, "preexisting", BOOLEAN, "", "whether it was allocated before the recording, or its allocation is not recorded")

#define TABLES_SITES(X) \
    X(PROCESS, "process", INTEGER, "", "number of the process in the file, see processes") \
    X(SITE, "site", INTEGER, "", "number of the call site in its process, from 1") \
    X(FUNCTION, "function", TEXT, "", "function that represents the call site, as in stat --by site; NULL if not known") \
    X(SOURCE_FILE, "source_file", TEXT, "", "source file of that function; NULL if not known") \
    X(SOURCE_LINE, "source_line", INTEGER, "", "line of the call in it; NULL if not known") \
    X(MODULE, "module", TEXT, "", "path of the executable or library of that function; NULL if not known") \
    X(STACK, "stack", TEXT, "", "functions of the call stack, the outermost one first, with ; between them; NULL if not known")

#define TABLES_PROCESSES(X) \
    X(PROCESS, "process", INTEGER, "", "number of the process in the file, from 0; exec begins a new one") \
    X(PID, "pid", INTEGER, "", "process id; further images after exec keep it") \
    X(PARENT_PID, "parent_pid", INTEGER, "", "process id of the parent; NULL in workloads") \
    X(FORKED_FROM, "forked_from", INTEGER, "", "process id of the process whose blocks it inherited; NULL if none") \
    X(EXE, "exe", TEXT, "", "path of the executable; NULL if not known") \
    X(COMMAND, "command", TEXT, "", "arguments with spaces between them; NULL if not known") \
    X(ALLOCATOR, "allocator", TEXT, "", "path of the library whose malloc it called; NULL if not known") \
    X(START_TIME, "start_time_ns", INTEGER, "ns", "start of the process, as events.time_ns; NULL without timestamps") \
    X(END_TIME, "end_time_ns", INTEGER, "ns", "end of the process; NULL if not known, and in workloads") \
    X(EXIT_STATUS, "exit_status", INTEGER, "", "status as wait returns it; NULL if not known, and in workloads") \
    X(THREADS, "threads", INTEGER, "", "threads with events") \
    X(EVENTS, "events", INTEGER, "", "events except those of kind preexisting, as counted by stat") \
    X(LOST, "lost_records", INTEGER, "", "records that were lost") \
    X(EARLY_EVENTS, "early_events", INTEGER, "", "approximate number of events whose time is early by up to early_max_ns") \
    X(EARLY_MAX, "early_max_ns", INTEGER, "ns", "limit for these events; 0 if each event has its own time") \
    X(EARLY_USUAL, "early_usual_ns", INTEGER, "ns", "limit for all other events")

#define TABLES_SAMPLES(X) \
    X(PROCESS, "process", INTEGER, "", "number of the process in the file, see processes") \
    X(TIME, "time_ns", INTEGER, "ns", "as events.time_ns; NULL without timestamps") \
    X(RSS, "rss_bytes", INTEGER, "bytes", "resident memory of the process, including heaptape's")        \
    X(ANON, "anon_bytes", INTEGER, "bytes", "anonymous resident memory: heap and stacks")

// Calls X(SYMBOL, name, meaning) for each table.
#define TABLES(X) \
    X(EVENTS, "events", "one row per event: a call of the malloc API, a start or exit of a thread, a mark") \
    X(BLOCKS, "blocks", "one row per block; a realloc that succeeds ends a row and begins another") \
    X(SITES, "sites", "one row per call site") \
    X(PROCESSES, "processes", "one row per process that has events") \
    X(SAMPLES, "samples", "one row per sample of a process's memory")
// clang-format on

#define TABLES_EVENT(SYMBOL, ...) TABLES_EVENT_##SYMBOL,
enum tables_event_column { TABLES_EVENTS(TABLES_EVENT) TABLES_EVENT_COLUMNS };
#define TABLES_BLOCK(SYMBOL, ...) TABLES_BLOCK_##SYMBOL,
enum tables_block_column { TABLES_BLOCKS(TABLES_BLOCK) TABLES_BLOCK_COLUMNS };
#define TABLES_SITE(SYMBOL, ...) TABLES_SITE_##SYMBOL,
enum tables_site_column { TABLES_SITES(TABLES_SITE) TABLES_SITE_COLUMNS };
#define TABLES_PROCESS(SYMBOL, ...) TABLES_PROCESS_##SYMBOL,
enum tables_process_column { TABLES_PROCESSES(TABLES_PROCESS) TABLES_PROCESS_COLUMNS };
#define TABLES_SAMPLE(SYMBOL, ...) TABLES_SAMPLE_##SYMBOL,
enum tables_sample_column { TABLES_SAMPLES(TABLES_SAMPLE) TABLES_SAMPLE_COLUMNS };
#define TABLES_TABLE(SYMBOL, ...) TABLES_TABLE_##SYMBOL,
enum tables_id { TABLES(TABLES_TABLE) TABLES_N };
#undef TABLES_EVENT
#undef TABLES_BLOCK
#undef TABLES_SITE
#undef TABLES_PROCESS
#undef TABLES_SAMPLE
#undef TABLES_TABLE

enum { TABLES_MAX_COLUMNS = 16 };

struct tables_column {
    const char *name;
    enum tables_type type;
    const char *unit, *meaning;
};

struct tables_definition {
    const char *name, *meaning;
    const struct tables_column *columns;
    unsigned n_columns;
};

// Indexed by enum tables_id.
extern const struct tables_definition tables_definitions[TABLES_N];

// Returns "integer", "boolean" or "text".
const char *tables_type_name(enum tables_type type);

// Returns the enum tables_id of the table with this name, or -1.
int tables_find(const char *name);

union tables_value {
    int64_t integer; // for TABLES_INTEGER and TABLES_BOOLEAN
    // For TABLES_NAME, static; for TABLES_TEXT, borrowed until the callback returns.
    const char *text;
};

// A row. Bit N of `present` is set if column N was requested and is not NULL. The values of all
// other columns are undefined.
struct tables_row {
    uint32_t present;
    uint8_t event_kind; // enum event_kind; set in rows of events if the column `kind` was requested
    union tables_value values[TABLES_MAX_COLUMNS];
};

enum tables_comparison {
    TABLES_EQUAL,
    TABLES_LESS,
    TABLES_LESS_EQUAL,
    TABLES_GREATER,
    TABLES_GREATER_EQUAL
};

// A condition on an integer or boolean column. NULL does not meet any condition.
struct tables_condition {
    uint8_t column;
    uint8_t comparison; // enum tables_comparison
    int64_t value;
};

// The part of a table that was requested.
struct tables_wanted {
    bool rows;
    uint32_t columns; // bit set; columns that are not requested are not computed
    const struct tables_condition *conditions; // borrowed; a row must meet all conditions
    size_t n_conditions;
};

struct convert_watch;
struct file;
struct workload_op;
struct workload_sites;

// Information about a process, which is available after its last op. Borrowed.
struct tables_facts {
    uint32_t process;
    const char *exe; // NULL if unknown
    const struct workload_sites *sites;
    const uint32_t *tids; // indexed by thread number; NULL if unknown
    uint64_t threads;     // number of entries of `tids`
};

struct tables_scan {
    struct tables_wanted of[TABLES_N];
    // Called for each row. Returns 0, or a negative errno, which ends the scan.
    int (*row)(void *context, enum tables_id table, const struct tables_row *row);
    // Called with the facts about each process. Returns the same values as `row`. May be NULL.
    int (*facts)(void *context, const struct tables_facts *facts);
    void *context;
    // Receives the progress, and a note if the file is truncated. May be NULL.
    const struct convert_watch *watch;
    // Receives a message with the position if the file is truncated, which is not an error. May be
    // NULL.
    struct err *cut;
};

// Reads the trace or workload at `path` once. "-" is standard input. Memory use depends only on the
// number of live blocks, threads and call sites. A block's row is emitted when the block is freed
// or resized. Rows of blocks that are still live are emitted at the end. Rows of sites, processes
// and samples are emitted in file order. Returns 0, the result of `row`, or a negative errno with
// the message set.
int tables_scan(const char *path, const struct tables_scan *scan, struct err *e);

// Like tables_scan, but for an open file at its first frame. The caller must open the file with
// FILE_TRACE, FILE_WORKLOAD and FILE_TRACE_TWICE (file_open), and close the file.
int tables_scan_file(struct file *f, const struct tables_scan *scan, struct err *e);

// Sets *size to the value of the column `size` for an op. Returns false if the op has no size or if
// the size is unknown.
bool tables_op_size(const struct workload_op *op, uint64_t *size);

// Returns 0 if the file can be opened and is a trace or workload, otherwise a negative errno with
// the message set.
int tables_check(const char *path, struct err *e);
