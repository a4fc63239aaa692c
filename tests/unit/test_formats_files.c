// Tests every format of the table: heaptape must read its own output. It must count invalid records
// of other input, or reject the input with an error message.
#include "formats/export.h"
#include "formats/import.h"

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t state;

// Totals of the events of an import.
struct seen {
    uint64_t events, segments, processes;
    uint64_t kinds[HT_KIND_LIMIT];
};

static int take_session(void *context, const struct trace_session *s, bool has_times)
{
    (void)context, (void)has_times;
    assert_int_equal(s->clock_hz, 1000000000);
    return 0;
}

static int take_process(void *context, const struct trace_process *p)
{
    struct seen *seen = context;
    assert_int_equal(p->number, seen->processes);
    seen->processes++;
    return 0;
}

// Checks that every record is complete, of a known kind, and not later than the watermark.
static int take_round(void *context, struct trace_segment *segments, size_t n, uint64_t watermark)
{
    struct seen *seen = context;
    for (size_t i = 0; i < n; i++) {
        struct codec_state at = {segments[i].epoch0, segments[i].base0};
        for (uint64_t w = 0; w < segments[i].n_words;) {
            struct event ev;
            unsigned words = codec_get(&at, segments[i].words + w, segments[i].n_words - w, &ev);
            assert_true(words > 0);
            w += words;
            if (!ev.kind)
                continue;
            assert_true(ev.stamp <= watermark);
            seen->kinds[ev.kind]++;
            seen->events += event_counts(ev.kind);
        }
        assert_int_equal(at.epoch, segments[i].epoch_end);
        assert_int_equal(at.base, segments[i].base_end);
    }
    return 0;
}

static int memory_file(const void *bytes, size_t n)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

// Imports the bytes. Returns 0, or a negative errno with an error message that names the input.
static int read_bytes(const struct format *f, const void *bytes, size_t n, bool keep_going,
                      struct seen *seen)
{
    struct err e = {0};
    struct input in = {
        .fd = memory_file(bytes, n), .owns_fd = true, .name = "input", .size_bytes = n};
    struct import im = {.format = f,
                        .keep_going = keep_going,
                        .sink = {seen, take_session, take_process, take_round}};
    *seen = (struct seen){0};
    int rc = import_run(&im, &in, &e);
    if (rc < 0)
        assert_memory_equal(e.text, "input: ", 7);
    else
        assert_int_equal(im.events, seen->events);
    assert_true(keep_going || im.skipped <= 1);
    import_release(&im);
    input_close(&in);
    return rc;
}

struct sample {
    uint8_t *bytes;
    size_t n;
    struct export x; // contains the counts of skipped events
};

static void put(struct export *x, uint32_t thread, struct event ev)
{
    static uint64_t stamp;
    ev.stamp = stamp += 1000;
    struct export_call c = {.ev = ev, .pid = 7, .tid = thread, .thread = thread};
    c.failed = !ev.result && (ev.kind == HT_MALLOC || (ev.kind == HT_REALLOC && ev.size));
    c.ev.error = c.failed ? ENOMEM : 0;
    assert_int_equal(export_put(x, &c), 0);
}

// Exports events that several formats share.
static void put_calls(struct export *x)
{
    for (uint64_t i = 1; i <= 20; i++)
        put(x, i & 1, (struct event){.kind = HT_MALLOC, .size = i * i * i * i, .result = i});
    put(x, 0, (struct event){.kind = HT_CALLOC, .size = 5, .count = 7, .result = 21});
    put(x, 0, (struct event){.kind = HT_REALLOC, .size = 100, .ptr = 3, .result = 3});
    put(x, 1, (struct event){.kind = HT_REALLOC, .size = 100, .result = 22});
    put(x, 1, (struct event){.kind = HT_REALLOC, .ptr = 22});
    put(x, 0, (struct event){.kind = HT_MEMALIGN, .size = 640, .align = 64, .result = 22});
    put(x, 0, (struct event){.kind = HT_MALLOC, .size = UINT64_MAX / 2});
    put(x, 0, (struct event){.kind = HT_FREE});
    for (uint64_t i = 1; i <= 10; i++)
        put(x, 0, (struct event){.kind = HT_FREE, .ptr = i});
}

// Returns the output of the format's exporter.
static struct sample write_sample(const struct format *f)
{
    struct err e = {0};
    struct sample s = {.x = {.format = f, .facts = {.slots = true, .has_stamps = true}}};
    struct output out = {.fd = memory_file("", 0), .name = "output"};
    assert_int_equal(export_open(&s.x, &out, &e), 0);
    put_calls(&s.x);
    assert_int_equal(export_finish(&s.x), 0);
    s.n = out.offset;
    s.bytes = malloc(s.n);
    assert_int_equal(pread(out.fd, s.bytes, s.n, 0), s.n);
    export_release(&s.x);
    close(out.fd);
    return s;
}

