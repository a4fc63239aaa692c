// Verifies the documents that heaptape writes: JSON (docs/reference/json.md) and the HTML report.
#ifndef HEAPTAPE_COMMANDS_CHECK_DOCUMENTS_H
#define HEAPTAPE_COMMANDS_CHECK_DOCUMENTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct check_documents_found {
    const char *kind; // "statistics", as a message says it; literal
    uint64_t lines;   // of JSON Lines; 0: one document
};

// Parses the text. 0 with *found, or a negative errno with the text set, which begins with `name`: -EBADMSG, -ENODATA if the text
// is cut off, -EPROTO if it is no document of heaptape.
int check_documents_json(const char *name, const char *text, size_t n, struct check_documents_found *found,
                         struct err *e);

// Does the text begin as an HTML report does? And the same as check_documents_json for one.
bool check_documents_is_page(const uint8_t *text, size_t n);
int check_documents_page(const char *name, const char *text, size_t n, struct check_documents_found *found,
                         struct err *e);

#endif
