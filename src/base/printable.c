#include "base/printable.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ESCAPE_BYTES = 4 }; // \xNN

size_t printable_utf8(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return 1;
    size_t want = s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    if (!want || want > n || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < want; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool beyond = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
    return overlong || beyond ? 0 : want;
}

// Returns true for U+2028 to U+202E and U+2066 to U+2069, which end lines or change the direction
// of text.
static bool changes_direction(const unsigned char *s)
{
    bool lines = s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae;
    bool isolates = s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9;
    return s[0] == 0xe2 && (lines || isolates);
}

size_t printable_length(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t length = printable_utf8(text, n);
    bool control = length == 1   ? s[0] < 0x20 || s[0] == 0x7f
                   : length == 2 ? s[0] == 0xc2 && s[1] < 0xa0
                                 : false;
    return control || (length == 3 && changes_direction(s)) ? 0 : length;
}

static void escape_byte(char to[ESCAPE_BYTES + 1], char c)
{
    snprintf(to, ESCAPE_BYTES + 1, "\\x%02x", (unsigned char)c);
}

size_t printable_copy(char *to, size_t room, const char *text, size_t n)
{
    size_t used = 0;
    for (size_t i = 0, length; i < n; i += length ? length : 1) {
        char escaped[ESCAPE_BYTES + 1];
        length = printable_length(text + i, n - i);
        if (!length)
            escape_byte(escaped, text[i]);
        size_t bytes = length ? length : ESCAPE_BYTES;
        if (bytes >= room - used)
            break;
        memcpy(to + used, length ? text + i : escaped, bytes);
        used += bytes;
    }
    to[used] = 0;
    return used;
}

size_t printable_cut(const char *text, size_t max)
{
    size_t n = strnlen(text, max);
    while (text[n] && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return n;
}

void printable_words(char *to, size_t max, const char *arguments, size_t bytes)
{
    size_t n = bytes ? bytes - 1 : 0;
    // A program that changes its title pads the title with spaces or with empty arguments.
    while (n && (arguments[n - 1] == ' ' || !arguments[n - 1]))
        n--;
    size_t cut = n < max ? n : max;
    while (n > cut && cut && ((unsigned char)arguments[cut] & 0xc0) == 0x80)
        cut--;
    for (size_t i = 0; i < cut; i++)
        to[i] = arguments[i] ? arguments[i] : ' ';
    strcpy(to + cut, n > cut ? "..." : "");
}

void printable_print(FILE *to, const char *text, size_t n)
{
    for (size_t i = 0, length; i < n; i += length ? length : 1) {
        length = printable_length(text + i, n - i);
        if (length)
            fwrite(text + i, 1, length, to);
        else
            fprintf(to, "\\x%02x", (unsigned char)text[i]);
    }
}

char *printable_new(const char *text)
{
    size_t n = strlen(text), room = n > SIZE_MAX / ESCAPE_BYTES - 1 ? 0 : n * ESCAPE_BYTES + 1;
    char *copy = room ? malloc(room) : NULL;
    if (copy)
        printable_copy(copy, room, text, n);
    return copy;
}
