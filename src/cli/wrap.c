#include "cli/wrap.h"

#include "cli/human.h"

#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MIN_COLUMNS = 20, INDENT = 4, LINE_BYTES = 4096 };

// The line that is not complete yet.
static struct {
    FILE *to;
    unsigned columns;
    char line[LINE_BYTES];
    size_t n;
    bool keeps; // do not wrap the line
} wrap;

static unsigned long terminal_columns(int fd)
{
    struct winsize size;
    if (!isatty(fd))
        return 0;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

static unsigned usable_columns(unsigned long columns)
{
    return columns >= MIN_COLUMNS && columns < UINT_MAX ? (unsigned)columns : 0;
}

unsigned wrap_columns(void)
{
    const char *given = getenv("COLUMNS");
    unsigned long n = given ? strtoul(given, NULL, 10) : 0;
    return usable_columns(n ? n : terminal_columns(STDOUT_FILENO));
}

unsigned wrap_error_columns(void)
{
    return usable_columns(terminal_columns(STDERR_FILENO));
}

bool wrap_is_utf8(void)
{
    static int known = -1;
    locale_t locale = known < 0 ? newlocale(LC_CTYPE_MASK, "", (locale_t)0) : (locale_t)0;
    if (known < 0)
        known = locale && strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    if (locale)
        freelocale(locale);
    return known;
}

// Returns the length in bytes of the first character of `text`, including the escape sequences
// before the character.
static size_t column_bytes(const char *text, size_t n)
{
    size_t i = 0;
    while (i + 1 < n && text[i] == '\033') {
        while (i < n && text[i] != 'm')
            i++;
        i += i < n;
    }
    for (i += i < n; i < n && (text[i] & 0xc0) == 0x80; i++)
        ;
    return i;
}

// Returns how many bytes to print on a line of `columns`. If not all bytes fit, the line ends
// before the last space that fits. If there is no such space, the line is filled. The line never
// ends at a leading space.
static size_t fitting_bytes(const char *text, size_t n, unsigned columns)
{
    size_t at = 0, space = 0;
    bool begun = false;
    for (unsigned column = 0; at < n && column < columns; column++) {
        begun |= text[at] != ' ';
        space = begun && text[at] == ' ' ? at : space;
        at += column_bytes(text + at, n - at);
    }
    return at == n ? n : space ? space : at;
}

void wrap_text(FILE *to, const char *text, size_t n, unsigned columns)
{
    size_t cut = columns ? fitting_bytes(text, n, columns) : n;
    fwrite(text, 1, cut, to);
    for (text += cut, n -= cut; n; text += cut, n -= cut) {
        while (n && *text == ' ')
            text++, n--;
        cut = fitting_bytes(text, n, columns - INDENT);
        if (n)
            fprintf(to, "\n%*s", INDENT, "");
        fwrite(text, 1, cut, to);
    }
}

static void put_line(bool ended)
{
    wrap_text(wrap.to, wrap.line, wrap.n, wrap.keeps ? 0 : wrap.columns);
    wrap.keeps = wrap.keeps && !ended;
    if (ended)
        putc('\n', wrap.to);
    wrap.n = 0;
}

static ssize_t write_wrapped(void *cookie, const char *text, size_t n)
{
    (void)cookie;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n')
            put_line(true);
        else
            wrap.line[wrap.n++] = text[i];
        if (wrap.n == sizeof wrap.line)
            put_line(false);
    }
    return fflush(wrap.to) == 0 ? (ssize_t)n : 0;
}

static void flush_last_line(void)
{
    fflush(stdout);
    if (wrap.n)
        put_line(false);
    fflush(wrap.to);
}

void wrap_keep_line(void)
{
    fflush(stdout);
    wrap.keeps = wrap.to != NULL;
}

void wrap_lines(void)
{
    wrap.columns = wrap_columns();
    human_ascii = !wrap_is_utf8();
    FILE *wrapped = wrap.columns
                        ? fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_wrapped})
                        : NULL;
    if (!wrapped || atexit(flush_last_line) != 0)
        return;
    wrap.to = stdout;
    stdout = wrapped;
}
