#include "analysis/growth.h"

#include <math.h>
#include <stdlib.h>

enum {
    WINDOWS = 16,    // only the low level of each window is used, so bursts have no effect
    MIN_WINDOWS = 6, // fewer points may fit a line by chance
    IDLE_POINTS = 8, // number of points added after the last event
    TAUS = 48,       // number of time constants that are tried for a saturating level
};

#define MIN_CHANGE_BYTES            (64 << 10)
#define CHANGE_SHARE                0.002 // smaller changes, as a share of the level, are ignored
#define SWING_SHARE                 0.02  // smaller changes, as a share of the swing, are ignored
#define MISFIT                      0.1   // limit of a model's residuals, as a share of the growth
#define SLOWER                      0.88  // max. ratio of second-half rate to first-half rate
#define MUCH_SLOWER                 0.74  // like SLOWER; below this ratio, the rate is not constant
#define STEP_SHARE                  0.6   // min. share of the growth that a step has in one window
#define HALF_RATIO                  0.5   // min. ratio of the third quarter's rate to the fourth's
#define FALL_SHARE                  0.5   // min. share of the swing by which a saw-tooth falls back
#define SAW_SHARE                   0.1   // min. swing of a saw-tooth, as a share of the maximum
#define PREDICTED_OFF               0.3   // max. error of the prediction, as a share of the growth
#define ALMOST                      0.005 // residual above the best fit, as a share of the rise
#define FULL_SHARE                  0.02  // max. late growth of a full level, as a share
#define MAX_AHEAD                   1.5   // max. ratio of the growth left to the growth so far
#define TAU_MIN                     0.05  // shortest time constant, as a share of the duration
#define TAU_MAX                     4.0   // longest time constant, as a share of the duration
#define CONFIDENCE_95               1.96

#define HT_X(symbol, name, meaning) name,
static const char *const names[] = {GROWTH_SHAPES(HT_X)};
#undef HT_X

const char *growth_shape_name(enum growth_shape shape)
{
    return names[shape];
}

bool growth_is_full(const struct growth *g)
{
    return g->shape == GROWTH_SATURATING && g->late_bytes <= FULL_SHARE * g->grown_bytes;
}

bool growth_is_wave(const struct growth *g)
{
    return g->fallen_bytes >= FALL_SHARE * g->grown_bytes && g->fallen_bytes > 0;
}

struct level {
    double x, y; // seconds since the first point, and bytes
};

// A line a + b u through levels, where u is x or a function of x.
struct growth_line {
    double a, b, squares; // `squares` is the sum of the squared residuals
    double tau;           // if 0, u is x
};

// Divides the time into equal windows and finds the low level of each window. Returns the number of
// windows that contain a point.
static size_t find_lows(const struct growth_point *p, size_t n, struct level lows[WINDOWS])
{
    double from = p[0].ns, width = (p[n - 1].ns - from) / WINDOWS;
    size_t windows = 0;
    double window = -1;
    for (size_t i = 0; i < n; i++) {
        double number = fmin(WINDOWS - 1, floor((p[i].ns - from) / width));
        struct level at = {(p[i].ns - from) / 1e9, p[i].low_bytes};
        if (number > window)
            lows[windows++] = at;
        else if (at.y < lows[windows - 1].y)
            lows[windows - 1] = at;
        window = number;
    }
    return windows;
}

static double transform(double x, double tau)
{
    return tau > 0 ? 1 - exp(-x / tau) : x;
}

// Fits y = a + b u by least squares; u is x, or 1 - exp(-x / tau) if tau is above 0.
static struct growth_line fit_line(const struct level *l, size_t n, double tau)
{
    double u_sum = 0, y_sum = 0, uu = 0, uy = 0;
    struct growth_line line = {.tau = tau};
    for (size_t i = 0; i < n; i++) {
        u_sum += transform(l[i].x, tau);
        y_sum += l[i].y;
    }
    double u_mean = u_sum / (double)n, y_mean = y_sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        double u = transform(l[i].x, tau) - u_mean;
        uu += u * u;
        uy += u * (l[i].y - y_mean);
    }
    line.b = uu > 0 ? uy / uu : 0;
    line.a = y_mean - line.b * u_mean;
    for (size_t i = 0; i < n; i++) {
        double off = l[i].y - line.a - line.b * transform(l[i].x, tau);
        line.squares += off * off;
    }
    return line;
}

