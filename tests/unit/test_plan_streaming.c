// Tests the contents and the decoding of the windows of a streamed plan.
#include "replay/plan/build.h"
#include "replay/plan/saved.h"
#include "replay/plan/streaming.h"
#include "unit.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

enum { SMALL = 1 << 18, LARGE = 8 << 20, MANY_THREADS = 60 };
_Static_assert(SMALL / 2 / PLAN_WINDOWS / 8 == 2048, "windows of SMALL have 2048 words");

static struct output file;
static struct err e;

static struct plan_settings settings_of(uint64_t memory_bytes)
{
    return (struct plan_settings){.memory_bytes = memory_bytes, .streamed = true, .file = &file};
}

static int open_file(void **state)
{
    (void)state;
    e = (struct err){0};
    return output_open_unnamed(&file, &e);
}

static int close_file(void **state)
{
    (void)state;
    output_close(&file, false, NULL);
    return 0;
}

static struct plan *new_plan(uint64_t memory_bytes)
{
    struct plan *p;
    struct plan_settings settings = settings_of(memory_bytes);
    assert_int_equal(plan_new(&p, "test.htw", &settings, &e), 0);
    return p;
}

static void add_pairs(struct plan *p, uint32_t thread, unsigned n, uint64_t stamp)
{
    for (unsigned i = 0; i < n; i++) {
        const struct workload_op ops[] = {
            {.kind = HT_MALLOC, .slot = thread, .size = 1, .stamp = stamp + 2 * i},
            {.kind = HT_FREE, .slot = thread, .stamp = stamp + 2 * i + 1}};
        if (plan_add_ops(p, thread, ops, 2, &e) < 0)
            fail_msg("%s", e.text);
    }
}

static void finish(struct plan *p)
{
    if (plan_finish(p, &e) < 0)
        fail_msg("%s", e.text);
}

static uint64_t first_word(const struct plan *p, uint64_t window)
{
    return PLAN_FIRST_WINDOW + window * (plan_facts(p)->window_bytes / 8);
}

// Streams a whole plan of at most PLAN_WINDOWS windows and maps the result at *head.
static int stream(const struct plan *p, struct plan_streaming **head, size_t *bytes)
{
    struct streaming *s;
    assert_true(plan_facts(p)->windows <= PLAN_WINDOWS);
    assert_int_equal(streaming_start(&s, p, &e), 0);
    while (streaming_decodes(s))
        usleep(1000);
    *bytes = plan_facts(p)->streaming_bytes + plan_facts(p)->window_bytes * PLAN_WINDOWS;
    *head = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, streaming_fd(s), 0);
    assert_true(*head != MAP_FAILED);
    int rc = streaming_stop(s, &e);
    streaming_free(s);
    return rc;
}

// If a thread has no ops in a window, it has no position in the window, whatever bytes follow the
// segments of the window.
static void test_ops_at_positions(void **state)
{
    (void)state;
    mallopt(M_PERTURB, 0xff); // fills freed memory with 0, the number of the missing thread
    struct plan *p = new_plan(LARGE);
    for (uint32_t i = 1; i <= MANY_THREADS; i++)
        add_pairs(p, i, 2, 100);
    while (plan_facts(p)->windows < 2)
        add_pairs(p, 1, 1000, 200);
    add_pairs(p, 0, 2, 1 << 30);
    finish(p);
    assert_int_equal(p->windows[0].segments, MANY_THREADS);
    uint64_t windows = plan_facts(p)->windows;
    assert_true(p->windows_capacity > windows);
    p->windows[windows] = p->windows[0]; // This memory is unused and must not count as a window.
    assert_int_equal(plan_op_at(p, 0, first_word(p, 0) + 10), UINT64_MAX);
    assert_int_equal(plan_op_at(p, 1, first_word(p, 0) + 3), 2);
    assert_true(plan_op_at(p, 1, first_word(p, 1) + 100) > 1000);
    assert_true(plan_op_at(p, 1, first_word(p, 1) + 100) < 200000);
    assert_int_equal(plan_op_at(p, 1, first_word(p, windows)), UINT64_MAX);
    assert_int_equal(plan_op_at(p, 1, first_word(p, windows) + 1), UINT64_MAX);
    assert_int_equal(plan_op_at(p, 1, PLAN_FIRST_WINDOW - 1), UINT64_MAX);
    assert_true(p->streams_capacity > p->n_streams);
    p->streams[p->n_streams] = p->streams[1]; // unused memory
    assert_int_equal(plan_op_at(p, MANY_THREADS + 1, first_word(p, 0) + 3), 0);
    p->streams[p->n_streams] = NULL;
    struct plan_stream *first = p->streams[0];
    p->streams[0] = NULL; // a thread without calls
    assert_int_equal(plan_op_at(p, 0, first_word(p, 0)), 0);
    p->streams[0] = first;
    plan_free(p);
    mallopt(M_PERTURB, 0);
}

