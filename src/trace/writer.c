#include "trace/writer.h"

#include "base/bytes.h"
#include "base/tlv.h"
#include "base/varint.h"
#include "trace/columns.h"
#include "trace/fields.h"

#include <errno.h>
#include <stdlib.h>

enum {
    FRAME_WORDS = 1 << 17, // 1 MiB of records, which fits in the cache and is large enough for zstd
    // The longest record that a head can describe, with its notes.
    LONGEST_RECORD_WORDS = 256 + HT_NOTES,
};

void trace_writer_init(struct trace_writer *w, struct output *out, enum frame_codec codec,
                       int level)
{
    *w = (struct trace_writer){.frame_words = FRAME_WORDS};
    frame_writer_init(&w->frames, out, FRAME_MAGIC_TRACE, TRACE_VERSION, codec, level);
}

void trace_writer_release(struct trace_writer *w)
{
    if (w->columns)
        columns_release(w->columns);
    free(w->columns);
    free(w->counts);
    buf_release(&w->payload);
    buf_release(&w->table);
    buf_release(&w->words);
    frame_writer_release(&w->frames);
    *w = (struct trace_writer){0};
}

void trace_writer_restart(struct trace_writer *w)
{
    w->frames.next_sequence = 0;
    w->batch = w->watermark = w->events = 0;
    w->n_counts = 0;
}

// Writes the payload as a frame, unless encoding it failed with `rc`.
static int write_payload(struct trace_writer *w, enum trace_frame type, int rc, struct err *e)
{
    return rc < 0 ? err_no_memory(e, w->frames.out->name)
                  : frame_write(&w->frames, (uint8_t)type, w->payload.data, w->payload.size, e);
}

int trace_write_session(struct trace_writer *w, const struct trace_session *s, struct err *e)
{
    w->payload.size = 0;
    return write_payload(w, TRACE_SESSION, fields_put_session(&w->payload, s), e);
}

int trace_write_process(struct trace_writer *w, const struct trace_process *p, struct err *e)
{
    struct trace_count *counts = w->counts;
    if (HT_GROW(&counts, &w->counts_capacity, p->number + 1ull) < 0)
        return err_no_memory(e, w->frames.out->name);
    w->counts = counts;
    for (; w->n_counts <= p->number; w->n_counts++)
        counts[w->n_counts] = (struct trace_count){.process = (uint32_t)w->n_counts};
    counts[p->number].pid = p->pid;
    w->payload.size = 0;
    return write_payload(w, TRACE_PROCESS, fields_put_process(&w->payload, p), e);
}

int trace_write_process_end(struct trace_writer *w, const struct trace_process *p, struct err *e)
{
    w->payload.size = 0;
    return write_payload(w, TRACE_PROCESS_END, fields_put_process_end(&w->payload, p), e);
}

int trace_write_unrecorded(struct trace_writer *w, const struct trace_unrecorded *u, struct err *e)
{
    w->payload.size = 0;
    return write_payload(w, TRACE_UNRECORDED, fields_put_unrecorded(&w->payload, u), e);
}

static int put_counts(struct trace_writer *w)
{
    struct buf b = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < w->n_counts; i++) {
        const struct trace_count *c = &w->counts[i];
        rc = c->events ? buf_reserve(&b, 3 * VARINT_MAX_BYTES) : 0;
        if (rc < 0 || !c->events)
            continue;
        b.size += varint_put(b.data + b.size, c->process);
        b.size += varint_put(b.data + b.size, c->pid);
        b.size += varint_put(b.data + b.size, c->events);
    }
    if (rc == 0)
        rc = tlv_put_bytes(&w->payload, TRACE_F_PROCESS_EVENTS, b.data, b.size);
    buf_release(&b);
    return rc;
}

static int write_end(struct trace_writer *w, uint64_t end_stamp, uint64_t clock_hz, bool continues,
                     struct err *e)
{
    w->payload.size = 0;
    int rc = tlv_put_u64(&w->payload, TRACE_F_END_STAMP, end_stamp)
                 ?: tlv_put_u64(&w->payload, TRACE_F_EVENTS, w->events);
    if (rc == 0 && clock_hz)
        rc = tlv_put_u64(&w->payload, TRACE_F_CLOCK_HZ, clock_hz);
    if (rc == 0 && continues)
        rc = tlv_put_u64(&w->payload, TRACE_F_CONTINUES, 1);
    if (rc == 0)
        rc = put_counts(w);
    return write_payload(w, TRACE_END, rc, e);
}

int trace_write_end(struct trace_writer *w, uint64_t end_stamp, uint64_t clock_hz, struct err *e)
{
    return write_end(w, end_stamp, clock_hz, false, e);
}

int trace_write_segment_end(struct trace_writer *w, uint64_t end_stamp, struct err *e)
{
    return write_end(w, end_stamp, 0, true, e);
}

