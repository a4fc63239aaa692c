// Verifies heaptape's JSON documents (docs/reference/json.md) and HTML reports.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct check_documents_found {
    const char *kind; // name for messages, such as "statistics"; static
    uint64_t lines;   // number of lines of JSON Lines; 0 for other documents
};

// Parses a document. Returns 0 and fills in *found. Returns -ENODATA if the document is cut off,
// -EPROTO if heaptape does not write such documents, -EBADMSG, or another negative errno. Messages
// begin with `name`.
int check_documents_json(const char *name, const char *text, size_t n,
                         struct check_documents_found *found, struct err *e);

// Returns true if the text begins like an HTML report.
bool check_documents_is_page(const uint8_t *text, size_t n);
// Like check_documents_json, for an HTML report.
int check_documents_page(const char *name, const char *text, size_t n,
                         struct check_documents_found *found, struct err *e);
