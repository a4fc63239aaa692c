// Encoder for profile.proto.
#include "base/intern.h"
#include "base/printable.h"
#include "base/protobuf.h"
#include "report/profile.h"

#include <stdlib.h>

// Field numbers, by message.
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_DURATION_NS = 10,
    PROFILE_DEFAULT_TYPE = 14
};
enum { TYPE_TYPE = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2 };
enum {
    MAPPING_ID = 1,
    MAPPING_START = 2,
    MAPPING_LIMIT = 3,
    MAPPING_OFFSET = 4,
    MAPPING_FILE = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7
};
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

struct writer {
    struct buf *to;
    struct symbols *symbols;
    struct intern strings;
    struct map functions; // maps the numbers of a name and a file to an id
    struct map locations; // maps an address to an id
    int rc;
};

static void put_number(struct writer *w, struct buf *to, unsigned field, uint64_t v)
{
    if (protobuf_put_u64(to, field, v) < 0)
        w->rc = -ENOMEM;
}

static void put_bytes(struct writer *w, struct buf *to, unsigned field, const void *bytes, size_t n)
{
    if (protobuf_put_bytes(to, field, bytes, n) < 0)
        w->rc = -ENOMEM;
}

// Appends the message as a field, and clears the message.
static void put_message(struct writer *w, unsigned field, struct buf *message)
{
    if (protobuf_put_message(w->to, field, message) < 0)
        w->rc = -ENOMEM;
}

// Returns the number of a string in the string table. Adds the string to the table if it is new.
// Number 0 is the empty string.
static uint64_t string_number(struct writer *w, const char *text)
{
    bool is_new;
    uint64_t number = w->rc == 0 ? intern_number(&w->strings, text, &is_new) : 0;
    if (!number)
        w->rc = -ENOMEM;
    if (!number || !is_new)
        return number ? number - 1 : 0;
    char *copy = printable_new(text);
    if (copy)
        put_bytes(w, w->to, PROFILE_STRING, copy, strlen(copy));
    else
        w->rc = -ENOMEM;
    free(copy);
    return number - 1;
}

static uint64_t function_id(struct writer *w, const struct symbol *s)
{
    uint64_t name = string_number(w, s->function), file = string_number(w, s->file),
             key = name << 32 | file;
    uint64_t id = map_get(&w->functions, key);
    struct buf m = {0};
    if (id || w->rc < 0)
        return id;
    id = w->functions.n + 1;
    if (map_put(&w->functions, key, id) < 0)
        w->rc = -ENOMEM;
    put_number(w, &m, FUNCTION_ID, id);
    put_number(w, &m, FUNCTION_NAME, name);
    put_number(w, &m, FUNCTION_SYSTEM_NAME, name);
    put_number(w, &m, FUNCTION_FILE, file);
    put_message(w, PROFILE_FUNCTION, &m);
    buf_release(&m);
    return id;
}

static void put_line(struct writer *w, struct buf *location, const struct symbol *s)
{
    struct buf m = {0};
    put_number(w, &m, LINE_FUNCTION, function_id(w, s));
    put_number(w, &m, LINE_LINE, (uint64_t)s->line);
    put_bytes(w, location, LOCATION_LINE, m.data, m.size);
    buf_release(&m);
}

static uint64_t location_id(struct writer *w, const struct workload_frame *f)
{
    uint64_t id = map_get(&w->locations, f->address);
    const struct symbol *found = NULL;
    struct buf m = {0};
    if (id || w->rc < 0)
        return id;
    id = w->locations.n + 1;
    size_t n = symbols_of(w->symbols, f, &found);
    if (n == 0 || map_put(&w->locations, f->address, id) < 0)
        w->rc = -ENOMEM;
    put_number(w, &m, LOCATION_ID, id);
    put_number(w, &m, LOCATION_MAPPING, f->module);
    put_number(w, &m, LOCATION_ADDRESS, f->address - 1);
    for (size_t i = 0; i < n; i++)
        put_line(w, &m, &found[i]);
    put_message(w, PROFILE_LOCATION, &m);
    buf_release(&m);
    return id;
}

static void put_type(struct writer *w, unsigned field, const char *type, const char *unit)
{
    struct buf m = {0};
    put_number(w, &m, TYPE_TYPE, string_number(w, type));
    put_number(w, &m, TYPE_UNIT, string_number(w, unit));
    put_message(w, field, &m);
    buf_release(&m);
}

static void put_mappings(struct writer *w)
{
    const struct workload_sites *sites = symbols_sites(w->symbols);
    struct buf m = {0};
    for (size_t i = 0; i < sites->n_modules; i++) {
        const struct workload_module *module = &sites->modules[i];
        put_number(w, &m, MAPPING_ID, i + 1);
        put_number(w, &m, MAPPING_START, module->start);
        put_number(w, &m, MAPPING_LIMIT, module->start + module->bytes);
        put_number(w, &m, MAPPING_OFFSET, module->offset);
        put_number(w, &m, MAPPING_FILE, string_number(w, module->path));
        put_number(w, &m, MAPPING_BUILD_ID, string_number(w, module->build_id));
        put_number(w, &m, MAPPING_HAS_FUNCTIONS, 1);
        put_message(w, PROFILE_MAPPING, &m);
    }
    buf_release(&m);
}

static void put_sample(struct writer *w, size_t number, const struct by_site_totals *t)
{
    const uint64_t values[] = {t->calls,      t->bytes,       t->peak_blocks,
                               t->peak_bytes, t->live_blocks, t->live_bytes};
    const struct workload_site *site = symbols_site(w->symbols, number);
    struct buf m = {0};
    for (uint32_t i = 0; i < site->n; i++)
        put_number(w, &m, SAMPLE_LOCATION, location_id(w, symbols_frame(w->symbols, site, i)));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        put_number(w, &m, SAMPLE_VALUE, values[i]);
    put_message(w, PROFILE_SAMPLE, &m);
    buf_release(&m);
}

int profile_pprof(struct buf *to, const struct by_site *b, struct symbols *symbols,
                  uint64_t duration_ns)
{
    struct writer w = {.to = to, .symbols = symbols};
    string_number(&w, "");
    put_type(&w, PROFILE_SAMPLE_TYPE, "alloc_objects", "count");
    put_type(&w, PROFILE_SAMPLE_TYPE, "alloc_space", "bytes");
    put_type(&w, PROFILE_SAMPLE_TYPE, "peak_objects", "count");
    put_type(&w, PROFILE_SAMPLE_TYPE, "peak_space", "bytes");
    put_type(&w, PROFILE_SAMPLE_TYPE, "inuse_objects", "count");
    put_type(&w, PROFILE_SAMPLE_TYPE, "inuse_space", "bytes");
    put_mappings(&w);
    for (size_t i = 0; i < b->n_sites; i++) {
        if (b->sites[i].calls || b->sites[i].peak_blocks || b->sites[i].live_blocks)
            put_sample(&w, i, &b->sites[i]);
    }
    put_number(&w, to, PROFILE_DURATION_NS, duration_ns);
    put_number(&w, to, PROFILE_DEFAULT_TYPE, string_number(&w, "peak_space"));
    intern_release(&w.strings);
    map_release(&w.functions);
    map_release(&w.locations);
    return w.rc;
}
