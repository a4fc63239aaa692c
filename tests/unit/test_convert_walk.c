// Tests two orders of the calls of a trace: the order of stamps, and the order where allocations
// and frees of each address alternate.
#include "convert/addressed.h"
#include "convert/convert.h"
#include "convert/walk.h"
#include "trace/codec.h"
#include "trace/writer.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 3 };

struct history {
    struct output out;
    struct trace_writer writer;
    struct codec_state state[THREADS];
    uint64_t words[THREADS][64];
    uint32_t n[THREADS];
    uint64_t first[THREADS];
    char text[2000]; // emitted calls
};

static void begin(struct history *h)
{
    struct err e = {0};
    const struct trace_session s = {.clock_hz = 1000000000};
    const struct trace_process p = {.pid = 7};
    *h = (struct history){.out = {.fd = memfd_create("trace", 0), .owns_fd = true, .name = "t"}};
    trace_writer_init(&h->writer, &h->out, FRAME_CODEC_NONE, 0);
    assert_int_equal(trace_write_session(&h->writer, &s, &e), 0);
    assert_int_equal(trace_write_process(&h->writer, &p, &e), 0);
}

static void put(struct history *h, unsigned thread, const struct event *ev)
{
    uint64_t *to = h->words[thread] + h->n[thread];
    if (codec_epoch(ev->stamp) != h->state[thread].epoch) {
        h->state[thread].epoch = codec_epoch(ev->stamp);
        *to++ = codec_epoch_record(h->state[thread].epoch);
    }
    to += codec_put_long(to, ev);
    h->n[thread] = (uint32_t)(to - h->words[thread]);
}

static void take(struct history *h, unsigned thread, uint64_t stamp, uint64_t address)
{
    put(h, thread,
        &(struct event){.kind = HT_MALLOC, .stamp = stamp, .size = 8, .result = address});
}

static void give(struct history *h, unsigned thread, uint64_t stamp, uint64_t address)
{
    put(h, thread, &(struct event){.kind = HT_FREE, .stamp = stamp, .ptr = address});
}

static void resize(struct history *h, unsigned thread, uint64_t stamp, uint64_t end, uint64_t from,
                   uint64_t to)
{
    put(h, thread, &(struct event){.kind = HT_REALLOC_BEGIN, .stamp = stamp, .ptr = from});
    put(h, thread, &(struct event){.kind = HT_REALLOC, .stamp = end, .size = 8, .result = to});
}

static void end_batch(struct history *h, uint64_t watermark)
{
    struct err e = {0};
    assert_int_equal(trace_batch_begin(&h->writer, &e), 0);
    for (uint32_t t = 0; t < THREADS; t++) {
        struct trace_segment s = {.thread = t,
                                  .tid = t,
                                  .first_word = h->first[t],
                                  .n_words = h->n[t],
                                  .words = h->words[t]};
        // Starts a new segment for each thread that has words.
        if (s.n_words)
            assert_int_equal(trace_batch_add(&h->writer, &s, &e), 0);
        h->first[t] += h->n[t];
        h->n[t] = 0;
        h->state[t] = (struct codec_state){0};
    }
    assert_int_equal(trace_batch_end(&h->writer, watermark, &e), 0);
}

static int note_call(void *context, const struct walk_call *c)
{
    struct history *h = context;
    size_t n = strlen(h->text);
    const struct event *ev = c->event;
    if (event_infos[ev->kind].class == HT_CLASS_RESIZE)
        snprintf(h->text + n, sizeof h->text - n, "%u:%llx>%llx ", c->thread,
                 (unsigned long long)ev->ptr, (unsigned long long)ev->result);
    else
        snprintf(h->text + n, sizeof h->text - n, "%u:%s%llx ", c->thread, ev->result ? "+" : "-",
                 (unsigned long long)(ev->result | ev->ptr));
    return 0;
}

static int note_sample(void *context, const struct trace_sample *s)
{
    struct history *h = context;
    size_t n = strlen(h->text);
    snprintf(h->text + n, sizeof h->text - n, "rss:%llu ", (unsigned long long)s->rss_bytes);
    return 0;
}

static int note_pause(void *context)
{
    struct history *h = context;
    strcat(h->text, "| ");
    return 0;
}

static void note(struct history *h, uint32_t thread, const struct event *ev)
{
    note_call(h, &(struct walk_call){.thread = thread, .event = ev});
}

static int note_addressed(void *context, const struct addressed_call *c)
{
    note(context, c->thread, &c->ev);
    return 0;
}

static int choose(void *context, const struct trace_process *p, struct convert_sink *sink)
{
    (void)p;
    sink->ops = (struct order_sink){.context = context, .calls = addressed_add};
    return 1;
}

// Reads the written trace and compares its calls with `want`. Reads the calls in the order of
// stamps if `window_ns` is 0, otherwise in the converter's order. Returns the number of added
// frees.
static uint64_t expect(struct history *h, uint64_t window_ns, const char *want)
{
    struct err e = {0}, cut;
    struct input in;
    struct trace_reader r;
    struct convert_result result;
    struct addressed a = {.put = note_addressed, .context = h};
    const struct walk_options how = {
        .call = note_call, .sample = note_sample, .pause = note_pause, .context = h};
    const struct convert_options convert = {
        .window_ns = window_ns, .choose = choose, .context = &a};
    assert_int_equal(trace_write_end(&h->writer, 0, 0, &e), 0);
    trace_writer_release(&h->writer);
    assert_int_equal(input_from_output(&in, &h->out, "t", &e), 0);
    assert_int_equal(trace_reader_open(&r, &in, &e), 0);
    int rc = window_ns ? convert_run(&r, &convert, &result, &e) : walk_run(&r, &how, &cut, &e);
    if (rc == 0)
        rc = addressed_finish(&a);
    assert_string_equal(e.text, "");
    assert_int_equal(rc, 0);
    assert_string_equal(h->text, want);
    trace_reader_close(&r);
    input_close(&in);
    uint64_t added = a.broken;
    addressed_release(&a);
    return added;
}

