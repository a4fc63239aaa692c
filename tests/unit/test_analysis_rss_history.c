// Tests the figures of a process's last moment on a trace with known blocks and pages.
#include "analysis/memory/rss_history.h"
#include "trace/codec.h"
#include "trace/writer.h"
#include "unit.h"

#include <stdio.h>

enum { PAGE = 4096, BRK = 0x100000, MAPPED = 0x800000 };

static const char path[] = "rss-history.ht";

struct block {
    uint64_t address, size;
};

static void put_block(uint64_t *words, struct trace_segment *s, const struct block *b)
{
    const struct event ev = {
        .kind = HT_MALLOC, .stamp = 1000 + s->n_words, .size = b->size, .result = b->address};
    s->n_words += (uint32_t)codec_put_long(words + s->n_words, &ev);
}

static void add_mapping(struct trace_pages *p, enum trace_memory kind, uint64_t start,
                        const struct trace_page_run *runs, size_t n_runs)
{
    const struct trace_mapping m = {.start = start, .bytes = 64 * PAGE, .kind = kind};
    assert_int_equal(trace_pages_add(p, &m), 0);
    for (size_t i = 0; i < n_runs; i++) {
        assert_int_equal(trace_pages_add_run(p, start / PAGE + runs[i].first, runs[i].n), 0);
        p->mappings[p->n_mappings - 1].rss_bytes += runs[i].n * PAGE;
        p->rss_bytes += runs[i].n * PAGE;
    }
}

// Writes a trace of these blocks and, after them, a map of pages.
static void write_trace(const struct block *blocks, size_t n, struct trace_pages *pages)
{
    uint64_t words[256];
    struct trace_segment segment = {.tid = 100, .words = words};
    struct output out;
    struct trace_writer w;
    struct buf b = {0};
    struct err e = {0};
    struct trace_process process = {
        .pid = 100, .ppid = 1, .exe = "/bin/x", .argv = "x", .argv_bytes = 2};
    pages->stamp = pages->end_stamp = process.end_stamp = 5000;
    pages->page_bytes = PAGE;
    pages->cgroup_bytes = pages->cgroup_limit_bytes = TRACE_PAGES_UNKNOWN;
    for (size_t i = 0; i < n; i++)
        put_block(words, &segment, &blocks[i]);
    assert_int_equal(output_open(&out, path, OUTPUT_FORCE, &e), 0);
    trace_writer_init(&w, &out, FRAME_CODEC_NONE, 0);
    const struct trace_session session = {.clock_hz = 1000000000};
    assert_int_equal(trace_write_session(&w, &session, &e), 0);
    assert_int_equal(trace_write_process(&w, &process, &e), 0);
    assert_int_equal(trace_write_batch(&w, 4000, &segment, 1, &e), 0);
    assert_int_equal(trace_pages_put(&b, pages), 0);
    assert_int_equal(trace_write_pages(&w, b.data, b.size, &e), 0);
    assert_int_equal(trace_write_process_end(&w, &process, &e), 0);
    assert_int_equal(trace_write_end(&w, 5000, 0, &e), 0);
    trace_writer_release(&w);
    assert_int_equal(output_close(&out, true, &e), 0);
    trace_pages_release(pages);
    buf_release(&b);
}

static void read_history(struct rss_history *h)
{
    struct trace_file t;
    struct input in;
    struct err e = {0};
    assert_int_equal(input_open(&in, path, &e), 0);
    assert_int_equal(trace_file_adopt(&t, &in, true, &e), 0);
    assert_int_equal(rss_history_read(h, &t, 0, NULL, &e), 0);
    trace_file_close(&t);
}

static uint64_t find_top(const struct block *blocks, size_t n, struct trace_pages pages)
{
    struct rss_history h;
    write_trace(blocks, n, &pages);
    read_history(&h);
    uint64_t bytes = h.top_free_bytes;
    rss_history_release(&h);
    return bytes;
}

static struct trace_pages map_heap(const struct trace_page_run *runs, size_t n_runs)
{
    struct trace_pages pages = {0};
    add_mapping(&pages, TRACE_MEMORY_HEAP, BRK, runs, n_runs);
    return pages;
}

