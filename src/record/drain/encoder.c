#include "record/drain/encoder.h"

#include "base/buf.h"
#include "trace/columns.h"
#include "trace/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    BACKLOG_BUNDLES = 64, // 48 MiB
    BACKLOG_LZ4 = 25,     // percent of BACKLOG_BUNDLES: at or above this, lz4 at best
    BACKLOG_NONE = 60,    // at or above this, no compression
    BACKLOG_LOW = 4,      // at or below this, try a better codec
    FAST_NS = 25,         // ns per word: a program that writes faster needs fast compression
    LEISURE_NS = 50,      // ns per word: a program that writes slower no longer needs it
    // Percent of time in write(2): above this, saving bytes helps more than saving CPU time.
    WRITING_DOMINATES = 60,
};

// A bundle is the unit that the drain queues for the writer: pieces of a trace, in order.
enum {
    BUNDLE_WORDS = 3 << 15, // 768 KiB: space for a batch and for chunks that fill up while it ends
    BUNDLE_SAMPLES = 256,
};

enum encoder_piece_kind {
    PIECE_PROCESS,
    PIECE_PROCESS_END,
    PIECE_SAMPLES,
    PIECE_NAMES,
    PIECE_PAGES,
    PIECE_BEGIN_BATCH,
    PIECE_SEGMENT,
    PIECE_END_BATCH
};

struct encoder_piece {
    enum encoder_piece_kind kind;
    uint64_t events; // events in a segment that are counted
    union {
        struct trace_process process;
        struct trace_segment segment; // its words are stored in the bundle
        uint64_t watermark;
        uint32_t samples; // number of the bundle's next samples
        struct {
            struct names *names; // owned
            uint32_t of;         // process number
        };
        struct buf pages; // owned
    };
};

struct encoder_bundle {
    struct encoder_bundle *next;
    struct encoder_piece *pieces;
    size_t n_pieces, capacity;
    uint64_t *words;
    uint32_t n_words;
    struct trace_sample samples[BUNDLE_SAMPLES];
    uint32_t n_samples;
};

static struct encoder_bundle *bundle_new(void)
{
    struct encoder_bundle *p = calloc(1, sizeof *p);
    if (p)
        p->words = malloc(sizeof *p->words * BUNDLE_WORDS);
    if (p && p->words)
        return p;
    free(p);
    return NULL;
}

static void bundle_clear(struct encoder_bundle *p)
{
    for (size_t i = 0; i < p->n_pieces; i++) {
        if (p->pieces[i].kind == PIECE_PROCESS || p->pieces[i].kind == PIECE_PROCESS_END)
            trace_process_release(&p->pieces[i].process);
        if (p->pieces[i].kind == PIECE_NAMES) {
            names_release(p->pieces[i].names);
            free(p->pieces[i].names);
        }
        if (p->pieces[i].kind == PIECE_PAGES)
            buf_release(&p->pieces[i].pages);
    }
    p->n_pieces = 0;
    p->n_words = p->n_samples = 0;
}

static void bundle_free(struct encoder_bundle *p)
{
    bundle_clear(p);
    free(p->pieces);
    free(p->words);
    free(p);
}

static struct encoder_piece *bundle_add(struct encoder_bundle *p, enum encoder_piece_kind kind)
{
    if (HT_GROW(&p->pieces, &p->capacity, p->n_pieces + 1) < 0)
        return NULL;
    struct encoder_piece *piece = &p->pieces[p->n_pieces++];
    *piece = (struct encoder_piece){.kind = kind};
    return piece;
}

struct encoder {
    struct trace_writer writer;
    struct encoder_settings settings;
    struct columns scan;         // used by the drain
    struct encoder_bundle *open; // bundle being filled by the drain
    uint64_t batches, steps_down, left_out;
    uint64_t adapted_ns, adapted_write_ns;
    // Shared by the drain and the writer; the mutex protects the lists.
    pthread_mutex_t mutex;
    struct encoder_bundle *first, **last; // queue of bundles to write
    // stack of empty bundles; the top one was used last and may still be cached
    struct encoder_bundle *spare;
    _Atomic uint32_t backlog; // bundles queued or being written
    _Atomic bool ended;       // max_bytes has been reached
    _Atomic int failed;       // 0, or a negative errno
    struct err error;         // constant once `failed` is set
};

