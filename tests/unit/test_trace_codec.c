#include "trace/codec.h"

#include "unit_event.h"

// Each row of the event table gets a generated test with one round trip.

enum { EPOCH = 5, STAMP = EPOCH << CODEC_STAMP_BITS | 0x2a5b };
static const uint64_t BASE = 0x7f1234560008;

// noinline: gcc 12 warns about the branches for longer records as reads past an array of one word,
// although the word's value excludes them.
static __attribute__((noinline)) unsigned decode(struct codec_state *st, const uint64_t *w,
                                                 uint64_t left, struct event *ev)
{
    return codec_get(st, w, left, ev);
}

static void long_round_trip(unsigned kind, uint64_t filler, uint32_t text_bytes, uint8_t error)
{
    static uint64_t words[CODEC_MAX_LONG_WORDS + 1];
    static char text[CODEC_MAX_TEXT_BYTES];
    struct codec_state st = {EPOCH, BASE};
    struct event ev = {.kind = (uint8_t)kind, .stamp = STAMP, .error = error}, got;
    uint64_t *fields[] = {&ev.ptr, &ev.size, &ev.count, &ev.align, &ev.result, &ev.value};
    for (unsigned i = 0; i < 6; i++) {
        if (event_infos[kind].fields >> i & 1)
            *fields[i] = filler ^ (filler ? i : 0);
    }
    if (text_bytes) {
        for (uint32_t i = 0; i < text_bytes; i++)
            text[i] = (char)('a' + i % 26);
        ev.text = text;
        ev.text_bytes = text_bytes;
    }
    memset(words, 0xee, sizeof words);
    unsigned n = codec_put_long(words, &ev);
    assert_int_equal(n, codec_long_words(&ev));
    assert_int_equal(n, codec_record_words(words[0]));
    assert_true(words[n] == 0xeeeeeeeeeeeeeeeeu);
    assert_int_equal(decode(&st, words, n, &got), n);
    unit_assert_events_equal(&got, &ev);
    for (unsigned cut = 0; cut < n; cut++)
        assert_int_equal(decode(&st, words, cut, &got), 0);
}

static void long_form_of(unsigned kind)
{
    static const uint64_t fillers[] = {0, 1, 0x7fffffffffffffff, UINT64_MAX, 0x7f0000000010};
    for (size_t i = 0; i < sizeof fillers / sizeof *fillers; i++) {
        long_round_trip(kind, fillers[i], 0, 0);
        long_round_trip(kind, fillers[i], 0, 255);
    }
    if (!(event_infos[kind].fields & HT_F_TEXT))
        return;
    static const uint32_t lengths[] = {1, 7, 8, 9, 1023, CODEC_MAX_TEXT_BYTES};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        long_round_trip(kind, 42, lengths[i], 0);
}

static void sized_round_trip(unsigned kind, uint64_t size, uint64_t rel)
{
    struct codec_state st = {EPOCH, BASE};
    uint64_t address = BASE + (rel << CODEC_ADDRESS_SHIFT), word;
    struct event want = {.kind = (uint8_t)kind,
                         .stamp = STAMP,
                         .size = size,
                         .count = kind == HT_CALLOC},
                 got;
    if (event_infos[kind].class == HT_CLASS_FREE)
        want.ptr = address;
    else
        want.result = address;
    assert_int_equal(codec_relative(address, BASE), rel);
    word = codec_sized(kind, STAMP, size, rel);
    assert_int_equal(decode(&st, &word, 1, &got), 1);
    unit_assert_events_equal(&got, &want);
}

static void one_word_form_of(unsigned kind)
{
    static const uint64_t sizes[] = {0, 1, 24, 0xfffe, 0xffff},
                          rels[] = {0, 1, 0x1234567, (1u << CODEC_REL_BITS) - 1};
    static const uint64_t addresses[] = {0, 8, 0x5555deadbee8, 0xfffffffffff8};
    struct codec_state st = {EPOCH, BASE};
    for (size_t i = 0; event_infos[kind].form == HT_FORM_SIZED && i < 20; i++)
        sized_round_trip(kind, sizes[i % 5], rels[i / 5]);
    for (size_t i = 0; event_infos[kind].form == HT_FORM_PLAIN && i < 4; i++) {
        struct event want = {.kind = (uint8_t)kind, .stamp = STAMP, .ptr = addresses[i]}, got;
        uint64_t word = codec_plain(kind, STAMP, addresses[i]);
        assert_int_equal(decode(&st, &word, 1, &got), 1);
        unit_assert_events_equal(&got, &want);
    }
}