// Fits a level that approaches a limit exponentially, and sets the limits in *g.
static struct growth_line fit_saturating(const struct level *l, size_t n, struct growth *g)
{
    double span = l[n - 1].x - l[0].x, step = pow(TAU_MAX / TAU_MIN, 1.0 / (TAUS - 1));
    struct growth_line lines[TAUS], best = {.squares = INFINITY};
    for (unsigned i = 0; i < TAUS; i++) {
        lines[i] = fit_line(l, n, TAU_MIN * span * pow(step, i));
        if (lines[i].squares < best.squares)
            best = lines[i];
    }
    double enough = best.squares + ALMOST * ALMOST * best.b * best.b * (double)n;
    g->limit_bytes = g->limit_low_bytes = g->limit_high_bytes = best.a + best.b;
    for (unsigned i = 0; i < TAUS; i++) {
        double limit = lines[i].a + lines[i].b;
        if (lines[i].squares > enough)
            continue;
        g->limit_low_bytes = fmin(g->limit_low_bytes, limit);
        g->limit_high_bytes = fmax(g->limit_high_bytes, limit);
    }
    return best;
}

static double misfit_of(const struct growth_line *line, size_t n, double grown)
{
    return sqrt(line->squares / (double)n) / fabs(grown);
}

static void set_slope(struct growth *g, const struct level *l, size_t n,
                      const struct growth_line *line)
{
    double x_mean = 0, xx = 0;
    for (size_t i = 0; i < n; i++)
        x_mean += l[i].x / (double)n;
    for (size_t i = 0; i < n; i++)
        xx += (l[i].x - x_mean) * (l[i].x - x_mean);
    g->bytes_per_s = line->b;
    g->bytes_per_s_error =
        n > 2 && xx > 0 ? CONFIDENCE_95 * sqrt(line->squares / (double)(n - 2) / xx) : NAN;
}

static double largest_step(const struct level *l, size_t n)
{
    double step = 0;
    for (size_t i = 1; i < n; i++)
        step = fmax(step, l[i].y - l[i - 1].y);
    return step;
}

// Returns the largest fall from a low level to a later one.
static double largest_fall(const struct level *l, size_t n)
{
    double highest = 0, fall = 0;
    for (size_t i = 0; i < n; i++) {
        highest = fmax(highest, l[i].y);
        fall = fmax(fall, highest - l[i].y);
    }
    return fall;
}

static double lowest_of(const struct level *l, size_t from, size_t to)
{
    double lowest = INFINITY;
    for (size_t i = from; i < to; i++)
        lowest = fmin(lowest, l[i].y);
    return lowest;
}

static double range_of(const struct level *l, size_t from, size_t to)
{
    double highest = -INFINITY;
    for (size_t i = from; i < to; i++)
        highest = fmax(highest, l[i].y);
    return highest - lowest_of(l, from, to);
}

// Returns true if the low levels rise and fall over several windows, as when memory follows a load
// that varies slowly. Then a rise in the second half may be the next wave. After a single burst at
// the start, the second half changes by less.
static bool is_wave(const struct level *l, size_t n)
{
    double range = range_of(l, 0, n);
    return largest_fall(l, n) >= FALL_SHARE * range && range_of(l, n / 2, n) >= FALL_SHARE * range;
}

// Returns true if the low points of waves do not rise. This cannot be judged from a single wave.
static bool is_wave_steady(const struct growth *g, const struct level *l, size_t n, double change)
{
    return g->teeth >= 2 && lowest_of(l, n / 2, n) <= lowest_of(l, 0, n / 2) + change;
}

