// Events, which are rows of the events table, as structs or in columns.
#include "tables/library/library.h"

#include <errno.h>

#define COLUMN(name, type) [HEAPTAPE_COLUMN_##name] = sizeof(type)
static const uint8_t widths[LIBRARY_COLUMNS_N] = {
    COLUMN(PROCESS, uint32_t), COLUMN(EVENT, uint64_t),         COLUMN(TIME_NS, uint64_t),
    COLUMN(THREAD, uint32_t),  COLUMN(OPERATION, uint8_t),      COLUMN(SIZE, uint64_t),
    COLUMN(COUNT, uint64_t),   COLUMN(ALIGN, uint64_t),         COLUMN(USABLE_SIZE, uint64_t),
    COLUMN(ADDRESS, uint64_t), COLUMN(FREED_ADDRESS, uint64_t), COLUMN(FREED_BLOCK, uint64_t),
    COLUMN(SITE, uint32_t),    COLUMN(FAILED, uint8_t),         COLUMN(ERROR, uint8_t),
    COLUMN(KNOWN, uint32_t),
};
#undef COLUMN

// Column ids are identical to the table's columns.
_Static_assert((int)HEAPTAPE_COLUMN_TEXT == (int)TABLES_EVENT_TEXT &&
                   (int)HEAPTAPE_COLUMN_KNOWN == (int)TABLES_EVENT_COLUMNS,
               "the library has the columns of the table of events");
_Static_assert((int)HEAPTAPE_COLUMN_OPERATION == (int)TABLES_EVENT_KIND &&
                   (int)HEAPTAPE_COLUMN_SITE == (int)TABLES_EVENT_SITE &&
                   (int)HEAPTAPE_COLUMN_FREED_BLOCK == (int)TABLES_EVENT_FREED_BLOCK,
               "the library has the columns of the table of events");

static uint64_t get_number(const struct tables_row *row, unsigned column, uint64_t otherwise)
{
    return row->present >> column & 1 ? (uint64_t)row->values[column].integer : otherwise;
}

// Stores the error. All later calls return the same error.
static int keep_failure(heaptape_trace *t, int rc)
{
    t->over = true;
    t->failed = rc;
    t->failure = t->e;
    return rc;
}

static int start_events(heaptape_trace *t, enum library_use use, uint32_t columns, struct err *e)
{
    if (t->use != LIBRARY_UNUSED && t->use != use)
        return err_set(e, -EBUSY, "%s: is already being read by another function: rewind it first",
                       t->path ? t->path : "");
    if (t->use == use && t->columns != columns)
        return err_set(e, -EINVAL, "%s: the columns differ from the previous call", t->path);
    if (t->use == use)
        return 0;
    int rc = library_open(t, e);
    if (rc < 0)
        return rc;
    struct tables_scan scan = {.cut = &t->cut};
    library_facts_scan(&scan, &t->coming);
    scan.of[TABLES_TABLE_EVENTS] =
        (struct tables_wanted){.rows = true, .columns = columns & ~(1u << HEAPTAPE_COLUMN_KNOWN)};
    t->stream = tables_stream_start(t->path, &t->file, &scan);
    if (!t->stream)
        return err_no_memory(e, t->path);
    t->use = use;
    t->columns = columns;
    return 0;
}

// Sets *row to the next row of events. Returns 1, 0 at the end, or a negative errno with the
// message set.
static int next_row(heaptape_trace *t, const struct tables_row **row)
{
    enum tables_id table;
    int rc;
    if (t->over) {
        t->e = t->failure;
        return t->failed;
    }
    while ((rc = tables_stream_next(t->stream, &table, row, &t->e)) > 0) {
        if (table == TABLES_TABLE_EVENTS)
            return 1;
        rc = library_facts_row(&t->coming, *row);
        if (rc < 0)
            return keep_failure(t, err_no_memory(&t->e, t->path));
    }
    if (rc < 0)
        return keep_failure(t, rc);
    library_facts_move(&t->facts, &t->coming);
    if (t->cut.text[0])
        return keep_failure(t, err_set(&t->e, -ENODATA, "%s", t->cut.text));
    t->over = true;
    return 0;
}