// Each generated test gets a wire number as its state.
static void kind_round_trips(void **state)
{
    unsigned kind = (unsigned)(uintptr_t)*state;
    assert_non_null(event_infos[kind].name);
    long_form_of(kind);
    one_word_form_of(kind);
}

// Encodes and decodes the event. Returns the number of words, including the prefix.
static unsigned put_round_trip(struct codec_state *writer, struct codec_state *reader,
                               const struct event *ev)
{
    uint64_t words[CODEC_MAX_RECORD_WORDS + CODEC_MAX_PREFIX_WORDS];
    struct event got = {0};
    unsigned n = (unsigned)(codec_put(writer, words, ev->stamp, ev) - words), at = 0;
    assert_true(n <= codec_long_words(ev) + CODEC_MAX_PREFIX_WORDS);
    while (at < n && !got.kind) {
        unsigned used = decode(reader, words + at, n - at, &got);
        assert_int_not_equal(used, 0);
        at += used;
    }
    assert_int_equal(at, n);
    unit_assert_events_equal(&got, ev);
    assert_true(writer->epoch == reader->epoch && writer->base == reader->base);
    return n;
}

static struct event random_event(uint64_t *random, unsigned kind)
{
    const uint64_t addresses[] = {0,          8,       4096, BASE, BASE + 64, 0x5555deadbee8,
                                  1ull << 50, BASE + 1};
    const unsigned fields = event_infos[kind].fields;
    uint64_t r = unit_random(random), address = addresses[r & 7] + (r >> 20 & 0xff8);
    struct event ev = {
        .kind = (uint8_t)kind, .stamp = unit_random(random) >> 45, .error = r >> 8 & 15 ? 0 : 12};
    ev.ptr = fields & HT_F_PTR && event_infos[kind].class != HT_CLASS_RESIZE ? address : 0;
    ev.size = fields & HT_F_SIZE ? r >> 32 & (r & 1 << 12 ? 0x1ffff : 0xff) : 0;
    ev.count = fields & HT_F_COUNT ? r >> 13 & 3 : 0;
    ev.align = fields & HT_F_ALIGN ? 64 : 0;
    ev.result = fields & HT_F_RESULT ? address : 0;
    ev.value = fields & HT_F_VALUE ? r : 0;
    ev.notes[HT_NOTE_SITE] = r & 1 << 16 ? r >> 17 & 0xff : 0;
    if (fields & HT_F_TEXT && r & 1 << 15) {
        ev.text = "some text";
        ev.text_bytes = 9;
    }
    return ev;
}

static void every_event_is_put_in_a_form_that_holds_it(void **state)
{
    struct codec_state writer = {0}, reader = {0};
    uint64_t random = 7;
    for (unsigned i = 0; i < 200000; i++) {
        unsigned kind = i % HT_KIND_LIMIT;
        if (!event_infos[kind].name)
            continue;
        struct event ev = random_event(&random, kind);
        put_round_trip(&writer, &reader, &ev);
    }
    (void)state;
}

