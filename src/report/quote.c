#include "report/quote.h"

#include "base/json.h"

#include <stdlib.h>

char *quote_json(const char *text)
{
    char *quoted = NULL;
    size_t n;
    FILE *to = open_memstream(&quoted, &n);
    if (!to)
        return NULL;
    json_string(&(struct json){.to = to}, text);
    if (fclose(to) == 0)
        return quoted;
    free(quoted);
    return NULL;
}
