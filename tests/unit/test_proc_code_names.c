// Tests which files with names of generated code are read.
#include "base/clock.h"
#include "record/processes/code_names.h"
#include "trace/codec.h"
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND 1000000000ull

static char path[64];

static int write_map(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
    unlink(path);
    FILE *f = fopen(path, "wxe");
    assert_non_null(f);
    fputs("1000 10 render\n", f);
    return fclose(f);
}

static int remove_map(void **state)
{
    (void)state;
    return unlink(path);
}

static void age_map(uint64_t seconds)
{
    uint64_t then = clock_ns(CLOCK_REALTIME) - seconds * SECOND;
    struct timespec t = {(time_t)(then / SECOND), (long)(then % SECOND)};
    assert_int_equal(utimensat(AT_FDCWD, path, (const struct timespec[]){t, t}, 0), 0);
}

// Returns the number of names that a recording from since_ns on reads.
static size_t count_names(pid_t visible_pid, uint64_t since_ns)
{
    const struct code_names_process p = {visible_pid, (uint32_t)getpid(), since_ns};
    struct code_names c;
    code_names_init(&c);
    code_names_read(&c, &p, true);
    size_t n = c.names.n_entries;
    code_names_release(&c);
    return n;
}

// The recorder attaches an hour after the process has written its last name.
static void attached_later(void **state)
{
    (void)state;
    assert_int_equal(count_names(getpid(), clock_ns(CLOCK_REALTIME) + 3600 * SECOND), 1);
}

// Another process had this pid before.
static void older_than_the_process(void **state)
{
    (void)state;
    age_map(3600);
    assert_int_equal(count_names(getpid(), clock_ns(CLOCK_REALTIME)), 0);
    // The recording began earlier.
    assert_int_equal(count_names(getpid(), clock_ns(CLOCK_REALTIME) - 7200 * SECOND), 1);
}

static void process_has_ended(void **state)
{
    (void)state;
    age_map(3600);
    assert_int_equal(count_names(0, clock_ns(CLOCK_REALTIME)), 0);
    age_map(0);
    assert_int_equal(count_names(0, clock_ns(CLOCK_REALTIME) - 60 * SECOND), 1);
}

// Invalid lines do not hide the lines after them.
static void invalid_lines(void **state)
{
    static const char *const lines[] = {"",
                                        "render",
                                        "1000",
                                        "1000 render",
                                        "1000 10",
                                        "1000 10 ",
                                        "1000 0 zero",
                                        " 1000 10 space",
                                        "-1000 10 x",
                                        "1000 +10 x",
                                        "10000000000000000 10 large"};
    enum { LINES = sizeof lines / sizeof *lines };
    const struct code_names_process p = {getpid(), (uint32_t)getpid(), 0};
    struct code_names c;
    (void)state;
    FILE *f = fopen(path, "ae");
    assert_non_null(f);
    for (size_t i = 0; i < LINES; i++)
        fprintf(f, "%s\n%zx 8 draw\n", lines[i], 0x2000 + 8 * i);
    fputs("9000 10 incompl", f);
    assert_int_equal(fclose(f), 0);
    code_names_init(&c);
    code_names_read(&c, &p, false);
    assert_int_equal(c.names.n_entries, 1 + LINES);
    assert_int_equal(c.bad_lines, LINES);
    code_names_release(&c);
}

// Reads the name of a function of a script from a record with this text.
static size_t count_scripts(const char *text, uint32_t n, uint64_t line, struct code_names *c)
{
    uint64_t words[CODEC_MAX_RECORD_WORDS + CODEC_MAX_PREFIX_WORDS];
    struct codec_state state = {0};
    const struct event ev = {.kind = HT_MODULE,
                             .ptr = CODEC_SCRIPT_START + 5,
                             .size = 1,
                             .value = line,
                             .text = text,
                             .text_bytes = n};
    code_names_find(c, words, (uint32_t)(codec_put(&state, words, 0, &ev) - words));
    return c->names.n_entries;
}

