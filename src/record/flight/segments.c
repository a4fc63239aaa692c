#include "record/flight/segments.h"

#include "base/clock.h"
#include "record/flight/files.h"
#include "record/flight/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIN_REPEATED_BYTES = 1 << 19 };

struct segments {
    const struct segments_settings *settings;
    struct trace_reader reader;
    struct converter *converter;
    struct part_start start;
    struct part part;
    struct output out;
    bool open;        // a segment is being written
    char *path;       // final path of the segment
    char *unfinished; // path of the segment until it is complete
    uint64_t begun_ns;
    // size of the segment's start, which repeats earlier data and lists live blocks
    uint64_t start_bytes;
    // New data that must be written before a segment may end, see add_owed_bytes.
    int64_t owed_bytes;
    uint64_t touched; // segments that were removed, replaced or truncated while being written
    struct flight_files files;
};

static bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

int segments_check(const struct segments_settings *s, struct err *e)
{
    char *path = flight_path(s->path, 1);
    int rc = path ? 0 : err_no_memory(e, s->path);
    if (rc == 0 && file_exists(path) && !s->force)
        rc = err_set(e, -EEXIST, "%s: exists; use -f to replace it", path);
    free(path);
    return rc;
}

// Limits the overhead. Over all segments, repeated data may be at most a fifth of the new data, and
// the lists of live blocks at most as large as the new data. Otherwise small segments would
// multiply the size of a recording.
static void add_owed_bytes(struct segments *s)
{
    enum { BLOCK_BYTES = 16, NEW_PER_REPEATED = 5 };
    uint64_t start = s->out.offset, live = s->part.snapshot.blocks * BLOCK_BYTES;
    live = live < start ? live : start;
    s->start_bytes = start;
    // The first segment repeats nothing.
    if (s->start.segment > 1)
        s->owed_bytes += (int64_t)(live + NEW_PER_REPEATED * (start - live));
}

// Returns the number of bytes of new data in the segment.
static int64_t new_bytes(const struct segments *s)
{
    return (int64_t)(s->out.offset - s->start_bytes);
}

static int begin_segment(struct segments *s, struct err *e)
{
    s->start.segment++;
    s->path = flight_path(s->settings->path, s->start.segment);
    if (!s->path || asprintf(&s->unfinished, "%s.part", s->path) < 0) {
        s->unfinished = NULL;
        return err_no_memory(e, s->settings->path);
    }
    int rc = output_open(&s->out, s->unfinished, s->settings->force ? OUTPUT_FORCE : 0, e);
    if (rc < 0)
        return rc;
    s->open = true;
    s->begun_ns = clock_monotonic_ns();
    rc = part_begin(&s->part, &s->start, &s->out, e);
    add_owed_bytes(s);
    return rc;
}

// Renames the finished segment. Without --force, does not replace an existing file.
static int publish_segment(struct segments *s, struct err *e)
{
    int rc = renameat2(AT_FDCWD, s->unfinished, AT_FDCWD, s->path,
                       s->settings->force ? 0 : RENAME_NOREPLACE);
    if (rc < 0 && errno == EINVAL)
        rc = rename(s->unfinished, s->path);
    if (rc < 0)
        return err_set_errno(e, "%s: cannot be renamed to %s", s->unfinished, s->path);
    if (s->settings->published)
        s->settings->published(s->settings->context);
    return flight_files_add(&s->files, s->path, NULL) < 0 ? err_no_memory(e, s->settings->path) : 0;
}

static void release_segment(struct segments *s)
{
    if (s->open)
        part_release(&s->part);
    free(s->path);
    free(s->unfinished);
    s->path = s->unfinished = NULL;
    s->open = false;
}

// Reports a segment that another program modified. The recording continues.
static void report_touched(struct segments *s, struct err *e)
{
    s->settings->note(e->text);
    s->touched++;
    e->text[0] = 0;
}

