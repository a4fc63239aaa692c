#include "base/clock.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/wrap.h"
#include "record/drain/target.h"
#include "report/top/screen.h"
#include "report/top/terminal.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    // Interval between polls of the file. It is longer than the time that the recorder needs for a
    // batch.
    TICK_NS = 100000000,
    TABLE_ROWS = 20,
    FRAME_ROWS = 7, // number of lines outside the table
};

struct top_options {
    bool batch;
    uint64_t iterations, interval_ms, rows, pid;
    enum live_by by; // -1 if not given
    enum screen_sort sort;
};

#define AT(member) offsetof(struct top_options, member)

static const struct option options[] = {
    {'b', "batch", OPTION_FLAG, NULL, NULL, "print successive tables instead of using the screen",
     AT(batch)},
    {'n', "iterations", OPTION_NUMBER, "N", NULL,
     "print N tables as --batch does, then exit (default: until the recording ends)",
     AT(iterations), .min = 1},
    {'d', "interval", OPTION_NUMBER, "MS", "500", "redraw every MS milliseconds", AT(interval_ms),
     .min = 100, .max = 3600000},
    {0, "by", OPTION_CHOICE, "site|size|thread", NULL,
     "show this table first (default: site if the recording has call stacks, else size)", AT(by)},
    {0, "sort", OPTION_CHOICE, "live|blocks|growth|allocs|bytes", "live",
     "sort by live bytes, live blocks, growth, allocations or allocated bytes", AT(sort)},
    {0, "top", OPTION_NUMBER, "N", NULL,
     "print at most N rows of a table (default: 20; the height of the screen)", AT(rows), .min = 1,
     .max = 1000000},
    {'p', "pid", OPTION_NUMBER, "PID", NULL,
     "show this process of FILE (default: the one with the highest peak of live bytes)", AT(pid),
     .min = 1, .max = UINT32_MAX},
    {0},
};

struct top {
    const struct top_options *options;
    struct follow follow;
    struct screen screen;
    bool drawn_waiting; // all data had been read when the table was last drawn
    uint64_t drawn_ns;
};

static bool is_over(const struct top *t)
{
    return t->follow.state == FOLLOW_ENDED || t->follow.state == FOLLOW_CUT_OFF;
}

// Sets the interval over which rates are computed. If all data had been read at this drawing and at
// the last, the interval is the time between them. Otherwise, it is the whole recording.
static void set_interval(struct top *t, uint64_t now)
{
    if (t->follow.path) {
        t->screen.seconds = t->follow.interval_s;
        return;
    }
    bool waiting = t->follow.state == FOLLOW_WAITING, whole = !waiting || !t->drawn_waiting;
    double seconds = (double)(whole ? follow_time_ns(&t->follow) : now - t->drawn_ns) / 1e9;
    for (size_t i = 0; i < t->follow.n_lives; i++)
        live_cut(t->follow.lives[i], seconds, whole);
    t->screen.seconds = whole ? 0 : seconds;
    t->drawn_waiting = waiting;
    t->drawn_ns = now;
}

static void draw_screen(struct top *t)
{
    char *text = NULL;
    size_t n = 0;
    unsigned rows;
    const struct live *l = screen_process(&t->screen, &t->follow);
    FILE *to = open_memstream(&text, &n);
    if (!to)
        die(EXIT_FAILED, "out of memory");
    if (t->screen.on_terminal) {
        terminal_size(&t->screen.columns, &rows);
        t->screen.rows = rows > FRAME_ROWS ? rows - FRAME_ROWS : 1;
        if (t->options->rows && t->options->rows < t->screen.rows)
            t->screen.rows = (unsigned)t->options->rows;
    }
    if (t->screen.automatic)
        t->screen.by = t->follow.path || (l && l->rows[LIVE_SITES].n > 1) ? LIVE_SITES : LIVE_SIZES;
    if (screen_draw(&t->screen, &t->follow, to) < 0 || fclose(to) != 0)
        die(EXIT_FAILED, "out of memory");
    // A newline after the last line would scroll the screen.
    if (t->screen.on_terminal)
        printf("\033[H%.*s\033[J", (int)(n ? n - 1 : 0), text);
    else
        fwrite(text, 1, n, stdout);
    free(text);
    cli_flush();
}

static void read_on(struct top *t, uint64_t until_ns)
{
    struct err e = {0};
    die_on_error(follow_read(&t->follow, until_ns, &e), EXIT_FAILED, &e);
}

