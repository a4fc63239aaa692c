// Parses the value of --stacks. Nothing here allocates, because the capture library uses this file
// too.
#include "capture/spool/spool.h"

#include <errno.h>
#include <string.h>

static int parse_bytes(const char *text, uint64_t *to)
{
    static const char units[] = "KMGT";
    uint64_t n = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (n > SPOOL_MAX_SAMPLE)
            return -ERANGE;
        n = n * 10 + (uint64_t)(*at - '0');
    }
    const char *unit = at > text && *at ? strchr(units, *at) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (at == text || (*at && (!unit || at[1])))
        return -EINVAL;
    *to = n << shift;
    return n > SPOOL_MAX_SAMPLE >> shift ? -ERANGE : 0;
}

int spool_parse_stacks(const char *text, struct spool_stacks *to)
{
    static const char sample[] = "sample";
    const size_t n = sizeof sample - 1;
    uint64_t number = SPOOL_SAMPLE_BYTES;
    bool sampled = strncmp(text, sample, n) == 0 && (!text[n] || text[n] == ':');
    int rc = !sampled  ? parse_bytes(text, &number)
             : text[n] ? parse_bytes(text + n + 1, &number)
                       : 0;
    if (rc == 0 && (number == 0 || (!sampled && number > SPOOL_MAX_DEPTH)))
        rc = -ERANGE;
    if (rc == 0)
        *to = (struct spool_stacks){sampled ? SPOOL_MAX_DEPTH : (uint32_t)number,
                                    sampled ? number : 0};
    return rc;
}
