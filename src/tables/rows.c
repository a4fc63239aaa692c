// Builds the rows of events and blocks from a process's ops in a valid total order.
#include "analysis/by_site.h"
#include "tables/scan_private.h"

#include <errno.h>
#include <stdlib.h>

struct tables_block {
    uint64_t event, stamp, size, align, usable, address;
    uint32_t site, thread;
    uint8_t kind; // 0 if unknown
    bool live, preexisting, size_known;
};

// An op with its context.
struct source {
    const struct workload_op *op;
    const struct order_call *call; // may be NULL
    uint64_t event;
    uint32_t thread;
    const struct tables_block *freed; // may be NULL
};

void tables_process_release(struct tables_process *p)
{
    free(p->live);
    buf_release(&p->text);
    p->live = NULL;
}

int64_t tables_process_ns(const struct tables_process *p, uint64_t stamp)
{
    uint64_t since = stamp > p->start_stamp ? stamp - p->start_stamp : 0;
    return (int64_t)clock_to_ns(since << p->stamp_shift, p->clock_hz);
}

uint32_t tables_condition_columns(const struct tables_wanted *w)
{
    uint32_t columns = 0;
    for (size_t i = 0; i < w->n_conditions; i++)
        columns |= 1u << w->conditions[i].column;
    return columns;
}

static bool meets_condition(const struct tables_condition *c, int64_t value)
{
    switch ((enum tables_comparison)c->comparison) {
    case TABLES_EQUAL:
        return value == c->value;
    case TABLES_LESS:
        return value < c->value;
    case TABLES_LESS_EQUAL:
        return value <= c->value;
    case TABLES_GREATER:
        return value > c->value;
    case TABLES_GREATER_EQUAL:
        return value >= c->value;
    }
    return true;
}

bool tables_row_meets(const struct tables_wanted *w, const struct tables_row *row)
{
    for (size_t i = 0; i < w->n_conditions; i++) {
        const struct tables_condition *c = &w->conditions[i];
        if (!(row->present >> c->column & 1) || !meets_condition(c, row->values[c->column].integer))
            return false;
    }
    return true;
}

int tables_put_checked(const struct tables_scan *scan, enum tables_id table,
                       const struct tables_row *row)
{
    return tables_row_meets(&scan->of[table], row) ? scan->row(scan->context, table, row) : 0;
}

static bool allocates(const struct workload_op *op)
{
    unsigned class = event_infos[op->kind].class;
    return class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE;
}

bool tables_op_size(const struct workload_op *op, uint64_t *size)
{
    unsigned fields = event_infos[op->kind].fields;
    *size = op->kind == HT_MREMAP ? op->count
            : allocates(op)       ? event_requested(op->kind, op->size, op->count)
                                  : op->size;
    return fields & HT_F_SIZE && !(op->flags & WORKLOAD_SIZE_UNKNOWN);
}

static void set_wanted(struct tables_row *row, uint32_t columns, unsigned column, uint64_t value)
{
    if (columns >> column & 1)
        tables_row_set(row, column, value);
}

// Sets a column unless the value is 0, which means unknown.
static void set_known(struct tables_row *row, uint32_t columns, unsigned column, uint64_t value)
{
    if (value)
        set_wanted(row, columns, column, value);
}

static int fill_text(struct tables_process *p, const struct workload_op *op, struct tables_row *row)
{
    p->text.size = 0;
    if (!op->text_bytes)
        return 0;
    if (buf_put(&p->text, op->text, op->text_bytes) < 0 || buf_put_u8(&p->text, 0) < 0)
        return -ENOMEM;
    tables_row_set_text(row, TABLES_EVENT_TEXT, (const char *)p->text.data);
    return 0;
}

