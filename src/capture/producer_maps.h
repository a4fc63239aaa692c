// The process's own mappings, as /proc/self/maps tells them. Malloc-free and async-signal-safe.
#ifndef HEAPTAPE_CAPTURE_PRODUCER_MAPS_H
#define HEAPTAPE_CAPTURE_PRODUCER_MAPS_H

#include "capture/producer_site.h"

struct producer_mapping {
    uint64_t start, end;
    uint64_t offset; // in the file
    uint64_t device, inode;
    bool executable;
    bool grows;       // the main thread's stack
    const char *path; // "" when there is none; of the buffer in struct producer_sites
};

// All of these want `sites->scanning` to be the caller's.

// The mapping that an address lies in. False: none, or /proc cannot be read.
bool producer_maps_find(struct producer_sites *sites, uint64_t address, struct producer_mapping *m);

// Is the address in one of the executable mappings that are known?
bool producer_maps_has(const struct producer_sites *sites, uint64_t address);

// Looks at the mappings and records the executable ones that are new, into the stream.
void producer_maps_scan(struct producer_sites *sites, struct producer_process *p, struct producer_thread *t,
                        struct producer_stream *stream);

#endif
