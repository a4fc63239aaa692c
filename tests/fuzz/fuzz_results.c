// Fuzzes the JSON output of `stat`, `replay` and `compare` as input of a report or comparison. The
// output must be valid JSON.
#include "report/diff.h"
#include "report/json/document.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct err e = {0};
    struct document d = {.mode = n && data[0] & 1 ? "diff" : "report"};
    struct json_value *again;
    const char *text = (const char *)data;
    // The second file follows the first newline.
    const char *newline = n ? memchr(text, '\n', n) : NULL;
    size_t first = newline ? (size_t)(newline - text) : n;
    if (document_add(&d, "a", 0, text, first, &e) == 0 &&
        (!newline || document_add(&d, "b", 1, newline + 1, n - first - 1, &e) == 0)) {
        diff_rows(&d);
        char *written = document_text(&d);
        if (!written || json_value_parse(&again, "written", written, strlen(written), &e) < 0)
            abort();
        json_value_free(again);
        free(written);
    }
    document_release(&d);
    return 0;
}
