#include "record/drain/encoder.h"

#include "record/drain/compressors.h"
#include "trace/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    FAST_NS = 25,    // ns per word; if the program writes faster, use fast compression
    LEISURE_NS = 50, // ns per word; if the program writes slower, use normal compression again
};

struct encoder {
    struct trace_writer writer; // used by the writing thread
    struct encoder_settings settings;
    struct compressors *compressors;
    struct columns scan; // used by the drain, like the following members
    struct bundle *open; // bundle being filled
    uint64_t batch, watermark;
    uint64_t flushed_ns;
    bool fast;
    uint64_t batches, left_out;
    _Atomic bool ended; // max_bytes has been reached
    _Atomic int failed; // 0, or a negative errno
    struct err error;   // constant after `failed` is set
};

// Writes the first frame. Call as late as possible, so that the measured clock rate is exact.
static int write_session(struct encoder *n, struct err *e)
{
    struct trace_session *s = n->settings.session;
    if (s->clock_hz)
        return 0;
    s->clock_hz = clock_hz_since(s->clock, n->settings.started);
    return trace_write_session(&n->writer, s, e);
}

static int write_events(struct encoder *n, struct bundle *p, struct err *e)
{
    struct buf frames = {.data = (uint8_t *)p->words, .size = p->frame_bytes};
    int rc = p->failed ? err_set(e, p->failed, "%s", p->error.text) : 0;
    n->writer.frames.codec = p->raw ? FRAME_CODEC_NONE : n->settings.codec;
    if (rc == 0 && p->raw)
        rc = bundle_encode(p, &n->writer, e);
    else if (rc == 0)
        rc = frame_write_stored(&n->writer.frames, &frames, e);
    for (size_t i = 0; i < p->n_pieces && rc == 0 && !p->raw; i++) {
        if (p->pieces[i].kind == BUNDLE_SEGMENT)
            trace_writer_count(&n->writer, p->pieces[i].segment.process, p->pieces[i].events);
    }
    n->writer.frames.codec = n->settings.codec;
    return rc;
}

static int write_piece(struct encoder *n, struct bundle *p, struct bundle_piece *piece,
                       uint32_t *samples, struct err *e)
{
    struct trace_writer *w = &n->writer;
    bool of_process = piece->kind == BUNDLE_PROCESS || piece->kind == BUNDLE_PROCESS_END;
    if (n->ended && !of_process)
        return 0;
    switch (piece->kind) {
    case BUNDLE_PROCESS:
        return trace_write_process(w, &piece->process, e);
    case BUNDLE_PROCESS_END:
        return trace_write_process_end(w, &piece->process, e);
    case BUNDLE_SAMPLE:
        *samples += piece->samples;
        return trace_write_samples(w, p->samples + *samples - piece->samples, piece->samples, e);
    case BUNDLE_NAMES:
        return trace_write_names(w, piece->of, &piece->names, e);
    case BUNDLE_PAGES:
        return trace_write_pages(w, piece->pages.data, piece->pages.size, e);
    case BUNDLE_SEGMENT:
        return 0; // the segment is encoded in the frames
    case BUNDLE_END_BATCH:
        n->batches++;
        return write_events(n, p, e);
    }
    return 0;
}

static int write_bundle(struct encoder *n, struct bundle *p, struct err *e)
{
    uint32_t samples = 0;
    uint64_t before = n->writer.events;
    int rc = write_session(n, e);
    if (p->begins && n->settings.max_bytes)
        n->ended = n->settings.out->offset >= n->settings.max_bytes;
    for (size_t i = 0; i < p->n_pieces && rc == 0; i++)
        rc = write_piece(n, p, &p->pieces[i], &samples, e);
    if (rc == 0 && !n->ended && !p->ends)
        rc = write_events(n, p, e);
    n->left_out += n->writer.events == before ? bundle_events(p) : 0;
    // The output now contains events, so keep the file even after a later error.
    return rc == 0 && n->writer.events ? output_commit(n->settings.out, e) : rc;
}