static bool goes_both_ways(const struct format *f)
{
    return formats_is_read(f) && f->export.put;
}

// The table row of a format agrees with the functions in its struct.
static void test_directions(void **unused)
{
    (void)unused;
#define READ(symbol, name, direction, what)    FORMATS_IF_READ_##direction(name) "|"
#define WRITTEN(symbol, name, direction, what) FORMATS_IF_WRITTEN_##direction(name) "|"
    char read[500] = "", written[500] = "";
    for (const struct format *const *f = formats; *f; f++) {
        snprintf(read + strlen(read), sizeof read - strlen(read), "%s|",
                 formats_is_read(*f) ? (*f)->name : "");
        snprintf(written + strlen(written), sizeof written - strlen(written), "%s|",
                 formats_is_written(*f) ? (*f)->name : "");
        assert_true(formats_is_read(*f) || formats_is_written(*f));
        assert_false((*f)->export.put && (*f)->export.profile);
        assert_true(!formats_is_read(*f) || (*f)->import.window);
    }
    assert_string_equal(read, "" FORMATS_TABLE(READ));
    assert_string_equal(written, "" FORMATS_TABLE(WRITTEN));
}

// A format with the four basic kinds can store each kind of call that allocates, frees or resizes.
static void test_substitutes(void **unused)
{
    static const uint8_t kinds[] = {HT_MALLOC, HT_MEMALIGN, HT_FREE, HT_REALLOC, 0};
    static const uint8_t plain[] = {
        [HT_CLASS_ALLOC] = HT_MALLOC, [HT_CLASS_FREE] = HT_FREE, [HT_CLASS_RESIZE] = HT_REALLOC};
    static const struct format basic = {.name = "basic", .export = {.kinds = kinds}};
    struct export x = {.format = &basic};
    struct output out = {.fd = memory_file("", 0), .name = "output"};
    struct err e = {0};
    (void)unused;
    assert_int_equal(export_open(&x, &out, &e), 0);
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        const struct event_info *info = &event_infos[kind];
        bool is_block = info->class != HT_CLASS_NONE && info->class <= HT_CLASS_RESIZE;
        bool is_aligned = info->class == HT_CLASS_ALLOC && info->fields & HT_F_ALIGN;
        if (kind == HT_VALLOC || kind == HT_PVALLOC || is_aligned)
            assert_int_equal(x.as[kind], HT_MEMALIGN);
        else
            assert_int_equal(x.as[kind], is_block ? plain[info->class] : 0);
    }
    export_release(&x);
    close(out.fd);
}

static void test_round_trip(void **unused)
{
    (void)unused;
    for (const struct format *const *f = formats; *f; f++) {
        if (!goes_both_ways(*f))
            continue;
        struct seen seen;
        struct sample s = write_sample(*f);
        assert_int_equal(read_bytes(*f, s.bytes, s.n, false, &seen), 0);
        assert_int_equal(seen.events, s.x.calls - s.x.losses[EXPORT_DROPPED]);
        assert_int_equal(seen.processes, 1);
        free(s.bytes);
    }
}

// Reads prefixes and damaged copies of a valid file.
static void garble(const struct format *f, const uint8_t *bytes, size_t n)
{
    struct seen seen;
    uint8_t *copy = malloc(n);
    for (unsigned i = 0; i < 400; i++) {
        bool keep_going = i & 1;
        read_bytes(f, bytes, unit_random(&state) % n, keep_going, &seen);
        memcpy(copy, bytes, n);
        for (unsigned k = 0; k <= i % 5; k++)
            copy[unit_random(&state) % n] = (uint8_t)unit_random(&state);
        read_bytes(f, copy, n, keep_going, &seen);
        // Overwrites a range with copies of one byte, which creates huge counts, holes and endless
        // numbers.
        size_t from = unit_random(&state) % n;
        memset(copy + from, (int)(uint8_t[]){0, 0xff, 0x80, '9'}[i / 2 % 4],
               n - from < 200 ? n - from : 200);
        read_bytes(f, copy, n, keep_going, &seen);
    }
    free(copy);
}

static void test_garbled(void **unused)
{
    (void)unused;
    for (const struct format *const *f = formats; *f; f++) {
        if (!goes_both_ways(*f))
            continue;
        struct sample s = write_sample(*f);
        garble(*f, s.bytes, s.n);
        free(s.bytes);
    }
}

