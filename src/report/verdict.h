// The verdict on a process explains in one sentence why the process's memory is resident. The
// verdict also includes the supporting figures and a remedy. Its input is a struct of facts from a
// recording (verdict_facts.c) or from a live process (doctor.c).
#pragma once

#include "analysis/file_stat.h"
#include "analysis/growth.h"
#include "analysis/symbols/stack.h"
#include "base/json.h"
#include "record/processes/software.h"

#include <stdbool.h>

// Owners of resident memory. VERDICT_OWNERS_TABLE(X) calls X(SYMBOL, name in JSON, label).
#define VERDICT_OWNERS_TABLE(X)                                                                    \
    X(LIVE, "live_bytes", "live blocks")                                                           \
    X(ROUNDING, "rounding_bytes", "headers and rounding")                                          \
    X(PINNED, "pinned_bytes", "free, in pages with live blocks")                                   \
    X(FREE, "free_bytes", "free pages of the allocator")                                           \
    X(UNKNOWN_HEAP, "unknown_heap_bytes", "heap pages without known blocks")                       \
    X(STACKS, "stacks_bytes", "thread stacks")                                                     \
    X(MAPPINGS, "mappings_bytes", "anonymous mappings outside malloc")                             \
    X(FILES, "files_bytes", "files")                                                               \
    X(SHARED, "shared_bytes", "shared memory")                                                     \
    X(RECORDING, "recording_bytes", "recording")                                                   \
    X(OTHER, "other_bytes", "other")

enum verdict_owner {
#define HT_X(symbol, name, label) VERDICT_##symbol,
    VERDICT_OWNERS_TABLE(HT_X)
#undef HT_X
        VERDICT_OWNERS
};
extern const struct verdict_owner_text {
    const char *name, *label;
} verdict_owner_texts[VERDICT_OWNERS];

enum {
    VERDICT_SITES = 3,
    VERDICT_PATH_BYTES = STACK_PATH_BYTES,
    VERDICT_NAMES = 8,
    VERDICT_NAME_BYTES = 200
};

// A call path, from the function that allocates to its callers: "get (a.c:28) < add (a.c:60)".
struct verdict_site {
    char path[VERDICT_PATH_BYTES]; // "" if unknown
    double bytes;
    // Freed blocks as a share of the blocks allocated in the recording; NAN if unknown.
    double freed_share;
};

struct verdict_sites {
    struct verdict_site items[VERDICT_SITES]; // sorted by descending bytes
    size_t n;
};

// All mappings outside malloc that have the same name.
struct verdict_name {
    char name[VERDICT_PATH_BYTES]; // path or "[anon:NAME]"
    enum verdict_owner owner;
    double bytes;       // resident bytes
    double grown_bytes; // growth since the first sample; NAN if unknown
};

