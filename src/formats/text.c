#include "formats/text.h"

#include <stdio.h>

void text_quote(char quoted[40], const char *at, const char *end)
{
    size_t n = 0;
    while (n < 16 && at + n < end && at[n] > ' ' && at[n] < 0x7f)
        n++;
    if (n)
        snprintf(quoted, 40, "'%.*s'", (int)n, at);
    else if (at >= end)
        snprintf(quoted, 40, "the end of the line");
    else if (*at == ' ')
        snprintf(quoted, 40, "a space");
    else
        snprintf(quoted, 40, "byte 0x%02x", (unsigned char)*at);
}
