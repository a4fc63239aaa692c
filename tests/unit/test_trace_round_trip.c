// Writes traces and reads them again: all kinds, both transforms, batches larger than a frame, and
// damaged files.
#include "base/bytes.h"
#include "trace/codec.h"
#include "trace/columns.h"
#include "trace/packing.h"
#include "trace/reader.h"
#include "trace/writer.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_WORDS = 1 << 16 };

static uint64_t seed;

static uint64_t random_u64(void)
{
    return unit_random(&seed);
}

// A stream of records, as a thread writes it.
struct stream {
    struct codec_state state;
    uint64_t stamp;
    uint64_t *words;
    uint32_t n;
    uint64_t events;
    uint64_t site; // last defined site
    bool golden;   // if true, encode like the writer of the golden file
};

// Returns true for kinds that had no text when the golden file was written.
static bool had_no_text(unsigned kind)
{
    return kind == HT_MMAP || kind == HT_THREAD_END;
}

static void put(struct stream *s, uint64_t word)
{
    assert_true(s->n < MAX_WORDS);
    s->words[s->n++] = word;
}

static void pass_time(struct stream *s, uint64_t ticks)
{
    s->stamp += ticks;
    if (codec_epoch(s->stamp) != s->state.epoch) {
        s->state.epoch = codec_epoch(s->stamp);
        put(s, codec_epoch_record(s->state.epoch));
    }
}

static void put_long(struct stream *s, unsigned kind, uint32_t text_bytes)
{
    static const char text[CODEC_MAX_TEXT_BYTES] = "a text that is longer than a word";
    struct event ev = {.stamp = s->stamp,
                       .ptr = random_u64(),
                       .size = random_u64(),
                       .count = random_u64() % 9,
                       .align = 64,
                       .result = random_u64(),
                       .value = 7,
                       .kind = (uint8_t)kind,
                       .error = (uint8_t)random_u64()};
    if (event_infos[kind].fields & HT_F_TEXT && !(s->golden && had_no_text(kind))) {
        ev.text = text;
        ev.text_bytes = text_bytes;
    }
    assert_true(s->n + CODEC_MAX_LONG_WORDS <= MAX_WORDS);
    s->n += codec_put_long(s->words + s->n, &ev);
    s->events += event_counts(kind);
}

static void put_short(struct stream *s, unsigned kind)
{
    // random_u64 must be called in the same order as by the writer of the golden file.
    if (event_infos[kind].form == HT_FORM_SIZED) {
        uint64_t relative = random_u64() & codec_mask(CODEC_REL_BITS);
        put(s, codec_sized(kind, s->stamp, random_u64() & 0xffff, relative));
    } else {
        put(s, codec_plain(kind, s->stamp, random_u64() & codec_mask(48) & ~7ull));
    }
    s->events += event_counts(kind);
}

static void put_kind(struct stream *s, unsigned kind)
{
    pass_time(s, random_u64() % 3000);
    if (event_infos[kind].form != HT_FORM_NONE)
        put_short(s, kind);
    pass_time(s, random_u64() % 40);
    put_long(s, kind, (uint32_t)(random_u64() % (CODEC_MAX_TEXT_BYTES + 1)));
}

static void fill_all_kinds(struct stream *s)
{
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (event_infos[kind].name)
            put_kind(s, kind);
    }
}

// Writes a call with a site. The site is new, was defined earlier, or is invalid.
static void put_site(struct stream *s, uint64_t r)
{
    const uint64_t addresses[] = {r >> 20, 0x402000, 0x7f0000001234};
    uint32_t n = r & 3;
    struct event ev = {.kind = HT_FRAMES,
                       .stamp = s->stamp,
                       .size = r >> 8 & codec_mask(CODEC_NOTE_BITS),
                       .text = (const char *)addresses,
                       .text_bytes = n * 8};
    if (n) {
        s->n += codec_put_long(s->words + s->n, &ev);
        s->site = ev.size;
        while (n-- > 0)
            s->site = codec_site(s->site, addresses[n]);
    }
    put(s, codec_note(HT_NOTE_SITE, r & 4   ? s->site
                                    : r & 8 ? 0
                                            : r >> 9 & codec_mask(CODEC_NOTE_BITS)));
}

static void fill_random(struct stream *s, uint32_t records)
{
    static const unsigned kinds[] = {HT_MALLOC,        HT_FREE,    HT_CALLOC,
                                     HT_REALLOC_BEGIN, HT_REALLOC, HT_DELETE_SIZED};
    for (uint32_t i = 0; i < records; i++) {
        uint64_t r = random_u64();
        pass_time(s, r % 7 ? r % 50 : r >> 40);
        bool base = !(r >> 8 & 63) && !(r >> 14 & 3);
        if (!base && r >> 32 & 1)
            put(s, codec_note(HT_NOTE_USABLE, r >> (r & 31) & codec_mask(59)));
        if (!base && !(r >> 36 & 7))
            put_site(s, random_u64());
        if (r >> 8 & 63)
            put_short(s, kinds[(r >> 20) % (sizeof kinds / sizeof *kinds)]);
        else if (!base)
            put_long(s, HT_POSIX_MEMALIGN, 0);
        else
            put(s, codec_base_record(s->state.base = random_u64() & (codec_mask(48) & ~7ull)));
    }
}

