// Tests the table of figures: the description of each figure, and the summary of runs.
#include "replay/figures.h"
#include "unit.h"

#include <math.h>
#include <string.h>

static void the_table_is_consistent(void **state)
{
    (void)state;
    for (size_t i = 0; i < FIGURES; i++) {
        const struct figure_info *info = &figure_infos[i];
        size_t n = strlen(info->name);
        bool says_bytes = n > 6 && strcmp(info->name + n - 6, "_bytes") == 0;
        bool says_ns = strncmp(info->name, "ns_", 3) == 0 || strstr(info->name, "_ns");
        assert_true(says_bytes == (info->unit == FIGURE_BYTES) &&
                    says_ns == (info->unit == FIGURE_NS));
        assert_true(info->label[0] && !strchr(info->label, '_'));
        assert_true(!info->ratio ||
                    (info->shown & FIGURE_IN_COLUMN && info->summary == FIGURE_MEDIAN));
        for (size_t k = 0; k < i; k++)
            assert_true(strcmp(info->name, figure_infos[k].name) != 0);
    }
    char path[FIGURE_PATH_BYTES];
    assert_string_equal(figure_path(&figure_infos[FIGURE_wall_ns], path), "wall_ns");
    assert_string_equal(figure_path(&figure_infos[FIGURE_cycles], path), "counters.cycles");
}

static void figures_measured_by_the_player(void **state)
{
    (void)state;
    struct results_figures measured = {.wall_ns = 5,
                                       .baseline_rss_bytes = 100,
                                       .peak_rss_bytes = 150,
                                       .end_rss_bytes = 90,
                                       .cycles = RESULTS_UNKNOWN};
    union figures f;
    figures_set_measured(&f, &measured);
    assert_true(f.wall_ns == 5 && f.baseline_rss_bytes == 100 && f.peak_rss_bytes == 150 &&
                f.end_rss_bytes == 90);
    assert_true(isnan(f.cycles) && isnan(f.events) && isnan(f.cpu_ns));
}

static void figures_of_the_plan_and_of_others(void **state)
{
    (void)state;
    union figures f = {.values = {0}};
    struct plan_facts facts = {.events = 10,
                               .skipped = 1,
                               .threads = 2,
                               .dependencies = 3,
                               .peak_live_bytes = 50,
                               .live_at_end_bytes = 7,
                               .thread_switches = 4,
                               .one_thread = true};
    f.wall_ns = 100, f.user_ns = 60, f.system_ns = 7, f.stall_ns = 50;
    f.peak_rss_bytes = 75, f.mean_rss_bytes = 40, f.mean_live_bytes = 0;
    f.minor_faults = 8, f.major_faults = 1, f.max_lag_ns = 9, f.start_rss_bytes = 11;
    f.cache_switches = 5, f.rss_after_idle_bytes = 12;
    figures_derive(&f, &facts, true, true);
    assert_true(f.events == 10 && f.skipped == 1 && f.threads == 2 && f.dependencies == 3 &&
                f.peak_live_bytes == 50 && f.live_at_end_bytes == 7 && f.thread_switches == 4);
    assert_true(f.cpu_ns == 67 && f.ns_per_event == 10 && f.events_per_second == 1e8 &&
                f.peak_fragmentation == 1.5 && f.page_faults == 9 && f.stall_share == 0.25);
    assert_true(f.mean_rss_bytes == 40 && isnan(f.mean_fragmentation) && isnan(f.start_rss_bytes));
    assert_true(f.max_lag_ns == 9 && f.cache_switches == 5 && f.rss_after_idle_bytes == 12);
    facts.one_thread = false;
    facts.preexisting = 1;
    f.start_rss_bytes = 11;
    figures_derive(&f, &facts, false, false);
    assert_true(isnan(f.thread_switches) && isnan(f.cache_switches) && isnan(f.max_lag_ns) &&
                isnan(f.rss_after_idle_bytes) && f.start_rss_bytes == 11);
}

static void medians_and_the_typical_run(void **state)
{
    (void)state;
    union figures a = {.values = {0}}, b = a, c = a, sum;
    const union figures *runs[] = {&a, &b, &c};
    a.wall_ns = 3, b.wall_ns = 1, c.wall_ns = 2;
    a.sleeps = 30, b.sleeps = 10, c.sleeps = 20;
    b.mean_rss_bytes = NAN;
    figures_summarize(&sum, runs, 3, 2);
    assert_true(sum.wall_ns == 2 && sum.sleeps == 20 && isnan(sum.mean_rss_bytes));
    figures_summarize(&sum, runs, 2, 1);
    assert_true(sum.wall_ns == 2 && sum.sleeps == 10);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_table_is_consistent),
    cmocka_unit_test(figures_measured_by_the_player),
    cmocka_unit_test(figures_of_the_plan_and_of_others),
    cmocka_unit_test(medians_and_the_typical_run),
};

UNIT_MAIN(tests)
