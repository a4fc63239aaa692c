#include "record/flight/segments.h"

#include "base/clock.h"
#include "record/flight/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    END_PART = 20,   // a segment may end early by 1/END_PART of its size
    PIECE_PART = 64, // a segment is written in pieces of at least 1/PIECE_PART of its size
    WORD_BYTES = 8,  // size of an uncompressed word
    BLOCK_WORDS = 3, // words of a listed block without a call site
    ZOOMS = 3,       // number of passes over the pending words to split a burst
};

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
    uint64_t start_bytes; // size of the list of live blocks at the start of the segment
    // Sums over the earlier segments. list_bytes includes the current segment.
    uint64_t list_bytes, new_bytes;
    struct convert_options follow;
    struct trace_item end; // END item of the last segment
    struct err *e;
    // Number of segments that were removed, replaced or truncated while being written.
    uint64_t touched;
    struct flight_files files;
};

int segments_check(const struct segments_settings *s, struct err *e)
{
    char *path = flight_path(s->path, 1);
    int rc = path ? 0 : err_no_memory(e, s->path);
    if (rc == 0 && access(path, F_OK) == 0 && !s->force)
        rc = err_set(e, -EEXIST, "%s: exists; use -f to replace it", path);
    free(path);
    return rc;
}

static int add_facts(void *context, const struct convert_unfinished *p)
{
    struct snapshot_facts *sum = context;
    const struct snapshot_facts of = snapshot_facts_of(p->order);
    sum->pending_words += of.pending_words;
    sum->live_blocks += of.live_blocks;
    sum->is_clear &= of.is_clear;
    return 0;
}

// Returns the sums of pending_words and live_blocks over all unfinished processes. Sets is_clear if
// all of these processes have it set.
static struct snapshot_facts sum_facts(const struct segments *s)
{
    struct snapshot_facts sum = {.is_clear = true};
    sum.is_clear &= convert_visit(s->converter, add_facts, &sum) == 0;
    return sum;
}

// Estimates the size of the next list of live blocks, from the last list or from the compression of
// the events so far.
static uint64_t expected_list(const struct segments *s)
{
    const struct snapshot *last = &s->part.snapshot;
    double blocks = (double)sum_facts(s).live_blocks;
    double event_bytes = (double)(s->out.offset - s->start_bytes);
    if (last->blocks)
        return (uint64_t)(blocks * (double)s->start_bytes / (double)last->blocks);
    return (uint64_t)(blocks * BLOCK_WORDS *
                      (last->words ? event_bytes / (double)last->words : WORD_BYTES));
}

// Returns the size at which the segment ends, or UINT64_MAX if there is no limit. If lists of live
// blocks use more than half of the limit, segments are larger. A segment then ends only when all
// lists together, including the next, have at most 3/4 of the size of the new data, so that the
// recording is at most twice as large even if the last segments have little new data.
static uint64_t full_bytes(const struct segments *s)
{
    uint64_t bytes = s->settings->window.bytes, list = bytes ? expected_list(s) : 0;
    if (!bytes || list <= bytes / 2)
        return bytes ? bytes : UINT64_MAX;
    uint64_t wanted = (s->list_bytes + list) / 3 * 4, large = s->start_bytes;
    large += wanted > s->new_bytes ? wanted - s->new_bytes : 0;
    return large > bytes ? large : bytes;
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
    s->start_bytes = s->out.offset;
    s->list_bytes += s->start_bytes;
    return rc;
}

// Renames the finished segment. Without --force, does not replace an existing file. Returns -ESTALE
// if the segment was removed.
static int publish_segment(struct segments *s, struct err *e)
{
    int rc = renameat2(AT_FDCWD, s->unfinished, AT_FDCWD, s->path,
                       s->settings->force ? 0 : RENAME_NOREPLACE);
    if (rc < 0 && errno == EINVAL)
        rc = rename(s->unfinished, s->path);
    if (rc < 0 && errno == ENOENT)
        return err_set(e, -ESTALE, "%s: was removed before it was renamed to %s", s->unfinished,
                       s->path);
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
    s->new_bytes += s->out.offset - s->start_bytes;
    int rc = part_end(&s->part, unrecorded, continues);
    int closed = output_close(&s->out, true, rc == 0 ? e : NULL);
    bool touched = rc == 0 && closed == -ESTALE;
    if (touched)
        report_touched(s, e);
    rc = rc < 0 ? rc : touched ? 0 : closed;
    int published = rc == 0 ? publish_segment(s, e) : 0;
    if (published == -ESTALE && !touched)
        report_touched(s, e);
    rc = published == -ESTALE ? 0 : rc < 0 ? rc : published;
    release_segment(s);
    return rc;
}