// Counts how often the level rises from the lowest to the highest quarter of the swing and falls
// back. Returns the largest fall from a peak, in bytes.
static double find_teeth(struct growth *g, const struct growth_point *p, size_t n, double lowest)
{
    double peak = 0, fall = 0;
    bool was_low = false, up = false;
    for (size_t i = 0; i < n; i++) {
        bool is_low = p[i].low_bytes < lowest + 0.25 * g->swing_bytes;
        fall = fmax(fall, peak - p[i].low_bytes);
        peak = fmax(peak, p[i].high_bytes);
        was_low |= is_low;
        if (up && is_low) {
            g->teeth++;
            up = false;
        } else {
            up |= was_low && p[i].high_bytes > lowest + 0.75 * g->swing_bytes;
        }
    }
    return fall;
}

static double slope_between(const struct level *from, const struct level *to)
{
    return (to->y - from->y) / (to->x - from->x);
}

// Returns true if the second half is long enough and, without the first half, fits a line. Part of
// a saturating curve also resembles a line, so the growth in the second half must not slow down.
static bool is_second_linear(const struct level *l, size_t n, double misfit)
{
    size_t half = n / 2, quarter = half + (n - half) / 2;
    if (misfit > MISFIT || n - half < MIN_WINDOWS || (l[n - 1].x - l[half].x) * 1e9 < GROWTH_MIN_NS)
        return false;
    double third = slope_between(&l[half], &l[quarter]),
           fourth = slope_between(&l[quarter], &l[n - 1]);
    return fourth >= SLOWER * third && third >= HALF_RATIO * fourth;
}

// Chooses the model of a level that rises. If only the second half is linear, as after the start of
// a service, *g describes the second half.
static enum growth_shape choose_model(struct growth *g, const struct level *l, size_t n,
                                      double change)
{
    size_t half = n / 2;
    double early = l[half].y - l[0].y, late = l[n - 1].y - l[half].y;
    double early_rate = slope_between(&l[0], &l[half]),
           late_rate = slope_between(&l[half], &l[n - 1]);
    struct growth_line line = fit_line(l, n, 0), curve = fit_saturating(l, n, g),
                       second = fit_line(l + half, n - half, 0);
    // A steep rise followed by a slow rise resembles a saturating curve. In that case, however, the
    // second half grows more than the curve predicts.
    double predicted =
        curve.b * (transform(l[n - 1].x, curve.tau) - transform(l[half].x, curve.tau));
    double misfit = misfit_of(&line, n, g->grown_bytes),
           curve_misfit = misfit_of(&curve, n, g->grown_bytes);
    g->late_bytes = late;
    if (late_rate < SLOWER * early_rate && curve_misfit <= MISFIT &&
        curve.squares < line.squares / 4 &&
        late - predicted <= fmax(change, PREDICTED_OFF * late)) {
        g->misfit = curve_misfit;
        if (g->limit_bytes - g->last_bytes <= MAX_AHEAD * g->grown_bytes)
            return GROWTH_SATURATING;
        g->limit_bytes = g->limit_low_bytes = g->limit_high_bytes = NAN;
        return GROWTH_IRREGULAR;
    }
    g->limit_bytes = g->limit_low_bytes = g->limit_high_bytes = NAN;
    g->misfit = misfit;
    if (is_wave(l, n))
        return is_wave_steady(g, l, n, change) ? GROWTH_SAWTOOTH : GROWTH_IRREGULAR;
    if (late <= change)
        return GROWTH_STEP;
    if (misfit <= MISFIT && largest_step(l, n) < STEP_SHARE * g->grown_bytes &&
        early > change / 2 && late_rate >= MUCH_SLOWER * early_rate)
        return GROWTH_LINEAR;
    double second_misfit = misfit_of(&second, n - half, late);
    if (!is_second_linear(l, n, second_misfit))
        return largest_step(l, n) >= STEP_SHARE * g->grown_bytes ? GROWTH_STEP : GROWTH_IRREGULAR;
    set_slope(g, l + half, n - half, &second);
    g->span_ns = (l[n - 1].x - l[half].x) * 1e9;
    g->first_bytes = l[half].y;
    g->grown_bytes = late;
    g->misfit = second_misfit;
    return GROWTH_LINEAR;
}

