#include "print/coverage.h"

#include "analysis/file_stat.h"
#include "base/printable.h"
#include "cli/command.h"
#include "print/watch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    TOP_OBJECTS = 8,
    NOTED_OBJECTS = 3,
    // Larger traces are not read again after a recording: about three seconds of CPU time (40 M events/s, 2 to 3 bytes each).
    MAX_NOTED_BYTES = 256 << 20,
};

static void print_share(const char *what, uint64_t reached, uint64_t all)
{
    char text[32];
    unsigned permille = coverage_permille(reached, all);
    if (all)
        printf("  %-20s %15s  %3u.%u %%\n", what, human_bytes(text, reached), permille / 10, permille % 10);
}

void coverage_print(const struct coverage *c)
{
    char t[4][32];
    if (!c->known)
        return;
    printf("\nbytes whose stack reaches the program's own code%s\n",
           c->sample_bytes ? " (estimated from sampled stacks)" : "");
    print_share("allocated", c->reached.allocated, c->all.allocated);
    print_share("live at peak", c->reached.at_peak, c->all.at_peak);
    print_share("live at end", c->reached.at_end, c->all.at_end);
    if (c->loading.allocated) {
        printf("\nbytes that constructors of libraries allocated, before the program's first allocation\n");
        print_share("allocated", c->loading.allocated, c->all.allocated);
        print_share("live at peak", c->loading.at_peak, c->all.at_peak);
        print_share("live at end", c->loading.at_end, c->all.at_end);
    }
    if (!c->n_objects)
        return;
    cli_table_head("\n%12s %13s %13s %9s  %s", "allocated", "live at peak", "live at end", "stacks",
                   "other stacks, by where they end");
    for (size_t i = 0; i < c->n_objects && i < TOP_OBJECTS; i++) {
        const struct coverage_object *o = &c->objects[i];
        printf("%12s %13s %13s %9s  ", human_bytes(t[0], o->bytes.allocated), human_bytes(t[1], o->bytes.at_peak),
               human_bytes(t[2], o->bytes.at_end), human_count(t[3], o->sites));
        printable_print(stdout, o->path, strlen(o->path));
        putchar('\n');
    }
    if (c->n_objects > TOP_OBJECTS)
        printf("... %zu more objects\n", c->n_objects - TOP_OBJECTS);
}

// "99.8 % of allocated bytes"; ends the text where there are none.
static void add_share(char *text, size_t room, const char *of, uint64_t reached, uint64_t all)
{
    size_t n = strlen(text);
    unsigned permille = coverage_permille(reached, all);
    if (all)
        snprintf(text + n, room - n, "%s%u.%u %% of %s", n ? ", " : "", permille / 10, permille % 10, of);
}

// Those are no gaps: no code of the program could be in their stacks.
static void note_loading(const struct coverage *c)
{
    char text[256] = "";
    add_share(text, sizeof text, "allocated bytes", c->loading.allocated, c->all.allocated);
    add_share(text, sizeof text, "bytes live at the peak", c->loading.at_peak, c->all.at_peak);
    add_share(text, sizeof text, "bytes live at the end", c->loading.at_end, c->all.at_end);
    if (c->loading.allocated)
        note("constructors of libraries allocated %s, before the program's first allocation", text);
}

static void note_objects(const struct coverage *c)
{
    char text[1024] = "", bytes[32], path[256];
    for (size_t i = 0; i < c->n_objects && i < NOTED_OBJECTS; i++) {
        const struct coverage_object *o = &c->objects[i];
        size_t n = strlen(text);
        printable_copy(path, sizeof path, o->path, strlen(o->path));
        snprintf(text + n, sizeof text - n, "%s%s (%s allocated)", n ? ", " : "", path,
                 human_bytes(bytes, o->bytes.allocated));
    }
    if (c->n_objects)
        note("the other stacks end in %s%s", text, c->n_objects > NOTED_OBJECTS ? " and others" : "");
}

static void note_coverage(const struct coverage *c)
{
    char text[256] = "";
    add_share(text, sizeof text, "allocated bytes", c->reached.allocated, c->all.allocated);
    add_share(text, sizeof text, "bytes live at the peak", c->reached.at_peak, c->all.at_peak);
    add_share(text, sizeof text, "bytes live at the end", c->reached.at_end, c->all.at_end);
    if (!*text)
        return;
    note("stacks reach the program's own code for %s%s", text,
         c->sample_bytes ? " (estimated from sampled stacks)" : "");
    note_loading(c);
    note_objects(c);
}

void coverage_note(const char *path)
{
    struct stat st;
    struct file_stat s;
    struct err e = {0};
    if (cli_common.quiet || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    if (st.st_size > MAX_NOTED_BYTES) {
        note("how much the stacks explain: 'heaptape stat %s' (the trace has over 256 MiB)", path);
        return;
    }
    if (file_stat(&s, path, FILE_STAT_SITES, watch_begin("stacks"), &e) < 0) {
        note("how much the stacks explain is not known: %s", e.text);
        return;
    }
    if (s.coverage.known)
        note_coverage(&s.coverage);
    file_stat_release(&s);
}
