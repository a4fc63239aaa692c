#include "report/text/findings.h"
#include "base/printable.h"
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

enum { LINE_COLUMNS = 80, INDENT = 2 };

// Returns the length of the first word in bytes, and its width in *columns.
static size_t next_word(const char *text, size_t *columns)
{
    size_t n = strcspn(text, " ");
    *columns = 0;
    for (size_t i = 0; i < n; i++)
        *columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

// Prints words from `column` on, in lines of LINE_COLUMNS, and returns the next column. Function
// names come from the file, so only printable characters are written.
static size_t print_words(const char *text, size_t column)
{
    while (*text) {
        size_t columns, n = next_word(text, &columns);
        bool first = column == INDENT;
        if (!first && column + 1 + columns > LINE_COLUMNS) {
            printf("\n%*s", INDENT, "");
            column = INDENT;
            first = true;
        }
        printf("%s", first ? "" : " ");
        printable_print(stdout, text, n);
        column += columns + !first;
        text += n + (text[n] == ' ');
    }
    return column;
}

void findings_print(const struct findings *f)
{
    if (f->n)
        cli_table_head("\nfindings (* where a change may pay)");
    for (size_t i = 0; i < f->n; i++) {
        printf("%s ", f->items[i].act ? "*" : "-");
        size_t column = print_words(f->items[i].text, INDENT);
        print_words(f->items[i].advice, column);
        putchar('\n');
    }
}