bool encoder_work(struct encoder *n)
{
    struct err e = {0};
    struct bundle *p;
    bool worked = compressors_work(n->compressors, &p);
    if (!p)
        return worked;
    int rc = n->failed ? 0 : write_bundle(n, p, &e);
    if (rc < 0) {
        n->error = e;
        n->failed = rc;
    }
    compressors_recycle(n->compressors, p);
    return true;
}

bool encoder_help(struct encoder *n)
{
    return compressors_help(n->compressors);
}

struct encoder *encoder_new(const struct encoder_settings *s, struct err *e)
{
    unsigned helpers = s->codec == FRAME_CODEC_NONE ? 0 : compressors_spare_cpus("/sys/fs/cgroup");
    const struct compressors_settings how = {s->out, s->codec, s->level, helpers};
    struct encoder *n = calloc(1, sizeof *n);
    if (!n || !(n->compressors = compressors_new(&how))) {
        free(n);
        err_no_memory(e, NULL);
        return NULL;
    }
    n->settings = *s;
    n->flushed_ns = clock_monotonic_ns();
    n->fast = true;
    columns_init(&n->scan);
    trace_writer_init(&n->writer, s->out, s->codec, s->level);
    return n;
}

void encoder_free(struct encoder *n)
{
    if (!n)
        return;
    compressors_free(n->compressors);
    bundle_free(n->open);
    trace_writer_release(&n->writer);
    free(n);
}

int encoder_check(struct encoder *n, struct err *e)
{
    return n->failed ? err_set(e, n->failed, "%s", n->error.text) : 0;
}

int encoder_flush(struct encoder *n, struct err *e)
{
    struct bundle *p = n->open;
    n->open = NULL;
    if (p) {
        uint64_t now = clock_monotonic_ns(), wall = now - n->flushed_ns;
        n->flushed_ns = now;
        p->fast = n->fast = wall < (uint64_t)p->n_words * (n->fast ? LEISURE_NS : FAST_NS);
        compressors_put(n->compressors, p);
    }
    return encoder_check(n, e);
}

// Returns an open bundle with space for `words` and `samples`. If the current bundle has no space,
// queues it first.
static struct bundle *open_bundle(struct encoder *n, size_t words, size_t samples, struct err *e)
{
    struct bundle *p = n->open;
    bool fits = p && p->n_words + words <= BUNDLE_WORDS && p->n_samples + samples <= BUNDLE_SAMPLES;
    if (fits || (p && encoder_flush(n, e) < 0))
        return fits ? p : NULL;
    n->open = p = compressors_empty_bundle(n->compressors);
    if (p) {
        p->batch = n->batch;
        p->before = n->watermark;
    } else {
        err_no_memory(e, NULL);
    }
    return p;
}

static struct bundle_piece *add_piece(struct encoder *n, enum bundle_kind kind, size_t samples,
                                      struct err *e)
{
    struct bundle *p = open_bundle(n, 0, samples, e);
    struct bundle_piece *piece = p ? bundle_add(p, kind) : NULL;
    if (p && !piece)
        err_no_memory(e, NULL);
    return piece;
}

// Adds a piece and takes ownership of its contents, even on failure.
static int put_piece(struct encoder *n, struct bundle_piece *piece, struct err *e)
{
    struct bundle_piece *to = add_piece(n, piece->kind, 0, e);
    if (to)
        *to = *piece;
    else
        bundle_release_piece(piece);
    return to ? 0 : -ENOMEM;
}

int encoder_put_process(struct encoder *n, struct trace_process *p, struct err *e)
{
    struct bundle_piece piece = {.kind = BUNDLE_PROCESS, .process = *p};
    *p = (struct trace_process){0};
    return put_piece(n, &piece, e);
}

int encoder_put_process_end(struct encoder *n, struct trace_process *p, struct err *e)
{
    struct bundle_piece piece = {.kind = BUNDLE_PROCESS_END, .process = *p};
    *p = (struct trace_process){0};
    return put_piece(n, &piece, e);
}

int encoder_put_samples(struct encoder *n, const struct trace_sample *samples, size_t count,
                        struct err *e)
{
    struct bundle_piece *piece = add_piece(n, BUNDLE_SAMPLE, count, e);
    if (!piece)
        return -ENOMEM;
    memcpy(n->open->samples + n->open->n_samples, samples, count * sizeof *samples);
    n->open->n_samples += (uint32_t)count;
    piece->samples = (uint32_t)count;
    return 0;
}

