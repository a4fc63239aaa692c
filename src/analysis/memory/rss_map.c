#include "analysis/memory/rss_map.h"

#include "analysis/memory/rss_heap.h"
#include "analysis/symbols/stack.h"
#include "base/buf.h"
#include "base/sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A range of pages, [first, end).
struct span {
    uint64_t first, end;
};

struct spans {
    struct span *of;
    size_t n, capacity;
};

enum { MIN_ROW_PAGES = 16 };

static bool is_heap(const struct trace_mapping *m)
{
    return m->kind == TRACE_MEMORY_HEAP || (m->kind == TRACE_MEMORY_ANONYMOUS && !m->after_file);
}

static int add_spans(struct spans *s, const struct trace_pages *p)
{
    for (size_t i = 0; i < p->n_mappings; i++) {
        const struct trace_mapping *m = &p->mappings[i];
        for (size_t k = m->first_run; is_heap(m) && k < m->first_run + m->n_runs; k++) {
            if (HT_APPEND(&s->of, &s->n, &s->capacity,
                          (struct span){p->runs[k].first, p->runs[k].first + p->runs[k].n}) < 0)
                return -ENOMEM;
        }
    }
    return 0;
}

// Finds the rows of `row_pages` pages each that overlap the sorted spans. Returns the number of
// rows, or RSS_MAP_ROWS plus 1 if there are too many rows.
static size_t find_rows(struct rss_map *m, const struct spans *s, uint64_t row_pages,
                        uint64_t page_bytes)
{
    uint64_t next = 0; // the first row after the rows found so far
    m->n_rows = 0;
    for (size_t i = 0; i < s->n; i++) {
        uint64_t first = s->of[i].first / row_pages, last = (s->of[i].end - 1) / row_pages;
        for (uint64_t row = first > next ? first : next; row <= last; row++) {
            if (m->n_rows == RSS_MAP_ROWS)
                return RSS_MAP_ROWS + 1;
            m->addresses[m->n_rows++] = row * row_pages * page_bytes;
        }
        next = last + 1 > next ? last + 1 : next;
    }
    return m->n_rows;
}

// Chooses the smallest row size that needs at most RSS_MAP_ROWS rows.
static int choose_rows(void *context, const struct trace_pages *maps, size_t n)
{
    struct rss_map *m = context;
    struct spans s = {0};
    uint64_t pages = MIN_ROW_PAGES, page_bytes = n ? maps[0].page_bytes : 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = add_spans(&s, &maps[i]);
    HT_SORT(s.of, s.n, SORT_UP(struct span, first));
    while (rc == 0 && find_rows(m, &s, pages, page_bytes) > RSS_MAP_ROWS)
        pages *= 2;
    m->row_bytes = pages * page_bytes;
    free(s.of);
    return rc;
}

// State of a pass over one moment. The pages, blocks and rows are visited in address order.
struct sweep {
    struct rss_map *map;
    const struct rss *rss;
    const struct rss_heap *heap;
    struct fragmentation_block *blocks;
    size_t n, block, row;
};

static void count_page(struct sweep *s, uint64_t page)
{
    struct rss_map *m = s->map;
    uint64_t bytes = s->rss->pages.page_bytes, from = page * bytes, to = from + bytes;
    while (s->row + 1 < m->n_rows && m->addresses[s->row + 1] <= from)
        s->row++;
    struct rss_map_cell *cell = &m->cells[s->row][m->n_moments];
    cell->resident_bytes += bytes;
    m->held[s->row] |= rss_heap_has_held(s->heap, page);
    while (s->block < s->n && s->blocks[s->block].address + s->blocks[s->block].bytes <= from)
        s->block++;
    for (size_t i = s->block; i < s->n && s->blocks[i].address < to; i++) {
        uint64_t start = s->blocks[i].address, end = start + s->blocks[i].bytes;
        cell->occupied_bytes += (end < to ? end : to) - (start > from ? start : from);
    }
}

