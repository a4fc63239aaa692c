// Declarations shared by the source files of tables_scan.
#pragma once

#include "base/buf.h"
#include "convert/order/order.h"
#include "tables/tables.h"
#include "workload/workload.h"

struct tables_block;

// A process whose ops the scan reads.
struct tables_process {
    const struct tables_scan *scan;
    const struct trace_process *of; // the process in the trace; borrowed from the reader
    uint32_t number;
    // The following members are used to compute timestamps.
    bool has_times;
    uint64_t start_stamp, clock_hz;
    unsigned stamp_shift;
    bool follows_blocks; // the scan tracks live blocks in `live`
    uint64_t next_event, preexisting, threads, lost;
    struct tables_block *live; // indexed by slot
    size_t n_live, live_capacity;
    struct buf text; // strings of the current row
};

void tables_process_release(struct tables_process *p);

// Emits the rows of an op. `call` contains the addresses and notes of a trace; it is NULL for a
// workload. Returns 0 or a negative errno.
int tables_process_op(struct tables_process *p, uint32_t thread, const struct workload_op *op,
                      const struct order_call *call);

// Prefetches the memory that tables_process_op will access.
void tables_process_prefetch(const struct tables_process *p, const struct workload_op *op);

// Emits the rows of the blocks that are live after the last op.
int tables_process_end(struct tables_process *p);

// Emits the rows of the call sites. `exe` may be NULL.
int tables_process_sites(struct tables_process *p, const struct workload_sites *sites,
                         const char *exe);

// Converts a timestamp to the time_ns of a row.
int64_t tables_process_ns(const struct tables_process *p, uint64_t stamp);

// Emits the row if it meets all conditions for its table. Returns 0 or a negative errno.
int tables_put_checked(const struct tables_scan *scan, enum tables_id table,
                       const struct tables_row *row);

// Returns true if the row meets all conditions.
bool tables_row_meets(const struct tables_wanted *w, const struct tables_row *row);

// Returns the bit set of the columns that the conditions use.
uint32_t tables_condition_columns(const struct tables_wanted *w);

static inline void tables_row_set(struct tables_row *row, unsigned column, uint64_t value)
{
    row->present |= 1u << column;
    row->values[column].integer = value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

// Sets a column to a text. If `text` is NULL, the column stays NULL.
static inline void tables_row_set_text(struct tables_row *row, unsigned column, const char *text)
{
    row->present |= (uint32_t)(text != NULL) << column;
    row->values[column].text = text;
}
