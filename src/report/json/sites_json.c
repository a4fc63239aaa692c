#include "report/json/sites_json.h"

#include "analysis/symbols/shorten.h"
#include "analysis/symbols/stack.h"
#include "report/wrapper_use.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static bool continues_character(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

// Writes a path. If `brief` is set, a long path is cut at its beginning.
static void put_path(struct json *j, const char *key, const char *text, bool brief)
{
    size_t n = strlen(text), from = n - SITES_JSON_NAME_BYTES;
    char cut[SITES_JSON_NAME_BYTES + 4];
    if (!brief || n <= SITES_JSON_NAME_BYTES) {
        json_put_string(j, key, text);
        return;
    }
    while (from < n && continues_character(text[from]))
        from++;
    snprintf(cut, sizeof cut, "…%s", text + from);
    json_put_string(j, key, cut);
}

static void put_symbol(struct json *j, const struct symbol *s, bool brief)
{
    char name[SHORTEN_BYTES];
    json_put_string(j, "function",
                    brief ? shorten_name(s->function, SITES_JSON_NAME_BYTES, name) : s->function);
    put_path(j, "file", s->file, brief);
    json_put_u64(j, "line", (uint64_t)s->line);
    put_path(j, "module", s->module, brief);
    json_put_bool(j, "library", s->library);
    if (s->wrapper)
        json_put_bool(j, "wrapper", true);
}

void sites_json_function(struct json *j, const struct symbol *s)
{
    json_begin_object(j);
    put_symbol(j, s, true);
    json_end_object(j);
}

// Writes at most `max` functions of a stack. If the shown function is not among them, it replaces
// the last of these functions.
static void put_functions(struct json *j, const struct sites_json *n,
                          const struct workload_site *site, const struct stack *stack, size_t max)
{
    size_t at = 0, put = 0;
    json_put_array(j, "frames");
    for (uint32_t i = 0; i < site->n; i++) {
        const struct workload_frame *f = symbols_frame(n->symbols, site, i);
        const struct symbol *found = NULL;
        size_t n_found = symbols_of(n->symbols, f, &found);
        for (size_t k = 0; k < n_found; k++, at++) {
            if (put == max || (put == max - 1 && at < stack->shown))
                continue;
            put++;
            json_begin_object(j);
            json_key(j, "address");
            json_hex(j, f->address);
            put_symbol(j, &found[k], max != SIZE_MAX);
            json_end_object(j);
        }
    }
    json_end_array(j);
}

static void put_stack(struct json *j, const struct sites_json *n, uint32_t number, bool brief)
{
    const struct workload_site *site = symbols_site(n->symbols, number);
    // In a report, omit the stacks, because sites_profile contains them.
    size_t max = !brief ? SIZE_MAX : n->totals->detailed ? 0 : SITES_JSON_FUNCTIONS;
    struct stack stack = {0};
    if (max && stack_read(&stack, n->symbols, number) == 0 && stack.n)
        json_put_u64(j, "shown_frame", stack.shown < max ? stack.shown : max - 1);
    put_functions(j, n, site, &stack, max);
    stack_release(&stack);
}

static void put_range(struct json *j, const char *key, const struct estimate *e,
                      uint64_t sample_bytes)
{
    struct estimate_range r = estimate_bytes(e, sample_bytes);
    json_put_array(j, key);
    json_u64(j, r.low);
    json_u64(j, r.high);
    json_end_array(j);
}

static void put_uses(struct json *j, const struct site_use *u)
{
#define HT_X(key, member) json_put_u64(j, #key, u->member);
    SITES_JSON_USES(HT_X)
#undef HT_X
}

static void put_levels(struct json *j, const struct by_site *b, uint32_t number)
{
    json_put_array(j, "live_bytes_by_period");
    for (size_t i = 0; i < b->n_bins; i++)
        json_u64(j, number < b->n_levels ? b->levels[number][i] : 0);
    json_end_array(j);
}