static struct stream stream_new(void)
{
    struct stream s = {.state = {.base = 0x7f0000000000}, .stamp = random_u64() >> 8};
    s.state.epoch = codec_epoch(s.stamp);
    s.words = malloc(MAX_WORDS * 8);
    assert_non_null(s.words);
    return s;
}

// A trace whose writer writes to a file in memory.
struct fixture {
    int fd;
    char path[64];
    struct output out;
    struct trace_writer w;
    struct err e;
};

static void begin(struct fixture *f, enum frame_codec codec)
{
    *f = (struct fixture){.fd = memfd_create("trace", MFD_CLOEXEC)};
    assert_true(f->fd >= 0);
    snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->fd);
    assert_int_equal(output_open(&f->out, f->path, OUTPUT_FORCE, &f->e), 0);
    trace_writer_init(&f->w, &f->out, codec, 1);
    struct trace_session session = {.clock = CLOCK_KIND_TSC,
                                    .clock_hz = 2596000000u,
                                    .stamp_shift = CODEC_STAMP_SHIFT,
                                    .start_stamp = 1000,
                                    .argv = "prog\0-x\0",
                                    .argv_bytes = 8,
                                    .host = "here",
                                    .cpus = 2};
    assert_int_equal(trace_write_session(&f->w, &session, &f->e), 0);
    struct trace_process p = {
        .number = 0, .pid = 4242, .ppid = 1, .exe = "/bin/prog", .argv = "prog", .argv_bytes = 5};
    assert_int_equal(trace_write_process(&f->w, &p, &f->e), 0);
}

static void finish(struct fixture *f)
{
    trace_writer_release(&f->w);
    assert_int_equal(output_close(&f->out, true, &f->e), 0);
}

static void discard(struct fixture *f)
{
    close(f->fd);
}

static struct trace_segment whole(const struct stream *s, uint64_t epoch0, uint64_t base0)
{
    return (struct trace_segment){.thread = 3,
                                  .tid = 4245,
                                  .stream = 1,
                                  .first_word = 77,
                                  .epoch0 = epoch0,
                                  .base0 = base0,
                                  .n_words = s->n,
                                  .words = s->words};
}

// Returns true if the segment consists of complete records with their notes.
static bool is_whole(const struct trace_segment *g)
{
    struct codec_state state = {g->epoch0, g->base0};
    struct event ev;
    uint32_t at = 0, used = 1;
    for (; at < g->n_words && used; at += used)
        used = codec_get(&state, g->words + at, g->n_words - at, &ev);
    return at == g->n_words;
}

// Reads the file and compares words, codec state and order with the stream.
static void check_file(const struct fixture *f, const struct stream *s, uint32_t frame_words)
{
    struct input in;
    struct trace_reader r;
    struct trace_item item;
    struct err e = {0};
    assert_int_equal(input_open(&in, f->path, &e), 0);
    assert_int_equal(trace_reader_open(&r, &in, &e), 0);
    assert_int_equal(r.session.clock_hz, 2596000000u);
    assert_memory_equal(r.session.argv, "prog\0-x", 8);
    uint32_t at = 0, frames = 0;
    bool ended = false;
    int rc;
    while ((rc = trace_next(&r, &item, &e)) > 0) {
        if (item.type == TRACE_PROCESS)
            assert_string_equal(item.process->exe, "/bin/prog");
        if (item.type == TRACE_END)
            assert_int_equal(item.events, s->events);
        if (item.type == TRACE_END)
            assert_true(item.clock_hz == 2596000123u);
        if (item.type != TRACE_EVENTS)
            continue;
        frames++;
        ended = item.batch_ends;
        assert_int_equal(item.watermark, item.batch_ends ? 5 : 0);
        for (size_t i = 0; i < item.n_segments; i++) {
            const struct trace_segment *g = &item.segments[i];
            assert_int_equal(g->first_word, 77 + at);
            assert_int_equal(g->thread, 3);
            assert_true(g->n_words <= s->n - at);
            assert_memory_equal(g->words, s->words + at, g->n_words * 8);
            assert_true(is_whole(g));
            at += g->n_words;
        }
    }
    assert_string_equal(e.text, "");
    assert_int_equal(rc, 0);
    assert_int_equal(at, s->n);
    assert_true(ended && r.saw_end);
    assert_true(frames > s->n / frame_words);
    trace_reader_close(&r);
    input_close(&in);
}

static void round_trip(struct stream *s, uint64_t epoch0, enum frame_codec codec,
                       uint32_t frame_words)
{
    struct fixture f;
    begin(&f, codec);
    f.w.frame_words = frame_words;
    struct trace_segment segment = whole(s, epoch0, 0x7f0000000000);
    assert_int_equal(trace_write_batch(&f.w, 5, &segment, 1, &f.e), 0);
    assert_int_equal(segment.n_words, s->n);
    assert_int_equal(segment.epoch_end, s->state.epoch);
    assert_int_equal(segment.base_end, s->state.base);
    assert_int_equal(f.w.events, s->events);
    assert_int_equal(trace_write_end(&f.w, 9, 2596000123u, &f.e), 0);
    finish(&f);
    check_file(&f, s, frame_words);
    discard(&f);
}

