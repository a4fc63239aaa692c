#include "base/tlv.h"
#include "trace/pages.h"
#include "trace/trace.h"
#include "unit.h"

#include <errno.h>

static struct buf b;
static struct trace_pages got;

static int setup(void **state)
{
    (void)state;
    b.size = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    trace_pages_release(&got);
    buf_release(&b);
    return 0;
}

static struct trace_pages make(void)
{
    struct trace_pages p = {.process = 3,
                            .stamp = 100,
                            .end_stamp = 200,
                            .page_bytes = 4096,
                            .rss_bytes = 1 << 30,
                            .pss_bytes = 5,
                            .swap_bytes = 4096,
                            .huge_bytes = 2 << 20,
                            .minor_faults = 7,
                            .major_faults = 8,
                            .cpu_ns = 9,
                            .cgroup_bytes = 10,
                            .cgroup_limit_bytes = TRACE_PAGES_UNKNOWN,
                            .libraries = 11};
    p.rss_of[TRACE_MEMORY_FILE] = 12288;
    p.rss_of[TRACE_MEMORY_RECORDING] = 8192;
    p.names[p.n_names++] = (struct trace_pages_name){TRACE_MEMORY_FILE, 12288, "/lib/a.so"};
    trace_pages_add(
        &p, &(struct trace_mapping){
                .start = 1 << 20, .bytes = 40960, .kind = TRACE_MEMORY_HEAP, .rss_bytes = 12288});
    trace_pages_add_run(&p, 256, 1);
    trace_pages_add_run(&p, 257, 1); // the two runs become one run
    trace_pages_add_run(&p, 265, 1);
    trace_pages_add(&p, &(struct trace_mapping){.start = 0x7f0000000000,
                                                .bytes = 4096,
                                                .kind = TRACE_MEMORY_ANONYMOUS,
                                                .after_file = true,
                                                .swap_bytes = 4096,
                                                .huge_bytes = 4096});
    return p;
}

static void test_round_trip(void **state)
{
    struct trace_pages p = make();
    (void)state;
    assert_int_equal(trace_pages_put(&b, &p), 0);
    assert_int_equal(trace_pages_get(b.data, b.size, &got), 0);
    assert_int_equal(trace_pages_recording_bytes(b.data, b.size), 8192);
    assert_int_equal(got.libraries, 11);
    assert_int_equal(got.n_mappings, 2);
    assert_int_equal(got.n_runs, 2);
    assert_memory_equal(got.runs, p.runs, p.n_runs * sizeof *p.runs);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(got.mappings[i].start, p.mappings[i].start);
        assert_int_equal(got.mappings[i].bytes, p.mappings[i].bytes);
        assert_int_equal(got.mappings[i].kind, p.mappings[i].kind);
        assert_int_equal(got.mappings[i].after_file, p.mappings[i].after_file);
        assert_int_equal(got.mappings[i].rss_bytes, p.mappings[i].rss_bytes);
        assert_int_equal(got.mappings[i].swap_bytes, p.mappings[i].swap_bytes);
        assert_int_equal(got.mappings[i].huge_bytes, p.mappings[i].huge_bytes);
        assert_int_equal(got.mappings[i].n_runs, p.mappings[i].n_runs);
    }
    free(p.mappings);
    free(p.runs);
    p.mappings = got.mappings;
    p.runs = got.runs;
    got.mappings_capacity = p.mappings_capacity;
    got.runs_capacity = p.runs_capacity;
    assert_memory_equal(&got, &p, sizeof p);
}

// Checks the guarantees of the header for a decoded list.
static void check(const struct trace_pages *p)
{
    uint64_t end = 0;
    for (size_t i = 0; i < p->n_mappings; i++) {
        const struct trace_mapping *m = &p->mappings[i];
        assert_true(m->start >= end && m->bytes <= UINT64_MAX / 2 &&
                    m->start + m->bytes >= m->start);
        assert_true(m->rss_bytes <= m->bytes && m->swap_bytes <= m->bytes);
        end = m->start + m->bytes;
        for (size_t k = m->first_run; k < m->first_run + m->n_runs; k++) {
            assert_true(k < p->n_runs && p->runs[k].n);
            assert_true(p->runs[k].first * p->page_bytes >= m->start);
            assert_true((p->runs[k].first + p->runs[k].n) * p->page_bytes <= end);
        }
    }
}

static void test_hostile(void **state)
{
    struct trace_pages p = make();
    uint64_t seed = 1, bad = 0;
    (void)state;
    assert_int_equal(trace_pages_put(&b, &p), 0);
    trace_pages_release(&p);
    for (size_t i = 0; i < 200000; i++) {
        uint8_t copy[512];
        size_t n = i < b.size ? i : b.size;
        memcpy(copy, b.data, b.size);
        for (unsigned k = 0; i >= b.size && k <= i % 3; k++)
            copy[unit_random(&seed) % b.size] = (uint8_t)unit_random(&seed);
        int rc = trace_pages_get(copy, n, &got);
        assert_true(rc == 0 || rc == -EBADMSG);
        bad += rc < 0;
        if (rc == 0)
            check(&got);
        trace_pages_release(&got);
    }
    assert_true(bad > 1000);
}

// Another writer may store longer names, and more of them.
static void test_names_are_cut(void **state)
{
    char name[TRACE_PAGES_NAME_BYTES + 2];
    (void)state;
    memset(name, 'n', sizeof name);
    assert_int_equal(trace_pages_put(&b, &(struct trace_pages){.page_bytes = 4096}), 0);
    for (size_t i = 0; i <= TRACE_PAGES_NAMES; i++) {
        uint8_t field[sizeof name + 2] = {TRACE_MEMORY_FILE, 7};
        size_t n = TRACE_PAGES_NAME_BYTES - 2 + i % 5;
        memcpy(field + 2, name, n);
        assert_int_equal(tlv_put_bytes(&b, TRACE_F_NAMED, field, 2 + n), 0);
    }
    assert_int_equal(trace_pages_get(b.data, b.size, &got), 0);
    assert_int_equal(got.n_names, TRACE_PAGES_NAMES);
    for (size_t i = 0; i < TRACE_PAGES_NAMES; i++) {
        assert_int_equal(got.names[i].kind, TRACE_MEMORY_FILE);
        assert_int_equal(got.names[i].rss_bytes, 7);
        assert_int_equal(strlen(got.names[i].name), TRACE_PAGES_NAME_BYTES - (i % 5 ? 1 : 2));
    }
}

static void test_too_large(void **state)
{
    struct trace_pages p = {.page_bytes = 4096};
    (void)state;
    for (uint64_t i = 0; i < 1000000; i++)
        assert_int_equal(
            trace_pages_add(&p, &(struct trace_mapping){.start = 2 * i * 4096, .bytes = 4096}), 0);
    assert_int_equal(trace_pages_put(&b, &p), -EMSGSIZE);
    trace_pages_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_are_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_too_large, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