static void count_pages(struct sweep *s)
{
    const struct trace_pages *p = &s->rss->pages;
    for (size_t i = 0; i < p->n_mappings; i++) {
        const struct trace_mapping *m = &p->mappings[i];
        for (size_t k = m->first_run; is_heap(m) && k < m->first_run + m->n_runs; k++) {
            for (uint64_t page = p->runs[k].first; page < p->runs[k].first + p->runs[k].n; page++)
                count_page(s, page);
        }
    }
}

struct row_pages {
    const struct trace_pages *pages;
    uint64_t first, end;
};

// Returns true if the page is resident and in the row. If a block extends into the next row, that
// row counts the block's pages there.
static bool counts_in_row(const void *context, uint64_t page)
{
    const struct row_pages *row = context;
    return page >= row->first && page < row->end && rss_is_resident(row->pages, page);
}

// Finds the call sites whose blocks pin the sparse pages of a row.
static int find_pins(struct sweep *s, size_t row, size_t from, size_t to)
{
    struct fragmentation found;
    struct rss_map *m = s->map;
    struct rss_map_cell *cell = &m->cells[row][m->n_moments];
    uint64_t bytes = s->rss->pages.page_bytes, first = m->addresses[row] / bytes;
    const struct row_pages pages = {&s->rss->pages, first, first + m->row_bytes / bytes};
    const struct fragmentation_heap h = {s->heap->events, bytes,         s->blocks + from,
                                         to - from,       counts_in_row, &pages};
    int rc = fragmentation_find(&found, &h);
    if (rc == 0) {
        const struct fragmentation_groups *sites = &found.by[FRAGMENTATION_BY_SITE];
        fragmentation_sort(&found);
        cell->sparse_pages = found.sparse_pages;
        cell->stranded_bytes = found.stranded_bytes;
        for (size_t i = 0; i < sites->n && i < RSS_MAP_PINS; i++) {
            cell->sites[i] = sites->groups[i].key;
            cell->pins[i] = sites->groups[i].stranded_bytes;
        }
    }
    fragmentation_release(&found);
    return rc;
}

static uint64_t end_of(const struct fragmentation_block *b)
{
    return b->address + (b->bytes ? b->bytes : 1);
}

static int find_all_pins(struct sweep *s)
{
    struct rss_map *m = s->map;
    int rc = 0;
    for (size_t row = 0, from = 0, to; rc == 0 && row < m->n_rows; row++) {
        while (from < s->n && end_of(&s->blocks[from]) <= m->addresses[row])
            from++;
        for (to = from; to < s->n && s->blocks[to].address < m->addresses[row] + m->row_bytes; to++)
            continue;
        if (to > from)
            rc = find_pins(s, row, from, to);
        // The last block may extend into the next row.
        from = to > from ? to - 1 : from;
    }
    return rc;
}

static int add_moment(void *context, const struct rss *r, const struct rss_heap *heap,
                      uint64_t time_ns)
{
    struct sweep s = {.map = context, .rss = r, .heap = heap};
    s.blocks = rss_find_blocks(r, heap, &s.n);
    if (!s.blocks)
        return -ENOMEM;
    if (s.map->n_rows)
        count_pages(&s);
    int rc = find_all_pins(&s);
    s.map->moments[s.map->n_moments++] =
        (struct rss_map_moment){time_ns, heap->events, r->pages.rss_bytes};
    free(s.blocks);
    return rc;
}

static void drop_others(struct rss_map *m)
{
    size_t kept = 0;
    for (size_t row = 0; row < m->n_rows; row++) {
        if (!m->held[row])
            continue;
        m->addresses[kept] = m->addresses[row];
        memmove(m->cells[kept++], m->cells[row], sizeof m->cells[row]);
    }
    m->n_rows = kept;
}

int rss_map_read(struct rss_map *m, struct trace_file *t, const struct convert_watch *watch,
                 struct err *e)
{
    *m = (struct rss_map){0};
    const struct rss_moments moments = {
        .max = RSS_MOMENTS, .context = m, .begin = choose_rows, .visit = add_moment};
    int rc = rss_read_moments(&m->rss, t, &moments, watch, e);
    drop_others(m);
    return rc;
}

