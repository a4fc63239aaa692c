#include "report/top/screen.h"

#include "analysis/usage.h"
#include "base/printable.h"
#include "base/sort.h"
#include "cli/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct live *screen_process(const struct screen *s, const struct follow *f)
{
    struct live *best = NULL;
    for (size_t i = 0; i < f->n_lives; i++) {
        struct live *l = f->lives[i];
        // If a process has several images, prefer the last image.
        bool better =
            s->pid ? l->process->pid == s->pid : !best || l->peak_bytes > best->peak_bytes;
        best = better ? l : best;
    }
    return best;
}

void screen_next_process(struct screen *s, const struct follow *f)
{
    const struct live *now = screen_process(s, f);
    for (size_t i = now ? now->process->number + 1u : 0, n = 0; n < f->n_lives; i++, n++) {
        const struct live *l = f->lives[i % f->n_lives];
        if (l->total.now[LIVE_ALLOCS] > 0 && l->process->pid != now->process->pid) {
            s->pid = l->process->pid;
            s->first = 0;
            return;
        }
    }
}

enum { FIGURES_COLUMNS = 58 }; // width of the columns before the name in a row

// Writes a line that is cut to the width of the screen. The text must not contain escape sequences.
static void put_line(const struct screen *s, FILE *to, const char *text)
{
    size_t n = strlen(text), at = 0;
    for (unsigned column = 0; at < n && (!s->columns || column < s->columns); column++)
        at += printable_utf8(text + at, n - at) ? printable_utf8(text + at, n - at) : 1;
    fwrite(text, 1, at, to);
    fputs(s->on_terminal ? "\033[K\n" : "\n", to);
}

