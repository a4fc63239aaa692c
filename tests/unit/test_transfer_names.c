#include "transfer/names.h"
#include "transfer/tokens.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_accepted(void **state)
{
    static const char *const paths[] = {"web1/redis-20260102T030405Z-77/1.ht",
                                        "a/b/c.ht",
                                        "a/b/c.ht.ht",
                                        "p/r/e/f/i/host/process/18446744073709551615.ht",
                                        "A_+/0-.9/x...ht",
                                        "ht/h.t/_.ht"};
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_true(names_check(paths[i]) >= 3);
    assert_int_equal(names_check(paths[3]), 8);
}

static void test_refused(void **state)
{
    static const char *const paths[] = {"",
                                        "/",
                                        "1.ht",
                                        "a/1.ht",
                                        "/a/b/1.ht",
                                        "a//1.ht",
                                        "a/b/",
                                        "a/b/1.ht/",
                                        "a/b/1.h",
                                        "a/b/.ht",
                                        "a/b/1.HT",
                                        "a/../1.ht",
                                        "../b/1.ht",
                                        "a/./1.ht",
                                        "a/b/..ht",
                                        "a/.b/1.ht",
                                        "a/b/.1.ht",
                                        "a/-b/1.ht",
                                        "a/b/-1.ht",
                                        "a/b/1.ht\n",
                                        "a/b\\c/1.ht",
                                        "a/b c/1.ht",
                                        "a/b%2f/1.ht",
                                        "a/\xc3\xa4/1.ht",
                                        "a/b.ht/1.ht",
                                        "a/~/1.ht",
                                        "a/$(id)/1.ht",
                                        "1/2/3/4/5/6/7/8/9.ht",
                                        ".incoming/b/1.ht"};
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (names_check(paths[i]) != -EINVAL)
            fail_msg("%s is accepted", paths[i]);
    }
}

static void test_lengths(void **state)
{
    char path[NAMES_MAX_BYTES + 64];
    (void)state;
    for (int n = NAMES_MAX_PART_BYTES - 1; n <= NAMES_MAX_PART_BYTES + 1; n++) {
        snprintf(path, sizeof path, "a/%0*d/1.ht", n, 0);
        assert_int_equal(names_check(path), n <= NAMES_MAX_PART_BYTES ? 3 : -EINVAL);
        snprintf(path, sizeof path, "a/b/%0*d.ht", n - 3, 0);
        assert_int_equal(names_check(path), n <= NAMES_MAX_PART_BYTES ? 3 : -EINVAL);
    }
    for (int n = NAMES_MAX_BYTES - 1; n <= NAMES_MAX_BYTES + 1; n++) {
        snprintf(path, sizeof path, "%0128d/%0128d/%0128d/%0*d.ht", 0, 0, 0, n - 3 * 129 - 3, 0);
        assert_int_equal(strlen(path), n);
        assert_int_equal(names_check(path), n <= NAMES_MAX_BYTES ? 4 : -EINVAL);
    }
}

// An accepted name never leaves its directory and has no special characters.
static void test_random(void **state)
{
    static const char alphabet[] = "..//ab-_+~ \t\\%:\x01\xff.ht/.ht";
    uint64_t seed = 17, accepted = 0;
    (void)state;
    for (int round = 0; round < 2000000; round++) {
        char path[32], padded[40];
        size_t n = unit_random(&seed) % 24;
        for (size_t i = 0; i < n; i++)
            path[i] = alphabet[unit_random(&seed) % (sizeof alphabet - 1)];
        strcpy(path + n, unit_random(&seed) % 2 ? ".ht" : "");
        if (names_check(path) < 0)
            continue;
        accepted++;
        snprintf(padded, sizeof padded, "/%s/", path);
        assert_null(strstr(padded, "//"));
        assert_null(strstr(padded, "/."));
        assert_int_equal(strspn(path, "ab-_+.ht/"), strlen(path));
        assert_string_equal(path + strlen(path) - 3, ".ht");
    }
    assert_true(accepted > 100);
}