static void wait_until(uint64_t until_ns)
{
    const struct timespec t = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void run_batch(struct top *t)
{
    uint64_t left = t->options->iterations ? t->options->iterations : UINT64_MAX, draw_ns = 0;
    const uint64_t interval_ns = t->options->interval_ms * 1000000;
    while (left) {
        uint64_t now = clock_monotonic_ns(), tick = now + TICK_NS;
        read_on(t, tick);
        bool behind = t->follow.state == FOLLOW_READING;
        // If all data has been read, draw the first table after one tick, because the last batch is
        // not counted until it is known to be the last. Otherwise, wait for an interval.
        draw_ns = draw_ns ? draw_ns : behind ? now + interval_ns : tick;
        // If the file is complete, draw only one table.
        if (is_over(t) || (now >= draw_ns && (!behind || follow_is_written(&t->follow)))) {
            set_interval(t, now);
            draw_screen(t);
            left = is_over(t) ? 0 : left - 1;
            draw_ns = (behind ? now : draw_ns) + interval_ns;
            if (left)
                putchar('\n');
        }
        if (left && !behind)
            wait_until(tick < draw_ns ? tick : draw_ns);
    }
}

// Returns false if the user quits.
static bool handle_key(struct top *t, int key)
{
    struct screen *s = &t->screen;
    switch (key) {
    case 'q':
        return false;
    case 's':
    case 'z':
    case 't':
        s->by = key == 's' ? LIVE_SITES : key == 'z' ? LIVE_SIZES : LIVE_THREADS;
        break;
    case TERMINAL_LEFT:
    case TERMINAL_RIGHT:
        s->by = (s->by + (key == TERMINAL_LEFT ? LIVE_VIEWS - 1 : 1)) % LIVE_VIEWS;
        break;
    case '<':
    case '>':
        s->sort = (s->sort + (key == '<' ? SCREEN_SORTS - 1 : 1)) % SCREEN_SORTS;
        return true;
    case 'p':
        screen_next_process(s, &t->follow);
        return true;
    case TERMINAL_UP:
        s->first -= s->first > 0;
        return true;
    case TERMINAL_DOWN:
        s->first++;
        return true;
    default:
        return true;
    }
    s->automatic = false;
    s->first = 0;
    return true;
}

static void run_screen(struct top *t)
{
    const uint64_t interval = t->options->interval_ms * 1000000;
    uint64_t draw_ns = 0;
    int key = TERMINAL_NONE;
    terminal_begin();
    do {
        uint64_t now = clock_monotonic_ns(), tick = now + TICK_NS;
        bool was_over = is_over(t);
        if (!was_over)
            read_on(t, tick);
        if (!was_over && (now >= draw_ns || is_over(t))) {
            set_interval(t, now);
            draw_screen(t);
            draw_ns = now + interval;
        } else if (key != TERMINAL_NONE) {
            draw_screen(t);
        }
        // After the end of the recording, only keys can arrive.
        uint64_t until = is_over(t) ? now + 3600 * 1000000000ull : tick < draw_ns ? tick : draw_ns;
        key = terminal_key(t->follow.state == FOLLOW_READING ? 0 : until);
    } while (handle_key(t, key));
    terminal_end();
}

// Finds the trace that a process's recorder writes. Retries, because the first bytes of the trace
// may not arrive until after two batches.
static void find_output(uint32_t pid, char path[TARGET_PATH_BYTES])
{
    struct target a;
    struct err e = {0};
    die_on_error(target_open(&a, (pid_t)pid, &e), EXIT_FAILED, &e);
    int rc = target_output(&a, path, &e);
    for (unsigned i = 0; rc == -ENOENT && i < 10; i++) {
        wait_until(clock_monotonic_ns() + TICK_NS);
        rc = target_output(&a, path, &e);
    }
    target_close(&a);
    die_on_error(rc, EXIT_FAILED, &e);
}

static int run_top(const void *fields, char **argv)
{
    const struct top_options *o = fields;
    struct top t = {
        .options = o,
        .screen = {.sort = o->sort, .pid = (uint32_t)o->pid, .automatic = (int)o->by < 0}};
    struct err e = {0};
    char path[TARGET_PATH_BYTES];
    uint64_t pid = 0;
    bool is_pid = options_parse_number(argv[0], &pid) == 0;
    if (is_pid && (pid == 0 || pid > INT_MAX))
        return usage_error(&cmd_top, "'%s' is not a process ID", argv[0]);
    if (is_pid && o->pid)
        return usage_error(&cmd_top, "--pid requires a FILE");
    if (is_pid) {
        find_output((uint32_t)pid, path);
        t.screen.pid = (uint32_t)pid;
    }
    // The kernel sends SIGIO if another process breaks the lease that follow.c has on the file.
    signal(SIGIO, SIG_IGN);
    die_on_error(follow_open(&t.follow, is_pid ? path : argv[0], &e), EXIT_FAILED, &e);
    human_ascii = !wrap_is_utf8();
    t.screen.on_terminal = isatty(STDOUT_FILENO) && !o->batch && !o->iterations;
    t.screen.by = (int)o->by < 0 ? LIVE_SITES : o->by;
    t.screen.columns = wrap_columns();
    t.screen.rows = o->rows ? (unsigned)o->rows : TABLE_ROWS;
    (t.screen.on_terminal ? run_screen : run_batch)(&t);
    if (is_over(&t) && t.screen.pid && !screen_process(&t.screen, &t.follow))
        die(EXIT_FAILED, "%s: contains no events of process %u", argv[0], t.screen.pid);
    follow_close(&t.follow);
    return EXIT_DONE;
}

static const struct command_word words[] = {
    {"s, z, t, left, right", "table by call site, size or thread"},
    {"<, >", "previous or next column to sort by"},
    {"up, down", "scroll"},
    {"p", "next process"},
    {"q", "quit"},
    {0},
};

const struct command cmd_top = {
    .name = "top",
    .operands = "PID|FILE",
    .summary = "Show live memory while a program is recorded",
    .words_title = "Keys",
    .words = words,
    .examples =
        {
            {"Watch the call sites of a server that is being recorded",
             "heaptape record --stacks -o server.ht -- ./server &\nheaptape top server.ht"},
            {"Watch a process that is running already",
             "heaptape record --pid $(pidof server) --stacks -o server.ht &\n"
             "heaptape top $(pidof server)"},
            {"Print a table of growing call sites every minute",
             "heaptape top --batch --interval=60000 --sort=growth server.ht"},
        },
    .options = options,
    .options_bytes = sizeof(struct top_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run_top,
};
