#include "report/text/notes.h"
#include "report/text/stat.h"

#include "analysis/file_stat.h"
#include "base/printable.h"
#include "cli/command.h"
#include "report/text/watch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    TOP_OBJECTS = 8,
    NOTED_OBJECTS = 3,
    NOTED_PERMILLE = 10, // smaller gaps are not reported
    // Longer traces are not read again after a recording. Reading an event takes about 0.1 µs of
    // CPU time, which is as long as recording an event with its stack.
    MAX_NOTED_EVENTS = 5000000,
};

static void print_share(const char *what, uint64_t reached, uint64_t all)
{
    unsigned permille = coverage_permille(reached, all);
    if (all)
        printf("  %-20s %15s  %3u.%u %%\n", what, human_size(reached), permille / 10,
               permille % 10);
}

static void print_shares(const struct coverage_bytes *part, const struct coverage_bytes *all)
{
    print_share("allocated", part->allocated, all->allocated);
    print_share("live at peak", part->at_peak, all->at_peak);
    print_share("live at end", part->at_end, all->at_end);
}

void stat_print_coverage(const struct coverage *c)
{
    if (!c->known)
        return;
    printf("\nbytes whose stack reaches the program's own code%s\n",
           c->sample_bytes ? " (estimated from sampled stacks)" : "");
    print_shares(&c->reached, &c->all);
    for (size_t i = 0; i < COVERAGE_OTHERS; i++) {
        if (!c->other[i].allocated && !c->other[i].at_peak)
            continue;
        printf("\nbytes that %s%s\n", coverage_texts[i].allocated, coverage_texts[i].rest);
        print_shares(&c->other[i], &c->all);
    }
    if (!c->n_objects)
        return;
    cli_table_head("\n%12s %13s %13s %9s  %s", "allocated", "live at peak", "live at end", "stacks",
                   "other stacks, by where they end");
    for (size_t i = 0; i < c->n_objects && i < TOP_OBJECTS; i++) {
        const struct coverage_object *o = &c->objects[i];
        printf("%12s %13s %13s %9s  %s\n", human_size(o->bytes.allocated),
               human_size(o->bytes.at_peak), human_size(o->bytes.at_end), human_number(o->sites),
               cli_text(o->path));
    }
    if (c->n_objects > TOP_OBJECTS)
        printf("... %s\n", human_items(c->n_objects - TOP_OBJECTS, "more object", "more objects"));
}

// Appends a text such as "99.8 % of allocated bytes". Appends nothing if `all` is 0.
static void add_share(char *text, size_t room, const char *of, uint64_t reached, uint64_t all)
{
    size_t n = strlen(text);
    unsigned permille = coverage_permille(reached, all);
    if (all)
        snprintf(text + n, room - n, "%s%u.%u %% of %s", n ? ", " : "", permille / 10,
                 permille % 10, of);
}

// Appends the shares of `part` in allocated bytes and in bytes live at the peak and at the end.
static void add_shares(char *text, size_t room, const struct coverage_bytes *part,
                       const struct coverage_bytes *all)
{
    add_share(text, room, "allocated bytes", part->allocated, all->allocated);
    add_share(text, room, "bytes live at the peak", part->at_peak, all->at_peak);
    add_share(text, room, "bytes live at the end", part->at_end, all->at_end);
}

static void note_reached(const struct coverage *c)
{
    char shares[256] = "";
    add_shares(shares, sizeof shares, &c->reached, &c->all);
    note("stacks reach the program's own code for %s%s", shares,
         c->sample_bytes ? " (estimated from sampled stacks)" : "");
    for (size_t i = 0; i < COVERAGE_OTHERS; i++) {
        const struct coverage_bytes *part = &c->other[i];
        *shares = 0;
        add_shares(shares, sizeof shares, part, &c->all);
        if (coverage_permille(part->allocated, c->all.allocated) ||
            coverage_permille(part->at_peak, c->all.at_peak))
            note("%s %s%s", coverage_texts[i].allocated, shares, coverage_texts[i].rest);
    }
}

// Returns the share of bytes whose stacks end early, in thousandths. This is the share of the
// allocated bytes or the share of the bytes live at the peak, whichever is higher.
static unsigned gap_permille(const struct coverage *c, const struct coverage_bytes *gaps)
{
    unsigned permille = coverage_permille(gaps->allocated, c->all.allocated);
    unsigned at_peak = coverage_permille(gaps->at_peak, c->all.at_peak);
    return c->all.at_peak && at_peak > permille ? at_peak : permille;
}

static void note_gaps(const struct coverage *c, const char *path)
{
    struct coverage_bytes gaps = {0};
    char shares[256] = "", text[1024] = "", name[256];
    for (size_t i = 0; i < c->n_objects; i++) {
        const struct coverage_object *o = &c->objects[i];
        size_t n = strlen(text);
        gaps.allocated += o->bytes.allocated;
        gaps.at_peak += o->bytes.at_peak;
        gaps.at_end += o->bytes.at_end;
        if (i >= NOTED_OBJECTS)
            continue;
        printable_copy(name, sizeof name, o->path, strlen(o->path));
        snprintf(text + n, sizeof text - n, "%s%s (%s allocated)", n ? ", " : "", name,
                 human_size(o->bytes.allocated));
    }
    if (gap_permille(c, &gaps) < NOTED_PERMILLE)
        return;
    add_shares(shares, sizeof shares, &gaps, &c->all);
    note("stacks of %s end before the program's own code%s: in %s%s (try 'heaptape stat -v %s')",
         shares, c->sample_bytes ? " (estimated from sampled stacks)" : "", text,
         c->n_objects > NOTED_OBJECTS ? " and others" : "", path);
}

void notes_coverage(const char *path, uint64_t events, bool verbose)
{
    struct stat st;
    struct file_stat s;
    struct err e = {0};
    if (cli_common.quiet || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    if (events > MAX_NOTED_EVENTS) {
        note("run 'heaptape stat -v %s' for the coverage of stacks: the trace has more than 5 "
             "million events",
             path);
        return;
    }
    if (file_stat(&s, path, FILE_STAT_SITES, watch_begin("stacks"), &e) < 0) {
        note("cannot compute the coverage of stacks: %s", e.text);
        return;
    }
    if (s.coverage.known && s.coverage.all.allocated) {
        if (verbose)
            note_reached(&s.coverage);
        note_gaps(&s.coverage, path);
    }
    file_stat_release(&s);
}