// Six samples before every op fill the windows, so that some windows begin with a sample.
static void test_every_sample_is_streamed(void **state)
{
    (void)state;
    enum { N = 1950, AT_ONCE = 6 };
    static struct workload_sample recorded[N];
    struct plan *p = new_plan(SMALL);
    for (unsigned i = 0; i < N; i++)
        recorded[i].stamp = 10 + i / AT_ONCE;
    assert_int_equal(plan_set_samples(p, recorded, N, &e), 0);
    add_pairs(p, 0, N / AT_ONCE / 2 + 1, 9);
    finish(p);
    assert_true(plan_facts(p)->windows > 1);
    assert_int_equal(p->windows[0].words, plan_facts(p)->window_bytes / 8);
    assert_int_equal(p->windows[0].words % 64, 0);
    size_t bytes, begun = 0, found = 0;
    struct plan_streaming *head;
    assert_int_equal(stream(p, &head, &bytes), 0);
    const uint64_t *ring = (const uint64_t *)((char *)head + plan_facts(p)->streaming_bytes);
    for (size_t i = 0; i < plan_facts(p)->samples; i++) {
        uint64_t at = p->samples[i] - PLAN_FIRST_WINDOW;
        begun += at && at % (plan_facts(p)->window_bytes / 8) == 0;
        found += plan_op_of(ring[at]) == PLAN_SAMPLE;
    }
    assert_true(begun > 0);
    assert_int_equal(found, plan_facts(p)->samples);
    assert_int_equal(head->threads[0].filled, plan_facts(p)->windows);
    assert_int_equal(head->threads[0].segments[1], first_word(p, 1));
    munmap(head, bytes);
    plan_free(p);
}

// Replaces the first word of the second window and updates the checksum.
static void damage(struct plan *p, uint64_t word)
{
    struct plan_window *w = &p->windows[1];
    uint64_t *words = malloc(w->words * 8);
    assert_int_equal(pread(file.fd, words, w->words * 8, (off_t)w->at), w->words * 8);
    words[0] = word;
    assert_int_equal(pwrite(file.fd, words, 8, (off_t)w->at), 8);
    w->hash = XXH3_64bits(words, w->words * 8);
    free(words);
}

// Streaming checks the words only of plans from a file.
static void test_windows_of_a_saved_plan_are_checked(void **state)
{
    (void)state;
    const struct plan_key key = {{1, 2}};
    struct plan_settings settings = settings_of(SMALL);
    struct plan_streaming *head;
    size_t bytes;
    for (int damaged = 0; damaged < 2; damaged++) {
        struct plan *p = new_plan(SMALL), *q;
        add_pairs(p, 0, 2000, 0);
        finish(p);
        if (damaged)
            damage(p, plan_word(PLAN_MALLOC, (1 << PLAN_ENTRY_BITS) - 1, 1));
        assert_int_equal(stream(p, &head, &bytes), 0);
        munmap(head, bytes);
        assert_int_equal(plan_save(p, &key, &file, &e), 0);
        assert_int_equal(plan_load(&q, "test.htw", &settings, &key, dup(file.fd), &e), 0);
        assert_int_equal(stream(q, &head, &bytes), damaged ? -EBADMSG : 0);
        assert_int_equal(head->failed, damaged);
        if (damaged)
            assert_non_null(strstr(e.text, "invalid ops in window 1"));
        munmap(head, bytes);
        plan_free(p);
        plan_free(q);
        close_file(NULL);
        open_file(NULL);
    }
}

// A dependency on an op of a complete window waits until the thread leaves the window, unless the
// op must be finished already.
static void test_positions_in_complete_windows(void **state)
{
    (void)state;
    enum { WORDS = 512 };
    static uint64_t words[WORDS];
    struct plan_memory m;
    struct plan_stream s = {.memory = &m};
    uint64_t *w, position, end = 0;
    plan_memory_init_windows(&m, words, WORDS);
    for (uint64_t window = 0; window <= PLAN_WINDOWS; window++) {
        assert_int_equal(plan_stream_reserve(&s, 1, &w, &e), 0);
        *w = plan_word(PLAN_MALLOC, 1, 1);
        assert_int_equal(plan_stream_number(&s, 1), 0);
        position = plan_stream_publish(&s, window);
        assert_int_equal(position, PLAN_FIRST_WINDOW + window * WORDS + 1);
        if (window == 0)
            end = position + 1;
        if (window > 0) {
            position = plan_stream_publish(&s, 0);
            assert_int_equal(position, window < PLAN_WINDOWS ? end : 0);
        }
        plan_memory_close_window(&m);
        plan_memory_next_window(&m);
    }
    position = plan_stream_publish(&s, 1);
    assert_int_equal(position, 0);
    position = plan_stream_publish(&s, 2);
    assert_int_equal(position, PLAN_FIRST_WINDOW + 2 * WORDS + 2);
    plan_stream_release(&s);
    free(m.open);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_file, close_file)

static const struct CMUnitTest tests[] = {
    TEST(test_ops_at_positions),
    TEST(test_every_sample_is_streamed),
    TEST(test_windows_of_a_saved_plan_are_checked),
    TEST(test_positions_in_complete_windows),
};

UNIT_MAIN(tests)
