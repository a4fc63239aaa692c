// Tests the document of a report: accepted files, shortened series, and the comparison of two
// sides.
#include "report/diff.h"

#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int add(struct document *d, int side, const char *text)
{
    struct err e = {0};
    return document_add(d, "x.json", side, text, strlen(text), &e);
}

// Parses the document's JSON.
static struct json_value *written(const struct document *d)
{
    struct json_value *root;
    struct err e = {0};
    char *text = document_text(d);
    assert_non_null(text);
    assert_int_equal(json_value_parse(&root, "document", text, strlen(text), &e), 0);
    free(text);
    return root;
}

static void kinds_of_files(void **state)
{
    struct document d = {.mode = "report"};
    (void)state;
    assert_int_equal(add(&d, 0, "{\"by_kind\": {}, \"timeline\": {}, \"events\": 7}"), 0);
    assert_int_equal(add(&d, 0, "{\"allocator\": {\"name\": \"a\"}, \"workload\": \"w\"}"), 0);
    assert_int_equal(add(&d, 0, "{\"machine\": {}, \"allocators\": [{\"n\": 1}, {\"n\": 2}]}"), 0);
    assert_int_equal(d.n_items, 4);
    struct json_value *root = written(&d);
    const struct json_value *results = json_value_get(root, "results");
    assert_int_equal(json_value_length(json_value_get(root, "workloads")), 1);
    assert_int_equal(json_value_length(results), 3);
    assert_string_equal(json_value_string(json_value_get(json_value_at(results, 0), "workload")),
                        "w");
    assert_int_equal(json_value_number_at(json_value_at(results, 2), "result.n"), 2);
    json_value_free(root);
    document_release(&d);
}

static void other_documents_are_refused(void **state)
{
    struct document d = {.mode = "report"};
    (void)state;
    assert_int_equal(add(&d, 0, "{\"a\": 1}"), -EPROTO);
    assert_int_equal(add(&d, 0, "[]"), -EPROTO);
    assert_int_equal(add(&d, 0, "{\"by_kind\": {}}"), -EPROTO);
    assert_int_equal(add(&d, 0, "{\"verify\": {}, \"allocator\": {}}"), -EPROTO);
    assert_int_equal(add(&d, 0, "{\"allocators\": []}"), -EPROTO);
    assert_int_equal(add(&d, 0, "{\"a\": "), -ENODATA);
    assert_int_equal(add(&d, 0, "{\"a\": x}"), -EBADMSG);
    assert_int_equal(d.n_items, 0);
    document_release(&d);
}

// Returns `first`, `n` times `item`, and `last` as one string.
static char *repeat(const char *first, const char *item, const char *last, size_t n)
{
    char *text = malloc(strlen(first) + n * strlen(item) + strlen(last) + 1), *at;
    assert_non_null(text);
    at = stpcpy(text, first);
    for (size_t i = 0; i < n; i++)
        at = stpcpy(at, item);
    strcpy(at, last);
    return text;
}

static void memory_is_in_proportion_to_the_text(void **state)
{
    static const char *const items[] = {"{},", "[],", "{\"a\":1},", "{\"a\":{\"\\\"\":[]}},",
                                        "[[1]],"};
    struct err e = {0};
    struct json_value *root;
    (void)state;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        char *text = repeat("[", items[i], "1]", 600000);
        e.text[0] = 0;
        assert_int_equal(json_value_parse(&root, "x.json", text, strlen(text), &e), -EFBIG);
        assert_non_null(strstr(e.text, "x.json: has more values than JSON of "));
        assert_null(root);
        free(text);
    }
    // Tests a long series of numbers, and a long string.
    char *text = repeat("[", "12.5,", "1]", 600000);
    assert_int_equal(json_value_parse(&root, "x.json", text, strlen(text), &e), 0);
    assert_int_equal(json_value_length(root), 600001);
    json_value_free(root);
    free(text);
    text = repeat("[\"", "{[\\\"", "\"]", 600000);
    assert_int_equal(json_value_parse(&root, "x.json", text, strlen(text), &e), 0);
    json_value_free(root);
    free(text);
}

