// Tests which stacks reach the program, and where incomplete stacks end.
#include "analysis/coverage.h"
#include "analysis/symbols/symbols.h"
#include "base/bytes.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>

static bool own(const char *path, const char *exe)
{
    char text[128];
    snprintf(text, sizeof text, "%s", path);
    return symbols_is_own(&(struct workload_module){.path = text}, exe);
}

static void objects_of_the_program(void **state)
{
    (void)state;
    assert_true(own("/usr/bin/python3.11", "/usr/bin/python3.11"));
    assert_true(own("/home/me/app/libapp.so", "/home/me/app/bin/app"));
    assert_true(own("/opt/app/libapp.so", NULL));
    assert_true(
        own("/usr/lib/libreoffice/program/libsw.so", "/usr/lib/libreoffice/program/soffice.bin"));
    assert_true(
        own("/usr/lib/gcc/x86_64-linux-gnu/12/cc1", "/usr/lib/gcc/x86_64-linux-gnu/12/cc1"));
    assert_false(own("/usr/lib/libreoffice/program/libsw.so", "/usr/bin/other"));
    assert_false(own("/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/python3.11"));
    assert_false(own("/usr/lib/libreoffice/program/deeper/libsw.so",
                     "/usr/lib/libreoffice/program/soffice.bin"));
    assert_false(own("/lib64/libc.so.6", NULL));
    assert_false(own("/usr/lib/x86_64-linux-gnu/libc.so.6",
                     "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"));
    assert_false(own("/home/me/heaptape/build/src/libheaptape.so", "/home/me/app"));
    assert_false(own("/memfd:jit (deleted)", "/home/me/app"));
    assert_true(own("/memfd:app (deleted)", "/memfd:app (deleted)"));
    assert_false(own("/dev/zero (deleted)", "/home/me/app"));
    assert_false(own("[vdso]", "/home/me/app"));
    assert_false(own("", "/home/me/app"));
}

static void add_module(struct workload_sites *s, uint64_t start, const char *text)
{
    const struct workload_module m = {.start = start, .bytes = 0x1000};
    assert_int_equal(workload_sites_module(s, &m, text, strlen(text)), 0);
}

static void add_site(struct workload_sites *s, uint32_t number, uint64_t inner, uint64_t outer)
{
    uint8_t text[16];
    put_u64(text, inner);
    put_u64(text + 8, outer);
    assert_int_equal(workload_sites_define(s, number, (const char *)text, 2), 0);
}

static void put(struct by_site *b, uint8_t kind, uint32_t slot, uint64_t size, uint64_t site)
{
    struct workload_op op = {.kind = kind, .slot = slot, .size = size, .value = site};
    assert_int_equal(by_site_op(b, 0, &op), 0);
}

static void check_bytes(const struct coverage_bytes *b, uint64_t allocated, uint64_t at_peak,
                        uint64_t at_end)
{
    assert_int_equal(b->allocated, allocated);
    assert_int_equal(b->at_peak, at_peak);
    assert_int_equal(b->at_end, at_end);
}

static void shares(void **state)
{
    struct workload_sites sites = {0};
    struct by_site b = {0};
    struct coverage c = {0};
    (void)state;
    add_module(&sites, 0x10000, "00 /home/me/app");
    add_module(&sites, 0x20000, "00 /usr/lib/libstdc++.so.6");
    add_module(&sites, 0x30000, " ");
    add_site(&sites, 1, 0x20010, 0x10010); // reaches the program through a library
    add_site(&sites, 2, 0x20010, 0x20020);
    add_site(&sites, 3, 0x20010, 0x30020);
    add_site(&sites, 4, 0x20010, 0x90000);
    put(&b, HT_MALLOC, 0, 1000, 1);
    put(&b, HT_MALLOC, 1, 100, 2);
    put(&b, HT_MALLOC, 2, 10, 3);
    put(&b, HT_MALLOC, 3, 1, 4);
    put(&b, HT_MALLOC, 4, 5000, 0);
    put(&b, HT_FREE, 4, 0, 0);
    put(&b, HT_FREE, 0, 0, 0);
    put(&b, HT_MALLOC, 0, 7, 1);
    by_site_finish(&b);
    assert_int_equal(coverage_add(&c, &b, &sites, "/home/me/app"), 0);
    const struct coverage_bytes more = {20000, 2, 1};
    assert_int_equal(coverage_add_unknown(&c, &more), 0);
    coverage_finish(&c);
    assert_true(c.known);
    check_bytes(&c.all, 6118 + 20000, 6111 + 2, 118 + 1);
    check_bytes(&c.reached, 1007, 1000, 7);
    assert_int_equal(c.n_objects, 3);
    assert_string_equal(c.objects[0].path, "[no stack]");
    check_bytes(&c.objects[0].bytes, 25000, 5002, 1);
    assert_string_equal(c.objects[1].path, "/usr/lib/libstdc++.so.6");
    check_bytes(&c.objects[1].bytes, 100, 100, 100);
    assert_string_equal(c.objects[2].path, "[code without a file]");
    check_bytes(&c.objects[2].bytes, 11, 11, 11);
    assert_int_equal(c.objects[2].sites, 2);
    coverage_release(&c);
    by_site_release(&b);
    workload_sites_release(&sites);
}

