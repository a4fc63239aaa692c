#include "cli/bar.h"

#include "cli/wrap.h"

#include <string.h>

// Returns the number of eighths of a cell to fill. Returns at least 1 unless the share is 0.
static size_t count_eighths(double of_one, size_t cells)
{
    double exact = of_one * 8 * (double)cells;
    size_t n = exact >= 8 * (double)cells ? 8 * cells : (size_t)(exact + 0.5);
    return n == 0 && of_one > 0 ? 1 : n;
}

char *bar_text(char *text, size_t cells, double of_one)
{
    static const char parts[8][4] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    size_t n = count_eighths(of_one, cells);
    char *to = text;
    if (!wrap_is_utf8()) {
        n = (n + 4) / 8 + (n > 0 && n < 4);
        memset(text, '#', n);
        text[n] = 0;
        return text;
    }
    for (size_t i = 0; i < n / 8; i++, to += 3)
        memcpy(to, "█", 3);
    strcpy(to, parts[n % 8]);
    return text;
}

char *bar_level(char text[BAR_LEVEL_BYTES], double of_one)
{
    static const char levels[9][4] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char ascii[9][2] = {" ", ".", ".", ":", ":", "=", "=", "#", "#"};
    size_t n = count_eighths(of_one, 1);
    return strcpy(text, wrap_is_utf8() ? levels[n] : ascii[n]);
}
