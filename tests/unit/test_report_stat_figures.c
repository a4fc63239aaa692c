// Tests the table of stat's figures. A report must read each figure from its path in the JSON.
#include "report/stat_figures.h"

#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Sets each figure to a different value.
static void number_figures(union stat_figures *f)
{
    for (unsigned i = 0; i < STAT_FIGURES; i++) {
        enum stat_figures_form form = stat_figures_infos[i].form;
        if (form == STAT_FIGURES_INTEGER || form == STAT_FIGURES_OPTIONAL)
            f->integers[i] = 1000 + i;
        else
            f->numbers[i] = 1000 + i + 0.5;
    }
}

// Writes the JSON of all members of a group into the object of the group's first figure.
static struct json_value *written(const union stat_figures *f, enum stat_figures_group group)
{
    struct json_value *root;
    struct err e = {0};
    char *text = NULL, path[STAT_FIGURES_PATH_BYTES];
    size_t n, depth = 1;
    unsigned first = 0;
    while (stat_figures_infos[first].group != group)
        first++;
    struct json j = {.to = open_memstream(&text, &n)};
    json_begin_object(&j);
    stat_figures_path(first, path);
    for (char *at = path, *dot; (dot = strchr(at, '.')); at = dot + 1, depth++) {
        *dot = 0;
        json_put_object(&j, at);
    }
    stat_figures_put(&j, f, group);
    while (depth--)
        json_end_object(&j);
    fclose(j.to);
    assert_int_equal(json_value_parse(&root, "stat", text, strlen(text), &e), 0);
    free(text);
    return root;
}

static void figures_are_read_where_they_are_written(void **state)
{
    union stat_figures f, read;
    (void)state;
    number_figures(&f);
    for (unsigned i = 0; i < STAT_FIGURES; i++) {
        struct json_value *root = written(&f, stat_figures_infos[i].group);
        stat_figures_of_json(&read, root);
        assert_true(stat_figures_value(&read, i) == stat_figures_value(&f, i));
        for (unsigned k = 0; k < STAT_FIGURES; k++) {
            char path[STAT_FIGURES_PATH_BYTES], other[STAT_FIGURES_PATH_BYTES];
            assert_true(k == i || strcmp(stat_figures_path(i, path), stat_figures_path(k, other)));
        }
        json_value_free(root);
    }
}

static void unknown_figures_are_null_or_absent(void **state)
{
    union stat_figures f;
    (void)state;
    stat_figures_of_json(&f, NULL);
    for (unsigned i = 0; i < STAT_FIGURES; i++)
        assert_true(isnan(stat_figures_value(&f, i)));
    struct json_value *root = written(&f, STAT_FIGURES_LIVE);
    assert_null(json_value_get(root, "usable_bytes"));
    json_value_free(root);
    root = written(&f, STAT_FIGURES_TIME);
    assert_int_equal(json_value_kind(json_value_get(root, "cpu_ns")), JSON_VALUE_NULL);
    json_value_free(root);
}

// A row whose source is never set stays unknown.
static void each_integer_is_computed(void **state)
{
    union stat_figures f;
    struct workload_sites no_sites = {0};
    struct file_stat s = {.kind = FILE_STAT_AGGREGATE};
    (void)state;
    s.sums = calloc(1, sizeof *s.sums);
    s.symbols = symbols_new(&no_sites, NULL);
    assert_non_null(s.sums);
    assert_non_null(s.symbols);
    stat_figures_of_file(&f, &s);
    for (unsigned i = 0; i < STAT_FIGURES; i++) {
        const struct stat_figures_info *info = &stat_figures_infos[i];
        if (info->form == STAT_FIGURES_INTEGER && f.integers[i] == STAT_FIGURES_UNKNOWN)
            fail_msg("stat_figures.c does not compute '%s'", info->label);
    }
    symbols_free(s.symbols);
    free(s.sums);
}

static void used_call_sites_are_counted(void **state)
{
    union stat_figures f;
    struct workload_sites no_sites = {0};
    struct by_site_totals sites[] = {{.calls = 1}, {.calls = 1}, {0}, {.live_blocks = 1}};
    struct file_stat s = {.by_site = {.sites = sites, .n_sites = 4}};
    (void)state;
    s.symbols = symbols_new(&no_sites, NULL);
    assert_non_null(s.symbols);
    stat_figures_of_file(&f, &s);
    assert_int_equal(f.used_sites, 2); // site 0 has the calls without a call site
    symbols_free(s.symbols);
}

// A double cannot represent all integers above 2^53.
static void integers_are_exact(void **state)
{
    union stat_figures f;
    (void)state;
    number_figures(&f);
    f.requested_bytes = UINT64_MAX - 1;
    struct json_value *root = written(&f, STAT_FIGURES_LIVE);
    stat_figures_of_json(&f, root);
    assert_true(f.requested_bytes == UINT64_MAX - 1);
    json_value_free(root);
}

// Other programs may write integers with a fraction or an exponent.
static void integers_as_numbers(void **state)
{
    static const struct {
        const char *number;
        uint64_t value;
    } rows[] = {
        {"0.0", 0}, {"1e3", 1000}, {"-1.0", STAT_FIGURES_UNKNOWN}, {"1e20", STAT_FIGURES_UNKNOWN}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        union stat_figures f;
        struct json_value *root;
        struct err e = {0};
        char text[64];
        int n = snprintf(text, sizeof text, "{\"requested_bytes\": %s}", rows[i].number);
        assert_int_equal(json_value_parse(&root, "stat", text, (size_t)n, &e), 0);
        stat_figures_of_json(&f, root);
        assert_true(f.requested_bytes == rows[i].value);
        json_value_free(root);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(figures_are_read_where_they_are_written),
    cmocka_unit_test(unknown_figures_are_null_or_absent),
    cmocka_unit_test(each_integer_is_computed),
    cmocka_unit_test(used_call_sites_are_counted),
    cmocka_unit_test(integers_are_exact),
    cmocka_unit_test(integers_as_numbers),
};

UNIT_MAIN(tests)
