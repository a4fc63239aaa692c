#include "trace/salvage.h"

#include "base/bytes.h"
#include "trace/codec.h"
#include "trace/columns.h"
#include "trace/fields.h"
#include "trace/reader.h"
#include "trace/writer.h"

#include <errno.h>

// A process number that exceeds the known numbers by more than this is invalid. If the excess is
// smaller, a PROCESS frame was lost.
enum { MOST_UNKNOWN = 65536, LEVEL = 3 };

struct salvage {
    struct trace_reader reader;
    struct trace_writer writer;
    struct trace_salvaged *result;
    uint64_t kept_bytes;
    uint64_t watermark, end_stamp, clock_hz;
    uint64_t latest; // latest stamp of a watermark or process end
    bool begun, in_batch;
};

static int begin_output(struct salvage *s, const struct frame *f, struct err *e)
{
    struct trace_session *session = &s->reader.session;
    if (f->type != TRACE_SESSION || fields_get_session(f->data, f->size, session) < 0) {
        trace_session_release(session);
        session->clock_hz = 1000000000u;
        session->stamp_shift = CODEC_STAMP_SHIFT;
        s->result->session_lost = true;
    }
    s->begun = true;
    return trace_write_session(&s->writer, session, e);
}

// Adds a process for each lost PROCESS frame with a number below `number`.
static int add_unknown(struct salvage *s, uint64_t number, struct err *e)
{
    int rc = 0;
    while (rc == 0 && s->reader.n_processes < number) {
        struct trace_process *p;
        rc = trace_reader_add_process(&s->reader, &p, e) ?: trace_write_process(&s->writer, p, e);
        s->result->unknown_processes++;
    }
    return rc;
}

// Returns the highest process number in the table of an EVENTS frame plus 1.
static uint64_t processes_of_events(const struct frame *f)
{
    uint64_t most = 0;
    if (f->size < EVENTS_HEADER_BYTES)
        return 0;
    const uint8_t *row = f->data + EVENTS_HEADER_BYTES;
    for (uint32_t n = get_u32(f->data + 20); n && row + EVENTS_SEGMENT_BYTES <= f->data + f->size;
         n--) {
        uint64_t number = (uint64_t)get_u32(row) + 1;
        most = number > most ? number : most;
        row += EVENTS_SEGMENT_BYTES;
    }
    return most;
}

static int add_lost_processes(struct salvage *s, const struct frame *f, struct err *e)
{
    uint64_t most = 0;
    if (f->type == TRACE_EVENTS)
        most = processes_of_events(f);
    else if (f->type == TRACE_PROCESS)
        most = fields_process_number(f->data, f->size);
    else if (f->type == TRACE_PROCESS_END)
        most = fields_process_number(f->data, f->size) + 1ull;
    return most <= s->reader.n_processes + MOST_UNKNOWN ? add_unknown(s, most, e) : 0;
}

static void note_stamp(struct salvage *s, uint64_t stamp)
{
    s->latest = stamp > s->latest ? stamp : s->latest;
}

static int end_batch(struct salvage *s, uint64_t watermark, struct err *e)
{
    s->watermark = watermark;
    s->in_batch = false;
    note_stamp(s, watermark);
    return trace_batch_end(&s->writer, watermark, e);
}

static int keep_events(struct salvage *s, const struct trace_item *item, struct err *e)
{
    int rc = s->in_batch ? 0 : trace_batch_begin(&s->writer, e);
    s->in_batch = true;
    for (size_t i = 0; i < item->n_segments && rc == 0; i++) {
        struct trace_segment segment = item->segments[i];
        rc = trace_batch_add(&s->writer, &segment, e);
    }
    return rc == 0 && item->batch_ends ? end_batch(s, item->watermark, e) : rc;
}

static int keep_names(struct salvage *s, const struct trace_item *item, struct err *e)
{
    struct names names = {0};
    uint32_t process;
    int rc = names_get(item->names, item->names_bytes, &names, &process);
    if (rc == 0)
        rc = trace_write_names(&s->writer, process, &names, e);
    else if (rc == -ENOMEM)
        err_no_memory(e, NULL);
    else
        s->result->lost_frames++;
    names_release(&names);
    return rc == -EBADMSG ? 0 : rc;
}

