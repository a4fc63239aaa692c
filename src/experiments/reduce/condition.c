#include "experiments/reduce/condition.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// The parser evaluates a comparison while it parses. Without figures, it only checks the syntax and
// collects `needs`.
struct parser {
    const char *at;
    const struct condition_figures *figures; // NULL to only check the syntax
    unsigned needs;
    double dividend_bytes; // lowest dividend of a quotient of bytes so far
    unsigned depth;
    bool failed;
};

struct quantity {
    double number;
    bool is_bytes;
};

enum { MAX_DEPTH = 16 };

// Units of options, except "m", which is a size in some options and a time in others.
static const struct {
    const char *name;
    double factor;
    bool is_bytes;
} units[] = {
    {"KiB", 0x1p10, true}, {"MiB", 0x1p20, true}, {"GiB", 0x1p30, true}, {"TiB", 0x1p40, true},
    {"B", 1, true},        {"K", 0x1p10, true},   {"M", 0x1p20, true},   {"G", 0x1p30, true},
    {"T", 0x1p40, true},   {"k", 0x1p10, true},   {"g", 0x1p30, true},   {"t", 0x1p40, true},
    {"ns", 1, false},      {"us", 1e3, false},    {"ms", 1e6, false},    {"s", 1e9, false}};

// Quantiles of call times: name, offset, and the minimum number of calls that the quantile
// requires.
static const struct {
    const char *name;
    size_t offset;
    uint64_t min_calls;
} quantiles[] = {
    {"mean", offsetof(struct replay_call, mean_ns), 1},
    {"p50", offsetof(struct replay_call, p50_ns), 2},
    {"p99", offsetof(struct replay_call, p99_ns), 100},
    {"p999", offsetof(struct replay_call, p999_ns), 1000},
    {"max", offsetof(struct replay_call, max_ns), 1},
};

