#include "cli/help.h"
#include "cli/options.h"
#include "cli/suggest.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct fields {
    bool force, verbose, counters;
    const char *output;
    enum speed { SPEED_MAX, SPEED_RECORDED } speed;
    enum by { BY_NOTHING = -1, BY_SITE, BY_THREAD } by;
    struct option_pid pid;
    uint64_t runs, buffer, level, wait;
    struct option_list allocators;
};

static const struct option options[] = {
    {'f', "force", OPTION_FLAG, NULL, NULL, "Replace", offsetof(struct fields, force)},
    {'v', "verbose", OPTION_FLAG, NULL, NULL, "Talk", offsetof(struct fields, verbose)},
    {0, "counters", OPTION_FLAG, NULL, "on", "Do not count", offsetof(struct fields, counters)},
    {'o', "output", OPTION_STRING, "FILE", "out.ht", "Write here", offsetof(struct fields, output)},
    {0, "speed", OPTION_CHOICE, "max|recorded", "max", "Pace", offsetof(struct fields, speed)},
    {'n', "runs", OPTION_NUMBER, "N", "3", "Repeat", offsetof(struct fields, runs)},
    {'b', "buffer", OPTION_SIZE, "SIZE", "64K", "Room", offsetof(struct fields, buffer)},
    {'l', "level", OPTION_NUMBER, "N", "3", "Press", offsetof(struct fields, level), .min = 1,
     .max = 19},
    {0, "memory", OPTION_SIZE, "SIZE", NULL, "Use", offsetof(struct fields, buffer), .min = 4096,
     .max = 1 << 20},
    {0, "wait", OPTION_SECONDS, "SECONDS", "60", "Wait", offsetof(struct fields, wait), .min = 1,
     .max = 86400 * CLOCK_NS_PER_S},
    {0, "by", OPTION_CHOICE, "site|thread", NULL, "Group", offsetof(struct fields, by)},
    {'p', "pid", OPTION_PARSED, "PID|all", NULL, "Of", offsetof(struct fields, pid),
     .parse = options_parse_pid, .min = 1, .max = UINT32_MAX},
    {'a', "allocator", OPTION_LIST, "NAME", NULL, "Under this",
     offsetof(struct fields, allocators)},
    {0},
};

static int run(const void *fields, char **argv)
{
    (void)fields, (void)argv;
    return 0;
}

static const struct command plain = {
    .name = "plain",
    .operands = "FILE...",
    .summary = "Test",
    .options = options,
    .options_bytes = sizeof(struct fields),
    .max_operands = 3,
    .run = run,
};
static const struct command runner = {
    .name = "runner",
    .operands = "[--] PROGRAM",
    .summary = "Test",
    .options = options,
    .options_bytes = sizeof(struct fields),
    .min_operands = 1,
    .max_operands = 1,
    .runs_program = true,
    .run = run,
};
static bool is_to_url(const void *fields, int operands)
{
    (void)operands;
    return strncmp(((const struct fields *)fields)->output, "http:", 5) == 0;
}

static const struct command_mode modes[] = {
    {.selects = is_to_url, .name = "-o URL", .accepts = "output|level"},
    {.option = "by", .accepts = "level|counters", .rejects = "FILE"},
    {.option = "memory"},
    {.accepts = "output|buffer"},
};
static const struct command with_modes = {
    .name = "plain",
    .summary = "Test",
    .options = options,
    .options_bytes = sizeof(struct fields),
    .modes = {modes},
    .max_operands = 3,
    .run = run,
};
const struct command *const cli_commands[] = {&plain, &runner, NULL};
const struct command_row cli_command_rows[] = {{0}};

static struct fields got;
static struct options_shared common;
static char *words[16];
static char said[2048]; // text on stderr of the last parse