static uint32_t backlog_percent(const struct encoder *n)
{
    return atomic_load_explicit(&n->backlog, memory_order_relaxed) * 100 / BACKLOG_BUNDLES;
}

// Returns true if most of the time since the last call was spent writing, so that the disk limits
// the recording.
static bool is_writing(struct encoder *n)
{
    uint64_t now = clock_monotonic_ns(), wrote = n->settings.out->write_ns;
    uint64_t wall = now - n->adapted_ns, writing = wrote - n->adapted_write_ns;
    n->adapted_ns = now;
    n->adapted_write_ns = wrote;
    return writing * 100 > wall * WRITING_DOMINATES;
}

// Steps down from zstd to lz4 to no compression before the backlog is full, and up again when the
// backlog is gone.
static void adapt_codec(struct encoder *n)
{
    struct frame_writer *f = &n->writer.frames;
    uint32_t percent = backlog_percent(n);
    uint64_t wall = clock_monotonic_ns() - n->adapted_ns, words = n->writer.batch_words;
    bool writing = is_writing(n);
    n->writer.fast = wall < words * (n->writer.fast ? LEISURE_NS : FAST_NS);
    bool behind = (f->codec == FRAME_CODEC_ZSTD && percent >= BACKLOG_LZ4) ||
                  (f->codec == FRAME_CODEC_LZ4 && percent >= BACKLOG_NONE);
    if (behind && !writing) {
        f->codec = f->codec == FRAME_CODEC_ZSTD ? FRAME_CODEC_LZ4 : FRAME_CODEC_NONE;
        n->steps_down++;
    } else if (percent <= BACKLOG_LOW && f->codec != n->settings.codec) {
        f->codec = f->codec == FRAME_CODEC_NONE ? FRAME_CODEC_LZ4 : FRAME_CODEC_ZSTD;
    }
}

// Writes the first frame. Called as late as possible, so that the measured clock rate is exact.
static int write_session(struct encoder *n, struct err *e)
{
    struct trace_session *s = n->settings.session;
    if (s->clock_hz)
        return 0;
    s->clock_hz = clock_hz_since(s->clock, n->settings.started);
    return trace_write_session(&n->writer, s, e);
}

static int write_piece(struct encoder *n, const struct encoder_bundle *p,
                       struct encoder_piece *piece, uint32_t *samples, struct err *e)
{
    struct trace_writer *w = &n->writer;
    bool of_process = piece->kind == PIECE_PROCESS || piece->kind == PIECE_PROCESS_END;
    if (piece->kind == PIECE_BEGIN_BATCH && n->settings.max_bytes)
        n->ended = n->settings.out->offset >= n->settings.max_bytes;
    if (n->ended && !of_process)
        return 0;
    switch (piece->kind) {
    case PIECE_PROCESS:
        return trace_write_process(w, &piece->process, e);
    case PIECE_PROCESS_END:
        return trace_write_process_end(w, &piece->process, e);
    case PIECE_SAMPLES:
        *samples += piece->samples;
        return trace_write_samples(w, p->samples + *samples - piece->samples, piece->samples, e);
    case PIECE_NAMES:
        return trace_write_names(w, piece->of, piece->names, e);
    case PIECE_PAGES:
        return trace_write_pages(w, piece->pages.data, piece->pages.size, e);
    case PIECE_BEGIN_BATCH:
        adapt_codec(n);
        return trace_batch_begin(w, e);
    case PIECE_SEGMENT:
        return trace_batch_add_scanned(w, &piece->segment, piece->events, e);
    case PIECE_END_BATCH:
        n->batches++;
        return trace_batch_end(w, piece->watermark, e);
    }
    return 0;
}

static uint64_t count_events(const struct encoder_piece *piece)
{
    return piece->kind == PIECE_SEGMENT ? piece->events : 0;
}

static int write_bundle(struct encoder *n, struct encoder_bundle *p, struct err *e)
{
    uint32_t samples = 0;
    int rc = write_session(n, e);
    for (size_t i = 0; i < p->n_pieces; i++) {
        if (rc == 0)
            rc = write_piece(n, p, &p->pieces[i], &samples, e);
        n->left_out += rc < 0 || n->ended ? count_events(&p->pieces[i]) : 0;
    }
    // Flush now, because the next bundle reuses the words.
    if (rc == 0)
        rc = trace_batch_flush(&n->writer, e);
    // The output now contains events, so keep the file whatever happens later.
    if (rc == 0 && n->writer.events)
        rc = output_commit(n->settings.out, e);
    bundle_clear(p);
    return rc;
}