static int count_pending(void *context, const struct convert_unfinished *p)
{
    snapshot_count(p->order, context);
    return 0;
}

// Returns a stamp that is at most `until` and has about `words` pending words before it.
static uint64_t split_pending(struct segments *s, uint64_t until, uint64_t words)
{
    struct snapshot_histogram h = {.from = convert_passed(s->converter), .to = until};
    unsigned n = 0;
    for (unsigned i = 0; n == 0 && i < ZOOMS && h.to - h.from > SNAPSHOT_PARTS; i++) {
        uint64_t sum = 0;
        memset(h.counts, 0, sizeof h.counts);
        convert_visit(s->converter, count_pending, &h);
        while (n < SNAPSHOT_PARTS && (sum += h.counts[n]) <= words)
            n++;
        if (n == 0)
            h.to = h.from + snapshot_part_stamps(&h);
    }
    uint64_t split = h.from + n * snapshot_part_stamps(&h);
    return n && split < h.to ? split : h.to;
}

// Advances in smaller steps near the end of a segment, so that its size is close to the limit.
static uint64_t choose_limit(void *context, uint64_t until)
{
    struct segments *s = context;
    uint64_t full = full_bytes(s), at = s->out.offset, least = full / PIECE_PART;
    uint64_t left = full > at + least ? full - at : least, new_bytes = at - s->start_bytes;
    uint64_t pending = sum_facts(s).pending_words;
    if (pending <= left / WORD_BYTES || convert_passed(s->converter) >= until)
        return until;
    // The trace is compressed, so a word takes less space than WORD_BYTES.
    uint64_t words = s->part.snapshot.words, room = left / WORD_BYTES;
    if (new_bytes > least && words > room)
        room = (uint64_t)((double)left * (double)words / (double)new_bytes);
    return pending <= room ? until : split_pending(s, until, room);
}

static bool is_over(const struct segments *s)
{
    const struct flight_window *w = &s->settings->window;
    uint64_t full = full_bytes(s);
    bool over = s->out.offset >= full - full / END_PART ||
                (w->ns != UINT64_MAX && clock_monotonic_ns() - s->begun_ns >= w->ns);
    // Requires events in the segment, so that an idle program does not produce segments without
    // events.
    return over && s->part.snapshot.words && sum_facts(s).is_clear;
}

// Writes the events up to `stamp`, and begins the next segment when this one is full.
static int put_passed(void *context, uint64_t stamp)
{
    struct segments *s = context;
    (void)stamp;
    int rc = part_put_passed(&s->part);
    // The last segment must contain events.
    if (rc < 0 || !is_over(s) || (s->reader.saw_end && !sum_facts(s).pending_words))
        return rc;
    return end_segment(s, true, s->e) ?: begin_segment(s, s->e);
}

static int put_end(void *context, uint32_t process)
{
    struct segments *s = context;
    return part_put_end(&s->part, process);
}

static int put_item(struct segments *s, const struct trace_item *item, struct err *e)
{
    s->part.e = s->e = e;
    bool ordered = item->type == TRACE_EVENTS || item->type == TRACE_PROCESS_END;
    int rc = convert_feed(s->converter, item);
    if (rc < 0)
        return *e->text ? rc
                        : err_set(e, rc, "%s: cannot track live blocks: %s", s->reader.in->name,
                                  strerror(-rc));
    flight_files_reap(&s->files, false);
    if (item->type == TRACE_END)
        s->end = *item;
    return ordered || item->type == TRACE_END ? 0 : part_item(&s->part, item);
}

static int end_recording(struct segments *s, struct err *e)
{
    s->part.e = s->e = e;
    int rc = convert_advance_to_end(s->converter) ?: part_put_rest(&s->part);
    if (rc == 0 && s->reader.saw_end)
        rc = part_item(&s->part, &s->end);
    return rc < 0 ? rc : end_segment(s, !s->reader.saw_end, e);
}

static int write_segments(struct segments *s, struct err *e)
{
    struct trace_item item;
    uint64_t items = 0;
    s->follow = (struct convert_options){.choose = part_choose_process,
                                         .find_forks = true,
                                         .fork_ns = PART_FORK_NS,
                                         .keep_words = true,
                                         .limit = choose_limit,
                                         .advanced = put_passed,
                                         .ended = put_end,
                                         .context = s};
    s->converter = convert_new(&s->reader, &s->follow);
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
    // If the recorder was killed, the segment is complete although the recording is not.
    if (rc == 0 && (read == 0 || read == -ENODATA))
        rc = end_recording(s, e);
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
    int rc = input_open(&in, "-", e) ?: trace_reader_open(&s->reader, &in, e);
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
