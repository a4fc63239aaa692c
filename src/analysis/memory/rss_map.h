// Where the memory of a recorded process is occupied, and what pins it: ranges of addresses by moments of the run.
#ifndef HEAPTAPE_RSS_MAP_H
#define HEAPTAPE_RSS_MAP_H

#include "analysis/memory/rss.h"
#include "base/json.h"

enum {
    RSS_MAP_ROWS = 64,   // ranges of addresses
    RSS_MAP_PINS = 3,    // call sites of a cell
    RSS_MAP_SITES = 150, // with their names: those that pin most in all
};

struct rss_map_cell {
    uint64_t resident_bytes,
        occupied_bytes; // occupied: of these, by live blocks with their headers and rounding
    uint64_t sparse_pages, stranded_bytes; // as struct fragmentation has them
    uint64_t sites[RSS_MAP_PINS],
        pins[RSS_MAP_PINS]; // those with most stranded bytes; pins 0: there is none
};

struct rss_map_moment {
    uint64_t time_ns, event, rss_bytes;
};

struct rss_map {
    struct rss rss;     // the process, its call sites, and how many maps there are: 0: none
    uint64_t row_bytes; // of a row
    uint64_t addresses[RSS_MAP_ROWS]; // where they begin
    bool held[RSS_MAP_ROWS];          // has it ever held a block?
    size_t n_rows, n_moments;
    struct rss_map_moment moments[RSS_MOMENTS];
    struct rss_map_cell cells[RSS_MAP_ROWS][RSS_MOMENTS];
};

// Reads the trace, which must have been opened to be read twice, for the process with most RSS. *m is to be released in any
// case. 0, or the errors of rss_read.
int rss_map_read(struct rss_map *m, struct trace_file *t, const struct convert_watch *watch,
                 struct err *e);
void rss_map_release(struct rss_map *m);

// As docs/reference/json/report.schema.json has it: `address_map`.
void rss_map_json(struct json *j, const struct rss_map *m);

#endif
