// Tests which resident memory counts as unexplained by the recorded blocks.
#include "analysis/memory/unexplained.h"
#include "trace/codec.h"
#include "trace/pages.h"
#include "trace/writer.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, PID = 7 };
static const uint64_t mib = 1 << 20, pool = 0x7f0000000000, arena = 0x7e0000000000;

static struct output out;
static struct trace_writer writer;
static uint64_t map_stamp;

static void begin(const struct trace_process *p)
{
    struct err e = {0};
    const struct trace_session s = {.clock_hz = 1000000000};
    out = (struct output){.fd = memfd_create("trace", 0), .owns_fd = true, .name = "t"};
    trace_writer_init(&writer, &out, FRAME_CODEC_NONE, 0);
    assert_int_equal(trace_write_session(&writer, &s, &e), 0);
    assert_int_equal(trace_write_process(&writer, p, &e), 0);
}

// A mapping whose pages are all resident.
struct area {
    uint64_t start, bytes;
    enum trace_memory kind;
    bool after_file;
};

static void write_map(const struct area *areas, size_t n)
{
    struct err e = {0};
    struct buf payload = {0};
    struct trace_pages p = {
        .stamp = map_stamp, .end_stamp = map_stamp, .page_bytes = PAGE, .rss_bytes = mib};
    for (size_t i = 0; i < n; i++) {
        const struct area *a = &areas[i];
        const struct trace_mapping m = {.start = a->start,
                                        .bytes = a->bytes,
                                        .kind = a->kind,
                                        .after_file = a->after_file,
                                        .rss_bytes = a->bytes};
        assert_int_equal(trace_pages_add(&p, &m), 0);
        assert_int_equal(trace_pages_add_run(&p, a->start / PAGE, a->bytes / PAGE), 0);
        p.rss_bytes += a->bytes;
    }
    assert_int_equal(trace_pages_put(&payload, &p), 0);
    assert_int_equal(trace_write_pages(&writer, payload.data, payload.size, &e), 0);
    buf_release(&payload);
    trace_pages_release(&p);
}

static void write_events(const struct event *events, size_t n)
{
    struct err e = {0};
    uint64_t words[64], *to = words;
    for (size_t i = 0; i < n; i++)
        to += codec_put_long(to, &events[i]);
    struct trace_segment s = {.n_words = (uint32_t)(to - words), .words = words};
    assert_int_equal(trace_batch_begin(&writer, &e), 0);
    if (s.n_words)
        assert_int_equal(trace_batch_add(&writer, &s, &e), 0);
    assert_int_equal(trace_batch_end(&writer, 1000, &e), 0);
}

// Ends the trace. Returns the unexplained bytes of its process, or 0 if they are below the limits.
static uint64_t find(const struct trace_process *end, bool *is_growth)
{
    struct err e = {0};
    struct input in;
    struct trace_file t;
    struct unexplained u;
    assert_int_equal(trace_write_process_end(&writer, end, &e), 0);
    assert_int_equal(trace_write_end(&writer, 1000, 0, &e), 0);
    int fd = dup(out.fd);
    trace_writer_release(&writer);
    assert_int_equal(output_close(&out, true, &e), 0);
    lseek(fd, 0, SEEK_SET);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(input_open(&in, path, &e), 0);
    assert_int_equal(trace_file_adopt(&t, &in, true, &e), 0);
    assert_int_equal(unexplained_find(&u, &t, NULL, &e), 0);
    uint64_t bytes = u.n ? u.items[0].bytes : 0;
    *is_growth = u.n && u.items[0].is_growth;
    unexplained_release(&u);
    trace_file_close(&t);
    close(fd);
    return bytes;
}

static const struct area hidden[] = {{arena, 64 << 20, TRACE_MEMORY_ANONYMOUS, false},
                                     {pool, 32 << 20, TRACE_MEMORY_ANONYMOUS, false}};
static const struct trace_process started = {.pid = PID, .ended = 1};

static uint64_t find_with(const struct trace_process *p, const struct area *areas, size_t n,
                          const struct event *events, size_t n_events)
{
    bool is_growth;
    begin(p);
    write_map(areas, n);
    write_events(events, n_events);
    uint64_t bytes = find(p, &is_growth);
    assert_false(is_growth);
    return bytes;
}

static void test_blocks_and_mappings_explain_memory(void **state)
{
    (void)state;
    const struct event block = {.kind = HT_MALLOC, .stamp = 1, .size = 64 << 20, .result = arena},
                       small = {.kind = HT_MALLOC, .stamp = 2, .size = 8, .result = pool + mib},
                       map = {.kind = HT_MMAP, .stamp = 3, .size = 32 << 20, .result = pool},
                       failed = {.kind = HT_MALLOC, .stamp = 4, .size = 64 << 20, .error = 12},
                       freed = {.kind = HT_FREE_SIZED, .stamp = 5, .ptr = arena, .size = 64 << 20};
    const struct event blocks[] = {block, freed}, mapped[] = {block, map}, both[] = {block, small},
                       none[] = {failed};
    assert_int_equal(find_with(&started, hidden, 2, none, 1), 96 * mib);
    assert_int_equal(find_with(&started, hidden, 2, blocks, 2), 32 * mib);
    assert_int_equal(find_with(&started, hidden, 2, both, 2), 31 * mib);
    assert_int_equal(find_with(&started, hidden, 2, mapped, 2), 0);
}