static void the_shortest_form_is_put(void **state)
{
    struct codec_state writer = {EPOCH, BASE}, reader = writer;
    const struct {
        struct event ev;
        unsigned words;
    } cases[] = {
        {{.kind = HT_MALLOC, .stamp = STAMP, .size = 24, .result = BASE + 16}, 1},
        {{.kind = HT_FREE, .stamp = STAMP, .ptr = BASE + 16}, 1},
        {{.kind = HT_FREE, .stamp = STAMP}, 1},
        {{.kind = HT_CALLOC, .stamp = STAMP, .size = 24, .count = 1, .result = BASE}, 1},
        {{.kind = HT_CALLOC, .stamp = STAMP, .size = 24, .count = 2, .result = BASE}, 2},
        {{.kind = HT_CALLOC,
          .stamp = STAMP,
          .size = 24,
          .count = 1000,
          .result = BASE,
          .notes[HT_NOTE_SITE] = 5},
         3},
        {{.kind = HT_CALLOC, .stamp = STAMP, .size = 24, .count = 0, .result = BASE}, 4},
        {{.kind = HT_CALLOC,
          .stamp = STAMP,
          .size = 0,
          .count = 1ull << CODEC_NOTE_BITS,
          .result = BASE},
         4},
        {{.kind = HT_MALLOC, .stamp = STAMP, .size = 1 << 16, .result = BASE}, 3},
        {{.kind = HT_MALLOC, .stamp = STAMP, .size = 24, .error = 12}, 3},
        {{.kind = HT_MALLOC, .stamp = STAMP, .size = 24, .result = BASE, .notes[HT_NOTE_SITE] = 5},
         2},
        {{.kind = HT_MALLOC, .stamp = STAMP, .size = 24, .result = 0x5555deadbee8}, 2}, // sets BASE
        {{.kind = HT_MALLOC, .stamp = STAMP, .size = 24, .result = 0x5555deadbee8 - 4096},
         1}, // in the window below BASE
        {{.kind = HT_FREE, .stamp = STAMP + (1 << CODEC_STAMP_BITS), .ptr = 0x5555deadbee8},
         2}, // sets EPOCH
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned n = put_round_trip(&writer, &reader, &cases[i].ev);
        if (n != cases[i].words)
            fail_msg("case %zu, %s: %u words, expected %u", i, unit_kind_name(cases[i].ev.kind), n,
                     cases[i].words);
    }
    (void)state;
}

static void addresses_that_do_not_fit_are_detected(void **state)
{
    const uint64_t limit = 1ull << CODEC_REL_BITS;
    assert_true(codec_relative(BASE - 8, BASE) >= limit);
    assert_true(codec_relative(BASE + (limit << 3), BASE) >= limit);
    for (uint64_t low = 1; low < 8; low++)
        assert_true(codec_relative(BASE + 64 + low, BASE) >= limit);
    assert_true(codec_relative(0, BASE) >= limit);
    (void)state;
}

static void epoch_and_base_move_the_state_only(void **state)
{
    struct codec_state st = {0};
    struct event ev;
    uint64_t words[] = {codec_epoch_record(0x7ffffffffffff), codec_base_record(BASE),
                        codec_sized(HT_MALLOC, 3, 10, 2)};
    assert_int_equal(decode(&st, words, 3, &ev), 1);
    unit_assert_kind(ev.kind, 0);
    assert_true(st.epoch == 0x7ffffffffffff);
    assert_int_equal(decode(&st, words + 1, 2, &ev), 1);
    unit_assert_kind(ev.kind, 0);
    assert_true(st.base == BASE);
    assert_int_equal(decode(&st, words + 2, 1, &ev), 1);
    assert_true(ev.result == BASE + 16 && ev.stamp == (0x7ffffffffffffull << CODEC_STAMP_BITS | 3));
    (void)state;
}

static void notes_belong_to_the_record_after_them(void **state)
{
    struct codec_state st = {EPOCH, BASE};
    struct event ev, marked = {.kind = HT_MARK, .stamp = STAMP, .text = "text", .text_bytes = 4};
    const uint64_t most = codec_mask(59);
    uint64_t words[8] = {codec_note(HT_NOTE_USABLE, most), codec_sized(HT_MALLOC, STAMP, 10, 2),
                         codec_sized(HT_MALLOC, STAMP, 11, 2)};
    assert_int_equal(decode(&st, words, 3, &ev), 2);
    assert_true(ev.kind == HT_MALLOC && ev.size == 10 && ev.result == BASE + 16 &&
                ev.stamp == STAMP);
    assert_true(ev.notes[HT_NOTE_USABLE] == most);
    assert_int_equal(decode(&st, words + 2, 1, &ev), 1);
    assert_true(ev.size == 11 && ev.notes[HT_NOTE_USABLE] == 0);
    assert_int_equal(decode(&st, words, 1, &ev), 0);
    unsigned n = codec_put_long(words + 1, &marked);
    assert_int_equal(decode(&st, words, 1 + n, &ev), 1 + n);
    assert_memory_equal(ev.text, "text", 4);
    assert_int_equal(decode(&st, words, n, &ev), 0);
    words[1] = codec_epoch_record(7);
    assert_int_equal(decode(&st, words, 3, &ev), 0);
    for (unsigned i = 0; i < 8; i++)
        words[i] = codec_note(HT_NOTE_USABLE, i);
    words[HT_NOTES + 1] = codec_plain(HT_FREE, STAMP, BASE);
    assert_int_equal(decode(&st, words + 1, 7, &ev), HT_NOTES + 1);
    assert_int_equal(ev.notes[HT_NOTE_USABLE], HT_NOTES);
    assert_int_equal(decode(&st, words, 8, &ev), 0);
    (void)state;
}