static struct encoder_bundle *take_bundle(struct encoder *n)
{
    pthread_mutex_lock(&n->mutex);
    struct encoder_bundle *p = n->first;
    if (p && !(n->first = p->next))
        n->last = &n->first;
    pthread_mutex_unlock(&n->mutex);
    return p;
}

static void recycle_bundle(struct encoder *n, struct encoder_bundle *p)
{
    pthread_mutex_lock(&n->mutex);
    p->next = n->spare;
    n->spare = p;
    n->backlog--;
    pthread_mutex_unlock(&n->mutex);
}

bool encoder_work(struct encoder *n)
{
    struct err e = {0};
    struct encoder_bundle *p = take_bundle(n);
    if (!p)
        return false;
    int rc = n->failed ? 0 : write_bundle(n, p, &e);
    if (rc < 0) {
        n->error = e;
        n->failed = rc;
    }
    recycle_bundle(n, p);
    return true;
}

struct encoder *encoder_new(const struct encoder_settings *s, struct err *e)
{
    struct encoder *n = calloc(1, sizeof *n);
    if (!n) {
        err_no_memory(e, NULL);
        return NULL;
    }
    n->settings = *s;
    n->last = &n->first;
    n->adapted_ns = clock_monotonic_ns();
    columns_init(&n->scan);
    trace_writer_init(&n->writer, s->out, s->codec, s->level);
    n->writer.frame_words = BUNDLE_WORDS;
    n->writer.fast = true;
    pthread_mutex_init(&n->mutex, NULL);
    return n;
}

static void free_bundles(struct encoder_bundle *p)
{
    while (p) {
        struct encoder_bundle *next = p->next;
        bundle_free(p);
        p = next;
    }
}

void encoder_free(struct encoder *n)
{
    if (!n)
        return;
    free_bundles(n->open);
    free_bundles(n->first);
    free_bundles(n->spare);
    trace_writer_release(&n->writer);
    pthread_mutex_destroy(&n->mutex);
    free(n);
}

int encoder_check(struct encoder *n, struct err *e)
{
    return n->failed ? err_set(e, n->failed, "%s", n->error.text) : 0;
}

int encoder_flush(struct encoder *n, struct err *e)
{
    struct encoder_bundle *p = n->open;
    n->open = NULL;
    if (p) {
        p->next = NULL;
        pthread_mutex_lock(&n->mutex);
        *n->last = p;
        n->last = &p->next;
        n->backlog++;
        pthread_mutex_unlock(&n->mutex);
    }
    return encoder_check(n, e);
}

// Returns an open bundle with space for `words` and `samples`. Queues the current one if it has no
// space.
static struct encoder_bundle *open_bundle(struct encoder *n, size_t words, size_t samples,
                                          struct err *e)
{
    struct encoder_bundle *p = n->open;
    if (p && (p->n_words + words > BUNDLE_WORDS || p->n_samples + samples > BUNDLE_SAMPLES)) {
        if (encoder_flush(n, e) < 0)
            return NULL;
        p = NULL;
    }
    if (!p) {
        pthread_mutex_lock(&n->mutex);
        p = n->spare;
        n->spare = p ? p->next : NULL;
        pthread_mutex_unlock(&n->mutex);
        n->open = p = p ? p : bundle_new();
    }
    if (p)
        p->next = NULL;
    else
        err_no_memory(e, NULL);
    return p;
}

static struct encoder_piece *add_piece(struct encoder *n, enum encoder_piece_kind kind,
                                       size_t samples, struct err *e)
{
    struct encoder_bundle *p = open_bundle(n, 0, samples, e);
    struct encoder_piece *piece = p ? bundle_add(p, kind) : NULL;
    if (p && !piece)
        err_no_memory(e, NULL);
    return piece;
}

static int put_process(struct encoder *n, enum encoder_piece_kind kind,
                       struct trace_process *process, struct err *e)
{
    struct encoder_piece *piece = add_piece(n, kind, 0, e);
    if (piece)
        piece->process = *process;
    else
        trace_process_release(process);
    *process = (struct trace_process){0};
    return piece ? 0 : -ENOMEM;
}

