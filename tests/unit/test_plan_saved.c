// Tests plans in files. A loaded plan must equal the saved plan, and no word in a file may lead the
// player out of bounds.
#include "replay/plan/file.h"
#include "replay/plan/ops.h"
#include "replay/plan/saved.h"
#include "trusted_ops.h"
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

static const struct plan_settings settings = {.memory_bytes = 64 << 20};
static const struct plan_key key = {{1, 2}};

static struct plan *new_plan(void)
{
    struct err e = {0};
    struct plan *p;
    assert_int_equal(plan_new(&p, "test.htw", &settings, &e), 0);
    if (trusted_ops_add(p, &e) != 0 || plan_finish(p, &e) != 0)
        fail_msg("%s", e.text);
    return p;
}

// Saves the plan after `before` other bytes, and loads the plan.
static int reload_after(size_t before, const struct plan *p, const struct plan_key *k,
                        struct plan **out)
{
    static const char bytes[PLAN_FILE_STEP + 1];
    struct output file;
    struct err e = {0};
    assert_int_equal(output_open_unnamed(&file, &e), 0);
    assert_int_equal(output_write(&file, bytes, before, &e), 0);
    assert_int_equal(plan_save(p, &key, &file, &e), 0);
    int fd = dup(file.fd);
    output_close(&file, false, NULL);
    int rc = plan_load(out, "test.htw", &settings, k, fd, &e);
    if (rc < 0)
        close(fd);
    return rc;
}

static int reload(const struct plan *p, const struct plan_key *k, struct plan **out)
{
    return reload_after(0, p, k, out);
}

static uint64_t *map(const struct plan *p)
{
    uint64_t *words =
        mmap(NULL, plan_facts(p)->own_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, plan_fd(p), 0);
    assert_true(words != MAP_FAILED);
    return words;
}

static void test_a_loaded_plan_is_the_saved_one(void **state)
{
    (void)state;
    struct plan *p = new_plan(), *q;
    assert_int_equal(reload(p, &key, &q), 0);
    assert_memory_equal(plan_facts(p), plan_facts(q), sizeof(struct plan_facts));
    assert_int_equal(plan_facts(p)->own_bytes, plan_facts(q)->own_bytes);
    assert_int_equal(plan_threads(p), plan_threads(q));
    assert_memory_equal(plan_span(p, 1), plan_span(q, 1), sizeof(struct plan_span));
    for (uint64_t at = 1; at < plan_facts(p)->own_bytes / 8; at++)
        assert_int_equal(plan_op_at(p, 0, at), plan_op_at(q, 0, at));
    plan_free(p);
    plan_free(q);
}

// The windows of a streamed plan precede the plan. The plan begins at a
// multiple of PLAN_FILE_STEP.
static void test_a_plan_behind_other_bytes(void **state)
{
    (void)state;
    static const size_t before[] = {1, PLAN_FILE_STEP, PLAN_FILE_STEP + 1},
                        at[] = {PLAN_FILE_STEP, PLAN_FILE_STEP, 2 * PLAN_FILE_STEP};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        struct plan *p = new_plan(), *q;
        assert_int_equal(reload_after(before[i], p, &key, &q), 0);
        assert_int_equal(plan_facts(q)->file_at, at[i]);
        plan_free(p);
        plan_free(q);
    }
}

static void test_another_key_is_refused(void **state)
{
    (void)state;
    struct plan *p = new_plan(), *q;
    assert_int_equal(reload(p, &(struct plan_key){{1, 3}}, &q), -EBADMSG);
    plan_free(p);
}

// The player frees the block with realloc, so the plan calls a function that the workload lacks.
static void test_a_plan_whose_reallocarray_frees_can_be_loaded(void **state)
{
    (void)state;
    static const struct workload_op ops[] = {
        {.kind = HT_MALLOC, .size = 8, .slot = 1},
        {.kind = HT_REALLOCARRAY, .slot = 1, .flags = WORKLOAD_FREED},
    };
    struct err e = {0};
    struct plan *p, *q;
    assert_int_equal(plan_new(&p, "test.htw", &settings, &e), 0);
    assert_int_equal(plan_add_ops(p, 0, ops, sizeof ops / sizeof *ops, &e), 0);
    assert_int_equal(plan_finish(p, &e), 0);
    assert_int_equal(plan_facts(p)->by_kind[HT_REALLOC], 1);
    assert_int_equal(plan_facts(p)->by_kind[HT_REALLOCARRAY], 0);
    assert_int_equal(reload(p, &key, &q), 0);
    plan_free(p);
    plan_free(q);
}

// Returns the index of the first word of `thread` with this op.
static uint64_t find(const uint64_t *words, uint32_t thread, enum plan_op op)
{
    const struct plan_header *h = (const struct plan_header *)words;
    uint64_t at = ((const struct plan_thread *)(words + h->threads_at))[thread].first_word;
    while (plan_op_of(words[at]) != op) {
        assert_int_not_equal(plan_op_of(words[at]), PLAN_STOP);
        at += plan_op_of(words[at]) == PLAN_JUMP ? 1 + (words[at] >> 8) : plan_op_words(words[at]);
    }
    return at;
}

