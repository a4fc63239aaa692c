#include "record/flight/window.h"

#include "cli/options.h"
#include "cli/span.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int flight_window_parse(const char *text, struct flight_window *w)
{
    char *copy = strdup(text), *rest = copy;
    int rc = copy ? 0 : -ENOMEM;
    *w = (struct flight_window){0, UINT64_MAX};
    for (char *one; rc == 0 && (one = strsep(&rest, ","));) {
        if (w->ns == UINT64_MAX && span_parse(one, &w->ns) == 0)
            rc = w->ns ? 0 : -EINVAL;
        else
            rc = w->bytes || options_parse_size(one, &w->bytes) < 0 ? -EINVAL
                 : w->bytes < FLIGHT_MIN_BYTES                      ? -ERANGE
                                                                    : 0;
    }
    free(copy);
    return rc;
}

char *flight_path(const char *pattern, uint64_t number)
{
    const char *at = strstr(pattern, "%n");
    char *path = NULL;
    if (!at)
        return strdup(pattern);
    if (asprintf(&path, "%.*s%llu%s", (int)(at - pattern), pattern, (unsigned long long)number,
                 at + 2) < 0)
        return NULL;
    return path;
}
