#include "formats/text_import.h"

#include "formats/text.h"

int text_next(struct import *im, struct text_line *line)
{
    size_t n;
    int rc = import_line(im, &line->text, &n);
    if (rc <= 0)
        return rc;
    line->end = line->text + n;
    if (__builtin_expect(*line->end != '\n', 0)) {
        rc = import_bad_line(im, "expected a newline at its end: the file is cut off");
        return rc < 0 ? rc : 0;
    }
    if (n && line->end[-1] == '\r')
        line->end--;
    return 1;
}

int text_bad(struct import *im, const struct text_line *line, const char *at, const char *expected)
{
    char quoted[40];
    text_quote(quoted, at, line->end);
    return import_bad_line(im, "expected %s, not %s", expected, quoted);
}