static void records_of_no_kind_are_refused(void **state)
{
    struct codec_state st = {0};
    struct event ev;
    for (unsigned tag = 0; tag < 32; tag++) {
        uint64_t word = tag;
        bool can = tag == CODEC_TAG_EPOCH || tag == CODEC_TAG_BASE ||
                   event_infos[tag].form != HT_FORM_NONE;
        assert_false(tag >= HT_FIRST_NOTE && event_infos[tag].name);
        assert_int_equal(decode(&st, &word, 1, &ev), can);
    }
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        uint64_t words[8] = {CODEC_TAG_LONG | (uint64_t)kind << CODEC_LONG_KIND_AT};
        unsigned fields = (unsigned)__builtin_popcount(event_infos[kind].fields & ~HT_F_TEXT);
        for (unsigned n = 0; n < 8; n++) {
            words[0] = (words[0] & ~(0xffull << CODEC_LONG_WORDS_AT)) | (uint64_t)n
                                                                            << CODEC_LONG_WORDS_AT;
            bool can = event_infos[kind].name && n == fields;
            assert_int_equal(decode(&st, words, 8, &ev), can ? n + 1 : 0);
        }
    }
    (void)state;
}

// The decoder must not read past the given words. The array of each round has the exact size, so
// that AddressSanitizer detects overreads.
static void random_words_are_survived(void **state)
{
    uint64_t random = 5;
    for (int round = 0; round < 50000; round++) {
        size_t n = 1 + unit_random(&random) % 12;
        uint64_t *words = malloc(n * sizeof *words), sum = 0;
        for (size_t i = 0; i < n; i++) {
            words[i] = unit_random(&random);
            // Half of the words are LONG, and half of those have a plausible length.
            if (round & 1)
                words[i] = (words[i] & ~codec_mask(5)) | CODEC_TAG_LONG;
            if (round & 2)
                words[i] &= ~(0xf8ull << CODEC_LONG_WORDS_AT);
        }
        struct codec_state st = {0};
        struct event ev;
        for (size_t at = 0; at < n;) {
            unsigned used = decode(&st, words + at, n - at, &ev);
            if (!used)
                break;
            assert_true(used <= n - at);
            assert_true(!ev.kind || event_infos[ev.kind].name);
            assert_true(ev.text_bytes <= CODEC_MAX_TEXT_BYTES);
            for (uint32_t i = 0; i < ev.text_bytes; i++)
                sum += (uint8_t)ev.text[i];
            at += used;
        }
        free(words);
        assert_true(sum < 1u << 20);
    }
    (void)state;
}

#define HT_X(wire, SYMBOL, name, symbol, class, stamp, form, fields, ...)                          \
    {"round trip of " name, kind_round_trips, NULL, NULL, (void *)(uintptr_t)wire},
static const struct CMUnitTest tests[] = {
    HT_EVENT_TABLE(HT_X) //
    cmocka_unit_test(every_event_is_put_in_a_form_that_holds_it),
    cmocka_unit_test(the_shortest_form_is_put),
    cmocka_unit_test(addresses_that_do_not_fit_are_detected),
    cmocka_unit_test(epoch_and_base_move_the_state_only),
    cmocka_unit_test(notes_belong_to_the_record_after_them),
    cmocka_unit_test(records_of_no_kind_are_refused),
    cmocka_unit_test(random_words_are_survived),
};
#undef HT_X
UNIT_MAIN(tests)
