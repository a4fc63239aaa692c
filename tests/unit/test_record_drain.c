// Tests the drain of the spool with producers implemented here, each in its own process.
#include "base/clock.h"
#include "capture/spool/control.h"
#include "record/drain/drain.h"
#include "unit.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNKS = 8, LANE_WORDS = 3 };

// State of a producer process.
struct producer {
    const struct spool_session *session;
    struct spool_header *header;
    struct spool_chunk *chunks;
};

static void wake_recorder(struct producer *p)
{
    control_wake_recorder(p->header, p->session);
}

static void producer_open(struct producer *p, const char *dir, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, SPOOL_SESSION_FILE);
    int fd = open(path, O_RDONLY);
    p->session = mmap(NULL, sizeof *p->session, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    size_t bytes = SPOOL_HEADER_BYTES + CHUNKS * (size_t)SPOOL_CHUNK_BYTES;
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
        _exit(90);
    p->header = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    p->chunks = (struct spool_chunk *)((char *)p->header + SPOOL_HEADER_BYTES);
    p->header->pid = (uint32_t)getpid();
    p->header->max_chunks = CHUNKS;
    p->header->start_stamp = strtoul(strchr(name, '-') + 1, NULL, 10);
    __atomic_store_n(&p->header->magic, SPOOL_MAGIC, __ATOMIC_RELEASE);
    wake_recorder(p);
}

// Returns a free chunk, or allocates a new chunk. Waits until one of these is possible.
static uint32_t take_chunk(struct producer *p)
{
    struct spool_header *h = p->header;
    for (;;) {
        uint32_t sequence = atomic_load(&h->free_sequence);
        uint64_t top = atomic_load(&h->free_top);
        while ((uint32_t)top) {
            uint32_t index = (uint32_t)top - 1;
            uint64_t next = ((top >> 32) + 1) << 32 | p->chunks[index].next_free;
            if (atomic_compare_exchange_weak(&h->free_top, &top, next))
                return index;
        }
        if (atomic_load(&h->fresh_chunks) < CHUNKS)
            return atomic_fetch_add(&h->fresh_chunks, 1);
        atomic_fetch_add(&h->waiters, 1);
        syscall(SYS_futex, &h->free_sequence, FUTEX_WAIT, sequence, NULL, NULL, 0);
        atomic_fetch_sub(&h->waiters, 1);
    }
}

static void publish(struct spool_chunk *c, uint32_t words)
{
    atomic_store(&c->published, c->start + 8 * words);
}

static struct spool_chunk *own_chunk(struct producer *p, uint32_t index, uint32_t thread,
                                     uint64_t first_word)
{
    struct spool_chunk *c = &p->chunks[index];
    c->start = UINT32_MAX - 100 * 8 + 1; // wraps around
    publish(c, 0);
    c->thread = thread;
    c->tid = 1000 + thread;
    c->stream = 0;
    c->first_word = first_word;
    c->epoch0 = first_word; // identifies the chunk
    c->base0 = 8;
    atomic_store(&c->state, SPOOL_CHUNK_OWNED);
    return c;
}

static uint64_t word_number(uint64_t i, uint32_t thread)
{
    return codec_plain(HT_FREE, i, (i * 8 + thread) << 3);
}

// Writes `n` words of one thread into consecutive chunks. The last chunk stays OWNED.
static void produce(struct producer *p, uint32_t thread, uint64_t n)
{
    struct spool_chunk *c = NULL;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t at = i % SPOOL_CHUNK_WORDS;
        if (at == 0) {
            if (c) {
                atomic_store(&c->state, SPOOL_CHUNK_DONE);
                wake_recorder(p);
            }
            c = own_chunk(p, take_chunk(p), thread, i);
        }
        c->words[at] = word_number(i, thread);
        publish(c, at + 1);
    }
}

// Words received by the sink.
struct seen {
    uint64_t words[2], gaps, wrong;
    uint64_t taken;
    uint32_t take; // maximum number of words per segment that the sink accepts as records
};

static int see(void *ctx, struct drain_spool *s, struct trace_segment *g, struct err *e)
{
    struct seen *seen = ctx;
    (void)s;
    (void)e;
    if (g->thread > 1 || g->tid != 1000 + g->thread) {
        seen->wrong++;
        return 0;
    }
    seen->gaps += g->first_word - seen->words[g->thread];
    for (uint32_t i = 0; i < g->n_words; i++)
        seen->wrong += g->words[i] != word_number(g->first_word + i, g->thread);
    seen->words[g->thread] = g->first_word + g->n_words;
    if (g->n_words > seen->take)
        g->n_words = seen->take;
    seen->taken += g->n_words;
    return 0;
}

