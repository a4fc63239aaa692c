#include "base/fio.h"

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A temporary directory, and the path of a file in this directory.
struct folder {
    char path[64], file[96];
};

static int make_folder(void **state)
{
    struct folder *f = calloc(1, sizeof *f);
    strcpy(f->path, "/tmp/test_base_fio-XXXXXX");
    if (!f || !mkdtemp(f->path))
        return -1;
    snprintf(f->file, sizeof f->file, "%s/file", f->path);
    *state = f;
    return 0;
}

static int remove_folder(void **state)
{
    struct folder *f = *state;
    unlink(f->file);
    int rc = rmdir(f->path); // fails if the test left a file behind
    free(f);
    return rc;
}

static void write_file(const char *path, const char *text)
{
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    fputs(text, to);
    fclose(to);
}

static void assert_content(const char *path, const char *want)
{
    char text[256] = {0};
    FILE *from = fopen(path, "r");
    assert_non_null(from);
    size_t n = fread(text, 1, sizeof text - 1, from);
    fclose(from);
    assert_int_equal(n, strlen(want));
    assert_string_equal(text, want);
}

static void missing_file_is_named(void **state)
{
    struct folder *f = *state;
    struct input in;
    struct err e = {0};
    assert_int_equal(input_open(&in, f->file, &e), -ENOENT);
    assert_non_null(strstr(e.text, f->file));
    assert_non_null(strstr(e.text, "No such file"));
}

static void directory_and_empty_file_are_refused(void **state)
{
    struct folder *f = *state;
    struct input in;
    struct err e = {0};
    assert_int_equal(input_open(&in, f->path, &e), -EISDIR);
    assert_non_null(strstr(e.text, "directory"));
    write_file(f->file, "");
    e.text[0] = 0;
    assert_int_equal(input_open(&in, f->file, &e), -ENODATA);
    assert_non_null(strstr(e.text, "is empty"));
}

static void only_files_and_pipes_are_inputs(void **state)
{
    struct folder *f = *state;
    struct input in;
    struct err e = {0};
    struct stat st;
    assert_int_equal(input_open(&in, "/dev/zero", &e), -EINVAL);
    assert_non_null(strstr(e.text, "/dev/zero: is a device"));
    e.text[0] = 0;
    assert_int_equal(input_open_regular(&in, "/dev/zero", &e), -EINVAL);
    assert_non_null(strstr(e.text, "/dev/zero: is not a regular file"));
    assert_int_equal(input_open_regular(&in, f->path, &e), -EISDIR);
    assert_int_equal(input_open_regular(&in, f->file, &e), -ENOENT);
    assert_int_equal(mkfifo(f->file, 0600), 0);
    // Opening a FIFO without these flags would block until a writer appears.
    assert_int_equal(input_open_regular(&in, f->file, &e), -EINVAL);
    assert_int_equal(input_regular_fd(f->file, &st), -EINVAL);
    int writer = open(f->file, O_RDWR);
    assert_int_equal(input_open(&in, f->file, &e), 0);
    assert_int_equal(in.size_bytes, 0);
    input_close(&in);
    close(writer);
    unlink(f->file);
    write_file(f->file, "text");
    assert_int_equal(input_open_regular(&in, f->file, &e), 0);
    assert_int_equal(in.size_bytes, 4);
    input_close(&in);
}

static void peek_then_read_returns_each_byte_once(void **state)
{
    struct folder *f = *state;
    struct input in;
    struct err e = {0};
    const uint8_t *p;
    char got[16];
    write_file(f->file, "0123456789");
    assert_int_equal(input_open(&in, f->file, &e), 0);
    assert_int_equal(in.size_bytes, 10);
    assert_int_equal(input_peek(&in, 3, &p, &e), 3);
    assert_memory_equal(p, "012", 3);
    assert_int_equal(in.offset, 0);
    assert_int_equal(input_read(&in, got, 2, &e), 2);
    assert_memory_equal(got, "01", 2);
    assert_int_equal(input_peek(&in, 4, &p, &e), 4);
    assert_memory_equal(p, "2345", 4);
    assert_int_equal(input_read(&in, got, 16, &e), 8);
    assert_memory_equal(got, "23456789", 8);
    assert_int_equal(in.offset, 10);
    assert_int_equal(input_peek(&in, 4, &p, &e), 0);
    assert_int_equal(input_read(&in, got, 1, &e), 0);
    assert_int_equal(input_seek(&in, 4, &e), 0);
    assert_int_equal(input_read(&in, got, 2, &e), 2);
    assert_memory_equal(got, "45", 2);
    input_close(&in);
    assert_int_equal(in.fd, -1);
}