int encoder_put_process(struct encoder *n, struct trace_process *p, struct err *e)
{
    return put_process(n, PIECE_PROCESS, p, e);
}

int encoder_put_process_end(struct encoder *n, struct trace_process *p, struct err *e)
{
    return put_process(n, PIECE_PROCESS_END, p, e);
}

int encoder_put_samples(struct encoder *n, const struct trace_sample *samples, size_t count,
                        struct err *e)
{
    struct encoder_piece *piece = add_piece(n, PIECE_SAMPLES, count, e);
    if (!piece)
        return -ENOMEM;
    memcpy(n->open->samples + n->open->n_samples, samples, count * sizeof *samples);
    n->open->n_samples += (uint32_t)count;
    piece->samples = (uint32_t)count;
    return 0;
}

int encoder_put_names(struct encoder *n, uint32_t process, struct names *names, struct err *e)
{
    struct names *owned = malloc(sizeof *owned);
    struct encoder_piece *piece = owned ? add_piece(n, PIECE_NAMES, 0, e) : NULL;
    if (piece) {
        *owned = *names;
        piece->names = owned;
        piece->of = process;
    } else {
        free(owned);
        names_release(names);
    }
    *names = (struct names){0};
    return piece ? 0 : err_no_memory(e, NULL);
}

int encoder_put_pages(struct encoder *n, struct buf *payload, struct err *e)
{
    struct encoder_piece *piece = add_piece(n, PIECE_PAGES, 0, e);
    if (piece)
        piece->pages = *payload;
    else
        buf_release(payload);
    *payload = (struct buf){0};
    return piece ? 0 : -ENOMEM;
}

int encoder_begin_batch(struct encoder *n, struct err *e)
{
    return add_piece(n, PIECE_BEGIN_BATCH, 0, e) ? 0 : -ENOMEM;
}

uint64_t *encoder_room(struct encoder *n, uint32_t words, struct err *e)
{
    struct encoder_bundle *p = open_bundle(n, words, 0, e);
    return p ? p->words + p->n_words : NULL;
}

int encoder_put_segment(struct encoder *n, struct trace_segment *g, struct encoder_seen *seen,
                        struct err *e)
{
    struct columns_records r = {.state = {g->epoch0, g->base0}};
    columns_scan(&n->scan, g->words, g->n_words, &r);
    struct encoder_piece *piece = add_piece(n, PIECE_SEGMENT, 0, e);
    if (!piece)
        return -ENOMEM;
    uint64_t *to = n->open->words + n->open->n_words;
    // Move the words, so that records dropped from paused times leave no gap in the bundle.
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
    struct encoder_piece *piece = add_piece(n, PIECE_END_BATCH, 0, e);
    if (!piece)
        return -ENOMEM;
    piece->watermark = watermark;
    return 0;
}

bool encoder_has_work(struct encoder *n)
{
    return atomic_load_explicit(&n->backlog, memory_order_relaxed) > 0;
}

bool encoder_is_full(struct encoder *n)
{
    return atomic_load_explicit(&n->backlog, memory_order_relaxed) >= BACKLOG_BUNDLES;
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
    n->settings.session->clock_hz = 0;
    n->ended = false;
}

int encoder_finish(struct encoder *n, const struct trace_unrecorded *missed, uint64_t end_stamp,
                   struct err *e)
{
    int rc = encoder_write_all(n, e);
    if (rc == 0)
        rc = write_session(n, e);
    if (rc == 0)
        rc = trace_write_unrecorded(&n->writer, missed, e);
    enum clock_kind clock = n->settings.session->clock;
    return rc < 0 ? rc
                  : trace_write_end(&n->writer, end_stamp,
                                    clock_hz_since(clock, n->settings.started), e);
}

struct encoder_totals encoder_totals(const struct encoder *n)
{
    uint64_t left_out = n->left_out;
    for (const struct encoder_bundle *p = n->first; p; p = p->next) {
        for (size_t i = 0; i < p->n_pieces; i++)
            left_out += count_events(&p->pieces[i]);
    }
    return (struct encoder_totals){n->writer.events, n->batches, n->steps_down, left_out};
}
