// What the resident memory of a process is made up of, as text.
#ifndef HEAPTAPE_PRINT_RSS_H
#define HEAPTAPE_PRINT_RSS_H

#include "analysis/memory/rss.h"

void rss_print(const struct rss *r);

#endif
