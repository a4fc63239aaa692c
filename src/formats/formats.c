#include "formats/formats.h"

#include <string.h>

#define DECLARE(symbol, name, direction, summary, loses) extern const struct format format_##symbol;
#define ROW(symbol, name, direction, summary, loses)     &format_##symbol,
IO_FORMATS(DECLARE)
const struct format *const formats[] = {IO_FORMATS(ROW) NULL};

const struct format *format_find(const char *name)
{
    for (const struct format *const *f = formats; *f; f++) {
        if (strcmp((*f)->name, name) == 0)
            return *f;
    }
    return NULL;
}
