// Tests each optional part of a file's statistics on a workload with known ops.
#include "analysis/file_stat.h"
#include "workload/writer.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char path[] = "file-stat.htw";

static void put(struct workload_output *w, uint8_t kind, uint32_t slot, uint64_t size,
                uint64_t site)
{
    static uint64_t stamp;
    struct workload_op op = {
        .kind = kind, .slot = slot, .size = size, .value = site, .stamp = stamp += 1000};
    struct err e = {0};
    assert_int_equal(workload_output_op(w, 0, &op, &e), 0);
}

// Writes a workload with three blocks, one of them freed. If `sites` is not NULL, two blocks have
// call sites.
static void write_workload(const struct workload_sites *sites)
{
    struct output out;
    struct err e = {0};
    struct workload_header h = {.clock_hz = 1000000000,
                                .has_stamps = true,
                                .pid = 77,
                                .exe = "/bin/x",
                                .argv = "x",
                                .argv_bytes = 2};
    struct workload_output w;
    assert_int_equal(output_open(&out, path, OUTPUT_FORCE, &e), 0);
    assert_int_equal(workload_output_begin(&w, &out, 1, &h, &e), 0);
    put(&w, HT_MALLOC, 0, 1000, 0);
    put(&w, HT_MALLOC, 1, 50, sites ? 1 : 0);
    put(&w, HT_FREE, 0, 0, 0);
    put(&w, HT_MALLOC, 2, 8, sites ? 2 : 0);
    if (sites)
        workload_write_sites(w.writer, sites);
    struct workload_summary s = workload_output_summary(&w);
    assert_int_equal(workload_write_end(w.writer, &s, &e), 0);
    workload_output_release(&w);
    assert_int_equal(output_close(&out, true, &e), 0);
}

static void check_totals(const struct file_stat *s)
{
    assert_int_equal(s->kind, FILE_STAT_WORKLOAD);
    assert_int_equal(s->n_processes, 1);
    assert_int_equal(s->processes[0].pid, 77);
    assert_string_equal(s->processes[0].argv, "x");
    assert_int_equal(s->total.events, 4);
    assert_string_equal(s->cut.text, "");
}

static void totals_alone(void **state)
{
    struct file_stat s;
    struct err e = {0};
    (void)state;
    write_workload(NULL);
    assert_int_equal(file_stat(&s, path, FILE_STAT_BRIEF, NULL, &e), 0);
    check_totals(&s);
    assert_null(s.sums);
    assert_null(s.symbols);
    assert_int_equal(s.by_site.n_sites, 0);
    file_stat_release(&s);
}

static void usage_without_sites(void **state)
{
    struct file_stat s;
    struct err e = {0};
    (void)state;
    write_workload(NULL);
    assert_int_equal(file_stat(&s, path, FILE_STAT_ALL, NULL, &e), 0);
    check_totals(&s);
    assert_int_equal(s.sums->kinds[HT_MALLOC].bytes, 1058);
    assert_int_equal(s.usage.peak.bytes, 1050);
    assert_int_equal(s.usage.live.bytes, 58);
    assert_null(s.symbols);
    file_stat_release(&s);
}

static void check_sites(const struct by_site *b)
{
    assert_int_equal(b->n_sites, 3);
    assert_int_equal(b->peak_bytes, 1050);
    assert_int_equal(b->sites[0].peak_bytes, 1000);
    assert_int_equal(b->sites[0].live_bytes, 0);
    assert_int_equal(b->sites[1].peak_bytes, 50);
    assert_int_equal(b->sites[2].peak_bytes, 0);
    assert_int_equal(b->sites[2].live_bytes, 8);
}

// The count by site starts after the first op. The usage already includes this op.
static void sites_are_the_same_alone(void **state)
{
    struct workload_sites sites = {0};
    struct file_stat s;
    struct err e = {0};
    (void)state;
    for (uint32_t number = 1; number <= 2; number++)
        assert_int_equal(workload_sites_define(&sites, number, "\1\2\3\4\5\6\7\0", 1), 0);
    write_workload(&sites);
    for (unsigned part = 0; part < 2; part++) {
        assert_int_equal(file_stat(&s, path, part ? FILE_STAT_SITES : FILE_STAT_ALL, NULL, &e), 0);
        check_totals(&s);
        check_sites(&s.by_site);
        assert_true((s.sums == NULL) == (part == 1));
        assert_non_null(s.symbols);
        file_stat_release(&s);
    }
    workload_sites_release(&sites);
}

static void a_file_that_is_cut_off(void **state)
{
    struct file_stat s;
    struct err e = {0};
    (void)state;
    write_workload(NULL);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    assert_int_equal(ftruncate(fileno(f), ftell(f) - 20), 0);
    fclose(f);
    assert_int_equal(file_stat(&s, path, FILE_STAT_ALL, NULL, &e), 0);
    assert_int_equal(s.total.events, 4);
    assert_non_null(strstr(s.cut.text, "cut off"));
    file_stat_release(&s);
    assert_int_equal(file_stat(&s, "nowhere.htw", FILE_STAT_ALL, NULL, &e), -ENOENT);
}

static int remove_file(void **state)
{
    (void)state;
    remove(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_alone),
        cmocka_unit_test(usage_without_sites),
        cmocka_unit_test(sites_are_the_same_alone),
        cmocka_unit_test(a_file_that_is_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, remove_file);
}