int trace_write_samples(struct trace_writer *w, const struct trace_sample *samples, size_t n,
                        struct err *e)
{
    struct buf *b = &w->payload;
    b->size = 0;
    if (buf_reserve(b, (4 * n + 1) * VARINT_MAX_BYTES) < 0)
        return err_no_memory(e, w->frames.out->name);
    uint64_t before = 0;
    b->size += varint_put(b->data, n);
    for (size_t i = 0; i < n; i++) {
        const uint64_t values[] = {samples[i].process,
                                   zigzag_put((int64_t)(samples[i].stamp - before)),
                                   samples[i].rss_bytes, samples[i].anon_bytes};
        for (unsigned v = 0; v < 4; v++)
            b->size += varint_put(b->data + b->size, values[v]);
        before = samples[i].stamp;
    }
    return write_payload(w, TRACE_SAMPLES, 0, e);
}

int trace_write_names(struct trace_writer *w, uint32_t process, const struct names *names,
                      struct err *e)
{
    int rc = 0;
    for (size_t entry = 0; rc == 0 && entry < names->n_entries;) {
        w->payload.size = 0;
        if (names_put(&w->payload, names, process, &entry) < 0)
            return err_no_memory(e, w->frames.out->name);
        rc = write_payload(w, TRACE_NAMES, 0, e);
    }
    return rc;
}

int trace_write_pages(struct trace_writer *w, const uint8_t *at, size_t n, struct err *e)
{
    w->payload.size = 0;
    return write_payload(w, TRACE_PAGES, buf_put(&w->payload, at, n), e);
}

static enum columns_transform transform_of(const struct trace_writer *w)
{
    // Without compression, columns have no benefit.
    return w->frames.codec == FRAME_CODEC_NONE ? EVENTS_WORDS : EVENTS_COLUMNS;
}

static int begin_frame(struct trace_writer *w)
{
    w->table.size = 0;
    w->words.size = 0;
    w->scanned = NULL;
    w->scanned_words = 0;
    if (transform_of(w) == EVENTS_WORDS)
        return 0;
    return columns_reserve(w->columns, w->frame_words);
}

static uint32_t words_in_frame(const struct trace_writer *w)
{
    bool plain = transform_of(w) == EVENTS_WORDS;
    return plain ? (uint32_t)(w->words.size / 8) + w->scanned_words : w->columns->words;
}

static int flush_frame(struct trace_writer *w, bool last, struct err *e)
{
    enum columns_transform transform = transform_of(w);
    uint8_t head[EVENTS_HEADER_BYTES];
    put_u64(head, w->batch);
    put_u64(head + 8, w->watermark);
    put_u32(head + 16,
            (last ? EVENTS_LAST_OF_BATCH : 0) | (uint32_t)transform << EVENTS_TRANSFORM_AT);
    put_u32(head + 20, (uint32_t)(w->table.size / EVENTS_SEGMENT_BYTES));
    struct frame_part parts[1 + COLUMN_COUNT] = {{0},
                                                 {w->words.data, w->words.size, NULL},
                                                 {w->scanned, (size_t)w->scanned_words * 8, NULL}};
    struct buf *b = &w->payload;
    b->size = 0;
    int rc = buf_put(b, head, sizeof head) ?: buf_put(b, w->table.data, w->table.size);
    if (rc == 0 && transform == EVENTS_COLUMNS)
        rc = columns_finish(w->columns, w->fast, b, parts + 1);
    if (rc < 0)
        return err_no_memory(e, w->frames.out->name);
    parts[0] = (struct frame_part){b->data, b->size, NULL};
    size_t n = transform == EVENTS_COLUMNS ? 1 + COLUMN_COUNT : 3;
    rc = frame_write_parts(&w->frames, TRACE_EVENTS, parts, n, e);
    w->scanned_words = 0;
    if (rc == 0 && !last)
        rc = begin_frame(w) < 0 ? err_no_memory(e, w->frames.out->name) : 0;
    return rc;
}

// Returns true if the words continue the segment that the last row of the table describes.
static bool continues_row(const struct trace_writer *w, const uint32_t names[4],
                          uint64_t first_word, const struct codec_state *before)
{
    if (w->table.size == 0 || w->row_epoch != before->epoch || w->row_base != before->base)
        return false;
    const uint8_t *row = w->table.data + w->table.size - EVENTS_SEGMENT_BYTES;
    return memcmp(row, names, 16) == 0 && get_u64(row + 16) + get_u32(row + 40) == first_word;
}

static int put_table(struct trace_writer *w, const struct trace_segment *s,
                     const struct codec_state *before, const struct columns_records *r)
{
    uint8_t row[EVENTS_SEGMENT_BYTES];
    const uint32_t names[] = {s->process, s->thread, s->tid, s->stream};
    bool continues = continues_row(w, names, s->first_word + s->n_words, before);
    w->row_epoch = r->state.epoch;
    w->row_base = r->state.base;
    if (continues) {
        uint8_t *last = w->table.data + w->table.size - EVENTS_SEGMENT_BYTES;
        put_u32(last + 40, get_u32(last + 40) + r->words);
        put_u32(last + 44, get_u32(last + 44) + r->records);
        return 0;
    }
    memcpy(row, names, 16);
    put_u64(row + 16, s->first_word + s->n_words);
    put_u64(row + 24, before->epoch);
    put_u64(row + 32, before->base);
    put_u32(row + 40, r->words);
    put_u32(row + 44, r->records);
    return buf_put(&w->table, row, sizeof row);
}

