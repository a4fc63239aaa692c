#include "formats/formats.h"

#include <errno.h>
#include <string.h>

#define DECLARE(symbol, name, direction, what) extern const struct format format_##symbol;
#define ROW(symbol, name, direction, what)     &format_##symbol,
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

int formats_parse_import(const char *name, void *field)
{
    const struct format *f = *(const struct format **)field = formats_find(name);
    return f && formats_is_read(f) ? 0 : -EINVAL;
}

int formats_parse_export(const char *name, void *field)
{
    const struct format *f = *(const struct format **)field = formats_find(name);
    return f && formats_is_written(f) ? 0 : -EINVAL;
}
