// Limits of `diff --fail-on`.
#ifndef HEAPTAPE_REPORT_GATE_H
#define HEAPTAPE_REPORT_GATE_H

#include "base/err.h"
#include "report/sites_diff.h"

#include <regex.h>

// Figures of a recording or of call sites: X(name, member of struct sites_diff_side, whether it is
// in bytes, label).
#define GATE_METRICS(X)                                                                            \
    X(peak_live, peak_bytes, true, "live at peak")                                                 \
    X(end_live, end_bytes, true, "live at end")                                                    \
    X(bytes, bytes, true, "allocated")                                                             \
    X(calls, calls, false, "allocations")

enum gate_metric {
#define HT_X(name, member, is_bytes, label) GATE_##name,
    GATE_METRICS(HT_X)
#undef HT_X
        GATE_METRIC_COUNT
};

struct gate_metric_info {
    const char *name, *label;
    bool is_bytes;
};

extern const struct gate_metric_info gate_metrics[GATE_METRIC_COUNT];

// One argument of --fail-on.
struct gate {
    const char *text; // borrowed
    enum gate_metric metric;
    // is_share: `limit` is a share of `a`. is_growth: `limit` applies to b - a; otherwise it
    // applies to b.
    bool is_share, is_growth;
    double limit;
    bool has_sites;
    regex_t sites; // the figures of the call sites that match are summed
    uint64_t a, b; // of all matching call sites, or set by gate_check
    bool failed;
};

// Parses "[site:REGEX:]METRIC>[+]NUMBER[%|B|KiB|MiB|GiB]"; a percentage needs the "+". Returns 0,
// after which *g has to be released, or -EINVAL with the message set.
int gate_parse(struct gate *g, const char *text, struct err *e);
void gate_release(struct gate *g);

uint64_t gate_value(const struct sites_diff_side *s, enum gate_metric metric);

// Adds the figures of a call site to a (side 0) or b (side 1) if the shown function matches, or a
// function through which the shown function allocates: an allocation wrapper or a library function.
void gate_count(struct gate *g, unsigned side, const struct stack *stack,
                const struct sites_diff_side *totals);

// Sets `failed` and, without has_sites, a and b. `totals` describes the whole recordings. Call after
// all call sites are counted.
void gate_check(struct gate *g, const struct sites_diff_side totals[2]);

#endif