static void test_round_trip(void **state)
{
    (void)state;
    seed = 88172645463325252ull;
    for (unsigned i = 0; i < 12; i++) {
        struct stream s = stream_new();
        uint64_t epoch0 = s.state.epoch;
        if (i % 2)
            fill_random(&s, 20000);
        else
            fill_all_kinds(&s);
        round_trip(&s, epoch0, (enum frame_codec)(i % 3), i < 6 ? 1 << 17 : 700);
        free(s.words);
    }
}

// Adds the next records of `g`, at most `most` words, as scanned columns, and advances `g`.
static void add_scanned(struct fixture *f, const struct columns *c, struct trace_segment *g,
                        uint32_t most)
{
    struct columns_records r = {.state = {g->epoch0, g->base0}};
    uint64_t *copy = malloc(most * sizeof *copy);
    columns_scan(c, g->words, most, &r);
    assert_true(r.words > 0);
    memcpy(copy, g->words, r.words * sizeof *copy);
    struct trace_segment piece = *g;
    piece.words = copy;
    piece.n_words = r.words;
    piece.n_records = r.records;
    piece.epoch_end = r.state.epoch;
    piece.base_end = r.state.base;
    assert_int_equal(trace_batch_add_scanned(&f->w, &piece, r.events, &f->e), 0);
    assert_int_equal(trace_batch_flush(&f->w, &f->e), 0);
    // After the flush, the writer must not use the words anymore.
    memset(copy, 0, r.words * sizeof *copy);
    free(copy);
    g->words += r.words;
    g->n_words -= r.words;
    g->first_word += r.words;
    g->epoch0 = r.state.epoch;
    g->base0 = r.state.base;
}

// Scanned segments are read back like others, whether the writer copies their words (columns) or
// not.
static void test_scanned(void **state)
{
    (void)state;
    seed = 99;
    for (unsigned i = 0; i < 6; i++) {
        struct columns c;
        struct fixture f;
        struct stream s = stream_new();
        uint64_t epoch0 = s.state.epoch;
        fill_random(&s, 20000);
        columns_init(&c);
        begin(&f, (enum frame_codec)(i % 3));
        f.w.frame_words = i < 3 ? 1 << 17 : 700;
        struct trace_segment left = whole(&s, epoch0, 0x7f0000000000);
        assert_int_equal(trace_batch_begin(&f.w, &f.e), 0);
        while (left.n_words)
            add_scanned(&f, &c, &left, left.n_words < 3000 ? left.n_words : 3000);
        assert_int_equal(f.w.events, s.events);
        assert_int_equal(trace_batch_end(&f.w, 5, &f.e), 0);
        assert_int_equal(trace_write_end(&f.w, 9, 2596000123u, &f.e), 0);
        finish(&f);
        check_file(&f, &s, 1 << 17);
        discard(&f);
        free(s.words);
    }
}

static void test_empty_batch(void **state)
{
    (void)state;
    struct stream s = {.state = {.base = 0x7f0000000000}};
    round_trip(&s, 0, FRAME_CODEC_ZSTD, 700);
}

// An invalid word ends the segment; the records before it are kept.
static void test_bad_words(void **state)
{
    (void)state;
    static const uint64_t bad[] = {0, HT_MEMALIGN, HT_FIRST_NOTE + HT_NOTE_USABLE,
                                   CODEC_TAG_LONG | 200ull << CODEC_LONG_KIND_AT,
                                   CODEC_TAG_LONG | (uint64_t)HT_MALLOC << CODEC_LONG_KIND_AT |
                                       200ull << CODEC_LONG_WORDS_AT};
    seed = 4711;
    for (unsigned i = 0; i < 2 * sizeof bad / sizeof *bad; i++) {
        struct stream s = stream_new();
        struct fixture f;
        uint64_t epoch0 = s.state.epoch;
        fill_random(&s, 3000);
        uint32_t good = s.n;
        s.words[s.n] = bad[i / 2];
        // A note is followed by its record.
        s.words[s.n + 1] = bad[i / 2] == HT_FIRST_NOTE + HT_NOTE_USABLE
                               ? codec_epoch_record(1)
                               : codec_plain(HT_FREE, 1, 8);
        s.n += 2;
        begin(&f, i % 2 ? FRAME_CODEC_ZSTD : FRAME_CODEC_NONE);
        struct trace_segment segment = whole(&s, epoch0, 0x7f0000000000);
        assert_int_equal(trace_write_batch(&f.w, 5, &segment, 1, &f.e), 0);
        assert_int_equal(segment.n_words, good);
        assert_int_equal(trace_write_end(&f.w, 9, 2596000123u, &f.e), 0);
        finish(&f);
        s.n = good;
        check_file(&f, &s, 1 << 17);
        discard(&f);
        free(s.words);
    }
}