// Scanning by peek and read must not accumulate data that was already read.
static void scanning_keeps_memory_bounded(void **state)
{
    struct input in;
    struct err e = {0};
    static char sink[65536];
    const uint8_t *p;
    in = (struct input){.fd = open("/dev/zero", O_RDONLY), .owns_fd = true, .name = "zeros"};
    assert_true(in.fd >= 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(input_peek(&in, 65536, &p, &e), 65536);
        assert_int_equal(input_read(&in, sink, 65000, &e), 65000);
    }
    assert_true(in.ahead.capacity <= 4 * 65536);
    input_close(&in);
    (void)state;
}

static void pipe_in_pieces_is_read_whole(void **state)
{
    int fds[2];
    struct input in = {.fd = -1, .name = "pipe"};
    struct err e = {0};
    char got[8];
    assert_int_equal(pipe(fds), 0);
    in.fd = fds[0];
    pid_t pid = fork();
    if (pid == 0) {
        for (const char *p = "abcdef"; *p; p++) {
            if (write(fds[1], p, 1) != 1)
                _exit(1);
            usleep(1000);
        }
        _exit(0);
    }
    close(fds[1]);
    assert_int_equal(input_read(&in, got, 4, &e), 4);
    assert_memory_equal(got, "abcd", 4);
    assert_int_equal(input_seek(&in, 0, &e), -ESPIPE);
    assert_int_equal(input_read(&in, got, 4, &e), 2);
    close(fds[0]);
    buf_release(&in.ahead);
    (void)state;
}

static void existing_file_is_kept_without_force(void **state)
{
    struct folder *f = *state;
    struct output out;
    struct err e = {0};
    write_file(f->file, "old");
    assert_int_equal(output_open(&out, f->file, 0, &e), -EEXIST);
    assert_non_null(strstr(e.text, "exists; use -f"));
    assert_int_equal(output_open(&out, f->file, OUTPUT_ASIDE, &e), -EEXIST);
    assert_content(f->file, "old");
    assert_int_equal(output_open(&out, f->file, OUTPUT_FORCE, &e), 0);
    assert_int_equal(output_write(&out, "new!", 4, &e), 0);
    assert_int_equal(out.offset, 4);
    assert_int_equal(output_close(&out, true, &e), 0);
    assert_content(f->file, "new!");
}

static void aside_appears_only_on_commit(void **state)
{
    struct folder *f = *state;
    struct output out;
    struct err e = {0};
    assert_int_equal(output_open(&out, f->file, OUTPUT_ASIDE, &e), 0);
    assert_int_equal(output_write(&out, "abc", 3, &e), 0);
    assert_int_equal(access(f->file, F_OK), -1);
    assert_int_equal(output_close(&out, true, &e), 0);
    assert_content(f->file, "abc");
    assert_int_equal(output_open(&out, f->file, OUTPUT_ASIDE | OUTPUT_FORCE, &e), 0);
    assert_int_equal(output_write(&out, "xyz", 3, &e), 0);
    assert_int_equal(output_close(&out, false, &e), 0);
    assert_content(f->file, "abc");
}

static void folder_that_is_missing_or_a_directory_is_refused(void **state)
{
    struct folder *f = *state;
    struct output out;
    struct err e = {0};
    char path[128];
    snprintf(path, sizeof path, "%s/none/file", f->path);
    assert_int_equal(output_open(&out, path, OUTPUT_ASIDE, &e), -ENOENT);
    e.text[0] = 0;
    assert_int_equal(output_open(&out, f->path, OUTPUT_FORCE, &e), -EISDIR);
    assert_non_null(strstr(e.text, f->path));
}

static void full_device_is_reported(void **state)
{
    struct output out;
    struct err e = {0};
    assert_int_equal(output_open(&out, "/dev/full", OUTPUT_ASIDE, &e),
                     0); // a device is written in place
    assert_null(out.aside);
    assert_int_equal(output_write(&out, "abc", 3, &e), -ENOSPC);
    assert_string_equal(e.text, "/dev/full: cannot write at byte 0: No space left on device");
    output_close(&out, true, NULL);
    assert_int_equal(access("/dev/full", W_OK), 0);
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(missing_file_is_named, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(directory_and_empty_file_are_refused, make_folder,
                                    remove_folder),
    cmocka_unit_test_setup_teardown(only_files_and_pipes_are_inputs, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(peek_then_read_returns_each_byte_once, make_folder,
                                    remove_folder),
    cmocka_unit_test(scanning_keeps_memory_bounded),
    cmocka_unit_test(pipe_in_pieces_is_read_whole),
    cmocka_unit_test_setup_teardown(existing_file_is_kept_without_force, make_folder,
                                    remove_folder),
    cmocka_unit_test_setup_teardown(aside_appears_only_on_commit, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(folder_that_is_missing_or_a_directory_is_refused, make_folder,
                                    remove_folder),
    cmocka_unit_test(full_device_is_reported),
};
UNIT_MAIN(tests)