static void scripts(void **state)
{
    static const char whole[] = "python load\0/srv/orders.py";
    struct code_names c;
    (void)state;
    code_names_init(&c);
    assert_int_equal(count_scripts("", 0, 12, &c), 0);
    assert_int_equal(count_scripts(whole, 6, 12, &c), 0);
    assert_int_equal(count_scripts(whole, 11, 12, &c), 0);
    assert_int_equal(count_scripts(whole, sizeof whole - 1, 12, &c), 1);
    const struct names_function *f = c.names.functions;
    assert_string_equal(names_text(&c.names, f->function), "load");
    assert_string_equal(names_text(&c.names, f->file), "/srv/orders.py");
    assert_int_equal(f->line, 12);
    assert_int_equal(c.names.entries[0].start, CODEC_SCRIPT_START + 5);
    // A function without a file, and an invalid line.
    assert_int_equal(count_scripts(whole, 12, UINT64_MAX, &c), 2);
    assert_int_equal(c.names.functions[1].line, 0);
    assert_string_equal(names_text(&c.names, c.names.functions[1].file), "");
    code_names_release(&c);
}

static void put_dump(int fd, const void *at, size_t n)
{
    assert_int_equal(write(fd, at, n), n);
}

// Writes a line table with two lines, of which `listed` are counted. The second line is at the
// offset `second_at`.
static void put_lines(int fd, uint64_t start, uint64_t listed, uint64_t second_at)
{
    const struct {
        uint32_t kind, size;
        uint64_t stamp, start, n;
        uint64_t at_1;
        uint32_t line_1, column_1;
        char path_1[4];
    } __attribute__((packed)) first = {2, 32 + 20 + 18, 0, start, listed, start, 7, 0, "a.c"};
    const struct {
        uint64_t at;
        uint32_t line, column;
        char path[2];
    } __attribute__((packed)) second = {start + second_at, 0x80000000, 0, "\xff"};
    put_dump(fd, &first, sizeof first);
    put_dump(fd, &second, sizeof second);
}

static void put_load(int fd, uint64_t start)
{
    const struct {
        uint32_t kind, size;
        uint64_t stamp;
        uint32_t pid, tid;
        uint64_t address, start, bytes, index;
        char name[5];
    } __attribute__((packed)) load = {0, 61, 0, 1, 1, start, start, 16, 0, "draw"};
    put_dump(fd, &load, sizeof load);
}

// A line table belongs to the next function if it has the start of that function.
static void lines_of_a_dump(void **state)
{
    (void)state;
    static const uint32_t header[10] = {0x4a695444, 1, 40};
    const struct code_names_process p = {0};
    struct code_names c;
    code_names_init(&c);
    c.dump.fd = memfd_create("dump", MFD_CLOEXEC);
    assert_true(c.dump.fd >= 0);
    put_dump(c.dump.fd, header, sizeof header);
    put_load(c.dump.fd, 0x500);
    put_lines(c.dump.fd, 0x1000, 2, 8);
    put_load(c.dump.fd, 0x1000);
    put_load(c.dump.fd, 0x1000); // the table applies to one function
    put_lines(c.dump.fd, 0x2000, 2, 8);
    put_load(c.dump.fd, 0x3000);
    put_lines(c.dump.fd, 0x4000, 1, 8);
    put_load(c.dump.fd, 0x4000);
    put_lines(c.dump.fd, 0x5000, 2, 16); // the second line is not in the function
    put_load(c.dump.fd, 0x5000);
    code_names_read(&c, &p, true);
    assert_int_equal(c.bad_lines, 0);
    static const struct {
        uint64_t start, bytes;
        uint32_t line;
        const char *path;
    } want[] = {{0x500, 16, 0, ""},    {0x1000, 16, 0, ""},    {0x1000, 16, 7, "a.c"},
                {0x1008, 8, 0, "a.c"}, {0x1000, 16, 0, ""},    {0x3000, 16, 0, ""},
                {0x4000, 16, 0, ""},   {0x4000, 16, 7, "a.c"}, {0x5000, 16, 0, ""},
                {0x5000, 16, 7, "a.c"}};
    assert_int_equal(c.names.n_entries, sizeof want / sizeof *want);
    for (size_t i = 0; i < c.names.n_entries; i++) {
        const struct names_function *f = &c.names.functions[c.names.entries[i].first];
        assert_int_equal(c.names.entries[i].start, want[i].start);
        assert_int_equal(c.names.entries[i].bytes, want[i].bytes);
        assert_int_equal(f->line, want[i].line);
        assert_string_equal(names_text(&c.names, f->file), want[i].path);
        assert_string_equal(names_text(&c.names, f->function), "draw");
    }
    code_names_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(attached_later, write_map, remove_map),
        cmocka_unit_test_setup_teardown(older_than_the_process, write_map, remove_map),
        cmocka_unit_test_setup_teardown(process_has_ended, write_map, remove_map),
        cmocka_unit_test_setup_teardown(invalid_lines, write_map, remove_map),
        cmocka_unit_test(scripts),
        cmocka_unit_test(lines_of_a_dump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
