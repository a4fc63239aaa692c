// The blocks that pin sparse pages, as a table.
#ifndef HEAPTAPE_PRINT_FRAGMENTATION_H
#define HEAPTAPE_PRINT_FRAGMENTATION_H

#include "analysis/memory/fragmentation.h"
#include "analysis/symbols/symbols.h"

// Prints nothing where nothing is stranded. The symbols are those of the sites; NULL: no names are known.
void fragmentation_print(const struct fragmentation *h, struct symbols *symbols,
                         const struct workload_sites *sites);

#endif
