// Tests the queue of bundles and the threads that encode them.
#include "record/drain/compressors.h"
#include "record/drain/encoder.h"
#include "trace/codec.h"
#include "trace/reader.h"
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The linker option --wrap redirects realloc and pthread_create to these functions.
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);

static pthread_t writing_thread;
static _Atomic bool helpers_fail; // if true, allocations of helpers fail
static sem_t helper_failed;
static unsigned threads_left; // pthread_create fails when this many threads have been created
static unsigned threads_tried;

void *__wrap_realloc(void *p, size_t size)
{
    if (!helpers_fail || pthread_equal(pthread_self(), writing_thread))
        return __real_realloc(p, size);
    sem_post(&helper_failed);
    return NULL;
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg)
{
    threads_tried++;
    if (threads_left == 0)
        return EAGAIN;
    threads_left--;
    return __real_pthread_create(t, a, f, arg);
}

static struct output nowhere = {.fd = -1, .name = "trace"};

static struct compressors *new_compressors(enum frame_codec codec, unsigned helpers)
{
    writing_thread = pthread_self();
    threads_left = COMPRESSORS_HELPERS;
    threads_tried = 0;
    struct compressors *l =
        compressors_new(&(struct compressors_settings){&nowhere, codec, 1, helpers});
    assert_non_null(l);
    return l;
}

enum { WORDS = 5000 };

// Queues a bundle with a batch of one segment.
static void put_bundle(struct compressors *l, uint64_t batch)
{
    struct bundle *p = compressors_empty_bundle(l);
    assert_non_null(p);
    for (uint32_t i = 0; i < WORDS; i++)
        p->words[i] = codec_plain(HT_FREE, i, i << 4);
    p->n_words = WORDS;
    p->begins = p->ends = true;
    p->batch = batch;
    struct bundle_piece *piece = bundle_add(p, BUNDLE_SEGMENT);
    assert_non_null(piece);
    piece->events = WORDS;
    piece->segment = (struct trace_segment){.first_word = batch * WORDS,
                                            .n_words = WORDS,
                                            .n_records = WORDS,
                                            .base0 = 8,
                                            .base_end = 8,
                                            .words = p->words};
    assert_non_null(bundle_add(p, BUNDLE_END_BATCH));
    compressors_put(l, p);
}

// Returns the oldest bundle, or NULL if the queue is empty.
static struct bundle *next_bundle(struct compressors *l)
{
    struct bundle *p = NULL;
    while (!p && compressors_work(l, &p))
        ;
    return p;
}

static enum frame_codec codec_of(const struct bundle *p)
{
    enum { CODEC_AT = 5 };
    assert_int_equal(p->failed, 0);
    if (p->raw)
        return FRAME_CODEC_NONE;
    assert_true(p->frame_bytes > FRAME_HEADER_BYTES);
    return ((const uint8_t *)p->words)[CODEC_AT];
}

// With any number of helpers, bundles leave the queue in the order of their insertion.
static void test_order(void **state)
{
    (void)state;
    for (unsigned helpers = 0; helpers < 4; helpers++) {
        struct compressors *l = new_compressors(FRAME_CODEC_ZSTD, helpers);
        uint64_t put = 0, written = 0;
        while (written < 150) {
            while (put < 150 && put - written < 20)
                put_bundle(l, put++);
            struct bundle *p;
            assert_true(compressors_work(l, &p));
            if (!p)
                continue;
            assert_int_equal(p->batch, written++);
            assert_int_equal(codec_of(p), FRAME_CODEC_ZSTD);
            compressors_recycle(l, p);
            assert_int_equal(compressors_backlog(l), put - written);
        }
        assert_null(next_bundle(l));
        assert_true(helpers ? threads_tried >= 1 && threads_tried <= helpers : threads_tried == 0);
        compressors_free(l);
    }
}

// If no thread can be created, the writing thread encodes all bundles, and does not try again to
// create a thread.
static void test_no_threads(void **state)
{
    (void)state;
    for (unsigned available = 0; available < 2; available++) {
        struct compressors *l = new_compressors(FRAME_CODEC_LZ4, 4);
        threads_left = available;
        for (uint64_t i = 0; i < 30; i++)
            put_bundle(l, i);
        for (uint64_t i = 0; i < 30; i++) {
            struct bundle *p = next_bundle(l);
            assert_non_null(p);
            assert_int_equal(p->batch, i);
            assert_int_equal(codec_of(p), FRAME_CODEC_LZ4);
            compressors_recycle(l, p);
        }
        assert_in_range(threads_tried, 1, available + 1);
        compressors_free(l);
    }
}