void rss_map_release(struct rss_map *m)
{
    rss_release(&m->rss);
}

static void put_cells(struct json *j, const struct rss_map *m, const char *key, size_t member)
{
    json_put_array(j, key);
    for (size_t row = 0; row < m->n_rows; row++) {
        json_begin_array(j);
        for (size_t i = 0; i < m->n_moments; i++)
            json_u64(j, *(const uint64_t *)((const char *)&m->cells[row][i] + member));
        json_end_array(j);
    }
    json_end_array(j);
}

// Writes pairs of a site and its stranded bytes.
static void put_pins(struct json *j, const struct rss_map_cell *cell)
{
    json_begin_array(j);
    for (size_t i = 0; i < RSS_MAP_PINS && cell->pins[i]; i++) {
        json_begin_array(j);
        json_u64(j, cell->sites[i]);
        json_u64(j, cell->pins[i]);
        json_end_array(j);
    }
    json_end_array(j);
}

static void put_all_pins(struct json *j, const struct rss_map *m)
{
    json_put_array(j, "pinning");
    for (size_t row = 0; row < m->n_rows; row++) {
        json_begin_array(j);
        for (size_t i = 0; i < m->n_moments; i++)
            put_pins(j, &m->cells[row][i]);
        json_end_array(j);
    }
    json_end_array(j);
}

struct pinning {
    uint64_t site, bytes;
};

static void add_pins(const struct rss_map *m, struct pinning *sites, uint64_t n)
{
    for (size_t row = 0; row < m->n_rows; row++) {
        for (size_t i = 0; i < m->n_moments * RSS_MAP_PINS; i++) {
            const struct rss_map_cell *cell = &m->cells[row][i / RSS_MAP_PINS];
            uint64_t site = cell->sites[i % RSS_MAP_PINS];
            if (site && site <= n)
                sites[site - 1].bytes += cell->pins[i % RSS_MAP_PINS];
        }
    }
}

static void put_sites(struct json *j, const struct rss_map *m)
{
    uint64_t n = m->rss.symbols ? m->rss.sites.n_sites : 0;
    struct pinning *sites = calloc(n + 1, sizeof *sites);
    char text[STACK_SITE_BYTES];
    json_put_array(j, "sites");
    for (uint64_t i = 0; sites && i < n; i++)
        sites[i].site = i + 1;
    if (sites && n) {
        add_pins(m, sites, n);
        HT_SORT(sites, n, SORT_DOWN(struct pinning, bytes), SORT_UP(struct pinning, site));
    }
    for (uint64_t i = 0; sites && i < n && i < RSS_MAP_SITES && sites[i].bytes; i++) {
        json_begin_object(j);
        json_put_u64(j, "site", sites[i].site);
        json_put_string(j, "function", stack_site_text(m->rss.symbols, sites[i].site, text));
        json_end_object(j);
    }
    json_end_array(j);
    free(sites);
}

void rss_map_json(struct json *j, const struct rss_map *m)
{
    json_begin_object(j);
    json_put_u64(j, "pid", m->rss.pid);
    json_put_u64(j, "row_bytes", m->row_bytes);
    json_put_array(j, "addresses");
    for (size_t row = 0; row < m->n_rows; row++)
        json_hex(j, m->addresses[row]);
    json_end_array(j);
    json_put_array(j, "moments");
    for (size_t i = 0; i < m->n_moments; i++) {
        json_begin_object(j);
        json_put_u64(j, "time_ns", m->moments[i].time_ns);
        json_put_u64(j, "event", m->moments[i].event);
        json_put_u64(j, "rss_bytes", m->moments[i].rss_bytes);
        json_end_object(j);
    }
    json_end_array(j);
    put_cells(j, m, "resident_bytes", offsetof(struct rss_map_cell, resident_bytes));
    put_cells(j, m, "occupied_bytes", offsetof(struct rss_map_cell, occupied_bytes));
    put_cells(j, m, "stranded_bytes", offsetof(struct rss_map_cell, stranded_bytes));
    put_all_pins(j, m);
    put_sites(j, m);
    json_end_object(j);
}
