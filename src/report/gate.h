// Limits of `diff --fail-on`.
#pragma once

#include "base/err.h"
#include "report/sites_diff.h"

#include <regex.h>

// Figures of a recording or of call sites. X(name, member of struct sites_diff_side, is_bytes,
// label) is called for each figure. is_bytes is true if the figure is a number of bytes.
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

// An argument of --fail-on.
struct gate {
    const char *text; // borrowed
    enum gate_metric metric;
    // is_share: `limit` is a share of `a`. is_growth: `limit` is compared with b - a. If is_growth
    // is false, `limit` is compared with `b`.
    bool is_share, is_growth;
    double limit;
    bool has_sites;
    regex_t sites; // pattern of the call sites whose figures are summed
    uint64_t a, b; // totals for the matching call sites, or figures that gate_check has set
    bool failed;
};

// Parses "[site:REGEX:]METRIC>[+]NUMBER[%|B|KiB|MiB|GiB]"; a percentage requires the "+". Returns
// 0, or -EINVAL with the message set. On success, the caller must release *g.
int gate_parse(struct gate *g, const char *text, struct err *e);
void gate_release(struct gate *g);

uint64_t gate_value(const struct sites_diff_side *s, enum gate_metric metric);

// If the pattern matches a call site, adds the site's figures to `a` (side 0) or `b` (side 1). The
// pattern is compared with the shown function, and with the allocation wrappers and library
// functions through which the shown function allocates.
void gate_count(struct gate *g, unsigned side, const struct stack *stack,
                const struct sites_diff_side *totals);

// Sets `failed`. If has_sites is not set, also sets `a` and `b`. `totals` describes the whole
// recordings. Call after all call sites have been counted.
void gate_check(struct gate *g, const struct sites_diff_side totals[2]);