static void test_fields(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, FRAME_CODEC_LZ4);
    struct trace_process end = {.number = 0,
                                .end_stamp = 99,
                                .exit_status = 256,
                                .has_exit_status = 1,
                                .attached = 1,
                                .without_units = 1,
                                .lost_records = 5,
                                .waits = 6,
                                .wait_ns = 7,
                                .early_events = 3,
                                .early_max_ticks = 20000,
                                .early_usual_ticks = 16384,
                                .peak_rss_bytes = 1 << 20,
                                .recording_growth_bytes = 4096,
                                .threads = 8,
                                .off_reason = "because"};
    struct trace_sample samples[] = {{0, 1000, 1 << 20, 4096}, {0, 900, 2 << 20, 8192}};
    assert_int_equal(trace_write_samples(&f.w, samples, 2, &f.e), 0);
    assert_int_equal(trace_write_process_end(&f.w, &end, &f.e), 0);
    finish(&f);
    struct input in;
    struct trace_reader r;
    struct trace_item item;
    assert_int_equal(input_open(&in, f.path, &f.e), 0);
    assert_int_equal(trace_reader_open(&r, &in, &f.e), 0);
    assert_int_equal(trace_next(&r, &item, &f.e), 1);
    assert_int_equal(item.process->pid, 4242);
    assert_int_equal(item.process->ended, 0);
    assert_int_equal(trace_next(&r, &item, &f.e), 1);
    assert_int_equal(item.n_samples, 2);
    assert_int_equal(item.samples[1].stamp, 900);
    assert_int_equal(item.samples[1].rss_bytes, 2 << 20);
    assert_int_equal(item.samples[0].anon_bytes, 4096);
    assert_int_equal(trace_next(&r, &item, &f.e), 1);
    assert_int_equal(item.process->ended, 1);
    assert_int_equal(item.process->pid, 4242);
    assert_int_equal(item.process->exit_status, 256);
    assert_int_equal(item.process->wait_ns, 7);
    assert_int_equal(item.process->early_events, 3);
    assert_int_equal(item.process->early_max_ticks, 20000);
    assert_int_equal(item.process->early_usual_ticks, 16384);
    assert_int_equal(item.process->peak_rss_bytes, 1 << 20);
    assert_int_equal(item.process->recording_growth_bytes, 4096);
    assert_int_equal(item.process->without_units, 1);
    // An attached process may have had this peak before the recording.
    assert_int_equal(trace_process_peak_rss(item.process), 0);
    assert_string_equal(item.process->off_reason, "because");
    assert_int_equal(trace_next(&r, &item, &f.e), 0);
    assert_false(r.saw_end);
    trace_reader_close(&r);
    input_close(&in);
    discard(&f);
}

// Reads a file to the end or the first error and touches every word. Returns the number of events.
static uint64_t read_all(const char *path, int *rc)
{
    struct input in;
    struct trace_reader r;
    struct trace_item item;
    struct err e = {0};
    uint64_t records = 0, sum = 0;
    *rc = input_open(&in, path, &e);
    if (*rc < 0)
        return 0;
    *rc = trace_reader_open(&r, &in, &e);
    if (*rc == 0 || *rc == 1) {
        while ((*rc = trace_next(&r, &item, &e)) > 0) {
            if (item.type != TRACE_EVENTS)
                continue;
            for (size_t i = 0; i < item.n_segments; i++) {
                records += item.segments[i].n_records;
                for (uint32_t k = 0; k < item.segments[i].n_words; k++)
                    sum += item.segments[i].words[k];
            }
        }
        if (*rc == 0 && !r.saw_end)
            *rc = 1;
        trace_reader_close(&r);
    }
    assert_true(*rc >= 0 || e.text[0]);
    assert_true(sum || !records);
    input_close(&in);
    return records;
}

static size_t load(const char *path, uint8_t *bytes, size_t room)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, room, f);
    fclose(f);
    return n;
}