static int keep_item(struct salvage *s, const struct trace_item *item, struct err *e)
{
    switch (item->type) {
    case TRACE_SESSION:
        return 0;
    case TRACE_PROCESS:
        return trace_write_process(&s->writer, item->process, e);
    case TRACE_EVENTS:
        return keep_events(s, item, e);
    case TRACE_PROCESS_END:
        note_stamp(s, item->process->end_stamp);
        // If the frame that ends the last batch was lost, end the batch here, because a batch must
        // end before its process ends.
        if (s->in_batch && end_batch(s, s->watermark, e) < 0)
            return -EIO;
        return trace_write_process_end(&s->writer, item->process, e);
    case TRACE_SAMPLES:
        return trace_write_samples(&s->writer, item->samples, item->n_samples, e);
    case TRACE_UNRECORDED:
        return trace_write_unrecorded(&s->writer, &s->reader.unrecorded, e);
    case TRACE_NAMES:
        return keep_names(s, item, e);
    case TRACE_PAGES:
        return trace_write_pages(&s->writer, item->pages, item->pages_bytes, e);
    case TRACE_END:
        s->end_stamp = item->end_stamp;
        s->clock_hz = item->clock_hz;
        return 0;
    }
    return 0;
}

static int salvage_frame(struct salvage *s, const struct frame *f, struct err *e)
{
    struct trace_item item;
    struct err why = {0};
    int rc = s->begun ? 0 : begin_output(s, f, e);
    if (rc == 0)
        rc = add_lost_processes(s, f, e);
    if (rc < 0)
        return rc;
    rc = f->type == TRACE_SESSION ? 1 : trace_read_frame(&s->reader, f, &item, &why);
    if (rc == -ENOMEM || rc == -EPROTO)
        return err_set(e, rc, "%s", why.text);
    if (rc < 0) {
        s->result->lost_frames++;
        return 0;
    }
    s->result->frames++;
    s->kept_bytes += f->stored_bytes;
    return f->type == TRACE_SESSION || rc == 0 ? 0 : keep_item(s, &item, e);
}

// Skips to the next intact header at or after `at`, where frame number `due` was expected. Returns
// the same values as frame_resync.
static int skip_to_header(struct salvage *s, uint64_t at, uint64_t due, uint64_t *last,
                          struct err *e)
{
    struct frame_reader *frames = &s->reader.frames;
    uint64_t skipped = 0;
    // frame_resync also finds an intact frame with an unexpected number at `at` itself. If the last
    // search ended there, the frame could not be decoded, so search after `at`.
    uint64_t from = at == *last ? at + 1 : at;
    int rc = input_seek(frames->in, from, e) ?: frame_resync(frames, &skipped, e);
    *last = from + skipped;
    if (rc > 0 && frames->next_sequence > due)
        s->result->lost_frames += frames->next_sequence - due;
    return rc;
}

static int salvage_frames(struct salvage *s, struct err *e)
{
    struct frame_reader *frames = &s->reader.frames;
    uint64_t last = UINT64_MAX, at;
    struct frame f;
    int rc;
    for (;;) {
        struct err why = {0};
        uint64_t due = frames->next_sequence;
        at = frames->in->offset;
        rc = frame_next(frames, &f, &why);
        if (rc == 0)
            return 0;
        if (rc > 0)
            rc = salvage_frame(s, &f, e);
        else if (rc == -EBADMSG || rc == -ENODATA || (rc == -EPROTO && at == 0))
            rc = skip_to_header(s, at, due, &last, e);
        else
            return err_set(e, rc, "%s", why.text);
        if (rc < 0 || (rc == 0 && frames->in->offset >= frames->in->size_bytes))
            return rc;
    }
}

int trace_salvage(struct input *in, struct output *out, struct trace_salvaged *result,
                  struct err *e)
{
    struct salvage s = {.reader.in = in, .result = result};
    *result = (struct trace_salvaged){0};
    frame_reader_init(&s.reader.frames, in, FRAME_MAGIC_TRACE, TRACE_VERSION);
    trace_writer_init(&s.writer, out, FRAME_CODEC_ZSTD, LEVEL);
    int rc = salvage_frames(&s, e);
    if (rc == 0 && result->frames == 0)
        rc = err_set(e, -ENODATA, "%s: no intact frame found", in->name);
    if (rc == 0 && s.in_batch)
        rc = end_batch(&s, s.watermark, e);
    if (rc == 0)
        rc = trace_write_end(&s.writer, s.end_stamp ? s.end_stamp : s.latest, s.clock_hz, e);
    result->events = s.writer.events;
    result->lost_bytes = in->size_bytes > s.kept_bytes ? in->size_bytes - s.kept_bytes : 0;
    result->end_lost = !s.reader.saw_end;
    trace_writer_release(&s.writer);
    trace_reader_close(&s.reader);
    return rc;
}
