// Runs the real program with the recommended settings.
#include "experiments/advise/advise.h"
#include "replay/real.h"

#include <stdlib.h>

static bool is_recommended(const struct advise *a, const struct advise_row *r)
{
    for (unsigned f = 0; f < ADVISE_FIGURES; f++) {
        if (advise_best(a, f, false) == r || advise_best(a, f, true) == r)
            return true;
    }
    return false;
}

int advise_run_program(struct advise *a, char *const argv[], struct err *e)
{
    struct replay_result **results = calloc(a->n_rows, sizeof *results);
    char environment[ADVISE_DEPLOY_BYTES];
    size_t n = 0;
    if (!results)
        return err_no_memory(e, NULL);
    for (size_t i = 0; i < a->n_rows; i++) {
        const struct advise_row *r = &a->rows[i];
        if ((i == 0 || is_recommended(a, r)) && advise_environment(a, r, environment))
            results[n++] = &a->session->results[r->result];
    }
    a->has_run_program = true;
    int rc = n > 1 ? replay_real_run(results, n, ADVISE_MIN_ROUNDS, argv, false, e) : 0;
    free(results);
    return rc;
}

bool advise_has_program(const struct advise *a, const struct advise_row *r)
{
    return r->tried && a->session->results[r->result].n_real > 0;
}

int advise_program_verdict(const struct advise *a, const struct advise_row *r,
                           enum replay_real_figure figure)
{
    double values[MEASURE_MAX_RUNS], present[MEASURE_MAX_RUNS];
    if (!advise_has_program(a, r))
        return 0;
    size_t n = replay_real_values(&a->session->results[r->result], figure, values),
           n_present = replay_real_values(&a->session->results[0], figure, present);
    return advise_verdict_of(values, n, present, n_present);
}

bool advise_is_confirmed(const struct advise *a, const struct advise_row *r,
                         enum advise_figure figure)
{
    if (!advise_has_program(a, r) || (figure != ADVISE_CPU && figure != ADVISE_PEAK))
        return true;
    return advise_program_verdict(a, r, figure == ADVISE_CPU ? REAL_CPU : REAL_PEAK_RSS) < 0;
}
