// Names of settings, and how to deploy them.
#include "experiments/advise/advise.h"

#include <stdarg.h>
#include <stdio.h>

static size_t append_text(char *text, size_t size, size_t at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static size_t append_text(char *text, size_t size, size_t at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = at < size ? vsnprintf(text + at, size - at, fmt, args) : 0;
    va_end(args);
    return at + (n > 0 ? (size_t)n : 0);
}

char *advise_headline(const struct advise *a, const struct advise_row *r, bool cheap,
                      char text[ADVISE_HEADLINE_BYTES])
{
    size_t n = 0;
    text[0] = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        const char *word = pass == 0 ? "least " : "less ";
        for (unsigned f = 0; f < ADVISE_FIGURES; f++) {
            bool is_least = !advise_undecided(a, f, cheap, r);
            if (advise_best(a, f, cheap) != r || is_least != (pass == 0) ||
                !advise_is_confirmed(a, r, f))
                continue;
            n = append_text(text, ADVISE_HEADLINE_BYTES, n, "%s%s%s", n ? ", " : "", word,
                            advise_figures[f].name);
            word = "";
        }
    }
    return text;
}

static uint64_t trim_calls(const struct advise *a, const struct advise_row *r)
{
    return r->setting ? r->setting->trim_step * a->trim_interval : 0;
}

char *advise_name(const struct advise *a, const struct advise_row *r, char text[ADVISE_NAME_BYTES])
{
    const struct advise_setting *s = r->setting;
    const struct allocator *present = &a->session->results[0].allocator;
    size_t n = append_text(text, ADVISE_NAME_BYTES, 0, "%s", s ? s->allocator : present->name);
    for (size_t i = 0; !s && i < present->n_tunables; i++)
        n = append_text(text, ADVISE_NAME_BYTES, n, ",%s", present->tunables[i]);
    if (s && s->environment[0])
        n = append_text(text, ADVISE_NAME_BYTES, n, ",%s", s->environment);
    if (s && s->trim_step)
        n = append_text(text, ADVISE_NAME_BYTES, n, ", malloc_trim(0) every %llu calls",
                        (unsigned long long)trim_calls(a, r));
    if (s && s->huge_pages_off)
        append_text(text, ADVISE_NAME_BYTES, n, ", without transparent huge pages");
    return text;
}

static size_t put_environment(const struct advise *a, const struct advise_row *r, char *text)
{
    const struct allocator *as = &a->session->results[r->result].allocator;
    size_t n = 0;
    text[0] = 0;
    if (as->library)
        n = append_text(text, ADVISE_DEPLOY_BYTES, n, "LD_PRELOAD=%s", as->library);
    for (size_t i = 0; i < as->n_tunables; i++)
        n = append_text(text, ADVISE_DEPLOY_BYTES, n, "%s%s", n ? " " : "", as->tunables[i]);
    return n;
}

char *advise_environment(const struct advise *a, const struct advise_row *r,
                         char text[ADVISE_DEPLOY_BYTES])
{
    if (!r->tried || (r->setting && (r->setting->trim_step || r->setting->huge_pages_off)))
        return NULL;
    put_environment(a, r, text);
    return text;
}

// Writes how often the program must call malloc_trim. The interval is in calls and, if the
// recording has timestamps, also in milliseconds of the recording.
static size_t put_trim(const struct advise *a, const struct advise_row *r, char *text)
{
    const struct plan *plan = a->session->plan;
    uint64_t calls = trim_calls(a, r);
    double all_ns = (double)plan_facts(plan)->duration_stamps * a->session->ns_per_stamp;
    size_t n = append_text(text, ADVISE_DEPLOY_BYTES, 0,
                           "no variable sets this: the program must call malloc_trim(0) every %llu "
                           "calls of malloc, free and the like",
                           (unsigned long long)calls);
    double interval_ms = all_ns / 1e6 * (double)calls / (double)plan_facts(plan)->events;
    if (interval_ms > 0)
        n = append_text(text, ADVISE_DEPLOY_BYTES, n, ", about every %.*f ms as recorded",
                        interval_ms < 10 ? 1 : 0, interval_ms);
    return n;
}

char *advise_deploy(const struct advise *a, const struct advise_row *r,
                    char text[ADVISE_DEPLOY_BYTES])
{
    const struct advise_setting *s = r->setting;
    const struct allocator *as = &a->session->results[r->result].allocator;
    size_t n;
    if (s && s->trim_step)
        n = put_trim(a, r, text);
    else if (s && s->huge_pages_off)
        n = append_text(text, ADVISE_DEPLOY_BYTES, 0,
                        "no variable sets this: the program or its parent must call "
                        "prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)");
    else
        n = put_environment(a, r, text);
    if (!as->library && (n == 0 || a->session->results[0].allocator.library))
        n = append_text(
            text, ADVISE_DEPLOY_BYTES, n,
            "%srun the program on glibc's malloc, without another one preloaded or linked",
            n ? "; " : "");
    if (s && (s->trim_step || s->huge_pages_off) && as->library)
        append_text(text, ADVISE_DEPLOY_BYTES, n, "; LD_PRELOAD=%s", as->library);
    return text;
}