static void put_text(const struct screen *s, FILE *to, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void put_text(const struct screen *s, FILE *to, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    put_line(s, to, line);
}

static uint64_t rounded(double n)
{
    return n >= 0x1p63 ? 1ull << 63 : n > 0 ? (uint64_t)(n + 0.5) : 0;
}

static const char *bytes_text(double n)
{
    return human_size(rounded(n));
}

static const char *count_text(double n)
{
    return human_number(rounded(n));
}

// Returns a change such as "+1.2 MiB", "-340 B" or "0 B".
static const char *growth_text(double n)
{
    const char *size = bytes_text(n < 0 ? -n : n);
    char *text = human_buffer();
    snprintf(text, HUMAN_BYTES, "%s%s", strcmp(size, "0 B") == 0 ? "" : n < 0 ? "-" : "+", size);
    return text;
}

// If the process runs on this host, returns its current RSS, which is more recent than the last
// sample. Otherwise, returns 0.
static uint64_t rss_now(const struct trace_process *p)
{
    char path[64], exe[4096];
    unsigned long long pages = 0;
    snprintf(path, sizeof path, "/proc/%u/exe", p->pid);
    ssize_t n = readlink(path, exe, sizeof exe - 1);
    if (p->ended || n <= 0 || !p->exe || strlen(p->exe) != (size_t)n ||
        memcmp(exe, p->exe, (size_t)n) != 0)
        return 0;
    snprintf(path, sizeof path, "/proc/%u/statm", p->pid);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%*u %llu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void put_state(const struct screen *s, const struct follow *f, const struct live *l,
                      FILE *to)
{
    char program[240] = "", more[64] = "";
    const char *state[] = {"reading", "recording", "ended after", "cut off after"};
    if (l) {
        const struct trace_process *p = l->process;
        const char *name = p->argv_bytes ? p->argv : p->exe ? p->exe : "unknown program";
        const char *slash = strrchr(name, '/');
        name = slash && slash[1] ? slash + 1 : name;
        printable_copy(program, sizeof program, name, strnlen(name, 48));
        snprintf(program + strlen(program), sizeof program - strlen(program),
                 " (process %u): ", p->pid);
    }
    if (f->state == FOLLOW_READING && f->in.size_bytes)
        snprintf(more, sizeof more, ", %.0f %% read%s",
                 100.0 * (double)f->in.offset / (double)f->in.size_bytes,
                 follow_is_written(f) ? ": behind the recording" : "");
    else if (f->state == FOLLOW_ENDED || f->state == FOLLOW_CUT_OFF)
        snprintf(more, sizeof more, " (final state)");
    put_text(s, to, "%s%s %s%s", program, state[f->state], human_time((double)follow_time_ns(f)),
             more);
}

static void put_head(const struct screen *s, const struct follow *f, const struct live *l, FILE *to)
{
    char over[64];
    uint64_t resident = rss_now(l->process);
    resident = resident ? resident : l->rss_bytes;
    bool counted = !f->path; // an aggregate does not record the threads that have exited
    put_text(s, to, "live %s in %s, peak %s; RSS %s%s%s%s", bytes_text(l->total.now[LIVE_BYTES]),
             human_items(rounded(l->total.now[LIVE_BLOCKS]), "block", "blocks"),
             bytes_text(l->peak_bytes), resident ? human_size(resident) : "not known",
             resident ? " with heaptape's own" : "", counted ? "; " : "",
             counted ? human_items(l->running, "thread", "threads") : "");
    snprintf(over, sizeof over, "in the last %.1f s", s->seconds);
    put_text(s, to, "%s: %s allocs/s of %s/s, %s frees/s, growth %s/s",
             s->seconds > 0 ? over : "on average", count_text(l->total.per_s[LIVE_ALLOCS]),
             bytes_text(l->total.per_s[LIVE_ALLOCATED]), count_text(l->total.per_s[LIVE_FREES]),
             growth_text(l->total.per_s[LIVE_BYTES]));
    if (f->n_lives > 1 && s->on_terminal)
        put_text(s, to, "one of %zu processes (p: the next)", f->n_lives);
}

// A line of the table and its sort key.
struct screen_line {
    double key;
    size_t row;
};

static double key_of(const struct live_row *r, enum screen_sort sort)
{
    const double keys[SCREEN_SORTS] = {r->now[LIVE_BYTES], r->now[LIVE_BLOCKS],
                                       r->per_s[LIVE_BYTES], r->per_s[LIVE_ALLOCS],
                                       r->per_s[LIVE_ALLOCATED]};
    return keys[sort];
}

// Returns true if the row is shown. Row 0 holds calls without a stack. If stacks are sampled, these
// are most calls, so row 0 is hidden.
static bool is_shown(const struct screen *s, const struct live *l, size_t row)
{
    return l->rows[s->by].items[row].now[LIVE_ALLOCS] > 0 &&
           !(s->by == LIVE_SITES && row == 0 && l->sample_bytes);
}

// Returns the sorted lines of the table, or NULL when out of memory. The caller frees the lines.
static struct screen_line *find_lines(const struct screen *s, const struct live *l, size_t *n)
{
    const struct live_rows *rows = &l->rows[s->by];
    struct screen_line *lines = malloc((rows->n + 1) * sizeof *lines);
    *n = 0;
    for (size_t i = 0; lines && i < rows->n; i++) {
        if (is_shown(s, l, i))
            lines[(*n)++] = (struct screen_line){key_of(&rows->items[i], s->sort), i};
    }
    HT_SORT(lines, *n, SORT_DOWN(struct screen_line, key), SORT_UP(struct screen_line, row));
    return lines;
}

// If the recording does not contain the name of a running thread yet, reads the name from /proc.
static void read_thread_name(const struct live *l, const struct live_thread *t,
                             char name[LIVE_NAME_BYTES])
{
    char path[64];
    memcpy(name, t->name, LIVE_NAME_BYTES);
    if (name[0] || l->process->ended || t->ended)
        return;
    snprintf(path, sizeof path, "/proc/%u/task/%u/comm", l->process->pid, t->tid);
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(name, 1, LIVE_NAME_BYTES, file) : 0;
    if (n && name[n - 1] == '\n')
        name[n - 1] = 0;
    if (file)
        fclose(file);
}

static const char *row_name(const struct screen *s, struct live *l, size_t row, char text[128])
{
    char name[LIVE_NAME_BYTES] = "", printed[4 * LIVE_NAME_BYTES + 1];
    switch (s->by) {
    case LIVE_SITES:
        return live_site_name(
            l, row, s->columns > FIGURES_COLUMNS ? s->columns - FIGURES_COLUMNS : s->columns);
    case LIVE_SIZES:
        if (row == USAGE_CLASSES - 1)
            snprintf(text, 128, "larger");
        else
            snprintf(text, 128, "up to %s", human_size(8ull << row));
        return text;
    case LIVE_THREADS:
    case LIVE_VIEWS:
        break;
    }
    const struct live_thread *t = &l->threads[row];
    read_thread_name(l, t, name);
    printable_copy(printed, sizeof printed, name, strnlen(name, sizeof name));
    snprintf(text, 128, "%u%s%s%s", t->tid, name[0] ? " " : "", printed,
             t->ended ? " (exited)" : "");
    return text;
}

static void put_row(const struct screen *s, struct live *l, size_t row, FILE *to)
{
    char name[128];
    const struct live_row *r = &l->rows[s->by].items[row];
    put_text(s, to, "%10s %11s %11s %10s %10s  %s", bytes_text(r->now[LIVE_BYTES]),
             count_text(r->now[LIVE_BLOCKS]), growth_text(r->per_s[LIVE_BYTES]),
             count_text(r->per_s[LIVE_ALLOCS]), bytes_text(r->per_s[LIVE_ALLOCATED]),
             row_name(s, l, row, name));
}

static void put_columns(const struct screen *s, FILE *to)
{
    static const char *const marked[SCREEN_SORTS] = {"*live", "*blocks", "*growth/s", "*allocs/s",
                                                     "*bytes/s"};
    static const char *const names[LIVE_VIEWS] = {"call site", "size", "thread"};
    const char *h[SCREEN_SORTS];
    for (unsigned i = 0; i < SCREEN_SORTS; i++)
        h[i] = marked[i] + (i != s->sort);
    fputs(cli_color(CLI_BOLD), to);
    put_text(s, to, "%10s %11s %11s %10s %10s  %s", h[0], h[1], h[2], h[3], h[4], names[s->by]);
    fputs(cli_color(CLI_PLAIN), to);
}

static int put_table(struct screen *s, struct live *l, FILE *to)
{
    size_t n;
    struct screen_line *lines = find_lines(s, l, &n);
    if (!lines)
        return -ENOMEM;
    if (s->by == LIVE_SITES && l->sample_bytes) {
        put_text(s, to, "call sites are estimates, from the stack of one allocation per %s",
                 human_size(l->sample_bytes));
    }
    put_text(s, to, "%s", "");
    put_columns(s, to);
    s->first = s->first + s->rows <= n ? s->first : n > s->rows ? n - s->rows : 0;
    for (size_t i = s->first; i < n && i - s->first < s->rows; i++)
        put_row(s, l, lines[i].row, to);
    free(lines);
    return 0;
}

int screen_draw(struct screen *s, const struct follow *f, FILE *to)
{
    struct live *l = screen_process(s, f);
    put_state(s, f, l, to);
    if (l)
        put_head(s, f, l, to);
    int rc = l ? put_table(s, l, to) : 0;
    if (s->on_terminal)
        put_text(s, to, "%s", "q quit  s sites  z sizes  t threads  < > sort  arrows scroll");
    return rc;
}
