#include "record/processes/pages.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct proc_pages_how how = {
    .recording = "no such path", .max_ns = 60000000000, .clock = CLOCK_MONOTONIC};
static struct trace_pages found;

static void look(void)
{
    trace_pages_release(&found);
    assert_int_equal(proc_pages_read(&found, getpid(), &how), 0);
}

// Returns the number of resident pages in the list among the `pages` pages from `at`.
static uint64_t resident(const char *at, uint64_t pages)
{
    uint64_t first = (uintptr_t)at / found.page_bytes, n = 0;
    for (size_t i = 0; i < found.n_runs; i++) {
        for (uint64_t page = found.runs[i].first; page < found.runs[i].first + found.runs[i].n;
             page++)
            n += page >= first && page < first + pages;
    }
    return n;
}

// Maps pages between two guard pages.
static char *map(uint64_t pages)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, (pages + 2) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    assert_int_equal(mprotect(at + page, pages * page, PROT_READ | PROT_WRITE), 0);
    return at + page;
}

static void test_runs(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = map(1000);
    (void)state;
    madvise(at, 1000 * page, MADV_NOHUGEPAGE);
    look();
    assert_int_equal(resident(at, 1000), 0);
    for (unsigned i = 100; i < 1000; i += 100)
        memset(at + i * page, 1, 3 * page);
    look();
    assert_int_equal(resident(at, 1000), 27);
    assert_int_equal(resident(at + 100 * page, 3), 3);
    madvise(at + 100 * page, page, MADV_DONTNEED);
    look();
    assert_int_equal(resident(at, 1000), 26);
    munmap(at, 1000 * page);
}

// Returns the number of resident pages of the mapping, as counted by the kernel.
static unsigned long count_pages(const char *at)
{
    char line[256], start[32];
    unsigned long kib = 0;
    bool found_it = false;
    FILE *f = fopen("/proc/self/smaps", "re");
    assert_non_null(f);
    snprintf(start, sizeof start, "%lx-", (unsigned long)(uintptr_t)at);
    while (!kib && fgets(line, sizeof line, f)) {
        found_it = found_it || strncmp(line, start, strlen(start)) == 0;
        if (found_it && sscanf(line, "Rss: %lu kB", &kib) == 1)
            break;
    }
    fclose(f);
    return kib * 1024 / (unsigned long)sysconf(_SC_PAGESIZE);
}

// A read of a new page maps the shared zero page, which is not counted. Some kernels have no zero
// page and allocate a page for each read.
static void test_zeros(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *at = map(100);
    char sum = 0;
    (void)state;
    madvise((char *)at, 100 * page, MADV_NOHUGEPAGE);
    for (unsigned i = 0; i < 100; i++)
        sum = (char)(sum + at[i * page]);
    at[50 * page] = (char)(sum + 1);
    look();
    unsigned long pages = count_pages((const char *)at);
    assert_true(pages == 1 || pages == 100);
    assert_int_equal(resident((char *)at, 100), pages);
    munmap((char *)at, 100 * page);
}

static void test_sums(void **state)
{
    uint64_t sum = 0;
    (void)state;
    look();
    for (size_t i = 0; i < found.n_runs; i++)
        sum += found.runs[i].n * found.page_bytes;
    for (unsigned kind = 0; kind < TRACE_MEMORY_KINDS; kind++)
        sum += found.rss_of[kind];
    // The tolerance covers allocations of the measurement.
    assert_true(sum + (1 << 20) > found.rss_bytes && sum < found.rss_bytes + (1 << 20));
    assert_true(found.rss_of[TRACE_MEMORY_FILE] > 0 && found.rss_of[TRACE_MEMORY_STACK] > 0);
    assert_true(found.pss_bytes > 0 && found.pss_bytes <= found.rss_bytes);
    assert_true(found.minor_faults > 0);
}

static void test_libraries(void **state)
{
    static const char *const names[] = {"libstdc++.so.6.0.30", "libc++.so.1",
                                        "libtcmalloc_minimal.so.4", "libstdc++.a"};
    static const uint64_t bits[] = {1, 2, 64, 0};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char folder[] = "/tmp/libraries-XXXXXX", path[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < 4; i++) {
        look();
        uint64_t before = found.libraries;
        if (before & bits[i]) // the runtime of AddressSanitizer has mapped the C++ library
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(ftruncate(fd, (off_t)page), 0);
        char *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        assert_true(at != MAP_FAILED);
        look();
        assert_int_equal(found.libraries, before | bits[i]);
        munmap(at, page);
        close(fd);
        unlink(path);
    }
    rmdir(folder);
}