void trace_writer_count(struct trace_writer *w, uint32_t process, uint64_t events)
{
    w->events += events;
    if (process < w->n_counts)
        w->counts[process].events += events;
}

// Appends records from w[0..n) to the frame while they fit; s->n_words words have already been
// appended. Returns the number of words, 0 if the next word is not a record, or a negative errno.
static int64_t append_records(struct trace_writer *w, struct trace_segment *s, uint32_t n)
{
    struct codec_state before = {s->epoch_end, s->base_end};
    struct columns_records r = {.state = before};
    const uint64_t *words = s->words + s->n_words;
    if (transform_of(w) == EVENTS_COLUMNS) {
        columns_put(w->columns, words, n, &r);
    } else {
        columns_scan(w->columns, words, n, &r);
        if (w->words.size == 0 && buf_reserve(&w->words, (size_t)w->frame_words * 8) < 0)
            return -ENOMEM;
        if (r.words && buf_put(&w->words, words, (size_t)r.words * 8) < 0)
            return -ENOMEM;
    }
    if (r.words && put_table(w, s, &before, &r) < 0)
        return -ENOMEM;
    s->n_words += r.words;
    s->n_records += r.records;
    s->epoch_end = r.state.epoch;
    s->base_end = r.state.base;
    trace_writer_count(w, s->process, r.events);
    return r.words;
}

int trace_batch_begin(struct trace_writer *w, struct err *e)
{
    if (!w->columns) {
        w->columns = malloc(sizeof *w->columns);
        if (!w->columns)
            return err_no_memory(e, w->frames.out->name);
        columns_init(w->columns);
    }
    w->batch_words = 0;
    return begin_frame(w) < 0 ? err_no_memory(e, w->frames.out->name) : 0;
}

int trace_batch_flush(struct trace_writer *w, struct err *e)
{
    return words_in_frame(w) ? flush_frame(w, false, e) : 0;
}

int trace_batch_add(struct trace_writer *w, struct trace_segment *s, struct err *e)
{
    uint32_t n = s->n_words;
    int64_t took = 1;
    int flushed = w->scanned_words ? trace_batch_flush(w, e) : 0;
    if (flushed < 0)
        return flushed;
    s->n_words = s->n_records = 0;
    s->epoch_end = s->epoch0;
    s->base_end = s->base0;
    while (s->n_words < n && took > 0) {
        uint32_t room = w->frame_words - words_in_frame(w), left = n - s->n_words;
        if (left > room && room < LONGEST_RECORD_WORDS) {
            int rc = flush_frame(w, false, e);
            if (rc < 0)
                return rc;
            continue;
        }
        took = append_records(w, s, left < room ? left : room);
        if (took < 0)
            return err_no_memory(e, w->frames.out->name);
    }
    w->batch_words += s->n_words;
    return 0;
}

int trace_batch_add_scanned(struct trace_writer *w, const struct trace_segment *s, uint64_t events,
                            struct err *e)
{
    struct trace_segment copied = *s;
    const struct codec_state before = {s->epoch0, s->base0};
    const struct columns_records r = {
        {s->epoch_end, s->base_end}, s->n_words, s->n_records, events};
    int rc = 0;
    if (transform_of(w) != EVENTS_WORDS || w->words.size || s->n_words > w->frame_words)
        return trace_batch_add(w, &copied, e);
    // The words of a frame must be contiguous.
    if ((w->scanned_words && s->words != w->scanned + w->scanned_words) ||
        words_in_frame(w) + s->n_words > w->frame_words)
        rc = trace_batch_flush(w, e);
    if (rc < 0 || s->n_words == 0)
        return rc;
    if (w->scanned_words == 0)
        w->scanned = s->words;
    w->scanned_words += s->n_words;
    w->batch_words += s->n_words;
    trace_writer_count(w, s->process, events);
    copied.n_words = 0;
    return put_table(w, &copied, &before, &r) < 0 ? err_no_memory(e, w->frames.out->name) : 0;
}

int trace_batch_end(struct trace_writer *w, uint64_t watermark, struct err *e)
{
    w->watermark = watermark;
    int rc = flush_frame(w, true, e);
    w->batch++;
    return rc;
}

int trace_write_batch(struct trace_writer *w, uint64_t watermark, struct trace_segment *segments,
                      size_t n, struct err *e)
{
    int rc = trace_batch_begin(w, e);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = trace_batch_add(w, &segments[i], e);
    return rc < 0 ? rc : trace_batch_end(w, watermark, e);
}
