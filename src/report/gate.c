#include "report/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct gate_metric_info gate_metrics[GATE_METRIC_COUNT] = {
#define HT_X(name, member, is_bytes, label) {#name, label, is_bytes},
    GATE_METRICS(HT_X)
#undef HT_X
};

static const struct {
    const char *name;
    double factor;
    bool is_bytes, is_share;
} units[] = {{"", 1, false, false},        {"%", 0.01, false, true},
             {"B", 1, true, false},        {"KiB", 0x1p10, true, false},
             {"MiB", 0x1p20, true, false}, {"GiB", 0x1p30, true, false}};

static int parse_metric(struct gate *g, const char *text, size_t n)
{
    for (unsigned i = 0; i < GATE_METRIC_COUNT; i++) {
        if (strlen(gate_metrics[i].name) == n && memcmp(gate_metrics[i].name, text, n) == 0) {
            g->metric = i;
            return 0;
        }
    }
    return -EINVAL;
}

static int parse_limit(struct gate *g, const char *text)
{
    char *end;
    g->is_growth = *text == '+';
    text += g->is_growth;
    if (*text < '0' || *text > '9')
        return -EINVAL;
    g->limit = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(units[i].name, end) != 0)
            continue;
        g->is_share = units[i].is_share;
        g->limit *= units[i].factor;
        return (g->is_share && !g->is_growth) ||
                       (units[i].is_bytes && !gate_metrics[g->metric].is_bytes)
                   ? -EINVAL
                   : 0;
    }
    return -EINVAL;
}

// Parses the pattern, which must match the beginning of a function name.
static int parse_sites(struct gate *g, const char *text, size_t n, struct err *e)
{
    char *pattern = NULL, why[128];
    if (asprintf(&pattern, "^(%.*s)", (int)n, text) < 0)
        return err_no_memory(e, NULL);
    int bad = regcomp(&g->sites, pattern, REG_EXTENDED | REG_NOSUB);
    free(pattern);
    if (!bad) {
        g->has_sites = true;
        return 0;
    }
    regerror(bad, &g->sites, why, sizeof why);
    return err_set(e, -EINVAL, "--fail-on %s: %s", g->text, why);
}

// Function names may contain ':' and '>'. Therefore the last ':' and the last '>' are the
// separators.
int gate_parse(struct gate *g, const char *text, struct err *e)
{
    static const char prefix[] = "site:";
    const char *limit = strrchr(text, '>'), *metric = text, *name = text;
    *g = (struct gate){.text = text};
    bool has_sites = strncmp(text, prefix, sizeof prefix - 1) == 0;
    for (; limit && has_sites && name < limit; name++)
        metric = *name == ':' ? name + 1 : metric;
    if (!limit || (has_sites && metric == text + sizeof prefix - 1) ||
        parse_metric(g, metric, (size_t)(limit - metric)) < 0 || parse_limit(g, limit + 1) < 0)
        return err_set(
            e, -EINVAL,
            "--fail-on %s: expected METRIC>LIMIT or site:REGEX:METRIC>LIMIT, with peak_live, "
            "end_live, bytes or calls, and a limit such as +5%%, +1MiB, +100 or 64MiB",
            text);
    text += sizeof prefix - 1;
    return has_sites ? parse_sites(g, text, (size_t)(metric - 1 - text), e) : 0;
}

void gate_release(struct gate *g)
{
    if (g->has_sites)
        regfree(&g->sites);
    g->has_sites = false;
}

uint64_t gate_value(const struct sites_diff_side *s, enum gate_metric metric)
{
    const uint64_t values[GATE_METRIC_COUNT] = {
#define HT_X(name, member, is_bytes, label) s->member,
        GATE_METRICS(HT_X)
#undef HT_X
    };
    return values[metric];
}

void gate_count(struct gate *g, unsigned side, const struct stack *stack,
                const struct sites_diff_side *totals)
{
    bool matches = g->has_sites && !stack->n && regexec(&g->sites, "(unknown)", 0, NULL, 0) == 0;
    for (size_t i = 0; g->has_sites && !matches && i < stack->n && i <= stack->shown; i++)
        matches = regexec(&g->sites, stack->functions[i].function, 0, NULL, 0) == 0;
    if (matches)
        *(side ? &g->b : &g->a) += gate_value(totals, g->metric);
}

void gate_check(struct gate *g, const struct sites_diff_side totals[2])
{
    if (!g->has_sites) {
        g->a = gate_value(&totals[0], g->metric);
        g->b = gate_value(&totals[1], g->metric);
    }
    double value = (double)g->b - (g->is_growth ? (double)g->a : 0);
    g->failed = value > g->limit * (g->is_share ? (double)g->a : 1);
}
