// Checks the notes that `record` prints after it has read its trace again.
#include "unit.h"

#include "cli/command.h"
#include "report/text/notes.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const struct command_row cli_command_rows[] = {{0}};

enum { LIMIT = 256 << 20 };

static char noted[4096];

// Returns the text that the function prints to standard error.
static const char *note_of(void (*print)(const char *path), const char *path)
{
    int before = dup(STDERR_FILENO), to = memfd_create("stderr", MFD_CLOEXEC);
    fflush(stderr);
    assert_true(dup2(to, STDERR_FILENO) >= 0);
    print(path);
    fflush(stderr);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    ssize_t n = pread(to, noted, sizeof noted - 1, 0);
    assert_true(n >= 0);
    noted[n] = 0;
    close(before);
    close(to);
    return noted;
}

static void note_coverage(const char *path)
{
    notes_coverage(path, 5000000, false);
}

static void note_long_coverage(const char *path)
{
    notes_coverage(path, 5000001, false);
}

static void note_unseen(const char *path)
{
    notes_unseen(path, true);
}

static void note_clean(const char *path)
{
    notes_unseen(path, false);
}

// Creates a sparse file of zeros, which occupies no space on the disk.
static void make_file(char path[64], off_t bytes)
{
    strcpy(path, "/tmp/heaptape-notes.XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, bytes), 0);
    close(fd);
}

static void test_a_large_trace_is_not_read_again(void **state)
{
    (void)state;
    char path[64], expected[256];
    make_file(path, LIMIT + 1);
    snprintf(
        expected, sizeof expected,
        "heaptape: run 'heaptape stat -v %s' for the coverage of stacks: the trace has more than "
        "5 million events\n",
        path);
    assert_string_equal(note_of(note_long_coverage, path), expected);
    snprintf(
        expected, sizeof expected,
        "heaptape: run 'heaptape stat %s' to find memory without recorded blocks: the trace is "
        "larger than 256 MiB\n",
        path);
    assert_string_equal(note_of(note_unseen, path), expected);
    assert_string_equal(note_of(note_clean, path), "");
    unlink(path);
}

static void test_a_trace_that_cannot_be_read(void **state)
{
    (void)state;
    static const struct {
        void (*print)(const char *path);
        const char *text;
    } notes[] = {{note_coverage, "heaptape: cannot compute the coverage of stacks: "},
                 {note_unseen, "heaptape: cannot compute how much memory was not recorded: "}};
    char path[64];
    make_file(path, LIMIT);
    for (unsigned i = 0; i < 2; i++) {
        const char *text = note_of(notes[i].print, path);
        assert_memory_equal(text, notes[i].text, strlen(notes[i].text));
        assert_non_null(strstr(text, path));
    }
    unlink(path);
    // If the output was removed, or is not a regular file, the functions print no notes.
    for (unsigned i = 0; i < 2; i++) {
        assert_string_equal(note_of(notes[i].print, path), "");
        assert_string_equal(note_of(notes[i].print, "/dev/null"), "");
    }
}

static void test_a_trace_without_stacks(void **state)
{
    (void)state;
    const char *source = getenv("HEAPTAPE_SOURCE");
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/trace-1.ht", source ? source : "..");
    assert_string_equal(note_of(note_coverage, path), "");
    assert_string_equal(note_of(note_unseen, path), "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_large_trace_is_not_read_again),
    cmocka_unit_test(test_a_trace_that_cannot_be_read),
    cmocka_unit_test(test_a_trace_without_stacks),
};

UNIT_MAIN(tests)
