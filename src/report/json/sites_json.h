// JSON of call sites, with function names.
#pragma once

#include "analysis/by_site.h"
#include "analysis/coverage.h"
#include "analysis/symbols/symbols.h"
#include "base/json.h"
#include "report/profile.h"
#include "report/stat_figures.h"

// All members are borrowed.
struct sites_json {
    const struct by_site *totals;
    struct symbols *symbols;
};

// Limits of a brief site, to keep reports small.
enum {
    SITES_JSON_FUNCTIONS = 32,
    SITES_JSON_NAME_BYTES = 160,
};

// Writes a function as a brief object.
void sites_json_function(struct json *j, const struct symbol *s);

// Writes a site as an object. If `brief` is set, the object has at most SITES_JSON_FUNCTIONS
// functions, and names and paths are cut to SITES_JSON_NAME_BYTES. A brief object in the totals of
// a report (by_site.detailed) has no functions.
void sites_json_site(struct json *j, const struct sites_json *n, uint32_t number, bool brief);

// Writes the member "span": by thread and by size, the blocks that were allocated in the span and
// are live at the end of the span. Writes nothing if no span was counted.
void sites_json_span(struct json *j, const struct by_site_span *s);

// Writes the member "stack_coverage". Writes nothing if no call sites were recorded.
void sites_json_coverage(struct json *j, const struct coverage *c);

// Writes the member "wrappers", the allocation wrappers that call sites omit.
void sites_json_wrappers(struct json *j, const struct sites_json *n);

// Lists of call sites, the heaviest sites first. X(key, sort key, max_length) is called for each
// list. The sort key is PROFILE(weight) or USE(member of struct site_use).
// clang-format off
#define SITES_JSON_LISTS(X) \
    X(at_peak, PROFILE(PROFILE_PEAK), SITES_JSON_TOP) \
    X(at_end, PROFILE(PROFILE_LIVE), SITES_JSON_TOP) \
    X(by_growth, PROFILE(PROFILE_GROWTH), SITES_JSON_TOP) \
    X(by_short_lived, USE(short_lived), SITES_JSON_TOP_USES) \
    X(by_remote_frees, USE(remote), SITES_JSON_TOP_USES) \
    X(by_regrown, USE(regrown.bytes), SITES_JSON_TOP_USES) \
    X(by_above_class, USE(above.bytes), SITES_JSON_TOP_USES) \
    X(by_unused, USE(big_unused), SITES_JSON_TOP_USES)
// clang-format on

enum sites_json_list {
#define HT_X(key, by, max) SITES_JSON_##key,
    SITES_JSON_LISTS(HT_X)
#undef HT_X
        SITES_JSON_LIST_COUNT
};

enum { SITES_JSON_TOP = 20, SITES_JSON_TOP_USES = 3 };

// Fills `top` with the site numbers of a list, and returns how many there are. If sites are equal,
// the lower number comes first.
size_t sites_json_list(const struct by_site *b, enum sites_json_list list,
                       uint32_t top[SITES_JSON_TOP]);

// Returns the figure of a site by which the list is sorted.
uint64_t sites_json_weight(const struct by_site *b, enum sites_json_list list, uint32_t site);

// Figures about the use of a site's blocks. X(key in JSON, member of struct site_use) is called for
// each figure.
#define SITES_JSON_USES(X)                                                                         \
    X(freed_blocks, freed)                                                                         \
    X(short_lived_blocks, short_lived)                                                             \
    X(remotely_freed_blocks, remote)                                                               \
    X(replaced_blocks, replaced)                                                                   \
    X(regrown_blocks, regrown.blocks)                                                              \
    X(regrown_bytes, regrown.bytes)                                                                \
    X(above_class_blocks, above.blocks)                                                            \
    X(above_class_lost_bytes, above.bytes)                                                         \
    X(big_block_measured_bytes, big_measured)                                                      \
    X(big_block_unused_bytes, big_unused)

// Returns the object that docs/reference/json/report.schema.json calls "profile": the stacks as a
// tree, the totals, the flow over the run, and the parts. The object has about `max_bytes` bytes.
// If there is not enough space, the lightest sites are summed. Requires sites that were counted
// with by_site.detailed. Returns NULL when out of memory. The caller frees the string.
char *sites_profile(const struct sites_json *n, size_t max_bytes);

// Writes the member "call_sites", the lists with brief sites.
void sites_json_top(struct json *j, const struct sites_json *n, const union stat_figures *f);
