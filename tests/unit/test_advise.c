// Tests the verdicts of advise and its trim intervals.
#include "experiments/advise/advise.h"
#include "unit.h"

#include <stdlib.h>

static void a_clear_difference(void **state)
{
    (void)state;
    const double now[] = {20.1, 20.4, 19.8, 20.0, 20.2, 20},
                 fast[] = {10.2, 9.9, 10.0, 10.1, 9.8, 10};
    assert_int_equal(advise_verdict_of(fast, 6, now, 6), -1);
    assert_int_equal(advise_verdict_of(now, 6, fast, 6), 1);
    assert_int_equal(advise_verdict_of(fast, 5, now, 6), 0); // too few runs
    assert_int_equal(advise_verdict_of(fast, 6, now, 5), 0);
}

static void overlapping_or_near_values_do_not_differ(void **state)
{
    (void)state;
    const double now[] = {20, 21, 22, 22, 23, 24}, overlaps[] = {10, 10, 10, 10, 10, 20.5},
                 near[] = {17, 18, 18, 19, 19.5, 19.9};
    const double even[] = {100, 100, 100, 100, 100, 100},
                 hardly_less[] = {99.5, 99.5, 99.5, 99.5, 99.5, 99.5};
    assert_int_equal(advise_verdict_of(overlaps, 6, now, 6), 0);
    assert_int_equal(advise_verdict_of(near, 6, now, 6),
                     0); // the difference is smaller than the spread of either side
    assert_int_equal(advise_verdict_of(hardly_less, 6, even, 6), 0);
    assert_int_equal(advise_verdict_of(even, 6, even, 6), 0);
}

// Returns a random run time, as measured on a machine that disturbs one run in five.
static double draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    double of_one = (double)(*seed >> 11) / 0x1p53;
    return 1 + 0.05 * of_one + (of_one < 0.2 ? 0.5 : 0);
}

static void equal_settings_look_different_in_one_of_a_thousand(void **state)
{
    enum { TIMES = 100000, N = ADVISE_MIN_ROUNDS };
    uint64_t seed = 1, different = 0;
    double a[N], b[N];
    (void)state;
    for (unsigned i = 0; i < TIMES; i++) {
        for (unsigned k = 0; k < N; k++) {
            a[k] = draw(&seed);
            b[k] = draw(&seed);
        }
        different += advise_verdict_of(a, N, b, N) < 0;
    }
    assert_true(different <= TIMES / 1000);
}

// A kind of settings may use only its share of the time. The kinds after it may use the rest of
// the share.
static void each_kind_gets_its_turn(void **state)
{
    (void)state;
    const uint64_t budget = 100 * 1000;
    assert_int_equal(advise_turn_ns(budget, ADVISE_ALLOCATOR, false), 10 * 1000);
    assert_int_equal(advise_turn_ns(budget, ADVISE_TRIM, false), 20 * 1000);
    assert_int_equal(advise_turn_ns(budget, ADVISE_HUGE_PAGES, false), 50 * 1000);
    for (unsigned g = 0; g < ADVISE_GROUPS; g++)
        assert_int_equal(advise_turn_ns(budget, g, true), 50 * 1000);
}

static void intervals_of_trims(void **state)
{
    (void)state;
    assert_int_equal(advise_trim_interval(18618915), 200000);
    assert_int_equal(advise_trim_interval(64 * 500), 500);
    assert_int_equal(advise_trim_interval(64 * 100), 100);
    assert_int_equal(advise_trim_interval(64 * 99), 0);
    assert_int_equal(advise_trim_interval(0), 0);
}

// The allocator without settings precedes its settings.
static void the_table_is_ordered(void **state)
{
    (void)state;
    for (const struct advise_setting *s = advise_settings; s->allocator; s++) {
        bool known = false;
        for (const struct allocator_info *i = allocator_infos; i->name; i++)
            known |= strcmp(i->name, s->allocator) == 0;
        assert_true(known);
        assert_true(!s[1].allocator || s[1].group >= s->group);
        assert_true((s->group == ADVISE_ALLOCATOR) ==
                    (!s->environment[0] && !s->trim_step && !s->huge_pages_off));
        for (const struct advise_setting *other = advise_settings; other < s; other++)
            assert_true(strcmp(other->allocator, s->allocator) != 0 ||
                        other->trim_step != s->trim_step ||
                        strcmp(other->environment, s->environment) != 0 ||
                        other->huge_pages_off != s->huge_pages_off);
    }
}

