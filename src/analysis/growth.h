// Classifies how an amount of memory changes over time: steady, linear, saturating or saw-tooth.
#pragma once

#include "analysis/timeline.h"

#include <stdbool.h>
#include <stddef.h>

// GROWTH_SHAPES(X) calls X(SYMBOL, name in JSON, meaning) for each shape.
#define GROWTH_SHAPES(X)                                                                           \
    X(UNKNOWN, "unknown", "the time is too short, or there are too few points")                    \
    X(STEADY, "steady", "the level hardly changes, compared with itself")                          \
    X(LINEAR, "linear", "the level rises at a constant rate")                                      \
    X(SATURATING, "saturating", "the level rises more and more slowly, towards a limit")           \
    X(SAWTOOTH, "saw-tooth", "the level rises and falls, and its low points do not rise")          \
    X(STEP, "step", "the level rises in a small part of the time, and is steady otherwise")        \
    X(IRREGULAR, "irregular", "the level rises, perhaps falls, and fits none of the other shapes") \
    X(FALLING, "falling", "the level falls")

enum growth_shape {
#define HT_X(symbol, name, meaning) GROWTH_##symbol,
    GROWTH_SHAPES(HT_X)
#undef HT_X
        GROWTH_SHAPE_COUNT
};

// Minimum duration for a classification.
#define GROWTH_MIN_NS 3e9

// Lowest and highest level since the previous point. `ns` is a time, or an event number scaled to
// the duration. If a server's load varies, its memory may grow linearly over events but not over
// time.
struct growth_point {
    double ns, low_bytes, high_bytes;
};

struct growth {
    enum growth_shape shape;
    double span_ns;                 // time between the first and the last point
    double first_bytes, last_bytes; // low level in the first and in the last part of the run
    double grown_bytes;             // last_bytes minus first_bytes
    double late_bytes;              // growth in the second half of the time, if the level rises
    double swing_bytes;             // highest level minus lowest level
    double fallen_bytes;            // largest fall between low levels
    double trough_bytes;            // SAWTOOTH: lowest low level of the second half
    double bytes_per_s;             // slope of the line through the low levels
    double bytes_per_s_error;       // half the width of the slope's 95 % interval
    double misfit;                  // root mean square of the residuals, as a share of grown_bytes
    // For SATURATING, limit_bytes is the level that the model approaches. Limits from
    // limit_low_bytes to limit_high_bytes fit almost as well.
    double limit_bytes, limit_low_bytes, limit_high_bytes;
    unsigned teeth; // number of times that the level rose by most of the swing and fell back
};

// Fits the models to n points with increasing `ns`.
void growth_find(struct growth *g, const struct growth_point *points, size_t n);

// Finds the growth over the first `bins` bins of a timeline. If idle_until_ns exceeds span_ns, the
// program made no more calls until that time. Returns the number of events before the part of the
// run that *g describes.
uint64_t growth_of_timeline(struct growth *g, const struct timeline *t, size_t bins, double span_ns,
                            double idle_until_ns);

// Returns true if the level has reached its limit, so that it hardly grows in the second half.
bool growth_is_full(const struct growth *g);

// Returns true if the low levels fell by at least half of the growth.
bool growth_is_wave(const struct growth *g);

// Returns the name of the shape in JSON.
const char *growth_shape_name(enum growth_shape shape);