static void store(const char *path, const uint8_t *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void make_small(struct fixture *f, enum frame_codec codec)
{
    struct stream s = stream_new();
    uint64_t epoch0 = s.state.epoch;
    fill_random(&s, 400);
    begin(f, codec);
    f->w.frame_words = 300;
    struct trace_segment segment = whole(&s, epoch0, 0x7f0000000000);
    assert_int_equal(trace_write_batch(&f->w, 5, &segment, 1, &f->e), 0);
    assert_int_equal(trace_write_end(&f->w, 9, 0, &f->e), 0);
    finish(f);
    free(s.words);
}

// A file with a flipped bit or a missing end is an error or "not ended", but never accepted as
// complete.
static void test_damage(void **state)
{
    (void)state;
    static uint8_t good[1 << 18], bad[1 << 18];
    seed = 99;
    for (unsigned codec = 0; codec < 3; codec++) {
        struct fixture f;
        int rc;
        make_small(&f, (enum frame_codec)codec);
        size_t n = load(f.path, good, sizeof good);
        uint64_t records = read_all(f.path, &rc);
        assert_int_equal(rc, 0);
        for (size_t i = 0; i < n; i += 1 + random_u64() % 9) {
            memcpy(bad, good, n);
            bad[i] ^= (uint8_t)(1u << random_u64() % 8);
            store(f.path, bad, n);
            assert_true(read_all(f.path, &rc) <= records);
            assert_true(rc < 0);
            store(f.path, good, i);
            assert_true(read_all(f.path, &rc) <= records);
            assert_true(rc != 0);
        }
        discard(&f);
    }
}

// Copies the frames of f->path to `to` and changes some bytes of each payload before its checksum
// is computed.
static void mutate(const struct fixture *f, const char *to, uint64_t at)
{
    struct input in;
    struct output out;
    struct frame_reader reader;
    struct frame_writer writer;
    struct frame frame;
    struct err e = {0};
    static uint8_t payload[1 << 18];
    assert_int_equal(input_open(&in, f->path, &e), 0);
    assert_int_equal(output_open(&out, to, OUTPUT_FORCE, &e), 0);
    frame_reader_init(&reader, &in, FRAME_MAGIC_TRACE, TRACE_VERSION);
    frame_writer_init(&writer, &out, FRAME_MAGIC_TRACE, TRACE_VERSION, FRAME_CODEC_NONE, 0);
    while (frame_next(&reader, &frame, &e) > 0) {
        size_t n = frame.size;
        memcpy(payload, frame.data, n);
        if (n && at % 3)
            payload[(at * 7 + writer.next_sequence) % n] = (uint8_t)random_u64();
        else if (n)
            n -= 1 + at % n;
        // The head of an events frame contains the counts.
        if (frame.type == TRACE_EVENTS && n > 200 && at & 1)
            payload[at / 2 % 200] ^= (uint8_t)(1u << random_u64() % 8);
        assert_int_equal(frame_write(&writer, frame.type, payload, n, &e), 0);
    }
    frame_writer_release(&writer);
    frame_reader_release(&reader);
    output_close(&out, true, &e);
    input_close(&in);
}

// Simulates a hostile writer with correct checksums. The reader may accept or reject the file, but
// must not crash (AddressSanitizer detects overreads).
static void test_hostile(void **state)
{
    (void)state;
    seed = 12345;
    struct fixture f, g;
    unsigned refused = 0;
    for (unsigned codec = 0; codec < 3; codec += 2) {
        make_small(&f, (enum frame_codec)codec);
        make_small(&g, FRAME_CODEC_NONE);
        for (uint64_t at = 0; at < 2000; at++) {
            int rc;
            mutate(&f, g.path, at);
            read_all(g.path, &rc);
            refused += rc < 0;
        }
        discard(&f);
        discard(&g);
    }
    assert_true(refused > 1000);
}

// The columns of trace-1.ht have transform 1, and the columns of trace-2.ht have transform 3.
static const char *const golden_files[] = {"trace-1.ht", "trace-2.ht"};
enum { GOLDEN_FILES = sizeof golden_files / sizeof *golden_files };

static void golden_path(char path[4096], const char *file)
{
    const char *source = getenv("HEAPTAPE_SOURCE");
    snprintf(path, 4096, "%s/tests/golden/%s", source ? source : "..", file);
}

// The kinds that the golden files contain. Newer kinds are not added, because the files must
// not change.
static const uint8_t golden_kinds[] = {HT_MALLOC,
                                       HT_FREE,
                                       HT_CALLOC,
                                       HT_REALLOC_BEGIN,
                                       HT_REALLOC,
                                       HT_REALLOCARRAY,
                                       HT_MEMALIGN,
                                       HT_ALIGNED_ALLOC,
                                       HT_POSIX_MEMALIGN,
                                       HT_VALLOC,
                                       HT_PVALLOC,
                                       HT_FREE_SIZED,
                                       HT_FREE_ALIGNED_SIZED,
                                       HT_NEW,
                                       HT_NEW_ARRAY,
                                       HT_DELETE,
                                       HT_DELETE_ARRAY,
                                       HT_DELETE_SIZED,
                                       HT_DELETE_ARRAY_SIZED,
                                       HT_NEW_NOTHROW,
                                       HT_NEW_ARRAY_NOTHROW,
                                       HT_NEW_ALIGNED,
                                       HT_NEW_ARRAY_ALIGNED,
                                       HT_NEW_ALIGNED_NOTHROW,
                                       HT_NEW_ARRAY_ALIGNED_NOTHROW,
                                       HT_DELETE_NOTHROW,
                                       HT_DELETE_ARRAY_NOTHROW,
                                       HT_DELETE_ALIGNED,
                                       HT_DELETE_ARRAY_ALIGNED,
                                       HT_DELETE_SIZED_ALIGNED,
                                       HT_DELETE_ARRAY_SIZED_ALIGNED,
                                       HT_DELETE_ALIGNED_NOTHROW,
                                       HT_DELETE_ARRAY_ALIGNED_NOTHROW,
                                       HT_MMAP,
                                       HT_MUNMAP,
                                       HT_MREMAP,
                                       HT_SBRK,
                                       HT_THREAD_CREATE,
                                       HT_THREAD_START,
                                       HT_THREAD_END,
                                       HT_MARK,
                                       HT_MALLOC_STATS,
                                       HT_MALLOC_INFO,
                                       HT_MALLINFO,
                                       HT_MALLINFO2,
                                       HT_MALLOC_TRIM,
                                       HT_MALLOPT,
                                       HT_WAITED,
                                       HT_LOST,
                                       HT_PREEXISTING};

// Returns a batch of a golden file. The file has a batch for each codec, with a record of each
// kind.
static struct stream golden_stream(enum frame_codec codec)
{
    seed = 2026 + codec;
    struct stream s = stream_new();
    s.golden = true;
    for (size_t i = 0; i < sizeof golden_kinds; i++)
        put_kind(&s, golden_kinds[i]);
    return s;
}

static void write_golden(const char *path)
{
    struct fixture f;
    begin(&f, FRAME_CODEC_NONE);
    for (unsigned codec = 0; codec < 3; codec++) {
        struct stream s = golden_stream((enum frame_codec)codec);
        f.w.frames.codec = (enum frame_codec)codec;
        struct trace_segment segment = whole(&s, 0, 0x7f0000000000);
        assert_int_equal(trace_write_batch(&f.w, 5, &segment, 1, &f.e), 0);
        free(s.words);
    }
    assert_int_equal(trace_write_end(&f.w, 9, 0, &f.e), 0);
    finish(&f);
    static uint8_t bytes[1 << 20];
    store(path, bytes, load(f.path, bytes, sizeof bytes));
    discard(&f);
}

// Returns the name of the first differing field, or "record" if a record is invalid or the words
// differ.
static const char *differing_field(const struct event *a, const struct event *b)
{
    bool same_text = a->text_bytes == b->text_bytes &&
                     (!a->text_bytes || memcmp(a->text, b->text, a->text_bytes) == 0);
    return a->kind != b->kind       ? "kind"
           : a->stamp != b->stamp   ? "stamp"
           : a->ptr != b->ptr       ? "ptr"
           : a->size != b->size     ? "size"
           : a->count != b->count   ? "count"
           : a->align != b->align   ? "align"
           : a->result != b->result ? "result"
           : a->value != b->value   ? "value"
           : a->error != b->error   ? "error"
           : !same_text             ? "text"
                                    : "record";
}

static const char *name_of(const struct event *ev)
{
    return event_infos[ev->kind].name ? event_infos[ev->kind].name : "EPOCH or BASE";
}

#define ACCEPT                                                                                     \
    "The format has changed. If that is intended, give it a new version, add a file to "           \
    "golden_files, and run HEAPTAPE_WRITE_GOLDEN=1 tools/test trace_round_trip test_golden"

// Compares a segment of the file with the stream. Fails at the first record that differs.
static void check_golden(const char *path, unsigned batch, const struct trace_segment *g,
                         const struct stream *s)
{
    struct codec_state have = {g->epoch0, g->base0}, want = have;
    for (uint32_t at = 0; at < s->n;) {
        struct event a = {0}, b = {0};
        uint32_t left = at < g->n_words ? g->n_words - at : 0;
        uint32_t words = codec_get(&want, s->words + at, s->n - at, &b);
        uint32_t got = codec_get(&have, g->words + at, left, &a);
        assert_true(words);
        if (got != words || memcmp(g->words + at, s->words + at, words * 8) != 0)
            fail_msg("%s: batch %u, word %u: field %s of %s (in the file) and %s (expected) "
                     "differs. " ACCEPT,
                     path, batch, at, differing_field(&a, &b), name_of(&a), name_of(&b));
        at += words;
    }
    if (g->n_words != s->n)
        fail_msg("%s: batch %u: has %u words, expected %u. " ACCEPT, path, batch, g->n_words, s->n);
}

static void read_golden(const char *file)
{
    char path[4096];
    struct input in;
    struct trace_reader r;
    struct trace_item item;
    struct err e = {0};
    unsigned batch = 0;
    golden_path(path, file);
    assert_int_equal(input_open(&in, path, &e), 0);
    assert_int_equal(trace_reader_open(&r, &in, &e), 0);
    while (trace_next(&r, &item, &e) > 0) {
        if (item.type != TRACE_EVENTS)
            continue;
        struct stream s = golden_stream((enum frame_codec)batch++);
        assert_int_equal(item.n_segments, 1);
        assert_int_equal(item.segments->tid, 4245);
        check_golden(path, batch, item.segments, &s);
        assert_int_equal(item.segments->epoch_end, s.state.epoch);
        free(s.words);
    }
    assert_string_equal(e.text, "");
    assert_int_equal(batch, 3);
    assert_true(r.saw_end);
    trace_reader_close(&r);
    input_close(&in);
}

// Files by earlier writers must stay readable. HEAPTAPE_WRITE_GOLDEN=1 writes the last file again.
static void test_golden(void **state)
{
    char path[4096];
    golden_path(path, golden_files[GOLDEN_FILES - 1]);
    if (getenv("HEAPTAPE_WRITE_GOLDEN"))
        write_golden(path);
    for (size_t i = 0; i < GOLDEN_FILES; i++)
        read_golden(golden_files[i]);
    (void)state;
}

// Reads a trace that has `payload` as its last frame. Returns the reader's error message.
static const char *read_frame(enum trace_frame type, const uint8_t *payload, size_t n)
{
    static struct err e;
    struct fixture f;
    struct input in;
    struct trace_reader r;
    struct trace_item item;
    e = (struct err){0};
    begin(&f, FRAME_CODEC_NONE);
    assert_int_equal(frame_write(&f.w.frames, (uint8_t)type, payload, n, &f.e), 0);
    finish(&f);
    assert_int_equal(input_open(&in, f.path, &e), 0);
    assert_int_equal(trace_reader_open(&r, &in, &e), 0);
    while (trace_next(&r, &item, &e) > 0)
        continue;
    trace_reader_close(&r);
    input_close(&in);
    discard(&f);
    return e.text;
}

static void test_bad_payloads(void **state)
{
    // Each array is a sample: count, process, stamp and two sizes. The trace contains only process
    // 0.
    static const uint8_t known[] = {1, 0, 2, 3, 4}, unknown[] = {1, 1, 2, 3, 4},
                         longer[] = {1, 0, 2, 3, 4, 5};
    assert_string_equal(read_frame(TRACE_SAMPLES, known, sizeof known), "");
    assert_non_null(strstr(read_frame(TRACE_SAMPLES, unknown, sizeof unknown),
                           ": a sample refers to an unknown process, in the frame at byte "));
    assert_non_null(strstr(read_frame(TRACE_SAMPLES, longer, sizeof longer),
                           ": bytes follow the samples, in the frame at byte "));
    // The segment claims more words than the frame can contain.
    uint8_t events[EVENTS_HEADER_BYTES + EVENTS_SEGMENT_BYTES] = {0};
    put_u32(events + 20, 1);
    put_u32(events + EVENTS_HEADER_BYTES + 40, 2 * sizeof events + 2);
    assert_non_null(strstr(read_frame(TRACE_EVENTS, events, sizeof events),
                           ": an events frame holds too many words, in the frame at byte "));
    (void)state;
}

// The bytes of a column are whole items, and all bytes belong to a column.
static void test_column_lengths(void **state)
{
    static const struct {
        unsigned column;
        uint8_t bytes, more;
        bool good;
    } cases[] = {{COLUMN_WORDS, 8, 0, true},
                 {COLUMN_WORDS, 9, 0, false},
                 {COLUMN_TAG, 1, 0, true},
                 {COLUMN_TAG, 1, 1, false}};
    struct columns c;
    columns_init(&c);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t payload[4 * COLUMN_COUNT + 16] = {0};
        struct columns_source src;
        payload[4 * cases[i].column] = cases[i].bytes;
        assert_int_equal(columns_open(&c, &src, EVENTS_COLUMNS, payload,
                                      4 * COLUMN_COUNT + cases[i].bytes + cases[i].more),
                         cases[i].good);
    }
    (void)state;
}