// If a helper runs out of memory, its bundle is written in its turn, with the error.
static void test_failed_helper(void **state)
{
    (void)state;
    unsigned failures = 0;
    struct compressors *l = new_compressors(FRAME_CODEC_ZSTD, 1);
    helpers_fail = true;
    for (uint64_t i = 0; i < 4; i++)
        put_bundle(l, i);
    sem_wait(&helper_failed);
    for (uint64_t i = 0; i < 4; i++) {
        struct bundle *p = next_bundle(l);
        assert_int_equal(p->batch, i);
        if (p->failed) {
            assert_int_equal(p->failed, -ENOMEM);
            assert_non_null(strstr(p->error.text, "trace"));
            failures++;
        }
        compressors_recycle(l, p);
    }
    assert_in_range(failures, 1, 3); // the writing thread has encoded at least the last bundle
    helpers_fail = false;
    compressors_free(l);
}

// If the backlog is full, and not before, the backup thread compresses all bundles but the last.
static void test_full(void **state)
{
    (void)state;
    struct compressors *l = new_compressors(FRAME_CODEC_ZSTD, 0);
    assert_false(compressors_help(l));
    for (uint64_t batch = 0; batch < COMPRESSORS_BUNDLES; batch++) {
        assert_false(compressors_help(l));
        put_bundle(l, batch);
    }
    for (unsigned i = 1; i < COMPRESSORS_BUNDLES; i++)
        assert_true(compressors_help(l));
    assert_false(compressors_help(l));
    for (uint64_t batch = 0; batch < COMPRESSORS_BUNDLES; batch++) {
        struct bundle *p = next_bundle(l);
        assert_int_equal(p->batch, batch);
        assert_int_equal(codec_of(p), FRAME_CODEC_ZSTD);
        compressors_recycle(l, p);
        assert_false(compressors_help(l));
    }
    compressors_free(l);
}

// Unwritten bundles are freed, and their events are counted, while helpers still encode.
static void test_early_end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        struct compressors *l = new_compressors(FRAME_CODEC_ZSTD, 2);
        for (uint64_t batch = 0; batch < 5; batch++)
            put_bundle(l, batch);
        assert_int_equal(compressors_events(l), 5 * WORDS);
        compressors_free(l);
    }
}

struct recording {
    struct output out;
    struct trace_session session;
    struct encoder *encoder;
    struct err e;
};

static void begin_recording(struct recording *r, uint64_t max_bytes)
{
    writing_thread = pthread_self();
    threads_left = COMPRESSORS_HELPERS;
    *r = (struct recording){.session = {.start_stamp = 1}};
    assert_int_equal(output_open_unnamed(&r->out, &r->e), 0);
    const struct encoder_settings settings = {.out = &r->out,
                                              .codec = FRAME_CODEC_ZSTD,
                                              .level = 1,
                                              .started = clock_point_take(CLOCK_KIND_MONOTONIC),
                                              .max_bytes = max_bytes,
                                              .session = &r->session};
    r->encoder = encoder_new(&settings, &r->e);
    assert_non_null(r->encoder);
    struct trace_process p = {.pid = 7};
    assert_int_equal(encoder_put_process(r->encoder, &p, &r->e), 0);
}

static uint64_t word_at(uint64_t i)
{
    uint64_t random = i;
    return codec_plain(HT_FREE, i, unit_random(&random) >> 20 << 3);
}

// Adds a batch of `segments` segments, which may need several bundles.
static void put_batch(struct recording *r, uint64_t *next, unsigned segments, uint64_t watermark)
{
    assert_int_equal(encoder_begin_batch(r->encoder, &r->e), 0);
    for (unsigned i = 0; i < segments; i++) {
        uint64_t *words = encoder_room(r->encoder, WORDS, &r->e);
        struct encoder_seen seen;
        assert_non_null(words);
        for (unsigned k = 0; k < WORDS; k++)
            words[k] = word_at(*next + k);
        struct trace_segment g = {
            .first_word = *next, .n_words = WORDS, .base0 = 8, .words = words};
        assert_int_equal(encoder_put_segment(r->encoder, &g, &seen, &r->e), 0);
        assert_int_equal(seen.events, WORDS);
        *next += WORDS;
    }
    assert_int_equal(encoder_end_batch(r->encoder, watermark, &r->e), 0);
    assert_int_equal(encoder_flush(r->encoder, &r->e), 0);
}

