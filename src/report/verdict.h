// The verdict on a process: why its memory is resident, in one sentence, with the figures behind the
// sentence and the remedy. The input is a struct of facts, from a recording (verdict_facts.h) or from
// a live process.
#ifndef HEAPTAPE_REPORT_VERDICT_H
#define HEAPTAPE_REPORT_VERDICT_H

#include "analysis/growth.h"
#include "base/json.h"

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

// Selects the wording of the remedy.
enum verdict_allocator {
    VERDICT_GLIBC,
    VERDICT_JEMALLOC,
    VERDICT_TCMALLOC,
    VERDICT_MIMALLOC,
    VERDICT_OTHER_ALLOCATOR
};

enum { VERDICT_SITES = 3, VERDICT_PATH_BYTES = 300, VERDICT_NAMES = 3 };

// Call path, from the function that allocates to its callers: "get (a.c:28) < add (a.c:60)".
struct verdict_site {
    char path[VERDICT_PATH_BYTES]; // "": unknown
    double bytes, blocks;
    double
        freed_share; // blocks freed, as a share of those allocated in the recording; NAN: unknown
};

struct verdict_sites {
    struct verdict_site items[VERDICT_SITES]; // those with most bytes first
    size_t n;
    double bytes; // of all sites, also those that are not listed
};

// Mappings outside malloc of one name.
struct verdict_name {
    char name[VERDICT_PATH_BYTES]; // path, "[anon:NAME]", or "" for anonymous memory without a name
    double bytes;                  // resident
    double grown_bytes;            // since the first sample; NAN: unknown
};

// Unknown figures are NAN. All zero is not valid: begin with verdict_facts_init.
struct verdict_facts {
    enum verdict_allocator allocator;
    const char *allocator_name; // "glibc", "jemalloc", the name of the library, or NULL: unknown
    bool knows_blocks;   // all live blocks are known, also those from before the first sample
    bool knows_resident; // rss_bytes and resident are valid
    bool exited;         // the process exited on its own, after the last sample
    bool from_start;     // the samples begin with the process
    double live_bytes;   // requested bytes of the live blocks, resident or not
    double live_blocks;
    double peak_live_bytes;
    double rss_bytes, swap_bytes;
    double peak_rss_bytes;
    double resident[VERDICT_OWNERS];
    // Levels over time. Shape UNKNOWN: not known or too short.
    struct growth live;               // live_bytes
    struct growth rss;                // rss_bytes
    struct growth of[VERDICT_OWNERS]; // resident[]
    // Free memory of the allocator: PINNED, FREE and, if knows_blocks, UNKNOWN_HEAP.
    double arenas;           // arenas with at least 256 KiB of free memory
    double arena_free_bytes; // free memory outside the main arena
    double top_free_bytes;   // glibc: free memory above the last block of the main arena
    // Blocks in pages that are less than half live.
    double pinning_blocks, pinning_bytes;
    double pinning_before_share;              // of these blocks, those from before the recording
    double threads, stacks;                   // numbers of threads and of mapped thread stacks
    struct verdict_sites growing;             // by growth of live bytes
    struct verdict_sites holding;             // by live bytes
    struct verdict_sites pinning;             // by pinned bytes
    struct verdict_name names[VERDICT_NAMES]; // of mappings outside malloc, by growth or else bytes
    size_t n_names;
};

// VERDICTS(X) calls X(name, act: whether a change may pay, when). tools/generate copies the table
// into docs/reference/report.md. tests/unit/test_report_verdict.c has a positive and a negative case
// for each row.
// clang-format off
#define VERDICTS(X) \
    X(grows, true, "live bytes grow linearly, by at least 1 MiB and a fiftieth of RSS, and the call sites that grow free at most a tenth of their blocks") \
    X(fills, false, "live bytes grow more and more slowly, towards a limit, or the call sites that grow free more than a tenth of their blocks") \
    X(mappings_grow, true, "anonymous memory, shared memory or files outside malloc grow steadily, by at least 1 MiB and a fiftieth of RSS, and more than live bytes") \
    X(stacks, true, "thread stacks have at least 16 MiB and a third of RSS") \
    X(arenas, true, "glibc: free memory has at least 16 MiB and a third of RSS, in at least three arenas, most of it outside the main arena") \
    X(pinned, true, "the same amount of free memory, between live blocks that keep the allocator from returning it") \
    X(retained, true, "the same amount of free memory, which the allocator keeps for later allocations") \
    X(unwritten, true, "at least 16 MiB and three quarters of the live bytes are not resident, and these are more than RSS") \
    X(mappings, true, "memory outside malloc has at least 16 MiB and half of RSS, and does not grow") \
    X(unknown_blocks, true, "heap pages without known blocks have at least 16 MiB and a third of RSS, because the blocks from before the recording are unknown") \
    X(sawtooth, false, "live bytes rise by at least 1 MiB and fall back, and nothing above applies") \
    X(live, false, "live blocks do not grow, and have at least half of RSS") \
    X(healthy, false, "nothing above applies") \
    X(too_short, false, "nothing above applies, and the recording is too short to judge growth") \
    X(unknown, false, "the resident memory is not known, and nothing above applies")
// clang-format on

enum verdict_kind {
#define HT_X(name, act, when) VERDICT_KIND_##name,
    VERDICTS(HT_X)
#undef HT_X
        VERDICT_KINDS
};

enum verdict_sure { VERDICT_LIKELY, VERDICT_SURE, VERDICT_UNSURE };

enum { VERDICT_TEXT_BYTES = 1000, VERDICT_REMEDY_BYTES = 600, VERDICT_FIGURES = 12 };

// A figure behind the sentence.
struct verdict_figure {
    const char *key; // "live_bytes", "arenas": JSON key with its unit
    double value;
};

struct verdict {
    enum verdict_kind kind;
    const char *name;
    bool act;
    char text[VERDICT_TEXT_BYTES];     // one or two sentences
    char remedy[VERDICT_REMEDY_BYTES]; // "": nothing to do
    double saves_bytes;                // resident bytes that the remedy could save; NAN: unknown
    enum verdict_sure sure;
    const char *sure_because; // a clause, or NULL
    struct verdict_figure figures[VERDICT_FIGURES];
    size_t n_figures;
};

// Sets all figures to unknown.
void verdict_facts_init(struct verdict_facts *f);

// Finds the kind and writes the sentences. Names in the facts must outlive *v.
void verdict_find(struct verdict *v, const struct verdict_facts *f);

// Writes the member "verdict".
void verdict_json(struct json *j, const struct verdict *v);

#endif