// Splits `line` at spaces and parses it. Returns the result of options_parse.
static int parse(const struct command *c, const char *line)
{
    static char copy[256];
    int argc = 0, saved = dup(STDERR_FILENO);
    FILE *capture = tmpfile();
    snprintf(copy, sizeof copy, "%s", line);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
        words[argc++] = w;
    words[argc] = NULL;
    fflush(stderr);
    dup2(fileno(capture), STDERR_FILENO);
    int n = options_parse(c, &got, &common, argc, words);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(capture);
    said[fread(said, 1, sizeof said - 1, capture)] = 0;
    fclose(capture);
    return n;
}

static void assert_refused_by(const struct command *c, const char *line, const char *why)
{
    assert_int_equal(parse(c, line), -1);
    if (!strstr(said, why))
        fail_msg("'%s' gives '%s', not '%s'", line, said, why);
    assert_non_null(strstr(said, "\nusage: heaptape plain"));
    options_release(&plain, &got);
}

static void assert_refused(const char *line, const char *why)
{
    assert_refused_by(&plain, line, why);
}

static void defaults_are_parsed(void **state)
{
    assert_int_equal(parse(&plain, ""), 0);
    assert_string_equal(got.output, "out.ht");
    assert_int_equal(got.speed, SPEED_MAX);
    assert_int_equal(got.by, BY_NOTHING);
    assert_int_equal(got.level, 3);
    assert_int_equal(got.runs, 3);
    assert_int_equal(got.buffer, 65536);
    assert_true(got.counters);
    assert_false(got.force);
    assert_int_equal(got.allocators.n, 0);
    assert_int_equal(common.color, COLOR_AUTO);
    (void)state;
}

static void every_form_of_a_value(void **state)
{
    static const char *const lines[] = {"--output=x --runs=7", "--output x --runs 7", "-ox -n7",
                                        "-o x -n 7", "-fo x -vn7"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(parse(&plain, lines[i]), 0);
        assert_string_equal(got.output, "x");
        assert_int_equal(got.runs, 7);
    }
    assert_true(got.force && got.verbose);
    assert_int_equal(parse(&plain, "--output=a=b --output="), 0);
    assert_string_equal(got.output, "");
    (void)state;
}

static void flags_are_negated_and_grouped(void **state)
{
    assert_int_equal(parse(&plain, "-fvq --no-counters --no-force"), 0);
    assert_false(got.force);
    assert_true(got.verbose);
    assert_false(got.counters);
    assert_true(common.quiet);
    assert_refused("--no-output", "unknown option '--no-output'");
    assert_refused("--force=yes", "--force takes no value");
    (void)state;
}

static void choices_are_numbers_of_words(void **state)
{
    assert_int_equal(parse(&plain, "--speed=recorded --by thread --color=never"), 0);
    assert_int_equal(got.speed, SPEED_RECORDED);
    assert_int_equal(got.by, BY_THREAD);
    assert_int_equal(common.color, COLOR_NEVER);
    assert_int_equal(parse(&plain, "--speed=recorded --speed=max"), 0);
    assert_int_equal(got.speed, SPEED_MAX);
    assert_int_equal(options_parse_choice("max|recorded", "recorded"), 1);
    assert_int_equal(options_parse_choice("max|recorded", "rec"), -1);
    assert_int_equal(options_parse_choice("max|recorded", ""), -1);
    (void)state;
}

static void seconds_may_have_units(void **state)
{
    static const struct {
        const char *line;
        uint64_t ns;
    } good[] = {
        {"--wait=90", 90000000000},   {"--wait=90s", 90000000000},     {"--wait=10m", 600000000000},
        {"--wait=2h", 7200000000000}, {"--wait=20ms", 20000000},       {"--wait=1.5m", 90000000000},
        {"--wait=1min", 60000000000}, {"--wait=1.5", 1500000000},      {"--wait=.25", 250000000},
        {"--wait=0.000000001", 1},    {"--wait=86400", 86400000000000}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(parse(&plain, good[i].line), 0);
        assert_int_equal(got.wait, good[i].ns);
    }
    assert_refused("--wait=1.", "--wait: '1.' is not a number of seconds or a time such as 10m");
    assert_refused("--wait=.", "--wait: '.' is not a number of seconds or a time such as 10m");
    assert_refused("--wait=.s", "--wait: '.s' is not a number of seconds or a time such as 10m");
    assert_refused("--wait=10x", "--wait: '10x' is not a number of seconds or a time such as 10m");
    assert_refused("--wait=", "--wait: '' is not a number of seconds");
    assert_refused("--wait=0s", "--wait: '0s' is not more than 0 and at most 86400 seconds");
    assert_refused("--wait=25h", "--wait: '25h' is not more than 0 and at most 86400 seconds");
    (void)state;
}