// Adds a history in which thread 1 allocates at the address that thread 0 freed, with a stamp that
// is too early.
static void put_early_take(struct history *h)
{
    begin(h);
    take(h, 0, 10, 0xa0);
    give(h, 0, 100, 0xa0);
    take(h, 1, 90, 0xa0);
    take(h, 1, 91, 0xb0);
    give(h, 1, 200, 0xa0);
    take(h, 2, 95, 0xc0);
    end_batch(h, 1000);
}

static void stamps_decide(void **state)
{
    struct history h;
    (void)state;
    put_early_take(&h);
    expect(&h, 0, "| 0:+a0 1:+a0 1:+b0 2:+c0 0:-a0 1:-a0 ");
}

static void samples_are_passed_on(void **state)
{
    struct history h;
    struct err e = {0};
    (void)state;
    begin(&h);
    take(&h, 0, 10, 0xa0);
    end_batch(&h, 1000);
    assert_int_equal(trace_write_samples(&h.writer, &(struct trace_sample){0, 900, 4096, 0}, 1, &e),
                     0);
    expect(&h, 0, "| rss:4096 0:+a0 ");
}

static void an_early_allocation_waits_for_its_free(void **state)
{
    struct history h;
    (void)state;
    put_early_take(&h);
    uint64_t added = expect(&h, 1000, "0:+a0 2:+c0 0:-a0 1:+a0 1:+b0 1:-a0 ");
    assert_int_equal(added, 0);
}

static void a_missing_free_does_not_block(void **state)
{
    struct history h;
    (void)state;
    begin(&h);
    take(&h, 0, 10, 0xa0);
    take(&h, 1, 90, 0xa0);
    take(&h, 0, 150, 0xb0);
    take(&h, 0, 400, 0xc0);
    end_batch(&h, 1000);
    uint64_t added = expect(&h, 100, "0:+a0 0:+b0 1:-a0 1:+a0 0:+c0 ");
    assert_int_equal(added, 1);
}

static void a_realloc_precedes_the_next_allocation_at_its_old_address(void **state)
{
    struct history h;
    (void)state;
    begin(&h);
    take(&h, 0, 10, 0xa0);
    resize(&h, 0, 20, 60, 0xa0, 0xb0);
    take(&h, 1, 40, 0xa0);
    end_batch(&h, 1000);
    expect(&h, 1000, "0:+a0 0:a0>b0 1:+a0 ");
}

static void a_realloc_waits_for_its_new_address(void **state)
{
    struct history h;
    (void)state;
    begin(&h);
    take(&h, 0, 10, 0xa0);
    take(&h, 1, 11, 0xb0);
    resize(&h, 0, 20, 30, 0xa0, 0xb0);
    give(&h, 0, 31, 0xb0);
    give(&h, 1, 40, 0xb0);
    resize(&h, 1, 50, 60, 0, 0xc0);
    resize(&h, 1, 61, 62, 0xc0, 0xc0);
    end_batch(&h, 1000);
    expect(&h, 1000, "0:+a0 1:+b0 1:-b0 0:a0>b0 0:-b0 1:0>c0 1:c0>c0 ");
}

static void swapping_reallocs_end(void **state)
{
    struct history h;
    (void)state;
    begin(&h);
    take(&h, 0, 10, 0xa0);
    take(&h, 1, 11, 0xb0);
    resize(&h, 0, 20, 30, 0xa0, 0xb0);
    resize(&h, 1, 21, 31, 0xb0, 0xa0);
    end_batch(&h, 1000);
    uint64_t added = expect(&h, 1000, "0:+a0 1:+b0 0:-b0 0:a0>b0 1:0>a0 ");
    assert_int_equal(added, 1);
}

static void held_streams_stay_held_over_rounds(void **state)
{
    struct history h;
    (void)state;
    begin(&h);
    take(&h, 0, 10, 0xa0);
    take(&h, 1, 90, 0xa0);
    end_batch(&h, 95);
    take(&h, 1, 96, 0xb0);
    end_batch(&h, 99);
    give(&h, 0, 100, 0xa0);
    end_batch(&h, 200);
    end_batch(&h, 300);
    end_batch(&h, 400);
    expect(&h, 1000, "0:+a0 0:-a0 1:+a0 1:+b0 ");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(stamps_decide),
    cmocka_unit_test(samples_are_passed_on),
    cmocka_unit_test(an_early_allocation_waits_for_its_free),
    cmocka_unit_test(a_missing_free_does_not_block),
    cmocka_unit_test(a_realloc_precedes_the_next_allocation_at_its_old_address),
    cmocka_unit_test(a_realloc_waits_for_its_new_address),
    cmocka_unit_test(swapping_reallocs_end),
    cmocka_unit_test(held_streams_stay_held_over_rounds),
};

UNIT_MAIN(tests)