// Tests stacks that start in the loader, before and after the first stack of the program, and a
// stack that ends in a library.
static void loading(void **state)
{
    struct workload_sites sites = {0};
    struct by_site b = {0};
    struct coverage c = {0};
    (void)state;
    add_module(&sites, 0x10000, "00 /home/me/app");
    add_module(&sites, 0x20000, "00 /usr/lib/libstdc++.so.6");
    add_module(&sites, 0x40000, "00 /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2");
    add_site(&sites, 1, 0x20010, 0x40010);
    add_site(&sites, 2, 0x20010, 0x20020);
    add_site(&sites, 3, 0x40010, 0x10010);
    add_site(&sites, 4, 0x20030, 0x40010);
    put(&b, HT_MALLOC, 0, 1000, 1);
    put(&b, HT_MALLOC, 1, 100, 2);
    put(&b, HT_MALLOC, 2, 10, 3);
    put(&b, HT_MALLOC, 3, 1, 4);
    put(&b, HT_FREE, 0, 0, 0);
    put(&b, HT_MALLOC, 0, 7, 1);
    by_site_finish(&b);
    assert_int_equal(coverage_add(&c, &b, &sites, "/home/me/app"), 0);
    coverage_finish(&c);
    check_bytes(&c.all, 1118, 1111, 118);
    check_bytes(&c.reached, 10, 10, 10);
    check_bytes(&c.other[COVERAGE_LOADING], 1007, 1000, 7);
    assert_int_equal(c.n_objects, 2);
    assert_string_equal(c.objects[0].path, "/usr/lib/libstdc++.so.6");
    assert_string_equal(c.objects[1].path, "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2");
    check_bytes(&c.objects[1].bytes, 1, 1, 1);
    coverage_release(&c);
    by_site_release(&b);
    workload_sites_release(&sites);
}

static void add_thread(struct workload_sites *s, uint32_t number, const uint64_t frames[3])
{
    uint8_t text[24];
    for (size_t i = 0; i < 3; i++)
        put_u64(text + 8 * i, frames[i]);
    assert_int_equal(workload_sites_define(s, number, (const char *)text, 3), 0);
}

// Tests complete stacks of threads whose first function is in a library, with start_thread in
// libpthread or libc, and blocks from before the recording.
static void threads_and_preexisting_blocks(void **state)
{
    struct workload_sites sites = {0};
    struct by_site b = {0};
    struct coverage c = {0};
    (void)state;
    add_module(&sites, 0x10000, "00 /home/me/app");
    add_module(&sites, 0x20000, "00 /usr/lib/libruby.so.3");
    add_module(&sites, 0x30000, "00 /usr/lib/x86_64-linux-gnu/libc.so.6");
    add_module(&sites, 0x40000, "00 /usr/lib/x86_64-linux-gnu/libpthread.so.0");
    add_thread(&sites, 1, (uint64_t[]){0x20010, 0x30010, 0x30020});
    add_thread(&sites, 2, (uint64_t[]){0x20010, 0x40010, 0x30020});
    add_thread(&sites, 3, (uint64_t[]){0x30030, 0x30010, 0x30020});
    add_thread(&sites, 4, (uint64_t[]){0x20010, 0x20020, 0x30020});
    add_thread(&sites, 5, (uint64_t[]){0x10010, 0x30010, 0x30020});
    put(&b, HT_PREEXISTING, 9, 70000, 0);
    for (uint32_t i = 0, size = 1; i < 5; i++, size *= 10)
        put(&b, HT_MALLOC, i, size, i + 1);
    by_site_finish(&b);
    assert_int_equal(coverage_add(&c, &b, &sites, "/home/me/app"), 0);
    check_bytes(&c.all, 11111, 81111, 81111);
    check_bytes(&c.reached, 10000, 10000, 10000);
    check_bytes(&c.other[COVERAGE_THREADS], 11, 11, 11);
    check_bytes(&c.other[COVERAGE_BEFORE], 0, 70000, 70000);
    assert_int_equal(c.n_objects, 1);
    check_bytes(&c.objects[0].bytes, 1100, 1100, 1100);
    coverage_release(&c);
    by_site_release(&b);
    workload_sites_release(&sites);
}

static void a_share_is_all_only_if_it_is(void **state)
{
    (void)state;
    assert_int_equal(coverage_permille(5, 5), 1000);
    assert_int_equal(coverage_permille(99999999, 100000000), 999);
    assert_int_equal(coverage_permille(0, 5), 0);
    assert_int_equal(coverage_permille(UINT64_MAX - 1, UINT64_MAX), 999);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(objects_of_the_program),
    cmocka_unit_test(shares),
    cmocka_unit_test(loading),
    cmocka_unit_test(threads_and_preexisting_blocks),
    cmocka_unit_test(a_share_is_all_only_if_it_is),
};

UNIT_MAIN(tests)