static void values_are_kept(void **state)
{
    struct document d = {.mode = "report"};
    (void)state;
    assert_int_equal(add(&d, 1,
                         "{\"allocator\": {}, \"u\": 18446744073709551615, \"i\": -5, \"d\": 0.25, "
                         "\"t\": true, \"n\": null, \"s\": \"</script> \\u00e4\\n\"}"),
                     0);
    struct json_value *root = written(&d);
    const struct json_value *item = json_value_at(json_value_get(root, "results"), 0),
                            *r = json_value_get(item, "result");
    assert_int_equal(json_value_number_at(item, "side"), 1);
    assert_true(json_value_u64(json_value_get(r, "u")) == UINT64_MAX);
    assert_int_equal(json_value_i64(json_value_get(r, "i")), -5);
    assert_true(json_value_number_at(r, "d") == 0.25);
    assert_true(json_value_bool(json_value_get(r, "t")));
    assert_int_equal(json_value_kind(json_value_get(r, "n")), JSON_VALUE_NULL);
    assert_string_equal(json_value_string(json_value_get(r, "s")), "</script> \xc3\xa4\n");
    json_value_free(root);
    document_release(&d);
}

// The timeline has rows [i, i, rss, live]. The row with the peak RSS must be kept.
static void timelines_keep_their_peak(void **state)
{
    enum { ROWS = 20000, AT = 7777 };
    struct document d = {.mode = "report"};
    char *text = NULL;
    size_t size, found = 0;
    (void)state;
    FILE *to = open_memstream(&text, &size);
    fputs("{\"allocator\": {}, \"timeline\": [", to);
    for (unsigned i = 0; i < ROWS; i++)
        fprintf(to, "%s[%u,%u,%u,5]", i ? "," : "", i, i, i == AT ? 999999 : 1000 + i % 7);
    fputs("]}", to);
    fclose(to);
    assert_int_equal(add(&d, 0, text), 0);
    free(text);
    struct json_value *root = written(&d);
    const struct json_value *rows = json_value_get(
        json_value_get(json_value_at(json_value_get(root, "results"), 0), "result"), "timeline");
    assert_in_range(json_value_length(rows), DOCUMENT_POINTS / 4, DOCUMENT_POINTS + 2);
    for (size_t i = 0; i < json_value_length(rows); i++)
        found += json_value_number(json_value_at(json_value_at(rows, i), 2)) == 999999;
    assert_int_equal(found, 1);
    json_value_free(root);
    document_release(&d);
}

static void comparison(void **state)
{
    struct document d = {.mode = "diff"};
    (void)state;
    assert_int_equal(
        add(&d, 0, "{\"by_kind\": {}, \"timeline\": {}, \"events\": 7, \"peak\": {\"blocks\": 3}}"),
        0);
    assert_int_equal(diff_rows(&d), -ENOENT);
    assert_int_equal(add(&d, 1, "{\"by_kind\": {}, \"timeline\": {}, \"events\": 14}"), 0);
    assert_int_equal(diff_rows(&d), 0);
    assert_int_equal(d.n_rows, 2);
    assert_string_equal(d.rows[0].label, "events");
    assert_true(d.rows[0].a == 7 && d.rows[0].b == 14);
    assert_true(d.rows[1].a == 3 && isnan(d.rows[1].b));
    document_release(&d);
}

static void results_are_matched_by_name(void **state)
{
    struct document d = {.mode = "diff"};
    (void)state;
    assert_int_equal(
        add(&d, 0,
            "{\"allocators\": [{\"allocator\": {\"name\": \"a\"}, \"wall_ns\": 1}, "
            "{\"allocator\": {\"name\": \"b\", \"tunables\": [\"T=1\"]}, \"wall_ns\": 2}]}"),
        0);
    assert_int_equal(add(&d, 1,
                         "{\"allocators\": [{\"allocator\": {\"name\": \"b\", \"tunables\": "
                         "[\"T=1\"]}, \"wall_ns\": 3}]}"),
                     0);
    assert_int_equal(diff_rows(&d), 0);
    assert_int_equal(d.n_rows, 1);
    assert_string_equal(d.rows[0].of, "b,T=1");
    assert_true(d.rows[0].a == 2 && d.rows[0].b == 3);
    document_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_files),
        cmocka_unit_test(other_documents_are_refused),
        cmocka_unit_test(memory_is_in_proportion_to_the_text),
        cmocka_unit_test(values_are_kept),
        cmocka_unit_test(timelines_keep_their_peak),
        cmocka_unit_test(comparison),
        cmocka_unit_test(results_are_matched_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
