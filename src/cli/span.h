// Spans of time as people write them: 1h, 5min, 1.5s, 20ms, 300us, 1000ns.
#ifndef HEAPTAPE_CLI_SPAN_H
#define HEAPTAPE_CLI_SPAN_H

#include <stdint.h>

// 0; -EINVAL: it is none (it needs its unit), -ERANGE: too long.
int span_parse(const char *text, uint64_t *ns);

#endif