int encoder_put_names(struct encoder *n, uint32_t process, struct names *names, struct err *e)
{
    struct bundle_piece piece = {.kind = BUNDLE_NAMES, .names = *names, .of = process};
    *names = (struct names){0};
    return put_piece(n, &piece, e);
}

int encoder_put_pages(struct encoder *n, struct buf *payload, struct err *e)
{
    struct bundle_piece piece = {.kind = BUNDLE_PAGES, .pages = *payload};
    *payload = (struct buf){0};
    return put_piece(n, &piece, e);
}

int encoder_begin_batch(struct encoder *n, struct err *e)
{
    // A bundle contains the segments of one batch only.
    int rc = n->open && (n->open->ends || n->open->n_words) ? encoder_flush(n, e) : 0;
    struct bundle *p = rc == 0 ? open_bundle(n, 0, 0, e) : NULL;
    if (p)
        p->begins = true;
    return p ? 0 : rc ?: -ENOMEM;
}

uint64_t *encoder_room(struct encoder *n, uint32_t words, struct err *e)
{
    struct bundle *p = open_bundle(n, words, 0, e);
    return p ? p->words + p->n_words : NULL;
}

int encoder_put_segment(struct encoder *n, struct trace_segment *g, struct encoder_seen *seen,
                        struct err *e)
{
    struct columns_records r = {.state = {g->epoch0, g->base0}};
    columns_scan(&n->scan, g->words, g->n_words, &r);
    struct bundle_piece *piece = add_piece(n, BUNDLE_SEGMENT, 0, e);
    if (!piece)
        return -ENOMEM;
    uint64_t *to = n->open->words + n->open->n_words;
    // Move the words, so that records dropped during a pause leave no gap in the bundle.
    if (g->words != to)
        memmove(to, g->words, r.words * sizeof *to);
    n->open->n_words += r.words;
    g->n_words = r.words;
    g->n_records = r.records;
    g->epoch_end = r.state.epoch;
    g->base_end = r.state.base;
    *seen = (struct encoder_seen){to, r.events, r.modules};
    piece->segment = *g;
    piece->segment.words = to;
    piece->events = r.events;
    return 0;
}

int encoder_end_batch(struct encoder *n, uint64_t watermark, struct err *e)
{
    struct bundle_piece *piece = add_piece(n, BUNDLE_END_BATCH, 0, e);
    if (!piece)
        return -ENOMEM;
    n->open->ends = true;
    n->open->watermark = n->watermark = watermark;
    n->batch++;
    return 0;
}

bool encoder_has_work(struct encoder *n)
{
    return compressors_backlog(n->compressors) > 0;
}

bool encoder_is_full(struct encoder *n)
{
    return compressors_backlog(n->compressors) >= COMPRESSORS_BUNDLES;
}

bool encoder_has_ended(struct encoder *n)
{
    return n->ended;
}

int encoder_write_all(struct encoder *n, struct err *e)
{
    int rc = encoder_flush(n, e);
    while (rc == 0 && encoder_work(n))
        rc = encoder_check(n, e);
    return rc;
}

void encoder_restart(struct encoder *n)
{
    trace_writer_restart(&n->writer);
    n->batch = n->watermark = 0;
    n->settings.session->clock_hz = 0;
    n->ended = false;
}

int encoder_finish(struct encoder *n, const struct trace_unrecorded *missed, uint64_t end_stamp,
                   struct err *e)
{
    int rc = encoder_write_all(n, e) ?: write_session(n, e);
    rc = rc ?: trace_write_unrecorded(&n->writer, missed, e);
    uint64_t hz = clock_hz_since(n->settings.session->clock, n->settings.started);
    return rc ?: trace_write_end(&n->writer, end_stamp, hz, e);
}

struct encoder_totals encoder_totals(const struct encoder *n)
{
    return (struct encoder_totals){n->writer.events, n->batches,
                                   n->left_out + compressors_events(n->compressors)};
}
