// The page without its data. embed.py generates it from src/report/page/ during the build.
#ifndef HEAPTAPE_REPORT_PAGE_PARTS_H
#define HEAPTAPE_REPORT_PAGE_PARTS_H

#include <stddef.h>

extern const unsigned char page_head[], page_tail[];
extern const size_t page_head_bytes, page_tail_bytes;

#endif