static int end_segment(struct segments *s, bool continues, struct err *e)
{
    const struct trace_unrecorded *unrecorded =
        !continues && s->reader.saw_unrecorded ? &s->reader.unrecorded : NULL;
    s->part.e = e;
    s->owed_bytes -= new_bytes(s);
    int rc = part_end(&s->part, unrecorded, continues);
    int closed = output_close(&s->out, true, rc == 0 ? e : NULL);
    bool touched = rc == 0 && closed == -ESTALE;
    if (touched)
        report_touched(s, e);
    rc = rc < 0 ? rc : touched ? 0 : closed;
    // A segment that could not be kept has no file.
    if (rc == 0 && !(touched && !file_exists(s->unfinished)))
        rc = publish_segment(s, e);
    release_segment(s);
    return rc;
}

static bool is_over(const struct segments *s)
{
    const struct flight_window *w = &s->settings->window;
    bool full = w->bytes && s->out.offset >= w->bytes;
    // Segments get larger than the limit if it is small for the event rate. Small files are exempt,
    // because they cost little.
    bool repeats = s->start_bytes > MIN_REPEATED_BYTES && s->start_bytes > w->bytes / 2 &&
                   new_bytes(s) < s->owed_bytes;
    return (full && !repeats) ||
           (w->ns != UINT64_MAX && clock_monotonic_ns() - s->begun_ns >= w->ns);
}

static int put_item(struct segments *s, const struct trace_item *item, struct err *e)
{
    s->part.e = e;
    int rc = part_item(&s->part, item);
    int fed = rc == 0 ? convert_feed(s->converter, item) : 0;
    if (fed < 0)
        return err_set(e, fed, "%s: cannot track live blocks: %s", s->reader.in->name,
                       strerror(-fed));
    flight_files_reap(&s->files, false);
    if (rc == 0 && item->type == TRACE_EVENTS && item->batch_ends && is_over(s)) {
        rc = end_segment(s, true, e);
        if (rc == 0)
            rc = begin_segment(s, e);
    }
    return rc;
}

static int write_segments(struct segments *s, struct err *e)
{
    struct trace_item item;
    uint64_t items = 0;
    s->converter = convert_new(&s->reader, &part_follow);
    s->start.reader = &s->reader;
    s->start.converter = s->converter;
    int rc = s->converter ? begin_segment(s, e) : err_no_memory(e, s->settings->path), read = 1;
    while (rc == 0 && (read = trace_next(&s->reader, &item, e)) > 0) {
        items += item.type == TRACE_EVENTS;
        rc = put_item(s, &item, e);
    }
    if (rc == 0 && items == 0) {
        output_close(&s->out, false, NULL);
        unlink(s->unfinished);
        release_segment(s);
        return -ENODATA;
    }
    // If the recorder was killed, the segment is complete, but the recording is not.
    if (rc == 0 && (read == 0 || read == -ENODATA))
        rc = end_segment(s, !s->reader.saw_end, e);
    release_segment(s);
    flight_files_reap(&s->files, true);
    if (rc == 0 && s->touched)
        rc = err_set(
            e, -ESTALE,
            "%llu of %llu segments were removed, replaced or truncated while they were written",
            (unsigned long long)s->touched, (unsigned long long)s->start.segment);
    return rc < 0 ? rc : read == -ENODATA ? 0 : read;
}

int segments_run(const struct segments_settings *settings, struct err *e)
{
    struct segments *s = calloc(1, sizeof *s);
    struct input in;
    if (!s)
        return err_no_memory(e, settings->path);
    s->settings = settings;
    s->files = (struct flight_files){.keep = settings->keep,
                                     .command = settings->command,
                                     .option = "--on-segment",
                                     .note = settings->note};
    s->start.codec = settings->codec;
    s->start.level = settings->level;
    int rc = input_open(&in, "-", e);
    if (rc == 0)
        rc = trace_reader_open(&s->reader, &in, e);
    if (rc == 0) {
        rc = write_segments(s, e);
        convert_free(s->converter);
        trace_reader_close(&s->reader);
    }
    flight_files_release(&s->files);
    input_close(&in);
    free(s);
    return rc;
}
