#include "cli/suggest.h"

#include <limits.h>
#include <string.h>

enum { MAX_WORD = 63 };

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

unsigned suggest_distance(const char *a, size_t a_n, const char *b, size_t b_n)
{
    unsigned rows[3][MAX_WORD + 1]; // the current row and the two rows before it
    if (a_n > MAX_WORD || b_n > MAX_WORD)
        return UINT_MAX;
    for (size_t j = 0; j <= b_n; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_n; i++) {
        unsigned *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_n; j++) {
            row[j] = min3(up[j] + 1, row[j - 1] + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                up2[j - 2] + 1 < row[j])
                row[j] = up2[j - 2] + 1;
        }
    }
    return rows[a_n % 3][b_n];
}

void suggest_init(struct suggest *s, const char *word, size_t n)
{
    *s = (struct suggest){.word = word, .n = n, .distance = UINT_MAX};
}

void suggest_offer(struct suggest *s, const char *known)
{
    size_t n = strlen(known);
    unsigned limit = s->n < 3 ? 1 : (unsigned)(s->n + 2) / 3;
    unsigned d = suggest_distance(s->word, s->n, known, n);
    // A prefix of at least 3 characters is close, regardless of the length of the known word.
    if (s->n >= 3 && n > s->n && memcmp(known, s->word, s->n) == 0)
        d = 1;
    if (d <= limit && d < s->distance) {
        s->distance = d;
        s->best = known;
    }
}