static void numbers_have_ranges(void **state)
{
    assert_int_equal(parse(&plain, "-l1 --memory=4K"), 0);
    assert_int_equal(got.level, 1);
    assert_int_equal(parse(&plain, "-l19 --memory=1M"), 0);
    assert_int_equal(got.level, 19);
    assert_refused("-l0", "--level: '0' is out of range: 1 to 19");
    assert_refused("--level=20", "--level: '20' is out of range: 1 to 19");
    assert_refused("--level=x", "--level: 'x' is not a whole number");
    assert_refused("--memory=4095", "--memory: '4095' is out of range: 4.0 KiB to 1.0 MiB");
    assert_refused("--memory=2G", "--memory: '2G' is out of range: 4.0 KiB to 1.0 MiB");
    (void)state;
}

static void parsed_options_set_several_fields(void **state)
{
    assert_int_equal(parse(&plain, ""), 0);
    assert_true(got.pid.pid == 0 && !got.pid.all);
    assert_int_equal(parse(&plain, "-p 12"), 0);
    assert_true(got.pid.pid == 12 && !got.pid.all);
    assert_int_equal(parse(&plain, "--pid=all"), 0);
    assert_true(got.pid.pid == 0 && got.pid.all);
    assert_refused("--pid=x", "--pid: 'x' is not one of PID|all");
    assert_refused("--pid=0", "--pid: '0' is out of range: 1 to 4294967295");
    assert_refused("--pid=4294967296", "--pid: '4294967296' is out of range");
    (void)state;
}

static const struct option *row(const char *name)
{
    const struct option *o = options;
    while (strcmp(o->name, name) != 0)
        o++;
    return o;
}

static void help_shows_names_ranges_and_defaults(void **state)
{
    char text[128];
    help_option_name(text, sizeof text, row("runs"));
    assert_string_equal(text, "-n, --runs=N");
    help_option_name(text, sizeof text, row("counters"));
    assert_string_equal(text, "--no-counters");
    help_option_note(text, sizeof text, row("counters"));
    assert_string_equal(text, "");
    help_option_note(text, sizeof text, row("level"));
    assert_string_equal(text, " (1 to 19; default: 3)");
    help_option_note(text, sizeof text, row("runs"));
    assert_string_equal(text, " (default: 3)");
    help_option_note(text, sizeof text, row("pid"));
    assert_string_equal(text, "");
    (void)state;
}

static void lists_collect(void **state)
{
    assert_int_equal(parse(&plain, "-a glibc --allocator=jemalloc,MALLOC_CONF=x:2 -ac"), 0);
    assert_int_equal(got.allocators.n, 3);
    assert_string_equal(got.allocators.items[0], "glibc");
    assert_string_equal(got.allocators.items[1], "jemalloc,MALLOC_CONF=x:2");
    assert_string_equal(got.allocators.items[2], "c");
    options_release(&plain, &got);
    (void)state;
}

static void operands_mix_with_options(void **state)
{
    assert_int_equal(parse(&plain, "one -f - -n 4 -- -v"), 3);
    assert_string_equal(words[0], "one");
    assert_string_equal(words[1], "-");
    assert_string_equal(words[2], "-v");
    assert_false(got.verbose);
    assert_int_equal(got.runs, 4);
    (void)state;
}