enum { ROWS = 4, RUNS = ADVISE_MIN_ROUNDS + 1 };

// Results of the current setting and three others.
struct planted {
    struct replay_run runs[ROWS][RUNS];
    struct replay_real real[ROWS][ADVISE_MIN_ROUNDS];
    struct replay_result results[ROWS];
    struct replay_session session;
    struct advise_row rows[ROWS];
    struct advise a;
};

static void plant(struct planted *p)
{
    *p = (struct planted){.session = {.results = p->results, .n_results = ROWS},
                          .a = {.session = &p->session, .rows = p->rows, .n_rows = ROWS}};
    for (size_t i = 0; i < ROWS; i++) {
        p->rows[i] = (struct advise_row){
            .setting = i ? &advise_settings[i] : NULL, .result = i, .tried = true};
        p->results[i].runs = p->runs[i];
        p->results[i].n_runs = RUNS;
    }
}

// Sets a figure of all runs of a row to values around `value`. The values of the first and the last
// run differ by `spread`.
static void set_value(struct planted *p, size_t row, enum advise_figure figure, double value,
                      double spread)
{
    for (size_t i = 0; i < RUNS; i++)
        p->runs[row][i].figures.values[advise_figures[figure].figure] =
            value + spread * ((double)i / (RUNS - 1) - 0.5);
}

// If the headline contains "least", the row that it names has the lowest value of the table.
static void the_headline_agrees_with_the_table(void **state)
{
    struct planted *p = calloc(1, sizeof *p);
    char text[ADVISE_HEADLINE_BYTES];
    (void)state;
    plant(p);
    for (size_t i = 0; i < ROWS; i++) {
        for (unsigned f = 0; f < ADVISE_FIGURES; f++)
            set_value(p, i, f, 100, 2);
    }
    assert_null(advise_best(&p->a, ADVISE_PEAK, false));
    assert_null(advise_undecided(&p->a, ADVISE_PEAK, false, NULL));
    assert_string_equal(advise_headline(&p->a, &p->rows[1], false, text), "");
    set_value(p, 1, ADVISE_PEAK, 80, 2);
    set_value(p, 1, ADVISE_MEAN, 70, 2);
    set_value(p, 2, ADVISE_PEAK, 90, 2);
    assert_ptr_equal(advise_best(&p->a, ADVISE_PEAK, false), &p->rows[1]);
    assert_string_equal(advise_headline(&p->a, &p->rows[1], false, text),
                        "least peak RSS, mean RSS");
    assert_string_equal(advise_headline(&p->a, &p->rows[2], false, text), "");
    // Another row has a lower value, but the difference is noise.
    set_value(p, 3, ADVISE_PEAK, 60, 80);
    assert_ptr_equal(advise_best(&p->a, ADVISE_PEAK, false), &p->rows[1]);
    assert_ptr_equal(advise_undecided(&p->a, ADVISE_PEAK, false, &p->rows[1]), &p->rows[3]);
    assert_string_equal(advise_headline(&p->a, &p->rows[1], false, text),
                        "least mean RSS, less peak RSS");
    // Another row has a lower value, but was run only once.
    set_value(p, 3, ADVISE_PEAK, 50, 2);
    p->results[3].n_runs = 1;
    assert_false(advise_is_repeated(&p->a, &p->rows[3]));
    assert_ptr_equal(advise_undecided(&p->a, ADVISE_PEAK, false, &p->rows[1]), &p->rows[3]);
    assert_string_equal(advise_headline(&p->a, &p->rows[1], false, text),
                        "least mean RSS, less peak RSS");
    // After repetitions, the headline names this row.
    p->results[3].n_runs = RUNS;
    assert_ptr_equal(advise_best(&p->a, ADVISE_PEAK, false), &p->rows[3]);
    assert_string_equal(advise_headline(&p->a, &p->rows[3], false, text), "least peak RSS");
    // If the row needs more CPU time, it is not named among the cheap rows, and does not affect the
    // other cheap rows.
    set_value(p, 3, ADVISE_CPU, 200, 2);
    assert_ptr_equal(advise_best(&p->a, ADVISE_PEAK, true), &p->rows[1]);
    assert_null(advise_undecided(&p->a, ADVISE_PEAK, true, &p->rows[1]));
    assert_string_equal(advise_headline(&p->a, &p->rows[1], true, text),
                        "least peak RSS, mean RSS");
    free(p);
}