// Drains until every spool has ended. Returns the number of lost events reported by the spool.
static uint64_t drain_all(struct drain *c, struct seen *seen, pid_t child)
{
    const struct drain_sink sink = {.ctx = seen, .segment = see};
    struct err e = {0};
    uint64_t lost = 0, end_ns = clock_monotonic_ns() + 120000000000ull;
    bool found = false;
    while (!found || c->n_spools) {
        assert_true(clock_monotonic_ns() < end_ns);
        uint32_t bell = drain_wakeups(c);
        drain_check_ends(c);
        found |= drain_discover(c, &e) > 0;
        assert_int_equal(drain_drain(c, &sink, &e), 0);
        for (size_t i = c->n_spools; i-- > 0;) {
            if (!c->spools[i]->dead)
                continue;
            lost += c->spools[i]->lost_words;
            drain_drop(c, i);
        }
        drain_sleep(c, bell, 1000000);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return lost;
}

static struct drain open_session(void)
{
    struct drain c;
    struct err e = {0};
    assert_int_equal(drain_open(&c, 0, CLOCK_KIND_TSC, "", &e), 0);
    return c;
}

static void close_session(struct drain *c)
{
    char *dir = strdup(c->outer);
    drain_close(c);
    assert_int_equal(access(dir, F_OK), -1);
    free(dir);
}

static void every_word_survives_sigkill(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 3000000; n = n * 7 + 8183) {
        struct drain c = open_session();
        struct seen seen = {.take = UINT32_MAX};
        pid_t child = fork();
        if (child == 0) {
            struct producer p;
            producer_open(&p, c.dir, "1-0.spool");
            produce(&p, 0, n);
            produce(&p, 1, n / 3);
            kill(getpid(), SIGKILL);
        }
        assert_int_equal(drain_all(&c, &seen, child), 0);
        assert_int_equal(seen.words[0], n);
        assert_int_equal(seen.words[1], n / 3);
        assert_int_equal(seen.wrong + seen.gaps, 0);
        close_session(&c);
    }
}

// Opens two chunks of one stream with ten words each and publishes none of the words.
static void open_two_chunks(struct producer *p, const struct drain *c, struct spool_chunk **first,
                            struct spool_chunk **second)
{
    producer_open(p, c->dir, "1-0.spool");
    atomic_store(&p->header->fresh_chunks, 2);
    *first = own_chunk(p, 0, 0, 0);
    *second = own_chunk(p, 1, 0, 10);
    for (uint64_t i = 0; i < 10; i++) {
        (*first)->words[i] = word_number(i, 0);
        (*second)->words[i] = word_number(10 + i, 0);
    }
}

// The drain sees the second chunk of a stream before the first. It must wait one batch instead of
// reporting a loss.
static void a_chunk_out_of_turn_waits(void **state)
{
    (void)state;
    struct drain c = open_session();
    struct seen seen = {.take = UINT32_MAX};
    const struct drain_sink sink = {.ctx = &seen, .segment = see};
    struct err e = {0};
    struct producer p;
    struct spool_chunk *first, *second;
    open_two_chunks(&p, &c, &first, &second);
    publish(first, 5);
    assert_int_equal(drain_discover(&c, &e), 1);
    assert_int_equal(drain_drain(&c, &sink, &e), 0);
    assert_int_equal(seen.words[0], 5);
    publish(second, 10);
    assert_int_equal(drain_drain(&c, &sink, &e), 0);
    assert_int_equal(c.streams_waiting, 1);
    assert_int_equal(c.chunks_done, 0);
    assert_int_equal(seen.words[0], 5);
    publish(first, 10);
    atomic_store(&first->state, SPOOL_CHUNK_DONE);
    assert_int_equal(drain_drain(&c, &sink, &e), 0);
    assert_int_equal(c.streams_waiting, 0);
    assert_int_equal(c.chunks_done, 1);
    assert_int_equal(seen.words[0], 20);
    assert_int_equal(seen.gaps + seen.wrong, 0);
    assert_int_equal(atomic_load(&first->state), SPOOL_CHUNK_FREE);
    assert_int_equal((uint32_t)atomic_load(&p.header->free_top), 1);
    close_session(&c);
}

static void a_reset_restarts_the_published_count(void **state)
{
    (void)state;
    struct drain c = open_session();
    struct seen seen = {.take = UINT32_MAX};
    const struct drain_sink sink = {.ctx = &seen, .segment = see};
    struct err e = {0};
    struct producer p;
    producer_open(&p, c.dir, "1-0.spool");
    assert_int_equal(drain_discover(&c, &e), 1);
    c.spools[0]->events = 5; // counted by the recorder's sink
    assert_int_equal(drain_drain(&c, &sink, &e), 0);
    assert_int_equal(atomic_load(&p.header->control.events), 5);
    drain_restart(&c);
    assert_int_equal(atomic_load(&p.header->control.events), 0);
    close_session(&c);
}

