// Text about the composition of a process's resident memory.
#ifndef HEAPTAPE_TEXT_RSS_H
#define HEAPTAPE_TEXT_RSS_H

#include "analysis/memory/rss.h"

void rss_print(const struct rss *r);

#endif