// Most frames are decoded only if the others do not explain the memory.
static void test_block_in_any_frame(void **state)
{
    (void)state;
    enum { FRAMES = 40 };
    const struct event first = {.kind = HT_MALLOC, .stamp = 1, .size = 64 << 20, .result = arena},
                       block = {.kind = HT_MALLOC, .stamp = 2, .size = 8 << 20, .result = pool},
                       last = {.kind = HT_MALLOC, .stamp = 3, .size = 8, .result = pool + 9 * mib};
    for (size_t at = 1; at < FRAMES; at++) {
        bool is_growth;
        begin(&started);
        write_map(hidden, 2);
        for (size_t i = 0; i < FRAMES; i++)
            write_events(i == 0            ? &first
                         : i == FRAMES - 1 ? &last
                                           : &block,
                         i == 0 || i == at || i == FRAMES - 1);
        assert_int_equal(find(&started, &is_growth), (at < FRAMES - 1 ? 23 : 31) * mib);
    }
}

static void test_limits(void **state)
{
    (void)state;
    const struct area ten = {pool, 10 << 20, TRACE_MEMORY_ANONYMOUS, false},
                      more = {pool, (10 << 20) + PAGE, TRACE_MEMORY_ANONYMOUS, false},
                      files = {arena, 100 << 20, TRACE_MEMORY_ANONYMOUS, true},
                      fewer_files = {arena, 50 << 20, TRACE_MEMORY_ANONYMOUS, true},
                      heap = {arena, 50 << 20, TRACE_MEMORY_HEAP, false};
    assert_int_equal(find_with(&started, &ten, 1, NULL, 0), 0);
    assert_int_equal(find_with(&started, &more, 1, NULL, 0), more.bytes);
    // The share of the resident memory. The data of libraries and the heap of brk do not count.
    const struct area small_share[] = {files, more}, large_share[] = {fewer_files, more},
                      beside_heap[] = {heap, more};
    assert_int_equal(find_with(&started, small_share, 2, NULL, 0), 0);
    assert_int_equal(find_with(&started, large_share, 2, NULL, 0), more.bytes);
    assert_int_equal(find_with(&started, beside_heap, 2, NULL, 0), more.bytes);
}

static void test_gaps_with_another_message(void **state)
{
    (void)state;
    char text[] = "x";
    const struct trace_process bypassed = {.pid = PID, .ended = 1, .bypassed_by = text},
                               off = {.pid = PID, .ended = 1, .off_reason = text},
                               lost = {.pid = PID, .ended = 1, .lost_records = 1},
                               forked = {.pid = PID, .ended = 1, .forked_from = 1};
    assert_int_equal(find_with(&bypassed, hidden, 2, NULL, 0), 0);
    assert_int_equal(find_with(&off, hidden, 2, NULL, 0), 0);
    assert_int_equal(find_with(&lost, hidden, 2, NULL, 0), 0);
    assert_int_equal(find_with(&forked, hidden, 2, NULL, 0), 0);
}

// If a process ran before the recording, the memory of the first map may be blocks from before.
static void test_growth_of_an_attached_process(void **state)
{
    (void)state;
    const struct trace_process attached = {.pid = PID, .ended = 1, .attached = 1};
    bool is_growth;
    begin(&attached);
    write_map(hidden, 1);
    write_events(NULL, 0);
    assert_int_equal(find(&attached, &is_growth), 0);
    begin(&attached);
    write_map(hidden, 1);
    write_map(hidden, 2);
    write_map(hidden + 1, 1);
    write_events(NULL, 0);
    assert_int_equal(find(&attached, &is_growth), 32 * mib);
    assert_true(is_growth);
}

// The recorder may read a map before it finds the program that the process has executed.
static void test_map_of_the_next_program(void **state)
{
    (void)state;
    enum { MAP_STAMP = 100 };
    for (uint64_t start = MAP_STAMP - 1; start <= MAP_STAMP + 1; start++) {
        const struct trace_process next = {.number = 1, .pid = PID, .start_stamp = start};
        struct err e = {0};
        bool is_growth;
        begin(&started);
        map_stamp = MAP_STAMP;
        write_map(hidden, 1);
        map_stamp = 0;
        assert_int_equal(trace_write_process(&writer, &next, &e), 0);
        write_events(NULL, 0);
        assert_int_equal(find(&started, &is_growth), start > MAP_STAMP ? 64 * mib : 0);
    }
    // The program was not recorded.
    for (uint32_t pid = PID; pid <= PID + 1; pid++) {
        char name[] = "static";
        struct trace_missed missed = {.pid = pid, .name = name, .why = name};
        const struct trace_unrecorded u = {.items = &missed, .n = 1, .processes = 1};
        struct err e = {0};
        bool is_growth;
        begin(&started);
        write_map(hidden, 1);
        write_events(NULL, 0);
        assert_int_equal(trace_write_unrecorded(&writer, &u, &e), 0);
        assert_int_equal(find(&started, &is_growth), pid == PID ? 0 : 64 * mib);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_blocks_and_mappings_explain_memory),
    cmocka_unit_test(test_block_in_any_frame),
    cmocka_unit_test(test_limits),
    cmocka_unit_test(test_gaps_with_another_message),
    cmocka_unit_test(test_map_of_the_next_program),
    cmocka_unit_test(test_growth_of_an_attached_process),
};

UNIT_MAIN(tests)
