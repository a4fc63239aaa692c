// The HTML report, a single file that contains its own styles, scripts and data. A content security
// policy forbids loading anything else.
#pragma once

#include "report/json/document.h"

enum { PAGE_MAX_BYTES = 3 << 20 };

// Writes the page to `path`. Replaces an existing file only if `force` is set. Returns 0, -EFBIG if
// the page would exceed PAGE_MAX_BYTES, or another negative errno. Sets the message on errors.
int page_save(const struct document *d, const char *path, bool force, struct err *e);

// The page without its data. embed.py generates it from src/report/page/ during the build.
extern const unsigned char page_head[], page_tail[];
extern const size_t page_head_bytes, page_tail_bytes;