// Formats without an exporter are tested with real files.
static void test_garbled_files(void **unused)
{
    static const char *const files[][2] = {{"tcmalloc", "three.lz4"},
                                           {"wl", "api.wl"},
                                           {"mtrace", "api.mtrace"},
                                           {"heaptrack", "small.heaptrack.zst"},
                                           {"heaptrack", "small.heaptrack.raw.zst"}};
    const char *source = getenv("HEAPTAPE_SOURCE");
    static uint8_t bytes[1 << 17];
    (void)unused;
    for (size_t i = 0; source && i < sizeof files / sizeof *files; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/tests/foreign/%s", source, files[i][1]);
        int fd = open(path, O_RDONLY);
        assert_true(fd >= 0);
        ssize_t n = read(fd, bytes, sizeof bytes);
        close(fd);
        assert_true(n > 0);
        garble(formats_find(files[i][0]), bytes, (size_t)n);
    }
}

static void test_random(void **unused)
{
    uint8_t bytes[4096];
    (void)unused;
    for (const struct format *const *f = formats; *f; f++) {
        for (unsigned i = 0; formats_is_read(*f) && i < 100; i++) {
            struct seen seen;
            for (size_t k = 0; k < sizeof bytes; k++)
                bytes[k] = (uint8_t)unit_random(&state);
            assert_true(read_bytes(*f, bytes, 1 + i * 40, false, &seen) < 0);
            read_bytes(*f, bytes, 1 + i * 40, true, &seen);
        }
    }
}

// A short file in each format that is read line by line.
static const char *const samples[][2] = {
    {"heaptrack",
     "v 10400 3\nX a b\nI 1000 2\nx 2 /a\ns 2 /a\ni 1000 1 1 1 3\nt 1 0\na 10 1\n+ 0\n- 0\nc a\n"},
    {"heaptrack", "v 10400 2\nX a b\ns /a\nm x 1000 10 20\nm -\nt 1000 0\n+ 10 1 1000\n- 1000\n"},
    {"android",
     "1: malloc 0x10 5\n1: realloc 0x20 0x10 6 1 2\n1: free 0x20 3 4\n1: thread_done 0x0\n"},
    {"logalloc",
     "1 2 malloc(5)=0x10\n1 2 realloc(0x10,6)=(nil)\n1 2 jemalloc_stats()\n1 2 free(0x10)\n"},
    {"logalloc-munged", "1 1 malloc(5)=#1\n1 1 calloc(1,5)=#2\n1 1 free(#1)\n"},
    {"json", "{\"kind\":\"malloc\",\"pid\":1,\"tid\":1,\"size\":5,\"result\":\"0x10\",\"x\":[{"
             "\"a\":null}]}\n"},
};

// Truncates every line of a text format at every byte and appends blanks.
static void test_cut_lines(void **unused)
{
    static const char *const blanks[] = {"", " ", "  ", " \t", "\r", " \r", "\\"};
    (void)unused;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const char *text = samples[i][1];
        for (size_t k = 0; k < strlen(text); k++) {
            for (size_t b = 0; b < sizeof blanks / sizeof *blanks; b++) {
                char cut[512];
                struct seen seen;
                int n = snprintf(cut, sizeof cut, "%.*s%s%s", (int)k, text, blanks[b],
                                 strchr(text + k, '\n'));
                read_bytes(formats_find(samples[i][0]), cut, (size_t)n, false, &seen);
                read_bytes(formats_find(samples[i][0]), cut, (size_t)n, true, &seen);
            }
        }
    }
}

// Appends text to each line of the sample in turn. Returns true if the format accepts any of them.
static bool accepts_more_text(const struct format *f, const char *text)
{
    for (const char *end = text; (end = strchr(end, '\n')); end++) {
        char more[512];
        struct seen seen;
        int n = snprintf(more, sizeof more, "%.*s x%s", (int)(end - text), text, end);
        if (read_bytes(f, more, (size_t)n, false, &seen) == 0)
            return true;
    }
    return false;
}

// Text after the event of a line is an error. The exception is heaptrack, whose lines can end with
// any text.
static void test_text_after_a_line(void **unused)
{
    (void)unused;
    for (const struct format *const *f = formats; *f; f++) {
        unsigned n = 0;
        for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
            if (strcmp(samples[i][0], (*f)->name) != 0)
                continue;
            n++;
            if (strcmp((*f)->name, "heaptrack") != 0 && accepts_more_text(*f, samples[i][1]))
                fail_msg("%s: accepts more text at the end of a line", (*f)->name);
        }
        if ((*f)->import.line && !n)
            fail_msg("%s: is read by lines, but has no row in samples", (*f)->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directions),        cmocka_unit_test(test_substitutes),
        cmocka_unit_test(test_round_trip),        cmocka_unit_test(test_garbled),
        cmocka_unit_test(test_garbled_files),     cmocka_unit_test(test_cut_lines),
        cmocka_unit_test(test_text_after_a_line), cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
