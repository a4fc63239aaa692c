// What a reduced workload must still show: `--keep` of heaptape reduce.
#ifndef HEAPTAPE_REDUCE_CONDITION_H
#define HEAPTAPE_REDUCE_CONDITION_H

#include "base/err.h"
#include "replay/run.h"

enum { CONDITION_MAX = 16 }; // of one reduction

enum condition_kind {
    CONDITION_FIGURES, // a comparison of figures holds
    CONDITION_VERIFY, // the allocator violates the malloc contract, in the way that it does in the input
    CONDITION_CRASH, // the player is ended by the same signal or exit status
    CONDITION_HANG,  // the replay makes no progress for the timeout
};

// Replays that a comparison needs; bits.
enum {
    CONDITION_NEEDS_MEMORY = 1,  // with coupled threads
    CONDITION_NEEDS_TIME = 2,    // with threads as fast as they go
    CONDITION_NEEDS_LATENCY = 4, // with timed calls
};

// How the input fails, which a reduced workload has to do, too.
struct condition_expected {
    bool known;
    uint32_t violation; // CONDITION_VERIFY: enum results_violation, else 0
    int wait_status;    // CONDITION_CRASH: as of wait(2), else that of a player that was stopped
};

struct condition {
    const char *text; // borrowed
    enum condition_kind kind;
    struct allocator allocator;
    const char *comparison; // part of text
    unsigned needs;
    struct condition_expected expected;
    double
        floor_bytes; // that a quotient of bytes must have as its dividend, in comparisons with > or >=
    double margin; // by which the sides must differ, as a part of the right one
};

// The result of replays that a comparison is about.
struct condition_figures {
    union figures figures;
    const struct replay_call *calls; // HT_KIND_LIMIT; NULL: not timed
};

// What was seen of a condition.
struct condition_seen {
    double left, right;    // of the comparison; NAN: not known
    double dividend_bytes; // the lowest dividend of its quotients of bytes, INFINITY: it has none
    double margin;         // by which the sides differ, as a part of the right one
    uint32_t violation;    // CONDITION_VERIFY
    int wait_status;       // CONDITION_CRASH
};

// Parses "[ALLOCATOR: ]verify|crash|hang" or "[ALLOCATOR: ]A > B", where A and B are made of numbers, figures, + - * / and
// parentheses. `allocator` is the one of a condition that names none. 0, or a negative errno with the text set, -EINVAL if
// it cannot be parsed, -ENOENT if the allocator cannot be found. To be released after 0.
int condition_parse(struct condition *c, const char *text, const char *allocator, struct err *e);
void condition_release(struct condition *c);

// Does the comparison hold? What it compared goes to *seen.
bool condition_compare(const struct condition *c, const struct condition_figures *f,
                       struct condition_seen *seen);

#endif
