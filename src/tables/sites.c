// Rows of call sites.
#include "analysis/symbols/stack.h"
#include "tables/scan_private.h"

#include <errno.h>

// Writes the functions on the stack, outermost first.
static int put_stack(struct buf *to, struct symbols *symbols, const struct workload_sites *sites,
                     const struct workload_site *site)
{
    to->size = 0;
    for (uint32_t f = site->n; f-- > 0;) {
        const struct symbol *found;
        size_t n = symbols_of(symbols, &sites->frames[site->first + f], &found);
        if (!n)
            return -ENOMEM;
        while (n-- > 0) {
            int rc = to->size ? buf_put_u8(to, ';') : 0;
            for (const char *c = found[n].function; rc == 0 && *c; c++)
                rc = buf_put_u8(to, *c == ';' ? ':' : (uint8_t)*c);
            if (rc < 0)
                return rc;
        }
    }
    return buf_put_u8(to, 0);
}

static void fill_function(struct tables_row *row, const struct symbol *s)
{
    if (s->known)
        tables_row_set_text(row, TABLES_SITE_FUNCTION, s->function);
    if (s->file[0])
        tables_row_set_text(row, TABLES_SITE_SOURCE_FILE, s->file);
    if (s->file[0] && s->line > 0)
        tables_row_set(row, TABLES_SITE_SOURCE_LINE, (uint64_t)s->line);
    if (s->module[0])
        tables_row_set_text(row, TABLES_SITE_MODULE, s->module);
}

int tables_process_sites(struct tables_process *p, const struct workload_sites *sites,
                         const char *exe)
{
    const struct tables_wanted *w = &p->scan->of[TABLES_TABLE_SITES];
    const uint32_t cheap = 1 << TABLES_SITE_PROCESS | 1 << TABLES_SITE_SITE;
    uint32_t columns = w->columns | tables_condition_columns(w);
    if (!w->rows || !sites->n_sites)
        return 0;
    // Resolve names only if they are requested, because this requires reading the program's files.
    struct symbols *symbols = columns & ~cheap ? symbols_new(sites, exe) : NULL;
    int rc = symbols || !(columns & ~cheap) ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < sites->n_sites; i++) {
        const struct workload_site *site = &sites->sites[i];
        struct tables_row row = {0};
        struct symbol s;
        tables_row_set(&row, TABLES_SITE_PROCESS, p->number);
        tables_row_set(&row, TABLES_SITE_SITE, i + 1);
        if (symbols && site->n && stack_site(symbols, i + 1, &s))
            fill_function(&row, &s);
        if (columns & 1 << TABLES_SITE_STACK && site->n) {
            rc = put_stack(&p->text, symbols, sites, site);
            tables_row_set_text(&row, TABLES_SITE_STACK,
                                rc < 0 ? NULL : (const char *)p->text.data);
        }
        rc = rc < 0 ? rc : tables_put_checked(p->scan, TABLES_TABLE_SITES, &row);
    }
    symbols_free(symbols);
    return rc;
}