static void fill_event(heaptape_event *e, const struct tables_row *row)
{
    *e = (heaptape_event){
        .time_ns = get_number(row, TABLES_EVENT_TIME, 0),
        .event = get_number(row, TABLES_EVENT_EVENT, 0),
        .size = get_number(row, TABLES_EVENT_SIZE, 0),
        .count = get_number(row, TABLES_EVENT_COUNT, 0),
        .align = get_number(row, TABLES_EVENT_ALIGN, 0),
        .usable_size = get_number(row, TABLES_EVENT_USABLE, 0),
        .address = get_number(row, TABLES_EVENT_ADDRESS, 0),
        .freed_address = get_number(row, TABLES_EVENT_FREED_ADDRESS, 0),
        .freed_block = get_number(row, TABLES_EVENT_FREED_BLOCK, HEAPTAPE_NONE64),
        .text = row->present >> TABLES_EVENT_TEXT & 1 ? row->values[TABLES_EVENT_TEXT].text : NULL,
        .known = row->present,
        .process = (uint32_t)get_number(row, TABLES_EVENT_PROCESS, 0),
        .thread = (uint32_t)get_number(row, TABLES_EVENT_THREAD, 0),
        .site = (uint32_t)get_number(row, TABLES_EVENT_SITE, 0),
        .operation = row->event_kind,
        .failed = (uint8_t)get_number(row, TABLES_EVENT_FAILED, 0),
        .error = (uint8_t)get_number(row, TABLES_EVENT_ERROR, 0),
    };
}

int heaptape_trace_next_event(heaptape_trace *t, const heaptape_event **e)
{
    const struct tables_row *row;
    const uint32_t all = (1u << TABLES_EVENT_COLUMNS) - 1;
    int rc = start_events(t, LIBRARY_EVENTS, all, library_begin(t));
    rc = rc < 0 ? rc : next_row(t, &row);
    if (rc > 0) {
        fill_event(&t->event, row);
        *e = &t->event;
    }
    return rc;
}

static void put_item(const heaptape_column *c, size_t at, const struct tables_row *row)
{
    uint64_t value = c->id == HEAPTAPE_COLUMN_KNOWN       ? row->present
                     : c->id == HEAPTAPE_COLUMN_OPERATION ? row->event_kind
                     : c->id == HEAPTAPE_COLUMN_FREED_BLOCK
                         ? get_number(row, TABLES_EVENT_FREED_BLOCK, HEAPTAPE_NONE64)
                         : get_number(row, c->id, 0);
    if (c->item_bytes == sizeof(uint64_t))
        ((uint64_t *)c->items)[at] = value;
    else if (c->item_bytes == sizeof(uint32_t))
        ((uint32_t *)c->items)[at] = (uint32_t)value;
    else
        ((uint8_t *)c->items)[at] = (uint8_t)value;
}

// Returns the columns as a bit set, or a negative errno with the message set.
static int64_t check_columns(const heaptape_column *columns, size_t n, size_t rows, struct err *e)
{
    uint32_t all = 0;
    for (size_t i = 0; i < n; i++) {
        const heaptape_column *c = &columns[i];
        if (c->id >= LIBRARY_COLUMNS_N || !widths[c->id])
            return err_set(e, -EINVAL, "column %u cannot be read", c->id);
        if (c->item_bytes != widths[c->id])
            return err_set(e, -EINVAL, "column %u has items of %u bytes, not %u", c->id,
                           widths[c->id], c->item_bytes);
        if (all >> c->id & 1)
            return err_set(e, -EINVAL, "column %u is given twice", c->id);
        if (!c->items && rows)
            return err_set(e, -EINVAL, "column %u has no items", c->id);
        all |= 1u << c->id;
    }
    return all ? (int64_t)all : err_set(e, -EINVAL, "no column to read");
}

int64_t heaptape_trace_read_columns(heaptape_trace *t, const heaptape_column *columns, size_t n,
                                    size_t rows)
{
    const struct tables_row *row;
    size_t got = 0;
    int64_t wanted = check_columns(columns, n, rows, library_begin(t));
    int rc = wanted < 0 ? (int)wanted : start_events(t, LIBRARY_COLUMNS, (uint32_t)wanted, &t->e);
    if (rc < 0)
        return rc;
    for (rc = 1; got < rows && (rc = next_row(t, &row)) > 0; got++) {
        for (size_t i = 0; i < n; i++)
            put_item(&columns[i], got, row);
    }
    return rc < 0 && !got ? rc : (int64_t)got;
}
