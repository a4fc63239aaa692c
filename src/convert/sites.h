// Call sites of one process: ids of the trace to numbers of the workload.
#ifndef HEAPTAPE_CONVERT_SITES_H
#define HEAPTAPE_CONVERT_SITES_H

#include "base/map.h"
#include "workload/sites.h"

// All zero is empty.
struct sites {
    struct map numbers; // by id
    struct workload_sites sites;
};

void sites_release(struct sites *s);

// The number of a site, given when it is new. 0 when out of memory.
uint32_t sites_number(struct sites *s, uint64_t id);

#endif
