// Map of memory over time: occupied memory and pinning call sites, by address range and point in
// time.
#pragma once

#include "analysis/memory/rss.h"
#include "base/json.h"

enum {
    RSS_MAP_ROWS = 64, // number of address ranges
    RSS_MAP_PINS = 3,  // number of call sites per cell
    // Number of call sites with names; the sites with the most stranded bytes are named.
    RSS_MAP_SITES = 150,
};

struct rss_map_cell {
    uint64_t resident_bytes,
        occupied_bytes; // occupied by live blocks, including headers and rounding
    uint64_t sparse_pages, stranded_bytes; // as in struct fragmentation
    uint64_t sites[RSS_MAP_PINS],
        pins[RSS_MAP_PINS]; // ordered by stranded bytes; unused entries have 0 stranded bytes
};

struct rss_map_moment {
    uint64_t time_ns, event, rss_bytes;
};

struct rss_map {
    struct rss rss;     // the process and its call sites; `maps` is 0 if there are no page maps
    uint64_t row_bytes; // size of a row
    uint64_t addresses[RSS_MAP_ROWS]; // start address of each row
    bool held[RSS_MAP_ROWS];          // the row has ever held a block
    size_t n_rows, n_moments;
    struct rss_map_moment moments[RSS_MOMENTS];
    struct rss_map_cell cells[RSS_MAP_ROWS][RSS_MOMENTS];
};

// Reads the process with the highest RSS from a trace that was opened for reading twice. Returns 0,
// or a negative errno like rss_read. In either case, the caller must release *m.
int rss_map_read(struct rss_map *m, struct trace_file *t, const struct convert_watch *watch,
                 struct err *e);
void rss_map_release(struct rss_map *m);

// Writes the `address_map` of docs/reference/json/report.schema.json.
void rss_map_json(struct json *j, const struct rss_map *m);
