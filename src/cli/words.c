#include "cli/words.h"

#include "base/printable.h"

#include <string.h>

static size_t count_columns(const char *text, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0; i < n; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

size_t words_columns(const char *text)
{
    return count_columns(text, strlen(text));
}

size_t words_print(FILE *to, const char *text, size_t column, size_t indent, unsigned *breaks)
{
    while (*text) {
        size_t n = strcspn(text, " "), columns = count_columns(text, n);
        bool first = column == indent;
        if (!first && column + 1 + columns > WORDS_COLUMNS) {
            if (to)
                fprintf(to, "\n%*s", (int)indent, "");
            *(breaks ? breaks : &(unsigned){0}) += 1;
            column = indent;
            first = true;
        }
        if (to && !first)
            putc(' ', to);
        if (to)
            printable_print(to, text, n);
        column += columns + !first;
        text += n + (text[n] == ' ');
    }
    return column;
}
