#include "transfer/store.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/heaptape-store-XXXXXX";
static struct store store;

static int setup(void **state)
{
    char folder[64];
    struct err e = {0};
    (void)state;
    strcpy(root + sizeof root - 7, "XXXXXX");
    if (!mkdtemp(root))
        return -1;
    snprintf(folder, sizeof folder, "%s/s", root);
    return store_open(&store, folder, &e);
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    store_close(&store);
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static int put(const char *path, const char *text, enum store_result *result)
{
    struct store_file f;
    assert_int_equal(store_begin(&store, &f, strlen(text)), 0);
    assert_int_equal(store_write(&f, text, strlen(text)), 0);
    int rc = store_commit(&store, &f, path, result);
    assert_int_equal(f.fd, -1);
    store_abort(&store, &f);
    return rc;
}

// Checks the content of a file below the root.
static void has(const char *path, const char *text)
{
    char name[256], content[256] = "";
    snprintf(name, sizeof name, "%s/%s", root, path);
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    size_t n = fread(content, 1, sizeof content - 1, file);
    fclose(file);
    assert_int_equal(n, strlen(text));
    assert_string_equal(content, text);
}

static void has_no(const char *path)
{
    char name[256];
    snprintf(name, sizeof name, "%s/%s", root, path);
    assert_int_equal(access(name, F_OK), -1);
}

static void test_results(void **state)
{
    enum store_result result;
    (void)state;
    assert_int_equal(put("a/b/1.ht", "one", &result), 0);
    assert_int_equal(result, STORE_NEW);
    assert_int_equal(put("a/b/1.ht", "one", &result), 0);
    assert_int_equal(result, STORE_SAME);
    assert_int_equal(put("a/b/1.ht", "two", &result), 0);
    assert_int_equal(result, STORE_DIFFERENT);
    assert_int_equal(put("a/b/1.ht", "on", &result), 0);
    assert_int_equal(result, STORE_DIFFERENT);
    assert_int_equal(put("a/b/2.ht", "", &result), 0);
    assert_int_equal(result, STORE_NEW);
    has("s/a/b/1.ht", "one");
    has("s/a/b/2.ht", "");
    has_no("s/.incoming/1.part");
}

static void test_reserved(void **state)
{
    struct store_file f;
    enum store_result result;
    struct stat st;
    (void)state;
    // More bytes were announced than sent.
    assert_int_equal(store_begin(&store, &f, 1 << 20), 0);
    assert_int_equal(store_write(&f, "abc", 3), 0);
    int fd = dup(f.fd);
    assert_int_equal(store_commit(&store, &f, "a/b/1.ht", &result), 0);
    store_abort(&store, &f);
    has("s/a/b/1.ht", "abc");
    assert_int_equal(fstat(fd, &st), 0);
    close(fd);
    assert_true(st.st_blocks * 512 < 1 << 20);
}

static void test_abort(void **state)
{
    struct store_file f;
    char name[64];
    (void)state;
    assert_int_equal(store_begin(&store, &f, 0), 0);
    assert_int_equal(store_write(&f, "abc", 3), 0);
    snprintf(name, sizeof name, "s/.incoming/%s", f.name);
    has(name, "abc");
    store_abort(&store, &f);
    has_no(name);
    store_abort(&store, &f);
}

// Symbolic links in the directory must not be followed.
static void test_links(void **state)
{
    enum store_result result;
    char target[64], link[64];
    (void)state;
    snprintf(target, sizeof target, "%s/outside", root);
    assert_int_equal(mkdir(target, 0700), 0);
    snprintf(link, sizeof link, "%s/s/a", root);
    assert_int_equal(symlink(target, link), 0);
    assert_true(put("a/b/1.ht", "one", &result) < 0);
    has_no("outside/b");
    assert_int_equal(put("c/b/2.ht", "two", &result), 0);
    snprintf(target, sizeof target, "%s/outside/1.ht", root);
    snprintf(link, sizeof link, "%s/s/c/b/1.ht", root);
    assert_int_equal(symlink(target, link), 0);
    assert_int_equal(put("c/b/1.ht", "one", &result), 0);
    assert_int_equal(result, STORE_DIFFERENT);
    has_no("outside/1.ht");
}

static void test_conflicts(void **state)
{
    enum store_result result;
    char name[64];
    (void)state;
    snprintf(name, sizeof name, "%s/s/a", root);
    assert_int_equal(close(open(name, O_CREAT | O_WRONLY, 0600)), 0);
    assert_int_equal(put("a/b/1.ht", "one", &result), -ENOTDIR);
    snprintf(name, sizeof name, "%s/s/c", root);
    assert_int_equal(mkdir(name, 0700), 0);
    snprintf(name, sizeof name, "%s/s/c/1.ht", root);
    assert_int_equal(mkdir(name, 0700), 0);
    assert_int_equal(put("c/1.ht", "one", &result), 0);
    assert_int_equal(result, STORE_DIFFERENT);
}

static void test_open(void **state)
{
    struct store other;
    struct store_file f;
    struct err e = {0};
    char folder[64];
    (void)state;
    snprintf(folder, sizeof folder, "%s/s", root);
    assert_int_equal(store_open(&other, folder, &e), -EBUSY);
    assert_non_null(strstr(e.text, "another receiver"));
    // After a receiver was killed, the next receiver removes the unfinished files and no others.
    assert_int_equal(store_begin(&store, &f, 0), 0);
    digest_free(f.digest);
    close(f.fd);
    enum store_result result;
    assert_int_equal(put("a/b/1.ht", "one", &result), 0);
    store_close(&store);
    assert_int_equal(store_open(&store, folder, &e), 0);
    char name[64];
    snprintf(name, sizeof name, "s/.incoming/%s", f.name);
    has_no(name);
    has("s/a/b/1.ht", "one");
    e.text[0] = 0;
    assert_int_equal(store_open(&other, "/dev/null", &e), -ENOTDIR);
    assert_int_equal(store_open(&other, "/nowhere/s", &e), -ENOENT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_results, setup, teardown),
    cmocka_unit_test_setup_teardown(test_reserved, setup, teardown),
    cmocka_unit_test_setup_teardown(test_abort, setup, teardown),
    cmocka_unit_test_setup_teardown(test_links, setup, teardown),
    cmocka_unit_test_setup_teardown(test_conflicts, setup, teardown),
    cmocka_unit_test_setup_teardown(test_open, setup, teardown),
};

UNIT_MAIN(tests)
