#include "flight/segments.h"

#include "base/clock.h"
#include "flight/hook.h"
#include "flight/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct segments {
    const struct segments_settings *settings;
    struct trace_reader reader;
    struct converter *converter;
    struct part_start start;
    struct part part;
    struct output out;
    bool open;        // a segment is
    char *path;       // of the segment …
    char *unfinished; // … and its name until it is whole
    uint64_t begun_ns;
    char **kept; // paths of segments, the oldest first …
    size_t n_kept, kept_capacity;
    size_t commanded; // … of which the command has ended for so many
    pid_t hook;       // it runs for the next one; 0: it does not
};

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

int segments_check(const struct segments_settings *s, struct err *e)
{
    char *path = flight_path(s->path, 1);
    int rc = path ? 0 : err_set(e, -ENOMEM, "%s: out of memory", s->path);
    if (rc == 0 && exists(path) && !s->force)
        rc = err_set(e, -EEXIST, "%s: exists; use -f to replace it", path);
    free(path);
    return rc;
}

static int no_memory(const struct segments *s, struct err *e)
{
    return err_set(e, -ENOMEM, "%s: out of memory", s->settings->path);
}

static void say(const struct segments *s, const char *path, const char *what, const char *why)
{
    char *text = NULL;
    int n = asprintf(&text, "%s: %s%s", path, what, why);
    s->settings->note(n < 0 ? "out of memory" : text);
    if (n >= 0)
        free(text);
}

static int begin(struct segments *s, struct err *e)
{
    s->start.segment++;
    s->path = flight_path(s->settings->path, s->start.segment);
    if (!s->path || asprintf(&s->unfinished, "%s.part", s->path) < 0) {
        s->unfinished = NULL;
        return no_memory(s, e);
    }
    int rc = output_open(&s->out, s->unfinished, s->settings->force ? OUTPUT_FORCE : 0, e);
    if (rc < 0)
        return rc;
    s->open = true;
    s->begun_ns = clock_monotonic_ns();
    return part_begin(&s->part, &s->start, &s->out, e);
}

// Removes the oldest segments, of those that this recording has written and the command is done with.
static void keep(struct segments *s)
{
    while (s->settings->keep && s->n_kept > s->settings->keep && s->commanded) {
        unlink(s->kept[0]);
        free(s->kept[0]);
        memmove(s->kept, s->kept + 1, --s->n_kept * sizeof *s->kept);
        s->commanded--;
    }
}

// Runs the command for one segment after the other: when the network is away, no crowd of them waits for it.
static void run_next(struct segments *s)
{
    const char *command = s->settings->command;
    while (s->commanded < s->n_kept && !s->hook) {
        pid_t pid = command ? hook_run(command, s->kept[s->commanded], NULL) : 0;
        s->hook = pid > 0 ? pid : 0;
        s->commanded += pid <= 0;
        if (pid < 0)
            say(s, s->kept[s->commanded - 1], "--on-segment cannot be run: ", strerror(-pid));
    }
    keep(s);
}

static void reap(struct segments *s, bool block)
{
    int status;
    pid_t pid = s->hook ? waitpid(s->hook, &status, block ? 0 : WNOHANG) : 0;
    if (pid <= 0)
        return;
    s->hook = 0;
    if (status != 0)
        say(s, s->kept[s->commanded], "--on-segment failed", "");
    s->commanded++;
    run_next(s);
}

// The segment gets its name, which a file that came there meanwhile keeps.
static int publish(struct segments *s, struct err *e)
{
    int rc = renameat2(AT_FDCWD, s->unfinished, AT_FDCWD, s->path, s->settings->force ? 0 : RENAME_NOREPLACE);
    if (rc < 0 && errno == EINVAL)
        rc = rename(s->unfinished, s->path);
    if (rc < 0)
        return err_set_errno(e, "%s: cannot be renamed to %s", s->unfinished, s->path);
    if (HT_GROW(&s->kept, &s->kept_capacity, s->n_kept + 1) < 0)
        return no_memory(s, e);
    s->kept[s->n_kept++] = s->path;
    s->path = NULL;
    run_next(s);
    return 0;
}

static void forget(struct segments *s)
{
    if (s->open)
        part_release(&s->part);
    free(s->path);
    free(s->unfinished);
    s->path = s->unfinished = NULL;
    s->open = false;
}

static int end(struct segments *s, bool continues, struct err *e)
{
    const struct trace_unrecorded *unrecorded = !continues && s->reader.saw_unrecorded ? &s->reader.unrecorded : NULL;
    s->part.e = e;
    int rc = part_end(&s->part, unrecorded, continues);
    int closed = output_close(&s->out, true, rc == 0 ? e : NULL);
    rc = rc < 0 ? rc : closed;
    if (rc == 0)
        rc = publish(s, e);
    forget(s);
    return rc;
}

static bool is_over(const struct segments *s)
{
    const struct flight_window *w = &s->settings->window;
    return (w->bytes && s->out.offset >= w->bytes) ||
           (w->ns != UINT64_MAX && clock_monotonic_ns() - s->begun_ns >= w->ns);
}

static int put(struct segments *s, const struct trace_item *item, struct err *e)
{
    s->part.e = e;
    int rc = part_item(&s->part, item);
    int fed = rc == 0 ? convert_feed(s->converter, item) : 0;
    if (fed < 0)
        return err_set(e, fed, "%s: cannot follow what is live: %s", s->reader.in->name, strerror(-fed));
    reap(s, false);
    if (rc == 0 && item->type == TRACE_EVENTS && item->batch_ends && is_over(s)) {
        rc = end(s, true, e);
        if (rc == 0)
            rc = begin(s, e);
    }
    return rc;
}

static int run(struct segments *s, struct err *e)
{
    struct trace_item item;
    uint64_t items = 0;
    s->converter = convert_new(&s->reader, &part_follow);
    s->start.reader = &s->reader;
    s->start.converter = s->converter;
    int rc = s->converter ? begin(s, e) : no_memory(s, e), read = 1;
    while (rc == 0 && (read = trace_next(&s->reader, &item, e)) > 0) {
        items += item.type == TRACE_EVENTS;
        rc = put(s, &item, e);
    }
    if (rc == 0 && items == 0) {
        output_close(&s->out, false, NULL);
        unlink(s->unfinished);
        forget(s);
        return -ENODATA;
    }
    // A recorder that was killed: the segment is whole, and the recording is not.
    if (rc == 0 && (read == 0 || read == -ENODATA))
        rc = end(s, !s->reader.saw_end, e);
    forget(s);
    while (s->hook)
        reap(s, true);
    return rc < 0 ? rc : read == -ENODATA ? 0 : read;
}

int segments_run(const struct segments_settings *settings, struct err *e)
{
    struct segments *s = calloc(1, sizeof *s);
    struct input in;
    if (!s)
        return err_set(e, -ENOMEM, "%s: out of memory", settings->path);
    s->settings = settings;
    s->start.codec = settings->codec;
    s->start.level = settings->level;
    int rc = input_open(&in, "-", e);
    if (rc == 0)
        rc = trace_reader_open(&s->reader, &in, e);
    if (rc == 0) {
        rc = run(s, e);
        convert_free(s->converter);
        trace_reader_close(&s->reader);
    }
    for (size_t i = 0; i < s->n_kept; i++)
        free(s->kept[i]);
    free(s->kept);
    input_close(&in);
    free(s);
    return rc;
}