static void refuse_word(uint32_t thread, enum plan_op op, unsigned after, uint64_t word, int line)
{
    struct plan *p = new_plan(), *q;
    uint64_t *words = map(p);
    words[(thread == UINT32_MAX ? ((const struct plan_header *)words)->preexisting_at
                                : find(words, thread, op)) +
          after] = word;
    if (reload(p, &key, &q) != -EBADMSG)
        fail_msg("line %d: it is loaded", line);
    munmap(words, plan_facts(p)->own_bytes);
    plan_free(p);
}

#define refuse(thread, op, after, word) refuse_word((thread), (op), (after), (word), __LINE__)

static void test_hostile_words_are_refused(void **state)
{
    (void)state;
    const uint64_t entries = 1 << 20;
    refuse(0, PLAN_MALLOC, 0, plan_word(PLAN_MALLOC, entries, 1));
    refuse(0, PLAN_MALLOC, 0,
           plan_word(PLAN_FREE_SIZED, 1, 1)); // the header does not list this kind
    refuse(0, PLAN_MALLOC, 0, plan_word((enum plan_op)127, 1, 1));
    refuse(0, PLAN_MALLOC, 0, plan_word(PLAN_NEXT_SEGMENT, 0, 0));
    refuse(0, PLAN_MALLOC, 0, plan_word(PLAN_SNAPSHOT, 0, 0));
    refuse(0, PLAN_MALLOC, 0, plan_word(PLAN_SWITCH, 0, 0));
    refuse(0, PLAN_MALLOC, 0, plan_word(PLAN_CALLOC, 1, 0));
    refuse(0, PLAN_MEMALIGN, 0, plan_word(PLAN_MEMALIGN, entries, 0));
    refuse(0, PLAN_WIDE, 1, entries);
    refuse(0, PLAN_WIDE, 0, plan_word(PLAN_WIDE, PLAN_JUMP, 0));
    refuse(0, PLAN_JUMP, 0, (uint64_t)PLAN_JUMP | 1ull << 55);
    refuse(0, PLAN_JUMP, 0, (uint64_t)PLAN_JUMP | ~0ull << 8);
    refuse(0, PLAN_START_THREAD, 0, plan_word(PLAN_START_THREAD, 0, 2));
    refuse(0, PLAN_START_THREAD, 0, plan_word(PLAN_START_THREAD, 0, 0));
    refuse(0, PLAN_MALLOC, 0, plan_word(PLAN_START_THREAD, 0, 1)); // starts the thread twice
    refuse(1, PLAN_WAIT, 0, plan_word(PLAN_WAIT, 0, 2));
    refuse(UINT32_MAX, PLAN_STOP, 0, plan_word(PLAN_PREEXISTING, entries, 64));
    refuse(UINT32_MAX, PLAN_STOP, 1, 3); // an invalid alignment
    refuse(UINT32_MAX, PLAN_STOP, 2, HT_FREE);
}

static void test_hostile_headers_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(struct plan_header) / 8; i++) {
        // The counts by kind and the flag touch_zeroed may differ.
        bool counts = i * 8 >= offsetof(struct plan_header, by_kind) &&
                      i * 8 < offsetof(struct plan_header, ring_at);
        if (counts)
            continue;
        for (unsigned k = 0; k < 2; k++) {
            struct plan *p = new_plan(), *q;
            uint64_t *words = map(p);
            words[i] = k ? ~0ull : words[i] + (1ull << 40);
            bool is_block = i * 8 == offsetof(struct plan_header, max_block_bytes) && !k;
            bool is_touch = i * 8 == offsetof(struct plan_header, n_threads) && !k;
            if (!is_block && !is_touch && reload(p, &key, &q) != -EBADMSG)
                fail_msg("word %zu of the header: it is loaded", i);
            munmap(words, plan_facts(p)->own_bytes);
            plan_free(p);
        }
    }
}

// Words of struct saved_trailer in replay/plan/saved.c.
enum { WORDS_AT = 3, WORDS_HASH, TAIL_AT, TAIL_HASH, HASH, TRAILER_WORDS };

// The bytes of a saved plan.
struct saved {
    struct plan *plan;
    uint8_t *bytes;
    uint64_t n, end; // size of the file, and offset of its trailer
    uint64_t *trailer;
    int fd;
};