void sites_json_site(struct json *j, const struct sites_json *n, uint32_t number, bool brief)
{
    const struct by_site_totals *t = &n->totals->sites[number];
    json_begin_object(j);
    json_put_u64(j, "site", number);
    json_put_u64(j, "allocs", t->calls);
    json_put_u64(j, "allocated_bytes", t->bytes);
    json_put_u64(j, "live_at_peak_blocks", t->peak_blocks);
    json_put_u64(j, "live_at_peak_bytes", t->peak_bytes);
    json_put_u64(j, "live_at_end_blocks", t->live_blocks);
    json_put_u64(j, "live_at_end_bytes", t->live_bytes);
    json_put_u64(j, "steady_growth_bytes", t->growth_bytes);
    if (number < n->totals->uses.n_sites)
        put_uses(j, &n->totals->uses.sites[number]);
    if (n->totals->span.wanted) {
        json_put_u64(j, "span_blocks", t->span_blocks);
        json_put_u64(j, "span_bytes", t->span_bytes);
    }
    if (n->totals->sample_bytes) {
        put_range(j, "allocated_bytes_range", &t->allocated, n->totals->sample_bytes);
        put_range(j, "live_at_peak_bytes_range", &t->peak, n->totals->sample_bytes);
        put_range(j, "live_at_end_bytes_range", &t->live, n->totals->sample_bytes);
    }
    if (n->totals->by_time)
        put_levels(j, n->totals, number);
    put_stack(j, n, number, brief);
    json_end_object(j);
}

static void put_count(struct json *j, const struct usage_count *c)
{
    json_put_u64(j, "blocks", c->blocks);
    json_put_u64(j, "bytes", c->bytes);
}