static void test_make(void **state)
{
    static const char *const made[][2] = {{"redis-server", "redis-server"},
                                          {"", "_"},
                                          {"..", "_."},
                                          {"a b/c", "a_b_c"},
                                          {".ssh", "_ssh"},
                                          {"-rf", "_rf"},
                                          {"x.ht", "x_ht"},
                                          {"\xc3\xa4", "__"}};
    char out[300], text[400];
    (void)state;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        names_make(made[i][0], out, sizeof out);
        assert_string_equal(out, made[i][1]);
    }
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    names_make(text, out, sizeof out);
    assert_int_equal(strlen(out), NAMES_MAX_PART_BYTES);
    names_make(text, out, 5);
    assert_string_equal(out, "xxxx");
    uint64_t seed = 3;
    for (int round = 0; round < 100000; round++) {
        size_t n = unit_random(&seed) % 20;
        for (size_t i = 0; i < n; i++)
            text[i] = (char)(1 + unit_random(&seed) % 255);
        text[n] = 0;
        names_make(text, out, 2 + unit_random(&seed) % 20);
        char path[700];
        snprintf(path, sizeof path, "%s/%s/1.ht", out, out);
        assert_int_equal(names_check(path), 3);
    }
}

static struct tokens tokens;

static int read_tokens(const char *text, size_t n)
{
    char path[] = "/tmp/heaptape-tokens-XXXXXX";
    struct err e = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, n), n);
    close(fd);
    int rc = tokens_read(path, &tokens, &e);
    unlink(path);
    assert_int_equal(rc < 0, e.text[0] != 0);
    return rc;
}

static void test_tokens(void **state)
{
    char text[TOKENS_FILE_BYTES + 1];
    struct err e = {0};
    (void)state;
    assert_int_equal(read_tokens("one\n\r\n\ntwo\r\nthree", 17), 0);
    assert_int_equal(tokens.n, 3);
    assert_true(tokens_have(&tokens, "one") && tokens_have(&tokens, "two") &&
                tokens_have(&tokens, "three"));
    assert_false(tokens_have(&tokens, "") || tokens_have(&tokens, "on") ||
                 tokens_have(&tokens, "onee") || tokens_have(&tokens, "oneone") ||
                 tokens_have(&tokens, "four"));
    assert_int_equal(read_tokens("", 0), -EINVAL);
    assert_int_equal(read_tokens("\n\n", 2), -EINVAL);
    assert_int_equal(read_tokens("a b\n", 4), -EINVAL);
    assert_int_equal(read_tokens("a\rb\n", 4), -EINVAL);
    assert_int_equal(read_tokens("a\0b\n", 4), -EINVAL);
    assert_int_equal(read_tokens("\xc3\xa4\n", 3), -EINVAL);
    memset(text, 'x', sizeof text);
    assert_int_equal(read_tokens(text, sizeof text - 1), 0);
    assert_int_equal(tokens.n, 1);
    assert_int_equal(read_tokens(text, sizeof text), -EINVAL);
    memset(text, '\n', sizeof text);
    for (size_t i = 0; i < sizeof text; i += 2)
        text[i] = 'x';
    assert_int_equal(read_tokens(text, sizeof text - 1), 0);
    assert_int_equal(tokens.n, TOKENS_FILE_BYTES / 2);
    assert_int_equal(tokens_read("/nowhere/token", &tokens, &e), -ENOENT);
    assert_int_equal(tokens_read("/dev/null", &tokens, &e), -EINVAL);
    assert_int_equal(tokens_read("/", &tokens, &e), -EISDIR);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_accepted), cmocka_unit_test(test_refused), cmocka_unit_test(test_lengths),
    cmocka_unit_test(test_random),   cmocka_unit_test(test_make),    cmocka_unit_test(test_tokens),
};

UNIT_MAIN(tests)
