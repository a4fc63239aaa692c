// Verifies the documents that heaptape writes: JSON (docs/reference/json.md) and the HTML report.
#ifndef HEAPTAPE_COMMANDS_CHECK_DOCUMENTS_H
#define HEAPTAPE_COMMANDS_CHECK_DOCUMENTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct check_documents_found {
    const char *kind; // name for messages, such as "statistics"; literal
    uint64_t lines;   // number of lines of JSON Lines; 0 for a single document
};

// Parses the text. Returns 0 and fills in *found, or returns a negative errno with the text set, which
// begins with `name`: -EBADMSG, -ENODATA if the document is cut off, -EPROTO if heaptape writes no such
// documents.
int check_documents_json(const char *name, const char *text, size_t n,
                         struct check_documents_found *found, struct err *e);

// Returns true if the text begins as an HTML report does.
bool check_documents_is_page(const uint8_t *text, size_t n);
// As check_documents_json, for an HTML report.
int check_documents_page(const char *name, const char *text, size_t n,
                         struct check_documents_found *found, struct err *e);

#endif