static void a_program_keeps_its_options(void **state)
{
    assert_int_equal(parse(&runner, "-f gcc -v -- --help -o x"), 6);
    assert_string_equal(words[0], "gcc");
    assert_string_equal(words[1], "-v");
    assert_string_equal(words[2], "--");
    assert_string_equal(words[5], "x");
    assert_null(words[6]);
    assert_false(got.verbose || common.help);
    assert_int_equal(parse(&runner, "-f -- -v"), 1);
    assert_string_equal(words[0], "-v");
    assert_int_equal(parse(&runner, "-f"), -1);
    assert_non_null(strstr(said, "an operand is missing"));
    (void)state;
}

static void help_stops_parsing(void **state)
{
    assert_true(parse(&plain, "-f --help --nonsense") >= 0);
    assert_true(common.help);
    assert_true(parse(&plain, "-h") >= 0);
    assert_true(common.help);
    (void)state;
}

static void wrong_lines_name_option_and_value(void **state)
{
    assert_refused("--runs=x", "--runs: 'x' is not a whole number");
    assert_refused("--runs=-1", "--runs: '-1' is not a whole number");
    assert_refused("--runs=", "--runs: '' is not a whole number");
    assert_refused("-n 18446744073709551616", "--runs: '18446744073709551616' is too large");
    assert_refused("-b 12Q", "--buffer: '12Q' is not a number of bytes");
    assert_refused("-b 16777216T", "--buffer: '16777216T' is too large");
    assert_refused("--speed=fast", "--speed: 'fast' is not one of max|recorded");
    assert_refused("--speed=max|recorded", "--speed: 'max|recorded' is not one of");
    assert_refused("--speed=", "--speed: '' is not one of");
    assert_refused("--color=red", "--color: 'red' is not one of auto|always|never");
    assert_refused("--output", "--output requires FILE");
    assert_refused("-o", "-o requires FILE");
    assert_refused("-x", "unknown option '-x'");
    assert_refused("-fx", "unknown option '-x'");
    assert_refused("--outptu=x", "unknown option '--outptu'; did you mean '--output'?");
    assert_refused("--xyzzy", "unknown option '--xyzzy'\n");
    assert_refused("a b c d", "unexpected operand 'd'");
    (void)state;
}

static void sizes_have_units(void **state)
{
    uint64_t v = 0;
    assert_int_equal(options_parse_size("512", &v), 0);
    assert_int_equal(v, 512);
    assert_int_equal(options_parse_size("2g", &v), 0);
    assert_true(v == 2ull << 30);
    assert_int_equal(options_parse_size("1T", &v), 0);
    assert_true(v == 1ull << 40);
    assert_int_equal(options_parse_size("18446744073709551615", &v), 0);
    assert_true(v == UINT64_MAX);
    assert_int_equal(options_parse_size("18446744073709551615K", &v), -ERANGE);
    assert_int_equal(options_parse_size("000000000000000000000000000001", &v), -ERANGE);
    assert_int_equal(options_parse_size("", &v), -EINVAL);
    assert_int_equal(options_parse_size("K", &v), -EINVAL);
    assert_int_equal(options_parse_size("1KB", &v), -EINVAL);
    assert_int_equal(options_parse_size("1 K", &v), -EINVAL);
    assert_int_equal(options_parse_size("0x10", &v), -EINVAL);
    (void)state;
}

static unsigned distance(const char *a, const char *b)
{
    return suggest_distance(a, strlen(a), b, strlen(b));
}

static const char *suggestion(const char *word)
{
    struct suggest s;
    suggest_init(&s, word, strlen(word));
    suggest_offer(&s, "record");
    suggest_offer(&s, "replay");
    suggest_offer(&s, "report");
    suggest_offer(&s, "stat");
    return s.best;
}