static const struct trace_mapping *mapping_at(const char *at)
{
    for (size_t i = 0; i < found.n_mappings; i++) {
        if (found.mappings[i].start == (uintptr_t)at)
            return &found.mappings[i];
    }
    return NULL;
}

// Maps a page after `guard` bytes that are not accessible, writes to it, and returns its kind.
static enum trace_memory kind_behind(size_t guard)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, guard + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    assert_int_equal(mprotect(at + guard, page, PROT_READ | PROT_WRITE), 0);
    at[guard] = 1;
    look();
    const struct trace_mapping *m = mapping_at(at + guard);
    assert_non_null(m); // listed, because it could be a heap
    assert_int_equal(resident(at + guard, 1), 1);
    munmap(at, guard + 2 * page);
    return m->kind;
}

static void test_stacks(void **state)
{
    (void)state;
    assert_int_equal(kind_behind(4096), TRACE_MEMORY_STACK);
    assert_int_equal(kind_behind(2 << 20), TRACE_MEMORY_ANONYMOUS);
}

// The list is sorted by resident memory, the largest first. Each name has the sum of its mappings.
static void test_names(void **state)
{
    uint64_t files = 0;
    size_t bytes = 64 << 20;
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(at != MAP_FAILED);
    memset(at, 1, bytes);
    look();
    munmap(at, bytes);
    assert_true(found.n_names > 1 && found.n_names <= TRACE_PAGES_NAMES);
    assert_int_equal(found.names[0].kind, TRACE_MEMORY_SHARED);
    assert_int_equal(found.names[0].rss_bytes, bytes);
    for (size_t i = 1; i < found.n_names; i++) {
        assert_true(found.names[i].rss_bytes <= found.names[i - 1].rss_bytes);
        files += found.names[i].kind == TRACE_MEMORY_FILE ? found.names[i].rss_bytes : 0;
    }
    assert_true(files > 0 && files <= found.rss_of[TRACE_MEMORY_FILE]);
}

struct seen {
    uint64_t rss_bytes, own_bytes;
    bool is_file;
};

static int add_seen(void *context, const struct proc_mapping *m)
{
    struct seen *s = context;
    s->rss_bytes += m->mapping.rss_bytes;
    if (strstr(m->name, "test_proc_pages")) {
        s->own_bytes += m->mapping.bytes;
        s->is_file = m->is_file && m->permissions[0] == 'r';
    }
    return 0;
}

static void test_each(void **state)
{
    struct seen s = {0};
    struct proc_pages_how each = how;
    struct trace_pages p = {0};
    each.each = add_seen;
    each.context = &s;
    (void)state;
    assert_int_equal(proc_pages_read(&p, getpid(), &each), 0);
    assert_int_equal(s.rss_bytes, p.rss_bytes);
    assert_true(s.own_bytes > 0 && s.is_file);
    trace_pages_release(&p);
}

static int wait_once(void *context, const struct proc_mapping *m)
{
    bool *waited = context;
    (void)m;
    if (!*waited)
        nanosleep(&(struct timespec){0, 300000000}, NULL);
    *waited = true;
    return 0;
}

static void test_limits(void **state)
{
    const struct proc_pages_how no_time = {.recording = "no such path"};
    bool waited = false;
    // The time that the thread waits for a CPU does not count.
    struct proc_pages_how busy = {.recording = "no such path",
                                  .max_ns = 250000000,
                                  .clock = CLOCK_THREAD_CPUTIME_ID,
                                  .each = wait_once,
                                  .context = &waited};
    struct trace_pages p = {0};
    (void)state;
    assert_int_equal(proc_pages_read(&p, getpid(), &busy), 0);
    trace_pages_release(&p);
    waited = false;
    busy.clock = CLOCK_MONOTONIC;
    assert_int_equal(proc_pages_read(&p, getpid(), &busy), -ETIME);
    trace_pages_release(&p);
    assert_int_equal(proc_pages_read(&p, getpid(), &no_time), -ETIME);
    trace_pages_release(&p);
    assert_true(proc_pages_read(&p, 0x3fffffff, &how) < 0);
    trace_pages_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),  cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_sums),  cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_names), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_each),  cmocka_unit_test(test_libraries),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    trace_pages_release(&found);
    return failed;
}
