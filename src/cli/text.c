// What the command line says: messages on stderr, figures for people.
#include "base/printable.h"
#include "cli/command.h"
#include "cli/help.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cli_common cli_common;

// One line, whatever the names in it hold.
static void print_line(const char *fmt, va_list args)
{
    char text[2048], line[4096];
    vsnprintf(text, sizeof text, fmt, args);
    printable_copy(line, sizeof line, text, strlen(text));
    fflush(stdout);
    fprintf(stderr, "heaptape: %s\n", line);
}

void die(int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_line(fmt, args);
    va_end(args);
    exit(code);
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

const char *cli_color(enum cli_color c)
{
    static const char *const codes[] = {"\033[0m", "\033[1m", "\033[31m", "\033[32m"};
    return cli_common.color ? codes[c] : "";
}

enum cli_color cli_color_of_change(double ratio, bool more_is_better)
{
    return !(ratio < 1 || ratio > 1) ? CLI_PLAIN : (ratio > 1) == more_is_better ? CLI_BETTER : CLI_WORSE;
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

int usage_error(const struct command *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_line(fmt, args);
    va_end(args);
    help_print_usage(stderr, c);
    return EXIT_USAGE;
}

char *human_bytes(char text[32], uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes / 1024;
    size_t unit = 0;
    if (bytes < 1024) {
        snprintf(text, 32, "%u B", (unsigned)bytes);
        return text;
    }
    // What would be rounded to 1024.0 is said in the next unit.
    for (; v >= 1023.95 && unit < sizeof units / sizeof *units - 1; unit++)
        v /= 1024;
    snprintf(text, 32, "%.1f %s", v, units[unit]);
    return text;
}

char *human_ns(char text[32], double ns)
{
    double size = ns < 0 ? -ns : ns;
    if (size < 9.9995)
        snprintf(text, 32, "%.2f ns", ns);
    else if (size < 999.5)
        snprintf(text, 32, "%.0f ns", ns);
    else if (size < 999.95e3)
        snprintf(text, 32, "%.1f µs", ns / 1e3);
    else if (size < 999.95e6)
        snprintf(text, 32, "%.1f ms", ns / 1e6);
    else
        snprintf(text, 32, "%.2f s", ns / 1e9);
    return text;
}

char *human_count(char text[32], uint64_t n)
{
    char digits[24];
    int left = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    char *to = text;
    for (const char *from = digits; *from; from++) {
        *to++ = *from;
        if (--left && left % 3 == 0)
            *to++ = ' ';
    }
    *to = 0;
    return text;
}

char *human_plural(char text[64], uint64_t n, const char *one, const char *many)
{
    char count[32];
    snprintf(text, 64, "%s %s", human_count(count, n), n == 1 ? one : many);
    return text;
}