// Restores the words of the columns.
static bool restore_words(const struct columns *c, struct columns_records *r, uint64_t *words)
{
    struct columns_source src = {.transform = EVENTS_COLUMNS};
    for (unsigned k = 0; k < COLUMN_COUNT; k++) {
        src.column[k] = c->column[k].data;
        src.left[k] = (uint32_t)c->column[k].size / (k == COLUMN_WORDS ? 8 : 1);
    }
    return columns_get(c, &src, r, words) && columns_ended(&src);
}

// Restores the words of `s`. A tag with an unknown flag is refused.
static void check_restored(struct columns *c, const struct stream *s, struct columns_records r,
                           struct codec_state first)
{
    uint64_t *words = malloc(s->n * sizeof *words);
    r.events = 0;
    r.state = first;
    assert_true(restore_words(c, &r, words));
    assert_int_equal(r.events, s->events);
    assert_memory_equal(words, s->words, s->n * sizeof *words);
    r.state = first;
    c->column[COLUMN_TAG].data[c->column[COLUMN_TAG].size / 2] |= 2 << CODEC_TAG_BITS;
    assert_false(restore_words(c, &r, words));
    free(words);
}

// The columns do not depend on the instructions of the processor.
static void test_wide(void **state)
{
    (void)state;
    seed = 31;
    for (unsigned i = 0; i < 20; i++) {
        struct stream s = stream_new();
        struct codec_state first = s.state;
        // Runs of frequent records, between other records.
        fill_random(&s, 300 * (i % 3));
        while (s.n < 9000 + i) {
            put_short(&s, random_u64() % 2 ? HT_MALLOC : HT_FREE);
            pass_time(&s, random_u64() % 9 ? 0 : 1);
        }
        struct columns c[2];
        struct columns_records r[2] = {{.state = first}, {.state = first}};
        for (unsigned k = 0; k < 2; k++) {
            columns_init(&c[k]);
            c[k].wide &= k;
            assert_int_equal(columns_reserve(&c[k], s.n), 0);
            columns_put(&c[k], s.words, s.n, &r[k]);
            struct columns_records scanned = {.state = first};
            columns_scan(&c[k], s.words, s.n, &scanned);
            assert_int_equal(scanned.events, s.events);
        }
        assert_int_equal(r[0].words, s.n);
        assert_int_equal(r[1].words, s.n);
        assert_int_equal(r[0].records, r[1].records);
        assert_int_equal(r[0].events, r[1].events);
        for (unsigned k = 0; k < COLUMN_COUNT; k++) {
            assert_int_equal(c[0].column[k].size, c[1].column[k].size);
            assert_memory_equal(c[0].column[k].data, c[1].column[k].data, c[0].column[k].size);
        }
        check_restored(&c[0], &s, r[0], first);
        check_restored(&c[1], &s, r[1], first);
        columns_release(&c[0]);
        columns_release(&c[1]);
        free(s.words);
    }
}