static void near_misses_are_near(void **state)
{
    assert_int_equal(distance("record", "record"), 0);
    assert_int_equal(distance("recrod", "record"), 1);
    assert_int_equal(distance("", "abc"), 3);
    assert_int_equal(distance("kitten", "sitting"), 3);
    assert_string_equal(suggestion("recrod"), "record");
    assert_string_equal(suggestion("repaly"), "replay");
    assert_string_equal(suggestion("stats"), "stat");
    assert_string_equal(suggestion("rec"), "record");
    assert_null(suggestion("xyzzy"));
    assert_null(suggestion(""));
    (void)state;
}

static void the_first_selected_row_is_the_mode(void **state)
{
    static const struct {
        const char *line;
        const struct command_mode *mode;
    } rows[] = {
        {"", &modes[3]},
        {"-f -o a FILE", &modes[3]},
        {"-f -o http://h -l 5", &modes[0]},
        {"--by site -l 5 --no-counters", &modes[1]},
        {"--by site --counters --counters", &modes[1]},
        {"--memory 4096 -f --no-counters --counters FILE", &modes[2]},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(parse(&with_modes, rows[i].line) >= 0);
        assert_ptr_equal(common.modes[0], rows[i].mode);
        assert_null(common.modes[1]);
    }
    (void)state;
}

static void modes_reject_options_of_other_modes(void **state)
{
    assert_refused_by(&with_modes, "-l 5", "--level requires -o URL or --by\n");
    assert_refused_by(&with_modes, "--no-counters", "--no-counters requires --by\n");
    assert_refused_by(&with_modes, "--by site -o a", "--by cannot be combined with --output\n");
    assert_refused_by(&with_modes, "--memory 4096 -b 1",
                      "--memory cannot be combined with --buffer");
    assert_refused_by(&with_modes, "-o http://h --by site",
                      "-o URL cannot be combined with --by\n");
    assert_refused_by(&with_modes, "--by site --no-counters --memory 4096",
                      "--by cannot be combined with --memory\n");
    assert_refused_by(&with_modes, "--by site a", "--by takes no FILE\n");
    (void)state;
}

static void figures_for_people(void **state)
{
    assert_string_equal(human_size(0), "0 B");
    assert_string_equal(human_size(1023), "1023 B");
    assert_string_equal(human_size(1536), "1.5 KiB");
    assert_string_equal(human_size(1048575), "1.0 MiB");
    assert_string_equal(human_size(UINT64_MAX), "16.0 EiB");
    assert_string_equal(human_time(1.25), "1.25 ns");
    assert_string_equal(human_time(340), "340 ns");
    assert_string_equal(human_time(1500), "1.5 µs");
    assert_string_equal(human_time(999960), "1.0 ms");
    assert_string_equal(human_time(61e9), "61.00 s");
    assert_string_equal(human_number(0), "0");
    assert_string_equal(human_number(999), "999");
    assert_string_equal(human_number(1234567), "1 234 567");
    assert_string_equal(human_number(UINT64_MAX), "18 446 744 073 709 551 615");
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(defaults_are_parsed),
    cmocka_unit_test(every_form_of_a_value),
    cmocka_unit_test(flags_are_negated_and_grouped),
    cmocka_unit_test(choices_are_numbers_of_words),
    cmocka_unit_test(numbers_have_ranges),
    cmocka_unit_test(seconds_may_have_units),
    cmocka_unit_test(parsed_options_set_several_fields),
    cmocka_unit_test(help_shows_names_ranges_and_defaults),
    cmocka_unit_test(lists_collect),
    cmocka_unit_test(operands_mix_with_options),
    cmocka_unit_test(a_program_keeps_its_options),
    cmocka_unit_test(help_stops_parsing),
    cmocka_unit_test(wrong_lines_name_option_and_value),
    cmocka_unit_test(sizes_have_units),
    cmocka_unit_test(near_misses_are_near),
    cmocka_unit_test(the_first_selected_row_is_the_mode),
    cmocka_unit_test(modes_reject_options_of_other_modes),
    cmocka_unit_test(figures_for_people),
};
UNIT_MAIN(tests)
