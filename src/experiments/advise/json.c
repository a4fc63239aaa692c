#include "replay/json.h"
#include "experiments/advise/advise.h"
#include "replay/real.h"

#include <stdlib.h>

static const char *const verdicts[] = {"less", "unknown", "more"};

static void put_program_verdicts(struct json *j, const struct advise *a, const struct advise_row *r)
{
    json_put_object(j, "real_verdicts");
    for (unsigned i = 0; advise_has_program(a, r) && i < REAL_FIGURES; i++)
        json_put_string(j, replay_real_infos[i].key, verdicts[1 + advise_program_verdict(a, r, i)]);
    json_end_object(j);
}

static void put_figures(struct json *j, const struct advise *a, const struct advise_row *r)
{
    for (unsigned f = 0; f < ADVISE_FIGURES; f++) {
        struct measure_ratio ratio = advise_ratio(a, r, f);
        json_put_double(j, figure_infos[advise_figures[f].figure].name, advise_value(a, r, f));
        replay_json_ratio(j, advise_figures[f].ratio, &ratio);
    }
    json_put_object(j, "verdicts");
    for (unsigned f = 0; f < ADVISE_FIGURES; f++)
        json_put_string(j, figure_infos[advise_figures[f].figure].name,
                        verdicts[1 + advise_verdict(a, r, f)]);
    json_end_object(j);
}

static void put_row(struct json *j, const struct advise *a, const struct advise_row *r)
{
    char name[ADVISE_NAME_BYTES], text[ADVISE_DEPLOY_BYTES];
    size_t runs = a->session->results[r->result].n_runs;
    json_begin_object(j);
    json_put_string(j, "setting", advise_name(a, r, name));
    json_put_string(j, "group", r->setting ? advise_group_name(r->setting->group) : "present");
    replay_json_allocator(j, &a->session->results[r->result]);
    json_put_string(j, "environment", advise_environment(a, r, text));
    json_put_string(j, "deploy", advise_deploy(a, r, text));
    json_put_u64(j, "repetitions", runs > 1 ? runs - 1 : 0);
    put_figures(j, a, r);
    json_put_double(j, "returned_share", advise_returned_share(a, r));
    replay_json_real(j, a->session, &a->session->results[r->result]);
    put_program_verdicts(j, a, r);
    json_end_object(j);
}

static void put_best(struct json *j, const struct advise *a, const char *key, bool cheap)
{
    json_put_object(j, key);
    for (unsigned f = 0; f < ADVISE_FIGURES; f++) {
        char name[ADVISE_NAME_BYTES];
        const struct advise_row *best = advise_best(a, f, cheap);
        json_put_string(j, figure_infos[advise_figures[f].figure].name,
                        best ? advise_name(a, best, name) : NULL);
    }
    json_end_object(j);
}

static void put_not_tried(struct json *j, const struct advise *a)
{
    char name[ADVISE_NAME_BYTES];
    json_put_array(j, "not_tried");
    for (size_t i = 0; i < a->n_rows; i++) {
        if (a->rows[i].tried)
            continue;
        json_begin_object(j);
        json_put_string(j, "setting", advise_name(a, &a->rows[i], name));
        json_put_string(j, "missing_reason", a->rows[i].missing_reason.text);
        json_end_object(j);
    }
    json_end_array(j);
}

void advise_json(struct json *j, const struct advise *a, enum advise_figure rank)
{
    const struct advise_row **order = calloc(a->n_rows, sizeof *order);
    size_t n = order ? advise_rank(a, rank, order) : 0;
    replay_json_head(j, a->session);
    json_put_double(j, "budget_ns", (double)a->budget_ns);
    json_put_double(j, "spent_ns", (double)a->spent_ns);
    json_put_u64(j, "live_at_end_bytes", plan_facts(a->session->plan)->live_at_end_bytes);
    put_best(j, a, "best", false);
    put_best(j, a, "best_without_more_cpu", true);
    json_put_array(j, "settings");
    for (size_t i = 0; i < n; i++)
        put_row(j, a, order[i]);
    json_end_array(j);
    put_not_tried(j, a);
    json_end_object(j);
    free(order);
}