void sites_json_span(struct json *j, const struct by_site_span *s)
{
    if (!s->wanted)
        return;
    json_put_object(j, "span");
    put_count(j, &s->all);
    json_put_array(j, "by_thread");
    for (size_t i = 0; i < s->n_threads; i++) {
        if (!s->threads[i].blocks)
            continue;
        json_begin_object(j);
        json_put_u64(j, "thread", i);
        put_count(j, &s->threads[i]);
        json_end_object(j);
    }
    json_end_array(j);
    json_put_array(j, "by_size");
    for (unsigned i = 0; i < USAGE_CLASSES; i++) {
        if (!s->sizes[i].blocks)
            continue;
        json_begin_object(j);
        if (i == USAGE_CLASSES - 1)
            json_put_string(j, "max_bytes", NULL);
        else
            json_put_u64(j, "max_bytes", 8ull << i);
        put_count(j, &s->sizes[i]);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

void sites_json_wrappers(struct json *j, const struct sites_json *n)
{
    size_t n_wrappers = 0;
    struct wrapper_use *all = wrapper_use_new(n->totals, n->symbols, &n_wrappers);
    json_put_array(j, "wrappers");
    for (size_t i = 0; all && i < n_wrappers; i++) {
        const struct wrapper_use *u = &all[i];
        json_begin_object(j);
        put_symbol(j, &u->wrapper->function, false);
        json_put_u64(j, "calling_functions", u->wrapper->callers);
        json_put_u64(j, "allocs", u->calls);
        json_put_u64(j, "allocated_bytes", u->bytes);
        json_put_u64(j, "live_at_peak_bytes", u->peak_bytes);
        json_put_u64(j, "live_at_end_bytes", u->end_bytes);
        json_end_object(j);
    }
    json_end_array(j);
    free(all);
}

// Key by which call sites are sorted: either a profile weight or a member of struct site_use.
struct weight {
    enum profile_weight profile;
    size_t use; // offset of the member in struct site_use plus 1, or 0 to sort by `profile`
};

#define PROFILE(weight)                                                                            \
    {                                                                                              \
        weight, 0                                                                                  \
    }
#define USE(member)                                                                                \
    {                                                                                              \
        0, 1 + offsetof(struct site_use, member)                                                   \
    }
static const struct {
    struct weight by;
    size_t max;
} lists[SITES_JSON_LIST_COUNT] = {
#define HT_X(key, by, max) {by, max},
    SITES_JSON_LISTS(HT_X)
#undef HT_X
};

static const char *const list_keys[SITES_JSON_LIST_COUNT] = {
#define HT_X(key, by, max) #key,
    SITES_JSON_LISTS(HT_X)
#undef HT_X
};

static uint64_t weigh_site(const struct by_site *b, size_t site, struct weight by)
{
    if (!by.use)
        return profile_rank(&b->sites[site], by.profile);
    const char *use = site < b->uses.n_sites ? (const char *)&b->uses.sites[site] : NULL;
    return use ? *(const uint64_t *)(const void *)(use + by.use - 1) : 0;
}

uint64_t sites_json_weight(const struct by_site *b, enum sites_json_list list, uint32_t site)
{
    return weigh_site(b, site, lists[list].by);
}

size_t sites_json_list(const struct by_site *b, enum sites_json_list list,
                       uint32_t top[SITES_JSON_TOP])
{
    struct weight by = lists[list].by;
    size_t n = 0;
    for (size_t i = 0; i < b->n_sites; i++) {
        uint64_t weight = weigh_site(b, i, by);
        size_t at = n;
        while (at > 0 && weigh_site(b, top[at - 1], by) < weight)
            at--;
        if (!weight || at == lists[list].max)
            continue;
        n += n < lists[list].max;
        memmove(top + at + 1, top + at, (n - at - 1) * sizeof *top);
        top[at] = (uint32_t)i;
    }
    return n;
}

void sites_json_top(struct json *j, const struct sites_json *n, const union stat_figures *f)
{
    const char *missing;
    json_put_object(j, "call_sites");
    stat_figures_put(j, f, STAT_FIGURES_CALL_SITES);
    for (enum sites_json_list list = 0; list < SITES_JSON_LIST_COUNT; list++) {
        uint32_t top[SITES_JSON_TOP];
        size_t n_top = sites_json_list(n->totals, list, top);
        json_put_array(j, list_keys[list]);
        for (size_t i = 0; i < n_top; i++)
            sites_json_site(j, n, top[i], true);
        json_end_array(j);
    }
    json_put_u64(j, "unresolved_addresses", symbols_missing(n->symbols, &missing));
    json_end_object(j);
}

static void put_bytes(struct json *j, const struct coverage_bytes *b)
{
    json_put_u64(j, "allocated_bytes", b->allocated);
    json_put_u64(j, "live_at_peak_bytes", b->at_peak);
    json_put_u64(j, "live_at_end_bytes", b->at_end);
}

static void put_share(struct json *j, const char *key, const struct coverage_bytes *b)
{
    json_put_object(j, key);
    put_bytes(j, b);
    json_end_object(j);
}

static void put_interpreted(struct json *j, const struct coverage *c)
{
    bool begun = false;
    for (unsigned i = 0; i < COVERAGE_RUNTIMES; i++) {
        if (!c->interpreted[i].allocated)
            continue;
        if (!begun)
            json_put_object(j, "interpreted");
        begun = true;
        json_put_object(j, coverage_runtime_names[i]);
        json_put_u64(j, "allocated_bytes", c->interpreted[i].allocated);
        json_put_u64(j, "named_bytes", c->interpreted[i].named);
        json_end_object(j);
    }
    if (begun)
        json_end_object(j);
}

void sites_json_coverage(struct json *j, const struct coverage *c)
{
    if (!c->known)
        return;
    json_put_object(j, "stack_coverage");
    if (c->sample_bytes)
        json_put_u64(j, "stack_sample_bytes", c->sample_bytes);
    put_share(j, "all", &c->all);
    put_share(j, "reached", &c->reached);
    for (size_t i = 0; i < COVERAGE_OTHERS; i++)
        put_share(j, coverage_texts[i].name, &c->other[i]);
    put_interpreted(j, c);
    json_put_array(j, "ends");
    for (size_t i = 0; i < c->n_objects && i < SITES_JSON_TOP; i++) {
        json_begin_object(j);
        json_put_string(j, "object", c->objects[i].path);
        json_put_u64(j, "stacks", c->objects[i].sites);
        put_bytes(j, &c->objects[i].bytes);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}
