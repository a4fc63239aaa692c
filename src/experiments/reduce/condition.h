// Conditions that a reduced workload must keep: `--keep` of heaptape reduce.
#pragma once

#include "base/err.h"
#include "replay/run.h"

enum { CONDITION_MAX = 16 }; // maximum number of conditions of a reduction

enum condition_kind {
    CONDITION_FIGURES, // a comparison of figures holds
    // The allocator violates the malloc contract in the same way as with the input.
    CONDITION_VERIFY,
    // The player ends with the same signal or exit status as with the input.
    CONDITION_CRASH,
    CONDITION_HANG, // the replay makes no progress until the timeout
};

// Kinds of replay that a comparison needs. The values are bits.
enum {
    CONDITION_NEEDS_MEMORY = 1,  // coupled threads
    CONDITION_NEEDS_TIME = 2,    // threads at full speed
    CONDITION_NEEDS_LATENCY = 4, // timed calls
};

// The failure that the input triggers. A reduced workload must trigger the same failure.
struct condition_expected {
    bool known;
    uint32_t violation; // with CONDITION_VERIFY: enum results_violation; else 0
    // With CONDITION_CRASH: status as from wait(2); else the status of a stopped player.
    int wait_status;
};

struct condition {
    const char *text; // borrowed
    enum condition_kind kind;
    struct allocator allocator;
    const char *comparison; // part of `text`
    unsigned needs;
    struct condition_expected expected;
    double floor_bytes; // minimum dividend of a quotient of bytes, in comparisons with > or >=
    double margin;      // minimum difference between the sides, as a share of the right side
};

// Figures of the replays that a comparison uses.
struct condition_figures {
    union figures figures;
    const struct replay_call *calls; // array of HT_KIND_LIMIT items; NULL if not timed
};

// Observed values of a condition.
struct condition_seen {
    double left, right; // sides of the comparison; NAN if unknown
    // Lowest dividend of all quotients of bytes, or INFINITY if there are no such quotients.
    double dividend_bytes;
    double margin;      // difference between the sides, as a share of the right side
    uint32_t violation; // with CONDITION_VERIFY
    int wait_status;    // with CONDITION_CRASH
};

// Parses "[ALLOCATOR: ]verify|crash|hang" or "[ALLOCATOR: ]A > B". A and B consist of numbers,
// figures, + - * / and parentheses. `allocator` is the default allocator. Returns 0, -EINVAL for
// invalid syntax, -ENOENT for an unknown allocator, or another negative errno, with the message
// set. After 0, the caller must release *c.
int condition_parse(struct condition *c, const char *text, const char *allocator, struct err *e);
void condition_release(struct condition *c);

// Returns true if the comparison holds. Stores the compared values in *seen.
bool condition_compare(const struct condition *c, const struct condition_figures *f,
                       struct condition_seen *seen);