// Fills in the less common columns.
static int fill_event_rest(struct tables_process *p, const struct source *s, uint32_t columns,
                           struct tables_row *row)
{
    const struct workload_op *op = s->op;
    unsigned fields = event_infos[op->kind].fields;
    bool is_map = event_infos[op->kind].class == HT_CLASS_MAP, has_block = allocates(op);
    if (fields & HT_F_COUNT && has_block)
        set_wanted(row, columns, TABLES_EVENT_COUNT, op->count);
    if (fields & HT_F_ALIGN)
        set_wanted(row, columns, TABLES_EVENT_ALIGN, op->align);
    if (s->call && (has_block || is_map))
        set_known(row, columns, TABLES_EVENT_ADDRESS, s->call->result);
    if (s->call) {
        set_known(row, columns, TABLES_EVENT_USABLE, s->call->notes[HT_NOTE_USABLE]);
        set_known(row, columns, TABLES_EVENT_FREED_ADDRESS,
                  op->kind == HT_PREEXISTING ? 0 : s->call->ptr);
        if (op->kind == HT_PREEXISTING)
            set_known(row, columns, TABLES_EVENT_ADDRESS,
                      s->call->result ? s->call->result : s->call->ptr);
    }
    if (s->freed)
        set_wanted(row, columns, TABLES_EVENT_FREED_BLOCK, s->freed->event);
    if (has_block)
        set_known(row, columns, TABLES_EVENT_SITE, by_site_of(op));
    set_wanted(row, columns, TABLES_EVENT_FAILED, (op->flags & WORKLOAD_FAILED) != 0);
    set_known(row, columns, TABLES_EVENT_ERROR, op->error);
    return columns & 1 << TABLES_EVENT_TEXT ? fill_text(p, op, row) : 0;
}

static int fill_event(struct tables_process *p, const struct source *s, uint32_t columns,
                      struct tables_row *row)
{
    const uint32_t common = 1 << TABLES_EVENT_PROCESS | 1 << TABLES_EVENT_EVENT |
                            1 << TABLES_EVENT_TIME | 1 << TABLES_EVENT_THREAD |
                            1 << TABLES_EVENT_KIND | 1 << TABLES_EVENT_SIZE;
    uint64_t size;
    set_wanted(row, columns, TABLES_EVENT_PROCESS, p->number);
    set_wanted(row, columns, TABLES_EVENT_EVENT, s->event);
    if (columns & 1 << TABLES_EVENT_TIME && p->has_times)
        tables_row_set(row, TABLES_EVENT_TIME, (uint64_t)tables_process_ns(p, s->op->stamp));
    set_wanted(row, columns, TABLES_EVENT_THREAD, s->thread);
    if (columns & 1 << TABLES_EVENT_KIND) {
        row->event_kind = s->op->kind;
        tables_row_set_text(row, TABLES_EVENT_KIND, event_infos[s->op->kind].name);
    }
    if (columns & 1 << TABLES_EVENT_SIZE && tables_op_size(s->op, &size))
        tables_row_set(row, TABLES_EVENT_SIZE, size);
    return columns & ~common ? fill_event_rest(p, s, columns, row) : 0;
}

static int put_event(struct tables_process *p, const struct source *s)
{
    const struct tables_wanted *w = &p->scan->of[TABLES_TABLE_EVENTS];
    struct tables_row row;
    row.present = 0;
    row.event_kind = 0;
    uint32_t first = w->n_conditions ? tables_condition_columns(w) : 0;
    int rc = first ? fill_event(p, s, first, &row) : 0;
    if (rc < 0 || (first && !tables_row_meets(w, &row)))
        return rc;
    rc = fill_event(p, s, w->columns & ~first, &row);
    return rc < 0 ? rc : p->scan->row(p->scan->context, TABLES_TABLE_EVENTS, &row);
}

static void fill_freed(const struct tables_process *p, const struct source *s, uint32_t columns,
                       struct tables_row *row)
{
    set_wanted(row, columns, TABLES_BLOCK_FREE_EVENT, s->event);
    if (columns & 1 << TABLES_BLOCK_FREE_TIME && p->has_times)
        tables_row_set(row, TABLES_BLOCK_FREE_TIME, (uint64_t)tables_process_ns(p, s->op->stamp));
    set_wanted(row, columns, TABLES_BLOCK_FREE_THREAD, s->thread);
    if (columns & 1 << TABLES_BLOCK_FREE_KIND)
        tables_row_set_text(row, TABLES_BLOCK_FREE_KIND, event_infos[s->op->kind].name);
}