// The drain sees the last word of a chunk and the first words of the next before the owner marks
// the chunk DONE. Nothing may be lost.
static void a_chunk_that_is_done_late(void **state)
{
    (void)state;
    struct drain c = open_session();
    struct seen seen = {.take = UINT32_MAX};
    const struct drain_sink sink = {.ctx = &seen, .segment = see};
    struct err e = {0};
    struct producer p;
    struct spool_chunk *first, *second;
    open_two_chunks(&p, &c, &first, &second);
    publish(first, 10);
    publish(second, 3);
    assert_int_equal(drain_discover(&c, &e), 1);
    assert_int_equal(drain_drain(&c, &sink, &e), 0);
    assert_int_equal(seen.words[0], 13);
    atomic_store(&first->state, SPOOL_CHUNK_DONE);
    publish(second, 10);
    assert_int_equal(drain_drain(&c, &sink, &e), 0);
    assert_int_equal(c.streams_waiting, 0);
    assert_int_equal(seen.words[0], 20);
    assert_int_equal(seen.gaps + seen.wrong, 0);
    assert_int_equal(c.spools[0]->lost_words, 0);
    assert_int_equal(atomic_load(&first->state), SPOOL_CHUNK_FREE);
    close_session(&c);
}

// A missing chunk is detected one batch later and counted as a gap.
static void a_missing_chunk_is_counted(void **state)
{
    (void)state;
    struct drain c = open_session();
    struct seen seen = {.take = UINT32_MAX};
    const struct drain_sink sink = {.ctx = &seen, .segment = see};
    struct err e = {0};
    struct producer p;
    producer_open(&p, c.dir, "1-0.spool");
    atomic_store(&p.header->fresh_chunks, 2);
    struct spool_chunk *chunk = own_chunk(&p, 0, 0, 0);
    chunk->words[0] = word_number(0, 0);
    publish(chunk, 1);
    assert_int_equal(drain_discover(&c, &e), 1);
    assert_int_equal(drain_drain(&c, &sink, &e), 0);
    chunk = own_chunk(&p, 1, 0, 100);
    chunk->words[0] = word_number(100, 0);
    publish(chunk, 1);
    assert_int_equal(drain_drain(&c, &sink, &e), 0);
    assert_int_equal(seen.words[0], 1);
    assert_int_equal(drain_drain(&c, &sink, &e), 0);
    assert_int_equal(seen.words[0], 101);
    assert_int_equal(seen.gaps, 99);
    assert_int_equal(c.spools[0]->lost_words, 99);
    close_session(&c);
}

// Words that are not records invalidate the rest of their chunk, but no other chunk.
static void a_broken_chunk_is_counted(void **state)
{
    (void)state;
    struct drain c = open_session();
    struct seen seen = {.take = 10};
    pid_t child = fork();
    if (child == 0) {
        struct producer p;
        producer_open(&p, c.dir, "1-0.spool");
        produce(&p, 0, 3 * SPOOL_CHUNK_WORDS);
        _exit(0);
    }
    uint64_t lost = drain_all(&c, &seen, child);
    assert_in_range(seen.taken, 3, 30);
    assert_int_equal(lost + seen.taken, 3 * SPOOL_CHUNK_WORDS);
    assert_int_equal(seen.wrong, 0);
    close_session(&c);
}

// A header with one impossible value makes the recorder leave the spool.
static void an_impossible_header_is_noticed(void **state)
{
    enum { POSSIBLE, MAGIC, PID, UNRECORDED, WAIT, CASES };
    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct drain c = open_session();
        struct seen seen = {.take = UINT32_MAX};
        const struct drain_sink sink = {.ctx = &seen, .segment = see};
        struct err e = {0};
        struct producer p;
        producer_open(&p, c.dir, "1-0.spool");
        assert_int_equal(drain_discover(&c, &e), 1);
        p.header->magic ^= i == MAGIC;
        p.header->pid += i == PID;
        p.header->unrecorded[SPOOL_COUNTS - 1].calls = (1ull << 48) - (i != UNRECORDED);
        p.header->wait_ns = (1ull << 48) - (i != WAIT);
        assert_int_equal(drain_drain(&c, &sink, &e), 0);
        assert_int_equal(c.spools[0]->broken != NULL, i != POSSIBLE);
        close_session(&c);
    }
}

