#include "formats/formats.h"

#include <string.h>

#define DECLARE(symbol, name, direction, reads, writes) extern const struct format format_##symbol;
#define ROW(symbol, name, direction, reads, writes)     &format_##symbol,
FORMATS_TABLE(DECLARE)
const struct format *const formats[] = {FORMATS_TABLE(ROW) NULL};

const struct format *formats_find(const char *name)
{
    for (const struct format *const *f = formats; *f; f++) {
        if (strcmp((*f)->name, name) == 0)
            return *f;
    }
    return NULL;
}