// Checks the words, batches and watermarks of the trace. Returns its number of words.
static uint64_t read_back(struct recording *r, uint64_t batches)
{
    struct input in;
    struct trace_reader reader;
    struct trace_item item;
    uint64_t words = 0, batch = 0;
    assert_int_equal(input_from_output(&in, &r->out, "trace", &r->e), 0);
    assert_int_equal(trace_reader_open(&reader, &in, &r->e), 0);
    while (trace_next(&reader, &item, &r->e) > 0) {
        for (size_t s = 0; item.type == TRACE_EVENTS && s < item.n_segments; s++) {
            assert_int_equal(item.segments[s].first_word, words);
            for (uint32_t i = 0; i < item.segments[s].n_words; i++)
                assert_int_equal(item.segments[s].words[i], word_at(words++));
        }
        if (item.type != TRACE_EVENTS)
            continue;
        assert_int_equal(item.batch, batch);
        assert_int_equal(item.watermark, 100 * (batch + item.batch_ends));
        batch += item.batch_ends;
    }
    assert_true(reader.saw_end);
    assert_int_equal(batch, batches);
    trace_reader_close(&reader);
    input_close(&in);
    return words;
}

// The trace is the same as a trace that one thread has written. Its batches consist of several
// bundles.
static void test_trace(void **state)
{
    (void)state;
    struct recording r;
    uint64_t next = 0;
    begin_recording(&r, 0);
    for (uint64_t batch = 1; batch <= 20; batch++) {
        put_batch(&r, &next, batch % 5 == 0 ? 2 * BUNDLE_WORDS / WORDS : batch % 7, batch * 100);
        while (encoder_is_full(r.encoder))
            assert_true(encoder_work(r.encoder));
    }
    assert_int_equal(encoder_finish(r.encoder, &(struct trace_unrecorded){0}, 9, &r.e), 0);
    struct encoder_totals t = encoder_totals(r.encoder);
    assert_int_equal(t.events, next);
    assert_int_equal(t.batches, 20);
    assert_int_equal(t.left_out, 0);
    assert_int_equal(read_back(&r, 20), next);
    encoder_free(r.encoder);
}

// The backlog is full when it contains COMPRESSORS_BUNDLES bundles, and not before.
static void test_bound(void **state)
{
    (void)state;
    struct recording r;
    uint64_t next = 0;
    begin_recording(&r, 0);
    for (unsigned i = 0; i < COMPRESSORS_BUNDLES; i++) {
        assert_false(encoder_is_full(r.encoder));
        put_batch(&r, &next, 1, 100);
    }
    assert_true(encoder_is_full(r.encoder));
    assert_int_equal(encoder_write_all(r.encoder, &r.e), 0);
    assert_false(encoder_is_full(r.encoder));
    assert_false(encoder_has_work(r.encoder));
    output_close(&r.out, false, NULL);
    encoder_free(r.encoder);
}

// No batch starts after the size limit. The events of later batches are counted as omitted.
static void test_size_limit(void **state)
{
    (void)state;
    struct recording r;
    uint64_t next = 0;
    begin_recording(&r, 20000);
    for (uint64_t batch = 1; batch <= 10; batch++)
        put_batch(&r, &next, 1, batch * 100);
    assert_int_equal(encoder_finish(r.encoder, &(struct trace_unrecorded){0}, 9, &r.e), 0);
    assert_true(encoder_has_ended(r.encoder));
    struct encoder_totals t = encoder_totals(r.encoder);
    assert_int_equal(t.events + t.left_out, next);
    assert_in_range(t.batches, 1, 9);
    assert_int_equal(read_back(&r, t.batches), t.events);
    encoder_free(r.encoder);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_order),         cmocka_unit_test(test_no_threads),
    cmocka_unit_test(test_failed_helper), cmocka_unit_test(test_full),
    cmocka_unit_test(test_early_end),     cmocka_unit_test(test_trace),
    cmocka_unit_test(test_bound),         cmocka_unit_test(test_size_limit),
};

int main(int argc, char **argv)
{
    sem_init(&helper_failed, 0, 0);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