// Facts about a process. Unknown figures are NAN. Begin with verdict_facts_init; an all-zero struct
// is not valid.
struct verdict_facts {
    enum software_allocator allocator; // determines the wording of the remedy; must not be UNKNOWN
    const char *allocator_name; // "glibc", "jemalloc", the name of the library, or NULL if unknown
    const struct software_runtime *runtime; // language runtime, or NULL
    // A running process was sampled from outside, without a recording.
    bool is_running;
    // All live blocks are known, including blocks that are older than the first sample.
    bool knows_blocks;
    bool knows_resident; // rss_bytes and resident are valid
    bool exited;         // the process exited on its own after the last sample
    // Another process of the recording whose live bytes grow, such as "process 12 (/bin/x)", or "".
    char growing_process[VERDICT_NAME_BYTES];
    bool from_start; // the samples begin at the start of the process
    // Time at which a process that exited began to free most of its blocks. The facts describe the
    // process before this time. NAN if the blocks were not freed.
    double freed_at_exit_ns;
    double span_ns;    // observed time; NAN if there are no timestamps
    double live_bytes; // requested bytes of the live blocks, whether resident or not
    double live_blocks;
    double freed_before_blocks; // freed blocks from before the recording whose sizes are not known
    double peak_live_bytes;
    // Highest live bytes in the last second. Memory that was used in this second does not count as
    // retained.
    double recent_live_bytes;
    double rss_bytes, swap_bytes;
    double peak_rss_bytes;
    double rss_since_bytes; // growth of RSS after the last page map, if it invalidates the map
    double resident[VERDICT_OWNERS];
    // Growth over time. The shape is UNKNOWN if the values are unknown or the time is too short.
    struct growth live; // growth of live_bytes
    // `live` is linear over the number of calls, not over time.
    bool live_over_calls;
    // Live bytes grow more and more slowly, and too few other calls show whether the load falls.
    bool load_unknown;
    // Growth of the resident memory of malloc, if the live blocks are not known.
    struct growth heap;
    struct growth rss;                // growth of rss_bytes
    struct growth of[VERDICT_OWNERS]; // growth of resident[]
    // The next members describe the free memory of the allocator, which is the memory of the owners
    // PINNED, FREE and, if knows_blocks is set, UNKNOWN_HEAP.
    double arenas;           // number of arenas with at least 256 KiB of free memory
    double arena_free_bytes; // free memory outside the main arena
    double top_free_bytes;   // glibc: free memory above the last block of the main arena
    double cached_bytes;     // glibc: freed blocks in thread caches and fastbins
    // Free memory in regions of the allocator that contain a live block. The regions are mimalloc's
    // pages of 64 KiB and tcmalloc's spans of 8 KiB.
    double shared_free_bytes;
    // Blocks in pages that are less than half live. Unknown if the facts are the allocator's own
    // statistics.
    double pinning_blocks, pinning_bytes;
    // Share of the pinning blocks that are older than the recording.
    double pinning_before_share;
    double stacks;                // number of thread stacks
    double first_stacks;          // number of thread stacks in the first sample
    double threads;               // number of running threads
    double all_threads;           // number of threads since the start of the process
    double ended_stack_bytes;     // address space of ended threads' stacks
    struct verdict_sites growing; // sorted by growth of live bytes, in the time of `live`
    double shrunk_bytes;          // bytes by which other call sites shrank in that time
    struct verdict_sites holding; // sorted by live bytes
    struct verdict_sites pinning; // sorted by pinned bytes
    // Largest mappings outside malloc, sorted by descending resident bytes.
    struct verdict_name names[VERDICT_NAMES];
    size_t n_names;
};

// VERDICTS(X) calls X(name, act, when) for each kind of verdict. `act` is true if a change may
// help. tools/generate copies the table into docs/reference/report.md.
// tests/unit/test_report_verdict.c has a positive and a negative case for each row.
// clang-format off
#define VERDICTS(X) \
    X(grows, true, "live bytes grow linearly, by at least 1 MiB; not if at least half as many blocks from before the recording were freed, unless RSS grows linearly, by at least half as much") \
    X(heap_grows, true, "the live blocks are not known, and resident memory of malloc grows linearly, by at least 1 MiB and a fiftieth of RSS") \
    X(grows_in_steps, true, "live bytes grow by at least 1 MiB and a tenth, but not linearly, while RSS grows linearly, by at least half as much, in a process that has not exited") \
    X(mappings_grow, true, "anonymous memory outside malloc, shared memory or resident files grow linearly, by at least 1 MiB and a fiftieth of RSS, and faster than live bytes") \
    X(unwritten, true, "at least 16 MiB and three quarters of the live bytes are not resident, these are more than RSS, and RSS does not grow with live bytes at a constant rate") \
    X(stacks, true, "thread stacks have at least 16 MiB and a third of RSS, or grow as in mappings_grow") \
    X(arenas, true, "with glibc, free memory has at least 16 MiB and a third of RSS, in at least three arenas and most of it outside the main arena") \
    X(pinned, true, "the same amount of free memory, between live blocks that keep the allocator from returning it") \
    X(retained, true, "the same amount of free memory, which the allocator keeps for later allocations") \
    X(fills, false, "live bytes grow by at least 1 MiB, more and more slowly") \
    X(rss_grows, false, "RSS grows linearly, by at least 1 MiB and a twentieth, but live bytes do not, in a process that has not exited") \
    X(unclear, false, "live bytes grow by at least 1 MiB and a tenth, but neither linearly nor towards a limit; or linearly, while the program frees blocks from before the recording, as above") \
    X(runtime, false, "memory outside malloc has at least 16 MiB and half of RSS, or grows as above, in a process of a language runtime with its own heap (Java, Node.js, Python, PHP, …), and is not mostly shared memory") \
    X(mappings, false, "memory outside malloc has at least 16 MiB and half of RSS, and does not grow") \
    X(unknown_blocks, false, "pages of the heap without recorded blocks have at least 16 MiB and a third of RSS, because the blocks from before the recording are not known; or the blocks of a running process cannot be read") \
    X(sawtooth, false, "live bytes rise by at least 1 MiB and fall back") \
    X(live, false, "live blocks have at least 16 MiB and half of RSS, and do not grow") \
    X(healthy, false, "live bytes do not grow, and no other verdict applies") \
    X(too_short, false, "the recording is too short to judge growth, and no other verdict applies") \
    X(unknown, false, "the resident memory was not recorded, or RSS grew by half after the last page map; and no other verdict applies")
