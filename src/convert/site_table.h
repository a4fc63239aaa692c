// A process's call sites by trace id. A thread may use a site before another thread's stream
// delivers the definition of the site. Stacks are therefore assembled from their frames later.
#pragma once

#include "base/map.h"
#include "workload/sites.h"

// A frame in the prefix tree of stacks.
struct site_table_frame {
    uint64_t parent; // trace id of the caller's frame, even if that frame is not defined yet
    struct workload_frame frame;
};

// A struct of zeros is an empty table.
struct site_table {
    struct map numbers;       // maps the id of a site to its number in `all`
    struct map frame_numbers; // maps the id of a frame to its index in `frames` plus 1
    struct site_table_frame *frames;
    size_t n_frames, frames_capacity;
    struct workload_sites all;
};

void site_table_release(struct site_table *t);

// Returns the number of a call site, assigning a number if the id is new, or 0 when out of memory.
uint32_t site_table_number(struct site_table *t, uint64_t id);

// Defines a stack frame. Returns 0 or -ENOMEM.
int site_table_frame(struct site_table *t, uint64_t id, const struct site_table_frame *frame);

// A record that defines a site, frames or a module (event_defines_sites). The members have the same
// meaning as in struct event.
struct site_table_record {
    uint8_t kind;
    uint64_t ptr, size, value;
    const char *text;
    uint32_t text_bytes;
};

// Adds the definition in a record. Returns 0 or -ENOMEM.
int site_table_define(struct site_table *t, const struct site_table_record *r);

// Sets a site's stack from the frames defined so far. Returns 0 or -ENOMEM.
int site_table_resolve(struct site_table *t, uint64_t id, uint32_t number);

// Like site_table_resolve, but for all sites.
int site_table_resolve_all(struct site_table *t);

// In *to, sets those stacks whose frames are all defined by now. *to must be a copy of t->all.
// Returns 0 or -ENOMEM.
int site_table_resolve_whole(const struct site_table *t, struct workload_sites *to);
