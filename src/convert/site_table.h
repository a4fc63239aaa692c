// Call sites of a process by their ids in the trace. A thread may use a site before its definition
// arrives in the stream of another thread, so stacks are assembled later from their frames.
#ifndef HEAPTAPE_CONVERT_SITE_TABLE_H
#define HEAPTAPE_CONVERT_SITE_TABLE_H

#include "base/map.h"
#include "workload/sites.h"

// Frame in the prefix tree of stacks.
struct site_table_frame {
    uint64_t parent; // id of the caller's frame in the trace; may have no definition
    struct workload_frame frame;
};

// All zero is an empty table.
struct site_table {
    struct map numbers;       // id of a site → number in `all`
    struct map frame_numbers; // id of a frame → index in `frames` + 1
    struct site_table_frame *frames;
    size_t n_frames, frames_capacity;
    struct workload_sites all;
};

void site_table_release(struct site_table *t);

// Returns the number of a call site and assigns one to a new id. Returns 0 when out of memory.
uint32_t site_table_number(struct site_table *t, uint64_t id);

// Defines a stack frame. Returns 0 or -ENOMEM.
int site_table_frame(struct site_table *t, uint64_t id, const struct site_table_frame *frame);

// Record that defines a site, frames or a module (event_defines_sites); fields as in struct event.
struct site_table_record {
    uint8_t kind;
    uint64_t ptr, size, value;
    const char *text;
    uint32_t text_bytes;
};

// Returns 0 or -ENOMEM.
int site_table_define(struct site_table *t, const struct site_table_record *r);

// Sets the stack of a site from the frames that are defined so far. Returns 0 or -ENOMEM.
int site_table_resolve(struct site_table *t, uint64_t id, uint32_t number);

// Like site_table_resolve, for all sites.
int site_table_resolve_all(struct site_table *t);

// Sets the stacks that are completely defined so far in *to, a copy of t->all. Returns 0 or
// -ENOMEM.
int site_table_resolve_whole(const struct site_table *t, struct workload_sites *to);

#endif