static struct saved save(void)
{
    struct saved s = {.plan = new_plan()};
    struct output file;
    struct err e = {0};
    assert_int_equal(output_open_unnamed(&file, &e), 0);
    assert_int_equal(plan_save(s.plan, &key, &file, &e), 0);
    s.n = file.offset;
    s.bytes = mmap(NULL, s.n, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
    assert_true(s.bytes != MAP_FAILED);
    s.trailer = (uint64_t *)(void *)(s.bytes + s.n) - TRAILER_WORDS;
    s.end = s.n - TRAILER_WORDS * sizeof *s.trailer;
    s.fd = dup(file.fd);
    output_close(&file, false, NULL);
    return s;
}

// Corrects the checksums of the words, the tail and the trailer, and loads the plan.
static int load(struct saved *s, bool hash_words, struct err *e)
{
    struct plan *q;
    uint64_t *t = s->trailer;
    if (hash_words)
        t[WORDS_HASH] = XXH3_64bits(s->bytes + t[WORDS_AT], t[TAIL_AT] - t[WORDS_AT]);
    if (t[TAIL_AT] <= s->end)
        t[TAIL_HASH] = XXH3_64bits(s->bytes + t[TAIL_AT], s->end - t[TAIL_AT]);
    t[HASH] = XXH3_64bits(t, HASH * sizeof *t);
    int rc = plan_load(&q, "test.htw", &settings, &key, s->fd, e);
    if (rc == 0)
        plan_free(q); // closes the file
    else
        close(s->fd);
    munmap(s->bytes, s->n);
    plan_free(s->plan);
    return rc;
}

// Adds `change` to a word of the trailer. If `change` is negative, instead sets the word to an
// offset this far before the trailer.
static void refuse_trailer(unsigned word, int64_t change, const char *why)
{
    struct saved s = save();
    struct err e = {0};
    s.trailer[word] = (change < 0 ? s.end : s.trailer[word]) + (uint64_t)change;
    assert_int_equal(load(&s, false, &e), -EBADMSG);
    if (!strstr(e.text, why))
        fail_msg("word %u changed by %lld: %s", word, (long long)change, e.text);
}

static void test_hostile_trailers_are_refused(void **state)
{
    (void)state;
    refuse_trailer(0, 1, "no trailer");
    refuse_trailer(1, 1, "of another workload");
    refuse_trailer(WORDS_AT, 8, "wrong sizes");       // not a whole page
    refuse_trailer(WORDS_AT, 1 << 30, "wrong sizes"); // behind the tail
    refuse_trailer(TAIL_AT, 1 << 30, "wrong sizes");  // behind the trailer
    refuse_trailer(TAIL_AT, -8, "wrong sizes");       // too short for struct saved_tail
    refuse_trailer(TAIL_AT, -1, "wrong sizes");
    refuse_trailer(WORDS_HASH, 1, "checksum mismatch");
}

// Changes the facts and the header. Returns true if the plan is loaded.
#define LOADS(facts_member, header_member, value)                                                  \
    loads(offsetof(struct plan_facts, facts_member), offsetof(struct plan_header, header_member),  \
          (value))

static bool loads(size_t in_facts, size_t in_header, uint64_t value)
{
    struct saved s = save();
    struct err e = {0};
    memcpy(s.bytes + s.trailer[TAIL_AT] + in_facts, &value, sizeof value);
    if (in_header > 0) // `magic`, at 0, is not changed
        memcpy(s.bytes + s.trailer[WORDS_AT] + in_header, &value, sizeof value);
    int rc = load(&s, true, &e);
    assert_true(rc == 0 || rc == -EBADMSG);
    return rc == 0;
}

static void test_hostile_facts_are_refused(void **state)
{
    (void)state;
    assert_true(LOADS(events, magic, 1));
    assert_false(LOADS(events, magic, 0));
    assert_true(LOADS(samples, samples, 2 * PLAN_SAMPLES_WANTED));
    assert_false(LOADS(samples, samples, 2 * PLAN_SAMPLES_WANTED + 1));
    assert_false(LOADS(samples, magic, 1));
    assert_true(LOADS(stats_samples, magic, PLAN_MAX_STATS));
    assert_false(LOADS(stats_samples, magic, PLAN_MAX_STATS + 1));
    assert_true(LOADS(slot_table_entries, slot_table_entries, settings.memory_bytes / 8));
    assert_false(LOADS(slot_table_entries, slot_table_entries, settings.memory_bytes / 8 + 1));
    assert_false(LOADS(slot_table_entries, magic, settings.memory_bytes / 8));
    // The plan is not streamed.
    assert_false(LOADS(streamed, magic, 1));
    assert_false(LOADS(one_thread, magic, 1));
    assert_false(LOADS(window_bytes, magic, 8));
    assert_false(LOADS(window_bytes, window_words, 1));
    assert_false(LOADS(streaming_bytes, streaming_bytes, 1));
    // These members are only in the header; `calls` may have any value.
    assert_true(LOADS(calls, waits_for_exits, 1));
    assert_false(LOADS(calls, waits_for_exits, 2));
    assert_true(LOADS(calls, max_block_bytes, PTRDIFF_MAX));
    assert_false(LOADS(calls, max_block_bytes, PTRDIFF_MAX + 1ull));
    assert_true(LOADS(calls, n_caches, PLAN_MAX_THREADS));
    assert_false(LOADS(calls, n_caches, PLAN_MAX_THREADS + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_loaded_plan_is_the_saved_one),
        cmocka_unit_test(test_a_plan_behind_other_bytes),
        cmocka_unit_test(test_another_key_is_refused),
        cmocka_unit_test(test_a_plan_whose_reallocarray_frees_can_be_loaded),
        cmocka_unit_test(test_hostile_words_are_refused),
        cmocka_unit_test(test_hostile_headers_are_refused),
        cmocka_unit_test(test_hostile_trailers_are_refused),
        cmocka_unit_test(test_hostile_facts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
