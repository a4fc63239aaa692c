#include "cli/human.h"

#include <stdio.h>

bool human_ascii;

char *human_bytes(char text[32], uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes / 1024;
    size_t unit = 0;
    if (bytes < 1024) {
        snprintf(text, 32, "%u B", (unsigned)bytes);
        return text;
    }
    // 1023.95 would be printed as 1024.0.
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
        snprintf(text, 32, "%.1f %s", ns / 1e3, human_ascii ? "us" : "µs");
    else if (size < 999.95e6)
        snprintf(text, 32, "%.1f ms", ns / 1e6);
    else
        snprintf(text, 32, "%.2f s", ns / 1e9);
    return text;
}

char *human_count(char text[32], uint64_t n)
{
    return human_count_with(text, n, ' ');
}

char *human_count_with(char text[32], uint64_t n, char separator)
{
    char digits[24];
    int left = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    char *to = text;
    for (const char *from = digits; *from; from++) {
        *to++ = *from;
        if (--left && left % 3 == 0)
            *to++ = separator;
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

char *human_buffer(void)
{
    static _Thread_local char texts[16][HUMAN_BYTES];
    static _Thread_local unsigned next;
    return texts[next++ % (sizeof texts / sizeof *texts)];
}

const char *human_size(uint64_t bytes)
{
    return human_bytes(human_buffer(), bytes);
}

const char *human_time(double ns)
{
    return human_ns(human_buffer(), ns);
}

const char *human_number(uint64_t n)
{
    return human_count(human_buffer(), n);
}

const char *human_items(uint64_t n, const char *one, const char *many)
{
    return human_plural(human_buffer(), n, one, many);
}