// A program overwrites its spool with random bytes. The recorder must neither crash nor hang.
static void a_scribbled_spool_does_no_harm(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 60; seed++) {
        struct drain c = open_session();
        struct seen seen = {.take = UINT32_MAX};
        pid_t child = fork();
        if (child == 0) {
            struct producer p;
            uint64_t random = seed;
            producer_open(&p, c.dir, "1-0.spool");
            // This is more than the spool can hold, so the recorder must have opened the spool by
            // now.
            produce(&p, 0, (CHUNKS + 1) * SPOOL_CHUNK_WORDS);
            for (int i = 0; i < 20000; i++) {
                uint64_t r = unit_random(&random);
                size_t room = r & 1 ? 512 : SPOOL_HEADER_BYTES + CHUNKS * (size_t)SPOOL_CHUNK_BYTES;
                size_t from = r & 2 ? SPOOL_HEADER_BYTES + (r >> 8 & 7) * SPOOL_CHUNK_BYTES : 0;
                ((uint8_t *)p.header)[from + (r >> 16) % (room - (r & 1 ? 0 : from))] =
                    (uint8_t)(r >> 11);
                if (i % 1000 == 0)
                    wake_recorder(&p);
            }
            _exit(0);
        }
        drain_all(&c, &seen, child);
        close_session(&c);
    }
}

// The directory contains files that are not spools, and a spool whose process exited before the
// drain opened it.
static void odd_files_are_left_alone(void **state)
{
    (void)state;
    struct drain c = open_session();
    struct seen seen = {.take = UINT32_MAX};
    struct err e = {0};
    char path[600];
    snprintf(path, sizeof path, "%s/7-7.spool", c.dir);
    close(open(path, O_CREAT | O_RDWR, 0600));
    snprintf(path, sizeof path, "%s/8-8.spool", c.dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/%0200d.spool", c.dir, 1);
    close(open(path, O_CREAT | O_RDWR, 0600));
    // A program may still be writing this file.
    snprintf(path, sizeof path, "%s/9-9.spool", c.dir);
    int open_fd = open(path, O_CREAT | O_RDWR, 0600);
    assert_int_equal(drain_discover(&c, &e), 0);
    assert_int_equal(c.n_unreadable, 1);
    assert_int_equal(access(path, F_OK), 0);
    close(open_fd);
    c.pending_ns = 0; // do not wait for the next scan
    assert_int_equal(drain_discover(&c, &e), 0);
    assert_int_equal(c.n_unreadable, 2);
    pid_t child = fork();
    if (child == 0) {
        struct producer p;
        producer_open(&p, c.dir, "1-0.spool");
        produce(&p, 0, 77);
        _exit(0);
    }
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(drain_all(&c, &seen, child), 0);
    assert_int_equal(seen.words[0], 77);
    close_session(&c);
}

// A recorder has created its directory, but not yet its session, so nothing shows that the recorder
// runs.
static void a_recorder_that_begins_is_not_swept(void **state)
{
    (void)state;
    char begun[] = "/dev/shm/heaptape-XXXXXX";
    if (!mkdtemp(begun))
        UNIT_SKIP("no directory can be created in /dev/shm");
    struct drain c = open_session();
    assert_int_equal(access(begun, F_OK), 0);
    close_session(&c);
    rmdir(begun);
}

static void the_longest_time_between_requests_is_kept(void **state)
{
    struct drain_spool s = {.requested_ticks = 100};
    (void)state;
    drain_count_early(&s, 150);
    assert_int_equal(s.early_ticks, 50);
    drain_count_early(&s, 120);
    assert_int_equal(s.early_ticks, 50);
    s.requested_ticks = 300;
    drain_count_early(&s, 200); // another CPU's clock lags
    assert_int_equal(s.early_ticks, 50);
    drain_count_early(&s, 351);
    assert_int_equal(s.early_ticks, 51);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_word_survives_sigkill),
    cmocka_unit_test(a_chunk_out_of_turn_waits),
    cmocka_unit_test(a_chunk_that_is_done_late),
    cmocka_unit_test(a_reset_restarts_the_published_count),
    cmocka_unit_test(a_missing_chunk_is_counted),
    cmocka_unit_test(a_broken_chunk_is_counted),
    cmocka_unit_test(an_impossible_header_is_noticed),
    cmocka_unit_test(a_scribbled_spool_does_no_harm),
    cmocka_unit_test(odd_files_are_left_alone),
    cmocka_unit_test(a_recorder_that_begins_is_not_swept),
    cmocka_unit_test(the_longest_time_between_requests_is_kept),
};
UNIT_MAIN(tests)