// clang-format on

enum verdict_kind {
#define HT_X(name, act, when) VERDICT_KIND_##name,
    VERDICTS(HT_X)
#undef HT_X
        VERDICT_KINDS
};

// Confidence in the verdict. VERDICT_SURENESS(X) calls X(SYMBOL, name in JSON).
#define VERDICT_SURENESS(X) X(SURE, "sure") X(LIKELY, "likely") X(UNSURE, "unsure")

enum verdict_sureness {
#define HT_X(symbol, name) VERDICT_##symbol,
    VERDICT_SURENESS(HT_X)
#undef HT_X
};

enum { VERDICT_TEXT_BYTES = 1200, VERDICT_REMEDY_BYTES = 700, VERDICT_BECAUSE_BYTES = 160 };

struct verdict {
    enum verdict_kind kind;
    const char *name;
    bool act;
    char text[VERDICT_TEXT_BYTES];     // one to three sentences
    char remedy[VERDICT_REMEDY_BYTES]; // "" if nothing can be done
    double saves_bytes;                // resident bytes that the remedy can save; NAN if unknown
    enum verdict_sureness sure;
    // A sentence that explains why the verdict is uncertain; "" if it is certain.
    char because[VERDICT_BECAUSE_BYTES];
};

// Sets all figures to unknown.
void verdict_facts_init(struct verdict_facts *f);

// Fills in the facts from a file, which must have been counted completely (FILE_STAT_ALL or
// FILE_STAT_REPORT) or be an aggregate. Strings of *s are borrowed.
void verdict_facts_of_file(struct verdict_facts *f, const struct file_stat *s);

// Returns the process whose live bytes grow most, other than the process of the verdict. If n is
// not NULL, sets *n to the number of such processes that grow. Returns NULL if no other process
// grows by enough to be a finding.
const struct file_stat_process *verdict_other_growing(const struct file_stat *s, size_t *n);

// Chooses the kind and writes the sentences.
void verdict_find(struct verdict *v, const struct verdict_facts *f);

// Writes the member "verdict", with the figures that support the sentences.
void verdict_json(struct json *j, const struct verdict *v, const struct verdict_facts *f);

// Private. These thresholds and figures are shared by verdict.c and verdict_text.c.
// verdict_stuck_bytes is the free memory that the allocator cannot return. verdict_known returns 0
// for an unknown value. verdict_growing_owner returns the owner outside malloc that grows fastest,
// or VERDICT_OWNERS. verdict_growing_most returns the owner whose resident memory grew most.
#define VERDICT_MANY_BYTES  (16.0 * (1 << 20))
#define VERDICT_GROWN_BYTES (1.0 * (1 << 20))
double verdict_known(double value);
double verdict_free_bytes(const struct verdict_facts *f);
double verdict_stuck_bytes(const struct verdict_facts *f);
double verdict_outside_bytes(const struct verdict_facts *f);
double verdict_unwritten_bytes(const struct verdict_facts *f);
bool verdict_is_growing(const struct growth *g);
enum verdict_owner verdict_growing_owner(const struct verdict_facts *f);

// Private. Appends to a string in an array of `size` bytes. Omits the space at the start of `fmt`
// if the string is empty.
void verdict_append(char *text, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// Private. Returns the verdict without its sentences and remedy, which verdict_find adds.
struct verdict verdict_choose(const struct verdict_facts *f);
