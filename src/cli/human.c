#include "cli/human.h"

#include <stdio.h>

bool human_ascii;

char *human_buffer(void)
{
    static _Thread_local char texts[16][HUMAN_BYTES];
    static _Thread_local unsigned next;
    return texts[next++ % (sizeof texts / sizeof *texts)];
}

const char *human_size(uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    char *text = human_buffer();
    double v = (double)bytes / 1024;
    size_t unit = 0;
    if (bytes < 1024) {
        snprintf(text, HUMAN_BYTES, "%u B", (unsigned)bytes);
        return text;
    }
    // 1023.95 would be printed as 1024.0.
    for (; v >= 1023.95 && unit < sizeof units / sizeof *units - 1; unit++)
        v /= 1024;
    snprintf(text, HUMAN_BYTES, "%.1f %s", v, units[unit]);
    return text;
}

const char *human_time(double ns)
{
    char *text = human_buffer();
    double size = ns < 0 ? -ns : ns;
    if (size < 9.9995)
        snprintf(text, HUMAN_BYTES, "%.2f ns", ns);
    else if (size < 999.5)
        snprintf(text, HUMAN_BYTES, "%.0f ns", ns);
    else if (size < 999.95e3)
        snprintf(text, HUMAN_BYTES, "%.1f %s", ns / 1e3, human_ascii ? "us" : "µs");
    else if (size < 999.95e6)
        snprintf(text, HUMAN_BYTES, "%.1f ms", ns / 1e6);
    else
        snprintf(text, HUMAN_BYTES, "%.2f s", ns / 1e9);
    return text;
}

const char *human_digits(uint64_t n, char separator)
{
    char digits[24], *text = human_buffer(), *to = text;
    int left = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    for (const char *from = digits; *from; from++) {
        *to++ = *from;
        if (--left && left % 3 == 0)
            *to++ = separator;
    }
    *to = 0;
    return text;
}

const char *human_number(uint64_t n)
{
    return human_digits(n, ' ');
}

const char *human_items(uint64_t n, const char *one, const char *many)
{
    char *text = human_buffer();
    snprintf(text, HUMAN_BYTES, "%s %s", human_number(n), n == 1 ? one : many);
    return text;
}
