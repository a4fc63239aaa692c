#include "cli/paths.h"

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test_cli_paths-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return !mkdtemp(folder) || chdir(folder) < 0 || mkdir("sub dir", 0777) < 0 ||
           close(creat("sub dir/libheaptape.so", 0666)) < 0 || symlink("sub dir", "link") < 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return unlink("link") | unlink("sub dir/libheaptape.so") | rmdir("sub dir") | rmdir(folder);
}

static void the_environment_names_the_folder(void **state)
{
    char out[PATH_MAX], want[PATH_MAX];
    snprintf(want, sizeof want, "%s/sub dir/libheaptape.so", folder);
    setenv("HEAPTAPE_LIBEXEC", "sub dir", 1);
    assert_int_equal(paths_find("libheaptape.so", out, sizeof out), 0);
    assert_string_equal(out, want);
    setenv("HEAPTAPE_LIBEXEC", "link/", 1);
    assert_int_equal(paths_find("libheaptape.so", out, sizeof out), 0);
    assert_string_equal(out, want);
    (void)state;
}

static void missing_files_are_not_found(void **state)
{
    char out[PATH_MAX];
    setenv("HEAPTAPE_LIBEXEC", "sub dir", 1);
    assert_int_equal(paths_find("none.so", out, sizeof out), -ENOENT);
    setenv("HEAPTAPE_LIBEXEC", "none", 1);
    assert_int_equal(paths_find("libheaptape.so", out, sizeof out), -ENOENT);
    // An empty variable counts as unset, not as the current directory.
    setenv("HEAPTAPE_LIBEXEC", "", 1);
    assert_int_equal(paths_find("none.so", out, sizeof out), -ENOENT);
    (void)state;
}

static void a_path_that_does_not_fit_is_an_error(void **state)
{
    char out[16] = "kept", name[PATH_MAX];
    setenv("HEAPTAPE_LIBEXEC", "sub dir", 1);
    assert_int_equal(paths_find("libheaptape.so", out, sizeof out), -ENAMETOOLONG);
    assert_string_equal(out, "kept");
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_int_equal(paths_find(name, out, sizeof out), -ENAMETOOLONG);
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_environment_names_the_folder),
    cmocka_unit_test(missing_files_are_not_found),
    cmocka_unit_test(a_path_that_does_not_fit_is_an_error),
};

int main(void)
{
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
