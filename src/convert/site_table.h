// The call sites that the records of a process name and define, by their ids in the trace. A thread may use a site before
// its definition, which stands in another thread's stream: sites are put together from their frames later.
#ifndef HEAPTAPE_CONVERT_SITE_TABLE_H
#define HEAPTAPE_CONVERT_SITE_TABLE_H

#include "base/map.h"
#include "workload/sites.h"

// A frame of the prefix tree of stacks.
struct site_table_frame {
    uint64_t parent; // the trace's id of its caller's, or one without a definition
    struct workload_frame frame;
};

// All zero is an empty table.
struct site_table {
    struct map numbers;       // ids of sites in the trace → their numbers in `all`
    struct map frame_numbers; // ids of frames in the trace → index in frames + 1
    struct site_table_frame *frames;
    size_t n_frames, frames_capacity;
    struct workload_sites all;
};

void site_table_release(struct site_table *t);

// The number of a call site by its id in the trace, assigned when it is new. 0 when out of memory.
uint32_t site_table_number(struct site_table *t, uint64_t id);

// Defines a stack frame by its id in the trace. 0 or -ENOMEM.
int site_table_frame(struct site_table *t, uint64_t id, const struct site_table_frame *frame);

// A record that defines a site, frames or a module (event_defines_sites), as in struct event.
struct site_table_record {
    uint8_t kind;
    uint64_t ptr, size, value;
    const char *text;
    uint32_t text_bytes;
};

// Takes it. 0 or -ENOMEM.
int site_table_define(struct site_table *t, const struct site_table_record *r);

// Puts a site together from the frames that are known by now. 0 or -ENOMEM.
int site_table_resolve(struct site_table *t, uint64_t id, uint32_t number);

// The same for all sites.
int site_table_resolve_all(struct site_table *t);

// Puts those sites together in *to, a copy of t->all, of which all frames are known by now. 0 or -ENOMEM.
int site_table_resolve_whole(const struct site_table *t, struct workload_sites *to);

#endif