static void set_program(struct planted *p, size_t row, double cpu_ns, double peak_bytes)
{
    struct replay_result *r = &p->results[row];
    r->real = p->real[row];
    r->n_real = ADVISE_MIN_ROUNDS;
    for (size_t i = 0; i < r->n_real; i++) {
        r->real[i].values[REAL_WALL] = 1000;
        r->real[i].values[REAL_CPU] = cpu_ns;
        r->real[i].values[REAL_PEAK_RSS] = peak_bytes;
    }
}

// The headline names the CPU time and the peak RSS of a setting only if the program confirms them.
static void the_headline_agrees_with_the_program(void **state)
{
    struct planted *p = calloc(1, sizeof *p);
    char text[ADVISE_HEADLINE_BYTES];
    (void)state;
    plant(p);
    for (size_t i = 0; i < ROWS; i++) {
        for (unsigned f = 0; f < ADVISE_FIGURES; f++)
            set_value(p, i, f, i == 1 && f != ADVISE_IDLE ? 80 : 100, 2);
    }
    assert_string_equal(advise_headline(&p->a, &p->rows[1], false, text),
                        "least CPU time, peak RSS, mean RSS, RSS at the end");
    assert_int_equal(advise_program_verdict(&p->a, &p->rows[1], REAL_CPU), 0);
    set_program(p, 0, 100, 100);
    set_program(p, 1, 90, 90);
    assert_int_equal(advise_program_verdict(&p->a, &p->rows[1], REAL_CPU), -1);
    assert_int_equal(advise_program_verdict(&p->a, &p->rows[1], REAL_WALL), 0);
    assert_string_equal(advise_headline(&p->a, &p->rows[1], false, text),
                        "least CPU time, peak RSS, mean RSS, RSS at the end");
    set_program(p, 1, 110, 90);
    assert_int_equal(advise_program_verdict(&p->a, &p->rows[1], REAL_CPU), 1);
    assert_string_equal(advise_headline(&p->a, &p->rows[1], false, text),
                        "least peak RSS, mean RSS, RSS at the end");
    set_program(p, 1, 90, 100);
    assert_string_equal(advise_headline(&p->a, &p->rows[1], false, text),
                        "least CPU time, mean RSS, RSS at the end");
    // The program was not run with this setting.
    p->results[1].n_real = 0;
    assert_true(advise_is_confirmed(&p->a, &p->rows[1], ADVISE_PEAK));
    free(p);
}

// No repeated row is better than the current setting by more than noise, but a row that was not
// repeated may be better.
static void a_row_that_was_not_repeated_is_not_named(void **state)
{
    struct planted *p = calloc(1, sizeof *p);
    (void)state;
    plant(p);
    for (size_t i = 0; i < ROWS; i++)
        set_value(p, i, ADVISE_CPU, i == 2 ? 60 : 100, 2);
    p->results[2].n_runs = 1;
    assert_null(advise_best(&p->a, ADVISE_CPU, false));
    assert_ptr_equal(advise_undecided(&p->a, ADVISE_CPU, false, NULL), &p->rows[2]);
    p->rows[2].tried = false;
    assert_null(advise_undecided(&p->a, ADVISE_CPU, false, NULL));
    free(p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_clear_difference),
    cmocka_unit_test(overlapping_or_near_values_do_not_differ),
    cmocka_unit_test(equal_settings_look_different_in_one_of_a_thousand),
    cmocka_unit_test(intervals_of_trims),
    cmocka_unit_test(each_kind_gets_its_turn),
    cmocka_unit_test(the_table_is_ordered),
    cmocka_unit_test(the_headline_agrees_with_the_table),
    cmocka_unit_test(the_headline_agrees_with_the_program),
    cmocka_unit_test(a_row_that_was_not_repeated_is_not_named),
};
UNIT_MAIN(tests)