static void skip_blanks(struct parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool accept_character(struct parser *p, char c)
{
    skip_blanks(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static struct quantity fail_parsing(struct parser *p)
{
    p->failed = true;
    return (struct quantity){NAN, false};
}

static struct quantity parse_number(struct parser *p)
{
    char *end;
    struct quantity v = {strtod(p->at, &end), false};
    p->at = end;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(units[i].name);
        if (strncmp(p->at, units[i].name, n) != 0 || isalnum((unsigned char)p->at[n]))
            continue;
        p->at += n;
        return (struct quantity){v.number * units[i].factor, units[i].is_bytes};
    }
    return v;
}

static bool is_name(const char *full, const char *text, size_t n, const char *unit)
{
    return strncmp(full, text, n) == 0 && (!full[n] || strcmp(full + n, unit) == 0);
}

// Parses the time of a call, such as "malloc.p999".
static struct quantity parse_call(struct parser *p, const char *text, size_t n)
{
    const char *dot = memchr(text, '.', n);
    size_t kind_bytes = (size_t)(dot - text), rest = n - kind_bytes - 1;
    unsigned kind = 0, q = 0;
    while (kind < HT_KIND_LIMIT &&
           !(event_infos[kind].name && strlen(event_infos[kind].name) == kind_bytes &&
             memcmp(event_infos[kind].name, text, kind_bytes) == 0))
        kind++;
    while (q < sizeof quantiles / sizeof *quantiles &&
           !is_name(quantiles[q].name, dot + 1, rest, ""))
        q++;
    if (kind == HT_KIND_LIMIT || q == sizeof quantiles / sizeof *quantiles || !rest) {
        p->at = text;
        return fail_parsing(p);
    }
    p->needs |= CONDITION_NEEDS_LATENCY;
    const struct replay_call *call =
        p->figures && p->figures->calls ? &p->figures->calls[kind] : NULL;
    if (!call || call->count < quantiles[q].min_calls)
        return (struct quantity){NAN, false};
    return (struct quantity){*(const double *)((const char *)call + quantiles[q].offset), false};
}

// Parses the name of a figure. The unit in the name is optional (peak_rss for peak_rss_bytes).
static struct quantity parse_figure(struct parser *p)
{
    const char *text = p->at;
    while (isalnum((unsigned char)*p->at) || *p->at == '_' || *p->at == '.')
        p->at++;
    size_t n = (size_t)(p->at - text);
    if (memchr(text, '.', n))
        return parse_call(p, text, n);
    for (size_t i = 0; n && i < FIGURES; i++) {
        const struct figure_info *info = &figure_infos[i];
        bool is_bytes = info->unit == FIGURE_BYTES;
        if (!is_name(info->name, text, n, is_bytes ? "_bytes" : "_ns"))
            continue;
        bool is_time = info->group != FIGURE_MEMORY && info->origin != FIGURE_PLAN;
        p->needs |= is_time ? CONDITION_NEEDS_TIME : CONDITION_NEEDS_MEMORY;
        return (struct quantity){p->figures ? p->figures->figures.values[i] : 1, is_bytes};
    }
    p->at = text;
    return fail_parsing(p);
}

static struct quantity parse_sum(struct parser *p);

static struct quantity parse_factor(struct parser *p)
{
    struct quantity v;
    skip_blanks(p);
    if (isdigit((unsigned char)*p->at) || *p->at == '.')
        return parse_number(p);
    if (!accept_character(p, '('))
        return parse_figure(p);
    if (++p->depth > MAX_DEPTH)
        return fail_parsing(p);
    v = parse_sum(p);
    p->depth--;
    return accept_character(p, ')') ? v : fail_parsing(p);
}

static struct quantity parse_product(struct parser *p)
{
    struct quantity v = parse_factor(p);
    while (!p->failed) {
        if (accept_character(p, '*')) {
            struct quantity by = parse_factor(p);
            v = (struct quantity){v.number * by.number, v.is_bytes || by.is_bytes};
        } else if (accept_character(p, '/')) {
            struct quantity by = parse_factor(p);
            if (v.is_bytes && by.is_bytes)
                p->dividend_bytes = fmin(p->dividend_bytes, v.number);
            v = (struct quantity){v.number / by.number, v.is_bytes && !by.is_bytes};
        } else {
            break;
        }
    }
    return v;
}

static struct quantity parse_sum(struct parser *p)
{
    struct quantity v = parse_product(p);
    while (!p->failed) {
        if (accept_character(p, '+'))
            v.number += parse_product(p).number;
        else if (accept_character(p, '-'))
            v.number -= parse_product(p).number;
        else
            break;
    }
    return v;
}

enum relation { NO_RELATION, GREATER, GREATER_OR_EQUAL, LESS, LESS_OR_EQUAL };

static enum relation parse_relation(struct parser *p)
{
    bool greater = accept_character(p, '>');
    if (!greater && !accept_character(p, '<'))
        return NO_RELATION;
    bool equal = *p->at == '=';
    p->at += equal;
    return greater ? equal ? GREATER_OR_EQUAL : GREATER : equal ? LESS_OR_EQUAL : LESS;
}

static enum relation parse_comparison(struct parser *p, struct condition_seen *seen)
{
    p->dividend_bytes = INFINITY;
    seen->left = parse_sum(p).number;
    enum relation r = parse_relation(p);
    seen->right = r ? parse_sum(p).number : NAN;
    skip_blanks(p);
    p->failed |= !r || *p->at;
    seen->dividend_bytes = p->dividend_bytes;
    return r;
}

static int parse_kind(struct condition *c, struct err *e)
{
    static const char *const words[] = {
        [CONDITION_VERIFY] = "verify", [CONDITION_CRASH] = "crash", [CONDITION_HANG] = "hang"};
    struct condition_seen seen;
    for (unsigned i = CONDITION_VERIFY; i <= CONDITION_HANG; i++) {
        if (strcmp(c->comparison, words[i]) == 0) {
            c->kind = i;
            return 0;
        }
    }
    struct parser p = {.at = c->comparison};
    parse_comparison(&p, &seen);
    c->needs = p.needs;
    if (!p.failed && p.needs)
        return 0;
    return err_set(e, -EINVAL,
                   "--keep '%s': expected verify, crash, hang or a comparison such as 'glibc: "
                   "peak_rss/peak_live > 2' or 'jemalloc: malloc.p999 > 50us', of figures that "
                   "replay --json has%s%.40s%s",
                   c->text, *p.at ? "; cannot read '" : "", p.at, *p.at ? "'" : "");
}

int condition_parse(struct condition *c, const char *text, const char *allocator, struct err *e)
{
    const char *colon = strrchr(text, ':');
    char *named = colon ? strndup(text, (size_t)(colon - text)) : strdup(allocator);
    *c = (struct condition){.text = text, .comparison = colon ? colon + 1 : text};
    c->comparison += strspn(c->comparison, " ");
    if (!named)
        return err_no_memory(e, NULL);
    int rc = parse_kind(c, e);
    if (rc == 0 && allocator_parse(&c->allocator, named + strspn(named, " "), e) < 0)
        rc = -ENOENT;
    free(named);
    return rc;
}

void condition_release(struct condition *c)
{
    allocator_release(&c->allocator);
}

bool condition_compare(const struct condition *c, const struct condition_figures *f,
                       struct condition_seen *seen)
{
    struct parser p = {.at = c->comparison, .figures = f};
    enum relation r = parse_comparison(&p, seen);
    bool greater = r == GREATER || r == GREATER_OR_EQUAL;
    double most = fabs(seen->right) * c->margin,
           more = greater ? seen->left - seen->right : seen->right - seen->left;
    seen->margin = seen->right != 0 ? more / fabs(seen->right) : 0;
    // Unknown figures make `more` NAN, so all comparisons are false.
    bool holds = r == GREATER || r == LESS ? more > most : more >= most;
    return holds && !(greater && seen->dividend_bytes < c->floor_bytes);
}
