// Messages on standard error, and printable text.
#include "base/printable.h"
#include "cli/command.h"
#include "cli/wrap.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cli_common cli_common;

// Prints one line with control characters escaped, wrapped at the width of a terminal.
static void print_line(const char *fmt, va_list args)
{
    char text[2048] = "heaptape: ", line[4096];
    size_t n = strlen(text);
    vsnprintf(text + n, sizeof text - n, fmt, args);
    printable_copy(line, sizeof line, text, strlen(text));
    fflush(stdout);
    flockfile(stderr);
    wrap_text(stderr, line, strlen(line), wrap_error_columns());
    putc('\n', stderr);
    funlockfile(stderr);
}

void die(int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_line(fmt, args);
    va_end(args);
    exit(code);
}

void die_on_error(int rc, int code, const struct err *e)
{
    if (rc < 0)
        die(code, "%s", e->text);
}

void note(const char *fmt, ...)
{
    va_list args;
    if (cli_common.quiet)
        return;
    va_start(args, fmt);
    print_line(fmt, args);
    va_end(args);
}

void cli_warn(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_line(fmt, args);
    va_end(args);
}

void cli_flush(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    // If an earlier write failed, another write has the reason.
    if (!errno && write(STDOUT_FILENO, "\n", 1) >= 0)
        die(EXIT_FAILED, "(stdout): cannot write");
    die(EXIT_FAILED, "(stdout): %s", strerror(errno));
}

void note_text(const char *text)
{
    note("%s", text);
}

void error_text(const char *text)
{
    cli_warn("%s", text);
}

// Returns the next of 8 buffers, resized to `bytes`.
static char *text_buffer(size_t bytes)
{
    static char *texts[8];
    static unsigned next;
    char **at = &texts[next++ % (sizeof texts / sizeof *texts)], *text = realloc(*at, bytes);
    if (!text)
        die(EXIT_FAILED, "out of memory");
    return *at = text;
}

const char *cli_text(const char *text)
{
    size_t n = strlen(text), bytes = 4 * n + 1; // \xNN for each byte
    char *copy = text_buffer(bytes);
    printable_copy(copy, bytes, text, n);
    return copy;
}

const char *cli_cell(const char *text, size_t width)
{
    const char *shown = cli_text(text);
    size_t n = 0, characters = 0, bytes = strlen(shown);
    for (; n < bytes && characters < width; characters++)
        n += printable_utf8(shown + n, bytes - n);
    char *cell = text_buffer(n + width - characters + 1);
    memcpy(cell, shown, n);
    memset(cell + n, ' ', width - characters);
    cell[n + width - characters] = 0;
    return cell;
}

const char *cli_color(enum cli_color c)
{
    static const char *const codes[] = {"\033[0m", "\033[1m", "\033[31m", "\033[32m", "\033[2m"};
    return cli_common.color ? codes[c] : "";
}

enum cli_color cli_color_of_change(double ratio, bool more_is_better)
{
    return !(ratio < 1 || ratio > 1)       ? CLI_PLAIN
           : (ratio > 1) == more_is_better ? CLI_BETTER
                                           : CLI_WORSE;
}

void cli_table_head(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    for (; *fmt == '\n'; fmt++)
        putchar('\n');
    fputs(cli_color(CLI_BOLD), stdout);
    vprintf(fmt, args);
    puts(cli_color(CLI_PLAIN));
    va_end(args);
}

void cli_print_usage(FILE *to, const struct command *c)
{
    char text[512] =
        "usage: heaptape COMMAND [options] [operands]   (heaptape help lists commands)";
    if (c)
        snprintf(text, sizeof text, "usage: heaptape %s [options]%s%s", c->name,
                 c->operands ? " " : "", c->operands ? c->operands : "");
    wrap_text(to, text, strlen(text), to == stderr ? wrap_error_columns() : 0);
    putc('\n', to);
}

int usage_error(const struct command *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_line(fmt, args);
    va_end(args);
    cli_print_usage(stderr, c);
    return EXIT_USAGE;
}
