// Parses durations such as 1h, 5min, 1.5s, 20ms, 300us and 1000ns.
#pragma once

#include <stdint.h>

// Returns 0, -EINVAL (also if the unit is missing), or -ERANGE if the duration is too long.
int span_parse(const char *text, uint64_t *ns);

// Like span_parse, but a number without a unit is in seconds.
int span_parse_seconds(const char *text, uint64_t *ns);
