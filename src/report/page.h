// One HTML file that shows a document: style, scripts and data are in it, and a policy that forbids everything else.
#ifndef HEAPTAPE_REPORT_PAGE_H
#define HEAPTAPE_REPORT_PAGE_H

#include "base/fio.h"

enum { PAGE_MAX_BYTES = 2 << 20 };

// Writes the page with the document's text. 0; -EFBIG when it would be longer than PAGE_MAX_BYTES; other negative errno.
int page_write(struct output *out, const char *text, struct err *e);

#endif
