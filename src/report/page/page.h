// One HTML file that shows a document: style, scripts and data are in it, and a policy that forbids everything else.
#ifndef HEAPTAPE_REPORT_PAGE_H
#define HEAPTAPE_REPORT_PAGE_H

#include "report/json/document.h"

enum { PAGE_MAX_BYTES = 3 << 20 };

// Is there a file that page_save would have to replace?
bool page_exists(const char *path);

// Writes the page to `path`, over an existing one only with `force`. 0; -EFBIG when it would be longer than
// PAGE_MAX_BYTES; other negative errno; the text is set.
int page_save(const struct document *d, const char *path, bool force, struct err *e);

#endif