void growth_find(struct growth *g, const struct growth_point *p, size_t n)
{
    struct level lows[WINDOWS];
    double highest = 0, lowest = INFINITY;
    *g = (struct growth){.limit_bytes = NAN,
                         .limit_low_bytes = NAN,
                         .limit_high_bytes = NAN,
                         .misfit = NAN,
                         .bytes_per_s_error = NAN};
    for (size_t i = 0; i < n; i++) {
        highest = fmax(highest, p[i].high_bytes);
        lowest = fmin(lowest, p[i].low_bytes);
    }
    g->span_ns = n ? p[n - 1].ns - p[0].ns : 0;
    g->swing_bytes = n ? highest - lowest : 0;
    if (!(g->span_ns > 0))
        return;
    size_t windows = find_lows(p, n, lows);
    g->first_bytes = lows[0].y;
    g->last_bytes = lows[windows - 1].y;
    g->grown_bytes = g->last_bytes - g->first_bytes;
    if (g->span_ns < GROWTH_MIN_NS || windows < MIN_WINDOWS)
        return;
    struct growth_line line = fit_line(lows, windows, 0);
    set_slope(g, lows, windows, &line);
    double change =
        fmax(fmax(MIN_CHANGE_BYTES, CHANGE_SHARE * g->last_bytes), SWING_SHARE * g->swing_bytes);
    double fall = find_teeth(g, p, n, lowest);
    g->fallen_bytes = largest_fall(lows, windows);
    g->trough_bytes = lowest_of(lows, windows / 2, windows);
    if (g->grown_bytes > change)
        g->shape = choose_model(g, lows, windows, change);
    else if (g->swing_bytes <= change)
        g->shape = GROWTH_STEADY;
    else if (g->teeth && fall >= FALL_SHARE * g->swing_bytes &&
             g->swing_bytes >= SAW_SHARE * highest)
        g->shape = GROWTH_SAWTOOTH;
    else
        g->shape = g->grown_bytes < -change ? GROWTH_FALLING : GROWTH_STEADY;
}

// Returns the points of the first `bins` bins of a timeline, scaled so that the last bin ends at
// span_ns. Sets *n to the number of points. The array has space for IDLE_POINTS more points. The
// caller frees the array. Returns NULL when out of memory.
static struct growth_point *points_of(const struct timeline *t, size_t bins, double span_ns,
                                      size_t *n)
{
    struct growth_point *points = calloc(bins + IDLE_POINTS, sizeof *points);
    *n = 0;
    for (size_t i = 0; points && i < bins; i++) {
        const struct timeline_bin *bin = &t->bins[i];
        if (!bin->end_event && !bin->end_bytes)
            continue; // before the first event or block
        // Blocks that are older than the recording appear within the first bin.
        uint64_t low = *n ? bin->counts.min_bytes : bin->end_bytes;
        points[(*n)++] = (struct growth_point){(double)(i + 1) / (double)bins * span_ns,
                                               (double)low, (double)bin->counts.max_bytes};
    }
    return points;
}

uint64_t growth_of_timeline(struct growth *g, const struct timeline *t, size_t bins, double span_ns,
                            double idle_until_ns)
{
    size_t n;
    struct growth_point *points = points_of(t, bins, span_ns, &n);
    double idle_ns = (idle_until_ns - span_ns) / IDLE_POINTS;
    for (unsigned i = 0; points && n && idle_ns > 0 && i < IDLE_POINTS; i++, n++) {
        double level = (double)t->bins[bins - 1].end_bytes;
        points[n] = (struct growth_point){points[n - 1].ns + idle_ns, level, level};
    }
    if (points)
        growth_find(g, points, n);
    double from_ns = points && n ? points[n - 1].ns - g->span_ns : 0;
    size_t skipped = (size_t)fmax(0, round(from_ns / span_ns * (double)bins) - 1);
    free(points);
    return skipped && skipped <= bins ? t->bins[skipped - 1].end_event : 0;
}