// Packed columns hold at most as many items as the frame has words. Unknown packings, packed words
// and missing bytes are refused.
static void test_packed_lengths(void **state)
{
    static const struct {
        unsigned column, packing;
        uint8_t items, bytes;
        enum columns_transform transform;
        bool good;
    } cases[] = {{COLUMN_TAG, 1, 2, 17, EVENTS_COLUMNS, true},
                 {COLUMN_TAG, 1, 2, 16, EVENTS_COLUMNS, false},
                 {COLUMN_TAG, 3, 2, 3, EVENTS_COLUMNS, true},
                 {COLUMN_TAG, 3, 2, 3, EVENTS_COLUMNS_3, false},
                 {COLUMN_TAG, 3, 3, 3, EVENTS_COLUMNS, false},
                 {COLUMN_TAG, 4, 2, 3, EVENTS_COLUMNS, false},
                 {COLUMN_WORDS, 3, 0, 2, EVENTS_COLUMNS, false}};
    struct columns c;
    columns_init(&c);
    assert_int_equal(columns_reserve(&c, 2), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t payload[4 * COLUMN_COUNT + 32] = {0};
        struct columns_source src;
        put_u32(payload + 4 * cases[i].column,
                cases[i].items | cases[i].packing << EVENTS_PACKING_AT);
        assert_int_equal(
            columns_open(&c, &src, cases[i].transform, payload, 4 * COLUMN_COUNT + cases[i].bytes),
            cases[i].good);
    }
    columns_release(&c);
    (void)state;
}