// The page with the end of the last block is not free, even if the block ends in its first byte.
static void top_of_the_heap(void **state)
{
    (void)state;
    const struct trace_page_run from_0[] = {{0, 10}}, two[] = {{0, 4}, {8, 3}};
    const struct block last = {BRK + 2 * PAGE + 16, 100}, to_the_end = {BRK, 3 * PAGE};
    assert_int_equal(find_top(&last, 1, map_heap(from_0, 1)), 7 * PAGE);
    assert_int_equal(find_top(&to_the_end, 1, map_heap(from_0, 1)), 6 * PAGE);
    assert_int_equal(find_top(&last, 1, map_heap(two, 2)), 4 * PAGE);
    // Blocks in the order of their allocation: the highest is not the last.
    const struct block both[] = {last, {BRK + 16, 100}};
    assert_int_equal(find_top(both, 2, map_heap(from_0, 1)), 7 * PAGE);
    // Without a block in the area, no page is above a block.
    const struct block outside = {BRK + 64 * PAGE, 100}, below = {BRK - 1, 100};
    assert_int_equal(find_top(&outside, 1, map_heap(from_0, 1)), 0);
    assert_int_equal(find_top(&below, 1, map_heap(from_0, 1)), 0);
}

// Other mappings have no top, and their blocks do not extend the brk area.
static void top_beside_other_mappings(void **state)
{
    (void)state;
    struct trace_pages pages = map_heap((const struct trace_page_run[]){{0, 4}}, 1);
    const struct block blocks[] = {{BRK + 16, 100}, {MAPPED + 16, 100}};
    add_mapping(&pages, TRACE_MEMORY_ANONYMOUS, MAPPED, (const struct trace_page_run[]){{0, 9}}, 1);
    assert_int_equal(find_top(blocks, 2, pages), 3 * PAGE);
    // A program that forked continues its heap in a second mapping.
    pages = map_heap((const struct trace_page_run[]){{0, 4}}, 1);
    add_mapping(&pages, TRACE_MEMORY_HEAP, BRK + 64 * PAGE, (const struct trace_page_run[]){{0, 2}},
                1);
    assert_int_equal(find_top(blocks, 1, pages), 5 * PAGE);
}

static void free_memory_in_regions(void **state)
{
    (void)state;
    struct rss_history h;
    struct trace_pages pages = {0};
    // 64 KiB are 16 pages. One region has two blocks, the next has none, and the third has one.
    const struct block blocks[] = {
        {MAPPED + 40 * PAGE, 1000}, {MAPPED + PAGE, 500}, {MAPPED + 3 * PAGE, 700}};
    add_mapping(&pages, TRACE_MEMORY_ANONYMOUS, MAPPED,
                (const struct trace_page_run[]){{0, 4}, {20, 5}, {40, 1}}, 3);
    pages.names[pages.n_names++] = (struct trace_pages_name){TRACE_MEMORY_FILE, PAGE, "/lib/x"};
    write_trace(blocks, 3, &pages);
    read_history(&h);
    assert_int_equal(h.n_first_names, 1);
    assert_string_equal(h.first_names[0].name, "/lib/x");
    assert_int_equal(h.n, 1);
    assert_int_equal(h.moments[0].rss_bytes, 10 * PAGE);
    assert_int_equal(h.moments[0].never_held_bytes, 7 * PAGE);
    assert_int_equal(h.region_free_bytes[RSS_HISTORY_MIMALLOC], 5 * PAGE - 2200);
    assert_int_equal(h.region_free_bytes[RSS_HISTORY_TCMALLOC], 5 * PAGE - 2200);
    assert_int_equal(h.top_free_bytes, 0);
    assert_false(h.lists_before);
    assert_int_equal(h.before_blocks, 0);
    rss_history_release(&h);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(top_of_the_heap),
    cmocka_unit_test(top_beside_other_mappings),
    cmocka_unit_test(free_memory_in_regions),
};

static int remove_file(void **state)
{
    (void)state;
    return remove(path);
}

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, remove_file);
}
