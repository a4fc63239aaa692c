#include "capture/spool/attach.h"

#include <errno.h>
#include <string.h>

static const char *const functions[SPOOL_WRAPPED] = {
#define ROW(SYMBOL, name) #name,
    SPOOL_WRAP_TABLE(ROW)
#undef ROW
};

uint64_t spool_wrap_address(const char *name)
{
    uint64_t at = 0;
    if (name[0] != '0' || name[1] != 'x')
        return 0;
    for (name += 2; *name; name++) {
        unsigned digit = *name >= '0' && *name <= '9'   ? (unsigned)(*name - '0')
                         : *name >= 'a' && *name <= 'f' ? (unsigned)(*name - 'a' + 10)
                         : *name >= 'A' && *name <= 'F' ? (unsigned)(*name - 'A' + 10)
                                                        : 16;
        if (digit > 15 || at >> 60)
            return 0;
        at = at << 4 | digit;
    }
    return at;
}

// Parses one item of n characters, such as "je_malloc=malloc".
static int parse_one(const char *text, size_t n, struct spool_wrap *to)
{
    const char *equals = memchr(text, '=', n);
    size_t own = equals ? (size_t)(equals - text) : n, i = 0;
    size_t rest = equals ? n - own - 1 : 0;
    while (i < SPOOL_WRAPPED &&
           (strlen(functions[i]) != rest || strncmp(functions[i], text + own + 1, rest) != 0))
        i++;
    if (!own || own >= SPOOL_WRAP_BYTES || i == SPOOL_WRAPPED)
        return -EINVAL;
    if (to->names[i][0])
        return -EEXIST;
    memcpy(to->names[i], text, own);
    return text[0] == '0' && !spool_wrap_address(to->names[i]) ? -EINVAL : 0;
}

int spool_parse_wrap(const char *text, struct spool_wrap *to)
{
    int rc = 0;
    *to = (struct spool_wrap){0};
    while (rc == 0) {
        size_t n = strcspn(text, ",");
        rc = parse_one(text, n, to);
        if (!text[n])
            break;
        text += n + 1;
    }
    for (size_t i = 0; rc == 0 && i < SPOOL_WRAPPED; i++) {
        for (size_t k = 0; k < i; k++)
            rc = to->names[i][0] && strcmp(to->names[i], to->names[k]) == 0 ? -EEXIST : rc;
    }
    return rc;
}