// Columns are packed if they have 2 to 16 values, also if a value appears late.
static void test_packing(void **state)
{
    static const unsigned packings[] = {[2] = 3, 2, 2, [5 ... 16] = 1, 0, 0};
    enum { MOST = 5000 };
    uint8_t items[MOST], packed[MOST + PACKING_SLACK], restored[MOST + PACKING_SLACK];
    seed = 4;
    for (unsigned values = 1; values < sizeof packings / sizeof *packings; values++) {
        for (size_t n = 1023; n <= MOST; n += n < 1100 ? 1 : 997) {
            for (size_t i = 0; i < n; i++)
                items[i] = (uint8_t)(11 * (random_u64() % (i < n / 2 ? (values + 1) / 2 : values)));
            for (unsigned k = 0; k < values; k++)
                items[n - 1 - k] = (uint8_t)(11 * k);
            unsigned packing = packing_put(items, n, packed);
            assert_int_equal(packing, n < 1024 ? 0 : packings[values]);
            if (packing == 0)
                continue;
            packing_get(packing, packed, n, restored);
            assert_memory_equal(items, restored, n);
        }
    }
    (void)state;
}

// Only SIZED, PLAIN and LONG records have the flag, and only since transform 3.
static void test_changed_tags(void **state)
{
    enum { CHANGED = 1 << CODEC_TAG_BITS };
    static const struct {
        enum columns_transform transform;
        uint8_t tag, stamps;
        bool good;
    } cases[] = {{EVENTS_COLUMNS, HT_MALLOC | CHANGED, 1, true},
                 {EVENTS_COLUMNS, HT_MALLOC | CHANGED, 0, false},
                 {EVENTS_COLUMNS, HT_MALLOC | 2 * CHANGED, 1, false},
                 {EVENTS_COLUMNS, HT_MALLOC, 0, true},
                 {EVENTS_COLUMNS, CODEC_TAG_BASE, 0, true},
                 {EVENTS_COLUMNS, CODEC_TAG_BASE | CHANGED, 1, false},
                 {EVENTS_COLUMNS_2, HT_MALLOC | CHANGED, 1, false},
                 {EVENTS_COLUMNS_2, HT_MALLOC, 1, true},
                 {EVENTS_COLUMNS_2, HT_MALLOC, 0, false}};
    struct columns c;
    columns_init(&c);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool base = (cases[i].tag & codec_mask(CODEC_TAG_BITS)) == CODEC_TAG_BASE;
        uint8_t payload[4 * COLUMN_COUNT + 32] = {0};
        uint32_t bytes = 4 * COLUMN_COUNT;
        for (unsigned k = 0; k < COLUMN_COUNT; k++) {
            uint32_t n = k == COLUMN_TAG     ? 1
                         : k < COLUMN_SIZE   ? cases[i].stamps
                         : k < COLUMN_PTR    ? !base
                         : k == COLUMN_WORDS ? 8 * base
                                             : 0;
            put_u32(payload + 4 * k, n);
            bytes += n;
        }
        payload[4 * COLUMN_COUNT] = cases[i].tag;
        struct columns_source src;
        struct columns_records r = {.words = 1, .records = 1};
        uint64_t word;
        assert_true(columns_open(&c, &src, cases[i].transform, payload, bytes));
        assert_int_equal(columns_get(&c, &src, &r, &word), cases[i].good);
    }
    (void)state;
}

// Tests paths of glibc's libc and of other libraries.
static void test_uses_glibc(void **state)
{
    static const struct {
        const char *path;
        bool glibc;
    } cases[] = {{"/lib/x86_64-linux-gnu/libc.so.6", true},
                 {"libc.so.6", true},
                 {"/lib/libc-2.31.so", true},
                 {"/usr/lib/libc.so", false}, // musl
                 {"/lib/ld-musl-x86_64.so.1", false},
                 {"/usr/lib/libjemalloc.so.2", false},
                 {NULL, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct trace_process p = {.allocator = (char *)(uintptr_t)cases[i].path};
        assert_int_equal(trace_is_glibc(p.allocator), cases[i].glibc);
    }
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_scanned),
    cmocka_unit_test(test_empty_batch),    cmocka_unit_test(test_bad_words),
    cmocka_unit_test(test_fields),         cmocka_unit_test(test_damage),
    cmocka_unit_test(test_column_lengths), cmocka_unit_test(test_packed_lengths),
    cmocka_unit_test(test_wide),           cmocka_unit_test(test_packing),
    cmocka_unit_test(test_changed_tags),   cmocka_unit_test(test_bad_payloads),
    cmocka_unit_test(test_hostile),        cmocka_unit_test(test_golden),
    cmocka_unit_test(test_uses_glibc),
};
UNIT_MAIN(tests)
