#include "transfer/queue.h"

#include "base/fio.h"
#include "transfer/upload.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char root[] = "/tmp/heaptape-queue-XXXXXX";
static char dropped[256];

static int setup(void **state)
{
    (void)state;
    strcpy(root + sizeof root - 7, "XXXXXX");
    dropped[0] = 0;
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static char *name_of(const char *path)
{
    static char name[256];
    snprintf(name, sizeof name, "%s/%s", root, path);
    return name;
}

static void put(const char *path, size_t bytes)
{
    struct err e = {0};
    char *name = name_of(path), *slash = strrchr(name, '/');
    *slash = 0;
    assert_int_equal(output_make_folder(name, &e), 0);
    *slash = '/';
    int fd = open(name, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    close(fd);
}

// Compares the queue with `want`, a list of paths and sizes.
static void has(const char *want, uint64_t bytes)
{
    struct queue q = {0};
    struct err e = {0};
    char text[512] = "";
    assert_int_equal(queue_read(&q, root, &e), 0);
    for (size_t i = 0; i < q.n; i++)
        sprintf(text + strlen(text), "%s:%llu ", q.files[i].path,
                (unsigned long long)q.files[i].bytes);
    assert_string_equal(text, want);
    assert_int_equal(q.bytes, bytes);
    queue_release(&q);
}

static void test_read(void **state)
{
    struct queue q = {0};
    struct err e = {0};
    (void)state;
    has("", 0);
    put("h/p/10.ht", 3);
    put("h/p/9.ht", 2);
    put("h/p/1.ht", 1);
    put("h/a/2.ht", 0);
    put("h/p/11.ht.part", 1);
    put("h/p/x.txt", 1);
    put("h/.a/1.ht", 1);
    put("h/.1.ht", 1);
    put("1/2/3/4/5/6/7/8.ht", 8);
    put("1/2/3/4/5/6/7/8/9.ht", 8);
    assert_int_equal(symlink("/etc/passwd", name_of("h/p/link.ht")), 0);
    assert_int_equal(symlink("/", name_of("h/root")), 0);
    has("1/2/3/4/5/6/7/8.ht:8 h/a/2.ht:0 h/p/1.ht:1 h/p/9.ht:2 h/p/10.ht:3 ", 14);
    assert_int_equal(queue_read(&q, "/nowhere/spool", &e), -ENOENT);
}

static void on_dropped(void *context, const char *path, uint64_t bytes)
{
    (void)context;
    sprintf(dropped + strlen(dropped), "%s:%llu ", path, (unsigned long long)bytes);
}

static void test_limit(void **state)
{
    struct err e = {0};
    (void)state;
    put("h/p-20260102T030405Z-7/1.ht", 10);
    put("h/p-20260102T030405Z-7/2.ht", 10);
    put("h/p-20260102T030405Z-7/3.ht", 10);
    put("h/p-20260102T030405Z-7/10.ht", 10);
    assert_int_equal(queue_limit(root, "h/p-20260102T030405Z-7", 40, on_dropped, NULL, &e), 0);
    assert_string_equal(dropped, "");
    // A file that is being uploaded is kept.
    int fd = open(name_of("h/p-20260102T030405Z-7/1.ht"), O_RDONLY);
    assert_int_equal(queue_hold(fd), 0);
    assert_int_equal(queue_limit(root, "h/p-20260102T030405Z-7", 39, on_dropped, NULL, &e), 0);
    assert_string_equal(dropped, "h/p-20260102T030405Z-7/2.ht:10 ");
    close(fd);
    fd = open(name_of("h/p-20260102T030405Z-7/1.ht"), O_RDONLY);
    // The last file of a recording is always kept, whatever its size.
    assert_int_equal(queue_limit(root, "h/p-20260102T030405Z-7", 0, on_dropped, NULL, &e), 0);
    assert_string_equal(dropped, "h/p-20260102T030405Z-7/2.ht:10 h/p-20260102T030405Z-7/1.ht:10 "
                                 "h/p-20260102T030405Z-7/3.ht:10 ");
    has("h/p-20260102T030405Z-7/10.ht:10 ", 10);
    assert_int_equal(queue_hold(fd), -ENOENT);
    close(fd);
}

// Sets the age of a file in seconds.
static void set_age(const char *path, int seconds)
{
    const struct timespec then = {.tv_sec = time(NULL) - seconds};
    assert_int_equal(utimensat(AT_FDCWD, name_of(path), (const struct timespec[]){then, then}, 0),
                     0);
}

static void test_limit_of_all(void **state)
{
    struct err e = {0};
    (void)state;
    put("h/left-20260102T030405Z-7/1.ht", 10);
    put("h/runs-20260102T030405Z-7/1.ht", 10);
    put("h/own-20260102T030405Z-7/1.ht", 10);
    put("h/own-20260102T030405Z-7/2.ht", 10);
    put("h/new-20260102T030405Z-7/1.ht", 10);
    // These files do not belong to the queue.
    put("h/own/9.ht", 1000);
    put("mine.ht", 1000);
    put("h/left-20260102T030405Z-7/mine.ht", 1000);
    set_age("h/runs-20260102T030405Z-7/1.ht", 40);
    set_age("h/left-20260102T030405Z-7/1.ht", 30);
    set_age("h/own-20260102T030405Z-7/1.ht", 20);
    set_age("h/new-20260102T030405Z-7/1.ht", 10);
    int lock = queue_lock(name_of("h/runs-20260102T030405Z-7"));
    assert_true(lock >= 0);
    // Only files of other recordings without a running process may be removed, the oldest first.
    assert_int_equal(queue_limit(root, "h/own-20260102T030405Z-7", 40, on_dropped, NULL, &e), 0);
    assert_string_equal(dropped, "h/left-20260102T030405Z-7/1.ht:10 ");
    assert_int_equal(queue_limit(root, "h/own-20260102T030405Z-7", 0, on_dropped, NULL, &e), 0);
    assert_string_equal(dropped,
                        "h/left-20260102T030405Z-7/1.ht:10 h/own-20260102T030405Z-7/1.ht:10 "
                        "h/new-20260102T030405Z-7/1.ht:10 ");
    has("h/left-20260102T030405Z-7/mine.ht:1000 h/own-20260102T030405Z-7/2.ht:10 h/own/9.ht:1000 "
        "h/runs-20260102T030405Z-7/1.ht:10 mine.ht:1000 ",
        3020);
    close(lock);
}

static void test_lock(void **state)
{
    (void)state;
    int fd = queue_lock(root);
    assert_true(fd >= 0);
    assert_int_equal(queue_lock(root), -EWOULDBLOCK);
    close(fd);
    fd = queue_lock(root);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(queue_lock("/nowhere/spool"), -ENOENT);
}

static void test_clean(void **state)
{
    (void)state;
    put("a/b/1.ht", 1);
    put("a/c/1.ht", 1);
    queue_clean(root, "a/b/1.ht");
    assert_int_equal(access(name_of("a/b/1.ht"), F_OK), 0);
    unlink(name_of("a/b/1.ht"));
    queue_clean(root, "a/b/1.ht");
    assert_int_equal(access(name_of("a/b"), F_OK), -1);
    unlink(name_of("a/c/1.ht"));
    queue_clean(root, "a/c/1.ht");
    assert_int_equal(access(name_of("a"), F_OK), -1);
    assert_int_equal(access(root, F_OK), 0);
    queue_clean(root, "1.ht");
    assert_int_equal(access(root, F_OK), 0);
}

static void test_url(void **state)
{
    static const char *const refused[] = {
        "http://",      "https:///x",      "ftp://h/",    "h/x",         "",
        "http://u@h/",  "http://u:p@h:1/", "http://h/?a", "http://h/#a", "http://h/%41",
        "http://h/a b", "http://h/\"'"};
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct err e = {0};
        assert_null(upload_url(refused[i], &e));
        assert_true(e.text[0]);
    }
    struct err e = {0};
    char *url = upload_url("http://h:80/a@b", &e);
    assert_string_equal(url, "http://h:80/a@b/");
    free(url);
    url = upload_url("HTTPS://[::1]:80/", &e);
    assert_string_equal(url, "HTTPS://[::1]:80/");
    free(url);
}

static unsigned puts_made;
static char last_note[256];

static struct request *open_nothing(const struct request_settings *s)
{
    (void)s;
    return (struct request *)&puts_made;
}

static void fail_put(struct request *r, const char *url, int fd, uint64_t bytes,
                     struct request_result *result)
{
    (void)r, (void)url, (void)fd, (void)bytes;
    puts_made++;
    *result = (struct request_result){.text = "nobody listens"};
}

static void close_nothing(struct request *r)
{
    (void)r;
}

static void keep_note(const char *text)
{
    snprintf(last_note, sizeof last_note, "%s", text);
}

// If the time limit ends before the first request, one request is made and its failure reported.
static void test_first_attempt(void **state)
{
    static const struct request_calls calls = {
        .open = open_nothing, .put = fail_put, .close = close_nothing};
    const struct upload_settings s = {.folder = root,
                                      .url = "http://h/",
                                      .wait_ns = 0,
                                      .added = -1,
                                      .calls = &calls,
                                      .note = keep_note};
    struct upload_result result;
    struct err e = {0};
    (void)state;
    put("a/b/1.ht", 1);
    put("a/b/2.ht", 2);
    assert_int_equal(upload_run(&s, &result, &e), 0);
    assert_int_equal(puts_made, 1);
    assert_string_equal(last_note,
                        "a/b/1.ht: cannot be uploaded: nobody listens; heaptape tries again");
    assert_int_equal(result.left_files, 2);
    assert_int_equal(result.left_bytes, 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_read, setup, teardown),
    cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
    cmocka_unit_test_setup_teardown(test_limit_of_all, setup, teardown),
    cmocka_unit_test_setup_teardown(test_lock, setup, teardown),
    cmocka_unit_test_setup_teardown(test_clean, setup, teardown),
    cmocka_unit_test(test_url),
    cmocka_unit_test_setup_teardown(test_first_attempt, setup, teardown),
};

UNIT_MAIN(tests)
