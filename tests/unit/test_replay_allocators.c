#include "replay/allocators.h"
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void test_a_name_without_library_is_libc(void **state)
{
    (void)state;
    struct allocator a;
    struct err e = {0};
    assert_int_equal(allocator_parse(&a, "glibc", &e), 0);
    assert_string_equal(a.name, "glibc");
    assert_null(a.library);
    assert_int_equal(a.n_tunables, 0);
    allocator_release(&a);
}

static void test_tunables(void **state)
{
    (void)state;
    struct allocator a;
    struct err e = {0};
    // A comma in a value is part of the value unless VARIABLE= follows.
    assert_int_equal(allocator_parse(&a, "glibc,MALLOC_ARENA_MAX=1,CONF=narenas:2,dirty:0,X=", &e),
                     0);
    assert_int_equal(a.n_tunables, 3);
    assert_string_equal(a.tunables[0], "MALLOC_ARENA_MAX=1");
    assert_string_equal(a.tunables[1], "CONF=narenas:2,dirty:0");
    assert_string_equal(a.tunables[2], "X=");
    allocator_release(&a);
}

static void test_tunables_of_glibc_are_joined(void **state)
{
    (void)state;
    struct allocator a;
    struct err e = {0};
    assert_int_equal(
        allocator_parse(
            &a, "glibc,glibc.malloc.a=0,A=1,GLIBC_TUNABLES=glibc.b=1:glibc.c=,glibc.d=2", &e),
        0);
    assert_int_equal(a.n_tunables, 2);
    assert_string_equal(a.tunables[0],
                        "GLIBC_TUNABLES=glibc.malloc.a=0:glibc.b=1:glibc.c=:glibc.d=2");
    assert_string_equal(a.tunables[1], "A=1");
    allocator_release(&a);
}

// Checks which tunable is reported, or that all tunables are read if `name` is NULL.
static void unread(const char *spec, const char *name)
{
    struct allocator a;
    struct err e = {0};
    char found[64];
    assert_int_equal(allocator_parse(&a, spec, &e), 0);
    assert_int_equal(allocator_find_unread(&a, found, sizeof found), name != NULL);
    if (name)
        assert_string_equal(found, name);
    allocator_release(&a);
}

static void test_misspelt_tunables_are_found(void **state)
{
    (void)state;
    unread("glibc", NULL);
    unread("glibc,MALLOC_ARENA_MAX=1,MALLOC_TRIM_THRESHOLD_=1,LABEL=b,LD_BIND_NOW=1", NULL);
    unread("glibc,glibc.malloc.tcache_count=0,glibc.cpu.hwcaps=-A", NULL);
    unread("glibc,MALLOC_TRIM_THRESHOLD=1", "MALLOC_TRIM_THRESHOLD");
    unread("glibc,MALLOC_ARENA_MAX_=1", "MALLOC_ARENA_MAX_");
    unread("glibc,MALLOC_CONF=narenas:1", "MALLOC_CONF");
    unread("glibc,glibc.malloc.tcache_count=0,glibc.malloc.tcache_counts=0",
           "glibc.malloc.tcache_counts");
    unread("glibc,GLIBC_TUNABLES=glibc.maloc.check=0:glibc.malloc.check=0", "glibc.maloc.check");
}

static void refused(const char *spec, int code, const char *text)
{
    struct allocator a;
    struct err e = {0};
    assert_int_equal(allocator_parse(&a, spec, &e), code);
    assert_non_null(strstr(e.text, text));
    assert_null(a.name);
}

static void test_invalid_allocators(void **state)
{
    (void)state;
    refused("nosuch", -EINVAL, "nosuch: unknown allocator");
    refused("", -EINVAL, "name or path is missing");
    refused(",A=1", -EINVAL, "name or path is missing");
    refused("/nonexistent/lib.so", -ENOENT, "/nonexistent/lib.so: No such file");
    refused("/tmp", -EINVAL, "is not a shared library");
    refused("glibc,oops", -EINVAL, "'oops' is not VARIABLE=VALUE");
    refused("glibc,", -EINVAL, "is not VARIABLE=VALUE");
    refused("glibc,malloc.arena_max=1", -EINVAL, "'malloc.arena_max=1' is not VARIABLE=VALUE");
    refused("glibc,GLIBC_TUNABLES=7", -EINVAL, "the tunable '7' is not glibc.NAME=VALUE");
    refused("glibc,glibc.malloc.check", -EINVAL, "'glibc.malloc.check' is not glibc.NAME=VALUE");
    refused("glibc,GLIBC_TUNABLES=glibc.a=1:b=2", -EINVAL, "'b=2' is not glibc.NAME=VALUE");
    refused("glibc,LD_PRELOAD=x", -EINVAL, "LD_PRELOAD cannot be a tunable");
}

static void test_a_path(void **state)
{
    (void)state;
    struct allocator a;
    struct err e = {0};
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    char path[] = "./alloc-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    int rc = allocator_parse(&a, path, &e);
    unlink(path);
    if (strpbrk(here, " :")) {
        assert_int_equal(rc, -EINVAL);
        return;
    }
    assert_int_equal(rc, 0);
    assert_string_equal(a.name, path + 2);
    assert_int_equal(a.library[0], '/');
    allocator_release(&a);
}

static void test_libraries_are_found_as_the_loader_does(void **state)
{
    (void)state;
    char *path;
    assert_int_equal(allocator_find_file("libc.so.6", &path), 0);
    assert_int_equal(path[0], '/');
    assert_int_equal(access(path, R_OK), 0);
    free(path);
    assert_int_equal(allocator_find_file("libno-such-thing.so.77", &path), -ENOENT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_name_without_library_is_libc),
    cmocka_unit_test(test_tunables),
    cmocka_unit_test(test_tunables_of_glibc_are_joined),
    cmocka_unit_test(test_misspelt_tunables_are_found),
    cmocka_unit_test(test_invalid_allocators),
    cmocka_unit_test(test_a_path),
    cmocka_unit_test(test_libraries_are_found_as_the_loader_does),
};

UNIT_MAIN(tests)
