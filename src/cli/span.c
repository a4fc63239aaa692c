#include "cli/span.h"

#include "base/clock.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

// Returns the length of `unit` in ns, or `bare_ns` if `unit` is empty. Returns 0 if there is no
// such unit.
static uint64_t unit_ns(const char *unit, uint64_t bare_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1},          {"us", 1000},         {"ms", 1000000},     {"s", 1000000000},
                 {"m", 60000000000}, {"min", 60000000000}, {"h", 3600000000000}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(unit, units[i].name) == 0)
            return units[i].ns;
    }
    return *unit ? 0 : bare_ns;
}

static int parse_span(const char *text, uint64_t bare_ns, uint64_t *ns)
{
    size_t digits = strspn(text, "0123456789"), parts = 0;
    const char *unit = text + digits;
    if (*unit == '.') {
        parts = strspn(unit + 1, "0123456789");
        unit += 1 + parts;
    }
    uint64_t one = unit_ns(unit, bare_ns), whole = 0, part = 0, worth = one;
    if (!(digits || parts) || !one || (unit != text + digits && !parts))
        return -EINVAL;
    for (size_t i = 0; i < digits; i++) {
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(text[i] - '0'), &whole))
            return -ERANGE;
    }
    // Digits below a nanosecond are ignored.
    for (size_t i = 0; i < parts && worth >= 10; i++) {
        worth /= 10;
        part += (uint64_t)(text[digits + 1 + i] - '0') * worth;
    }
    if (__builtin_mul_overflow(whole, one, &whole) || __builtin_add_overflow(whole, part, ns))
        return -ERANGE;
    return 0;
}

int span_parse(const char *text, uint64_t *ns)
{
    return parse_span(text, 0, ns);
}

int span_parse_seconds(const char *text, uint64_t *ns)
{
    return parse_span(text, CLOCK_NS_PER_S, ns);
}
