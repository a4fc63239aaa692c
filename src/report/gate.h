// Limits on what may grow from one recording to another, as `diff --fail-on` has them.
#ifndef HEAPTAPE_REPORT_GATE_H
#define HEAPTAPE_REPORT_GATE_H

#include "base/err.h"
#include "report/sites_diff.h"

#include <regex.h>

// Figures of two whole recordings or of call sites: X(name, member of struct sites_diff_side, is in bytes, label).
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

// One --fail-on.
struct gate {
    const char *text; // borrowed
    enum gate_metric metric;
    bool is_share, is_growth; // the limit is a share of a; an increase, else the value of b itself
    double limit;
    bool has_sites;
    regex_t sites; // functions whose call sites are added up
    // After gate_check:
    uint64_t a, b;
    bool failed;
};

// Parses "[site:REGEX:]METRIC>[+]NUMBER[%|B|KiB|MiB|GiB]"; a share needs the "+". 0 or -EINVAL with the text set. To be
// released after 0.
int gate_parse(struct gate *g, const char *text, struct err *e);
void gate_release(struct gate *g);

uint64_t gate_value(const struct sites_diff_side *s, enum gate_metric metric);

// Does b exceed the limit? `totals` are the whole recordings'. Without a site that matches, both are 0.
void gate_check(struct gate *g, const struct sites_diff_side totals[2],
                const struct sites_diff *sites);

#endif
