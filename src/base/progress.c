#include "base/progress.h"

#include "base/clock.h"

#include <stdio.h>
#include <unistd.h>

enum { INTERVAL_NS = 100000000 };

void progress_init(struct progress *p, const char *what, const char *unit, uint64_t total,
                   bool quiet)
{
    *p = (struct progress){.what = what, .unit = unit, .total = total};
    p->enabled = !quiet && isatty(STDERR_FILENO);
    p->start_ns = p->shown_ns = clock_monotonic_ns();
}

// Formats three digits and an SI prefix, for example "999" or "12.3 M". Returns true if there is a
// prefix.
static bool print_scaled(double v, char text[32])
{
    static const char prefixes[] = "kMGTPE";
    int at = -1;
    for (; v >= 999.5 && at < 5; at++)
        v /= 1000;
    if (at < 0)
        snprintf(text, 32, "%.0f", v);
    else
        snprintf(text, 32, v < 99.95 ? "%.1f %c" : "%.0f %c", v, prefixes[at]);
    return at >= 0;
}

static void print_left(double seconds, char text[32])
{
    if (seconds < 100)
        snprintf(text, 32, "%.0f s left", seconds);
    else if (seconds < 6000)
        snprintf(text, 32, "%.0f min left", seconds / 60);
    else
        snprintf(text, 32, "%.0f h left", seconds / 3600);
}

void progress_text(const struct progress *p, uint64_t done, uint64_t elapsed_ns, char *text,
                   size_t size)
{
    char count[32], rate[32], left[32] = "";
    double per_second = elapsed_ns ? (double)done * 1e9 / (double)elapsed_ns : 0;
    // A one-letter unit follows the prefix without a space: "12.3 MB", but "12.3 M events".
    const char *gap = print_scaled((double)done, count) && !p->unit[1] ? "" : " ";
    print_scaled(per_second, rate);
    if (!p->total || !done) {
        snprintf(text, size, "%s: %s%s%s, %s/s", p->what, count, gap, p->unit, rate);
        return;
    }
    if (done > p->total)
        done = p->total;
    print_left((double)(p->total - done) / per_second, left);
    snprintf(text, size, "%s: %s%s%s, %u %%, %s/s, %s", p->what, count, gap, p->unit,
             (unsigned)(100.0 * (double)done / (double)p->total), rate, left);
}

void progress_update(struct progress *p, uint64_t done)
{
    char text[256], line[300];
    if (!p || !p->enabled)
        return;
    uint64_t now = clock_monotonic_ns();
    if (now - p->shown_ns < INTERVAL_NS)
        return;
    progress_text(p, done, now - p->start_ns, text, sizeof text);
    int n = snprintf(line, sizeof line, "\r%s\033[K", text);
    p->shown = write(STDERR_FILENO, line, (size_t)n) > 0;
    p->shown_ns = now;
}

void progress_clear(struct progress *p)
{
    if (!p)
        return;
    if (p->shown && write(STDERR_FILENO, "\r\033[K", 4) < 0)
        p->enabled = false;
    p->shown = false;
}
