// Table of the blocks that pin sparse pages.
#pragma once

#include "analysis/memory/fragmentation.h"
#include "analysis/symbols/symbols.h"

// Prints the table. Prints nothing if no bytes are stranded. `symbols` is NULL if no names
// are known.
void fragmentation_print(const struct fragmentation *h, struct symbols *symbols);