// Fills in the row of a block. `s` is the op that freed the block, or NULL if the block is live at
// the end.
static void fill_block(const struct tables_process *p, const struct tables_block *b,
                       const struct source *s, uint32_t columns, struct tables_row *row)
{
    set_wanted(row, columns, TABLES_BLOCK_PROCESS, p->number);
    set_wanted(row, columns, TABLES_BLOCK_BLOCK, b->event);
    if (columns & 1 << TABLES_BLOCK_ALLOC_TIME && p->has_times && !b->preexisting)
        tables_row_set(row, TABLES_BLOCK_ALLOC_TIME, (uint64_t)tables_process_ns(p, b->stamp));
    if (s)
        fill_freed(p, s, columns, row);
    set_wanted(row, columns, TABLES_BLOCK_ALLOC_THREAD, b->thread);
    if (columns & 1 << TABLES_BLOCK_ALLOC_KIND)
        tables_row_set_text(row, TABLES_BLOCK_ALLOC_KIND, event_infos[b->kind].name);
    if (b->size_known)
        set_wanted(row, columns, TABLES_BLOCK_SIZE, b->size);
    if (event_infos[b->kind].fields & HT_F_ALIGN && !b->preexisting)
        set_wanted(row, columns, TABLES_BLOCK_ALIGN, b->align);
    set_known(row, columns, TABLES_BLOCK_USABLE, b->usable);
    set_known(row, columns, TABLES_BLOCK_ADDRESS, b->address);
    set_known(row, columns, TABLES_BLOCK_SITE, b->site);
    set_wanted(row, columns, TABLES_BLOCK_PREEXISTING, b->preexisting);
}

static int put_block(struct tables_process *p, const struct tables_block *b, const struct source *s)
{
    const struct tables_wanted *w = &p->scan->of[TABLES_TABLE_BLOCKS];
    struct tables_row row;
    row.present = 0;
    row.event_kind = 0;
    uint32_t first = w->n_conditions ? tables_condition_columns(w) : 0;
    if (first)
        fill_block(p, b, s, first, &row);
    if (first && !tables_row_meets(w, &row))
        return 0;
    fill_block(p, b, s, w->columns & ~first, &row);
    return p->scan->row(p->scan->context, TABLES_TABLE_BLOCKS, &row);
}

static int begin_block(struct tables_process *p, const struct source *s)
{
    const struct workload_op *op = s->op;
    if (op->slot >= p->n_live &&
        HT_EXTEND(&p->live, &p->n_live, &p->live_capacity, op->slot + 1ull) < 0)
        return -ENOMEM;
    bool preexisting = op->kind == HT_PREEXISTING;
    struct tables_block *b = &p->live[op->slot];
    *b = (struct tables_block){
        .event = s->event,
        .stamp = op->stamp,
        .align = op->align,
        .site = by_site_of(op),
        .thread = s->thread,
        .kind = preexisting ? (uint8_t)op->value : op->kind,
        .live = true,
        .preexisting = preexisting,
    };
    b->size_known = tables_op_size(op, &b->size);
    if (s->call) {
        b->address = s->call->result ? s->call->result : preexisting ? s->call->ptr : 0;
        b->usable = s->call->notes[HT_NOTE_USABLE];
    }
    return 0;
}

int tables_process_op(struct tables_process *p, uint32_t thread, const struct workload_op *op,
                      const struct order_call *call)
{
    struct source s = {op, call, p->next_event++, thread, NULL};
    struct tables_block freed;
    // A realloc ends one row of blocks and begins another.
    enum format_slot_use use = p->follows_blocks ? format_block_use(op) : FORMAT_SLOT_NONE;
    bool frees = use == FORMAT_SLOT_FREED || use == FORMAT_SLOT_KEEP;
    p->preexisting += op->kind == HT_PREEXISTING;
    int rc = 0;
    if (frees && op->slot < p->n_live && p->live[op->slot].live) {
        freed = p->live[op->slot];
        p->live[op->slot].live = false;
        s.freed = &freed;
        if (p->scan->of[TABLES_TABLE_BLOCKS].rows)
            rc = put_block(p, &freed, &s);
    }
    if (rc == 0 && (use == FORMAT_SLOT_ALLOCATED || use == FORMAT_SLOT_KEEP))
        rc = begin_block(p, &s);
    if (rc == 0 && p->scan->of[TABLES_TABLE_EVENTS].rows)
        rc = put_event(p, &s);
    return rc;
}

void tables_process_prefetch(const struct tables_process *p, const struct workload_op *op)
{
    if (op->slot < p->n_live)
        __builtin_prefetch(&p->live[op->slot], 1);
}

int tables_process_end(struct tables_process *p)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && p->scan->of[TABLES_TABLE_BLOCKS].rows && i < p->n_live; i++) {
        if (p->live[i].live)
            rc = put_block(p, &p->live[i], NULL);
    }
    return rc;
}
