// Tests the peak RSS of the process for results that do not include the recorded allocator.
#include "report/text/pooled_process.h"

#include "unit.h"

#include <math.h>
#include <string.h>

// The recorded allocator, with 100 bytes in its own files. The memory outside its heap grows from
// 1,000 to 2,000 bytes.
#define RECORDED_WITH(peak, outside, more)                                                         \
    "{\"allocator\": {\"name\": \"own\"}, \"peak_rss_bytes\": " peak                               \
    ", \"outside_samples\": [[0, 1000], [100, " outside "]]" more "}"
#define RECORDED(peak, outside) RECORDED_WITH(peak, outside, "")

#define OTHER                                                                                      \
    "{\"allocator\": {\"name\": \"other\"}, \"peak_rss_bytes\": 500, \"end_rss_bytes\": 300, "     \
    "\"library_bytes\": 50, \"outside_samples\": [], "                                             \
    "\"timeline\": [[0, 0, 100, 0, 0], [50, 1, 500, 0, 0], [100, 2, 300, 0, 0]]}"

static void add(struct document *d, const char *text)
{
    struct err e = {0};
    assert_int_equal(document_add(d, "x.json", 0, text, strlen(text), &e), 0);
}

// Returns the difference between the peak of the process and the peak of its heap, in the last
// result of the document.
static double extra(const struct document *d)
{
    struct process_rss_outside o = {0};
    double bytes = 0;
    assert_int_equal(pooled_process_read(&o, d), 0);
    assert_int_equal(pooled_process_extra(&o, d->items[d->n_items - 1].result, &bytes), 0);
    process_rss_release(&o);
    return bytes;
}

// After 100 calls, the process has 2,000 bytes outside its heap, 50 in files of the allocator, and
// 300 in its heap.
static void memory_outside_of_another_result(void **state)
{
    struct document d = {.mode = "report"};
    (void)state;
    add(&d, RECORDED("600", "2000"));
    add(&d, OTHER);
    assert_true(extra(&d) == 2000 + 50 + 300 - 500);
    document_release(&d);
}

// The recorded process had a peak of 70 bytes more than its samples predict.
static void peak_between_samples(void **state)
{
    struct document d = {.mode = "report"};
    (void)state;
    add(&d, RECORDED_WITH("600", "2000", ", \"outside_hidden_bytes\": 70"));
    add(&d, OTHER);
    assert_true(extra(&d) == 2000 + 50 + 300 - 500 + 70);
    document_release(&d);
}

static void run_with_the_median_peak(void **state)
{
    struct document d = {.mode = "report"};
    (void)state;
    add(&d, RECORDED("900", "9000"));
    add(&d, RECORDED("700", "7000"));
    add(&d, OTHER);
    add(&d, RECORDED("800", "8000"));
    add(&d, OTHER);
    assert_true(extra(&d) == 8000 + 50 + 300 - 500);
    document_release(&d);
}

// Neither a result without samples nor one without a timeline has the figure.
static void unknown(void **state)
{
    struct document d = {.mode = "report"};
    (void)state;
    add(&d, OTHER);
    assert_true(isnan(extra(&d)));
    add(&d, RECORDED("600", "2000"));
    assert_true(isnan(extra(&d)));
    document_release(&d);
}

// Rows of other types count as 0.
static void malformed_rows(void **state)
{
    struct document d = {.mode = "report"};
    (void)state;
    add(&d,
        "{\"allocator\": {}, \"peak_rss_bytes\": 1, \"outside_samples\": [7, [\"a\", -5], []]}");
    add(&d, "{\"allocator\": {}, \"peak_rss_bytes\": 9, \"timeline\": [{}, [null, 1, 1e300], 3]}");
    assert_true(extra(&d) == 0);
    document_release(&d);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_outside_of_another_result),
    cmocka_unit_test(peak_between_samples),
    cmocka_unit_test(run_with_the_median_peak),
    cmocka_unit_test(unknown),
    cmocka_unit_test(malformed_rows),
};

UNIT_MAIN(tests)
