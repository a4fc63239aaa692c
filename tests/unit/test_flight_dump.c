// Compares the dumps and segments of a flight recording with a trace of the same events. They must
// list the same live blocks, followed by the same calls.
#include "cli/command.h"
#include "convert/walk.h"
#include "record/flight/flight.h"
#include "record/flight/segments.h"
#include "trace/codec.h"
#include "trace/forks.h"
#include "trace/join.h"
#include "trace/writer.h"

#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// The test parses options without any command.
const struct command *const cli_commands[] = {NULL};
const struct command_row cli_command_rows[] = {{0}};

enum {
    PROCESSES = 3,
    THREADS = 3,
    PLACES = 200,
    STEPS = 30000,
    BATCH_STEPS = 400,
    WORDS = 1 << 14
};

// A place for one block in the simulated process.
struct place {
    bool live;
    uint64_t size, site;
};

struct thread {
    struct codec_state state, before; // `before` is the state before the words that are not written
                                      // yet
    uint64_t words[WORDS];
    uint32_t n;
    uint64_t first;
    unsigned resizes; // slot + 1 of the block in a pending realloc; 0 if no realloc is pending
};

struct sim {
    struct output out;
    struct trace_writer writer;
    uint64_t random, stamp, sizes;
    unsigned n_batches;
    bool lossy;                      // some words are lost between batches
    unsigned n_processes, n_written; // the last process may have no PROCESS frame yet
    struct trace_process child;
    struct place places[PROCESSES][PLACES], inherited[PROCESSES][PLACES];
    struct thread threads[PROCESSES][THREADS];
};

static uint64_t address_of(unsigned place)
{
    return 0x10000 + 64ull * place;
}

static void put(struct sim *s, unsigned p, unsigned t, struct event ev)
{
    struct thread *of = &s->threads[p][t];
    ev.stamp = s->stamp += 1 + unit_random(&s->random) % 400000;
    of->n = (uint32_t)(codec_put(&of->state, of->words + of->n, ev.stamp, &ev) - of->words);
    assert_true(of->n + CODEC_MAX_RECORD_WORDS + CODEC_MAX_PREFIX_WORDS < WORDS);
}

static void allocate(struct sim *s, unsigned p, unsigned t, unsigned place, unsigned kind)
{
    uint64_t code = 0x400000 + 16 * (unit_random(&s->random) % 8), site = codec_site(0, code);
    struct event ev = {.kind = (uint8_t)kind, .size = ++s->sizes, .result = address_of(place)};
    put(s, p, t, (struct event){.kind = HT_FRAME, .ptr = code, .value = site});
    ev.notes[HT_NOTE_SITE] = site;
    put(s, p, t, ev);
    s->places[p][place] = (struct place){true, ev.size, site};
}

static void step(struct sim *s, unsigned p, unsigned t)
{
    struct thread *of = &s->threads[p][t];
    unsigned place = (unsigned)(unit_random(&s->random) % PLACES);
    struct place *at = &s->places[p][place];
    if (of->resizes && unit_random(&s->random) % 4 == 0) {
        allocate(s, p, t, of->resizes - 1, HT_REALLOC);
        of->resizes = 0;
    } else if (of->resizes) {
        return;
    } else if (!at->live && !at->size) {
        allocate(s, p, t, place, HT_MALLOC);
    } else if (at->live && unit_random(&s->random) % 3 == 0) {
        put(s, p, t, (struct event){.kind = HT_REALLOC_BEGIN, .ptr = address_of(place)});
        at->live = false; // The size stays, so that no other thread gets the slot in the meantime.
        of->resizes = place + 1;
    } else if (at->live) {
        put(s, p, t, (struct event){.kind = HT_FREE, .ptr = address_of(place)});
        *at = (struct place){0};
    }
}

static void batch(struct sim *s)
{
    struct err e = {0};
    uint64_t watermark = s->stamp;
    assert_int_equal(trace_batch_begin(&s->writer, &e), 0);
    for (uint32_t p = 0; p < s->n_written; p++) {
        for (uint32_t t = 0; t < THREADS; t++) {
            struct thread *of = &s->threads[p][t];
            struct trace_segment segment = {.process = p,
                                            .thread = t,
                                            .tid = 100 * p + t,
                                            .first_word = of->first,
                                            .epoch0 = of->before.epoch,
                                            .base0 = of->before.base,
                                            .n_words = of->n,
                                            .words = of->words};
            if (of->n)
                assert_int_equal(trace_batch_add(&s->writer, &segment, &e), 0);
            // Some words are lost.
            bool gap = s->lossy && of->n && t == 0 && s->n_batches % 7 == 0;
            of->first += of->n + (gap ? 3 : 0);
            of->n = 0;
            of->before = of->state;
        }
    }
    assert_int_equal(trace_batch_end(&s->writer, watermark, &e), 0);
    s->n_batches++;
}

// Forks the last process after its pending reallocs have ended. write_child writes the frame of the
// child.
static void fork_process(struct sim *s)
{
    unsigned parent = s->n_processes - 1, child = s->n_processes;
    for (unsigned t = 0; t < THREADS; t++) {
        if (s->threads[parent][t].resizes)
            allocate(s, parent, t, s->threads[parent][t].resizes - 1, HT_REALLOC);
        s->threads[parent][t].resizes = 0;
    }
    memcpy(s->places[child], s->places[parent], sizeof s->places[child]);
    memcpy(s->inherited[child], s->places[parent], sizeof s->places[child]);
    s->stamp += 10000;
    s->child = (struct trace_process){.number = child,
                                      .pid = 7 + child,
                                      .start_stamp = s->stamp + 5000,
                                      .forked_from = 7 + parent,
                                      .forked_from_start = parent ? 0 : 1,
                                      .fork_stamp = s->stamp};
    s->stamp += 10000;
    s->n_processes++;
}

static void write_child(struct sim *s)
{
    struct err e = {0};
    assert_int_equal(trace_write_process(&s->writer, &s->child, &e), 0);
    s->n_written++;
}

// Simulates processes. The PROCESS frame of a child follows its fork after `late` steps.
static void simulate(struct sim *s, uint64_t seed, unsigned late, bool lossy)
{
    struct err e = {0};
    const struct trace_session session = {.clock_hz = 1000000000, .start_stamp = 1};
    const struct trace_process first = {.pid = 7, .start_stamp = 1};
    *s = (struct sim){.out = {.fd = memfd_create("trace", 0), .owns_fd = true, .name = "t"},
                      .random = seed,
                      .stamp = 1000000000,
                      .n_processes = 1,
                      .lossy = lossy,
                      .n_written = 1};
    trace_writer_init(&s->writer, &s->out, FRAME_CODEC_NONE, 0);
    assert_int_equal(trace_write_session(&s->writer, &session, &e), 0);
    assert_int_equal(trace_write_process(&s->writer, &first, &e), 0);
    for (unsigned i = 0; i < STEPS; i++) {
        if (s->n_processes < PROCESSES && i == STEPS / 3 * s->n_processes)
            fork_process(s);
        if (s->n_written < s->n_processes && i == STEPS / 3 * s->n_written + late)
            write_child(s);
        step(s, (unsigned)(unit_random(&s->random) % s->n_written),
             (unsigned)(unit_random(&s->random) % THREADS));
        if (i % BATCH_STEPS == BATCH_STEPS - 1)
            batch(s);
    }
    batch(s);
    for (uint32_t i = 0; i < s->n_written; i++) {
        const struct trace_process end = {.number = i, .ended = 1, .end_stamp = s->stamp};
        assert_int_equal(trace_write_process_end(&s->writer, &end, &e), 0);
    }
    assert_int_equal(trace_write_end(&s->writer, s->stamp, 0, &e), 0);
    trace_writer_release(&s->writer);
}

struct seen {
    struct event *events;
    uint32_t *pids;
    size_t n, capacity, pids_capacity;
    bool present[PROCESSES];  // the process has calls
    bool inherits[PROCESSES]; // The process inherited its blocks at a fork.
};

static int see(void *context, const struct walk_call *call)
{
    struct seen *s = context;
    if (event_defines_sites(call->event->kind))
        return 0;
    assert_int_equal(HT_GROW(&s->events, &s->capacity, s->n + 1), 0);
    assert_int_equal(HT_GROW(&s->pids, &s->pids_capacity, s->n + 1), 0);
    s->events[s->n] = *call->event;
    s->pids[s->n++] = call->process->pid;
    s->present[call->process->pid - 7] = true;
    s->inherits[call->process->pid - 7] = call->process->forked_from != 0;
    return 0;
}

static void walk_input(struct input *in, struct seen *seen)
{
    const struct walk_options how = {.call = see, .context = seen};
    struct trace_reader r;
    struct err e = {0}, cut = {0};
    *seen = (struct seen){0};
    assert_int_equal(trace_reader_open(&r, in, &e), 0);
    assert_int_equal(walk_run(&r, &how, &cut, &e), 0);
    assert_string_equal(cut.text, "");
    assert_true(r.saw_end);
    trace_reader_close(&r);
    input_close(in);
}

static void walk_file(const char *path, struct seen *seen)
{
    struct input in;
    struct err e = {0};
    assert_int_equal(input_open(&in, path, &e), 0);
    walk_input(&in, seen);
}

static void seen_release(struct seen *s)
{
    free(s->events);
    free(s->pids);
}

static void allocates(struct place *p, const struct event *ev)
{
    if (ev->kind == HT_FREE || ev->kind == HT_REALLOC)
        p[(ev->ptr - 0x10000) / 64] = (struct place){0};
    if (ev->result)
        p[(ev->result - 0x10000) / 64] = (struct place){true, ev->size, ev->notes[HT_NOTE_SITE]};
}

// Computes the live blocks after the first n events of a process. A child inherits the blocks of
// its parent at the time of the fork, before its first event.
static void blocks_after(const struct seen *s, size_t n, unsigned process, uint64_t fork_stamp,
                         struct place *blocks)
{
    for (size_t i = 0; i < n; i++) {
        bool of_parent = process && s->pids[i] == 6 + process && s->events[i].stamp < fork_stamp;
        if (s->pids[i] == 7 + process || of_parent)
            allocates(blocks, &s->events[i]);
    }
}

static void say_nothing(const char *text)
{
    (void)text;
}

static void dump(struct sim *s, const char *path, uint64_t bytes)
{
    struct err e = {0};
    int before = dup(STDIN_FILENO);
    const struct flight_settings how = {
        .path = path, .force = true, .window = {bytes, UINT64_MAX}, .note = say_nothing};
    assert_int_equal(lseek(s->out.fd, 0, SEEK_SET), 0);
    assert_true(dup2(s->out.fd, STDIN_FILENO) >= 0);
    assert_int_equal(flight_run(&how, &e), 0);
    dup2(before, STDIN_FILENO);
    close(before);
}

// Returns the number of blocks that the dump lists.
static size_t check_dump(const struct seen *whole, const struct seen *part, const uint64_t *forks)
{
    static struct place want[PROCESSES][PLACES], listed[PROCESSES][PLACES];
    size_t n_listed = 0;
    memset(want, 0, sizeof want);
    memset(listed, 0, sizeof listed);
    while (n_listed < part->n && part->events[n_listed].kind == HT_PREEXISTING) {
        allocates(listed[part->pids[n_listed] - 7], &part->events[n_listed]);
        n_listed++;
    }
    size_t calls = part->n - n_listed, cut = whole->n - calls;
    for (size_t i = 0; i < calls; i++) {
        const struct event *a = &whole->events[cut + i], *b = &part->events[n_listed + i];
        assert_int_equal(whole->pids[cut + i], part->pids[n_listed + i]);
        assert_true(a->kind == b->kind && a->stamp == b->stamp && a->ptr == b->ptr &&
                    a->size == b->size);
        assert_true(a->result == b->result && a->notes[HT_NOTE_SITE] == b->notes[HT_NOTE_SITE]);
    }
    for (unsigned p = 0; p < PROCESSES; p++) {
        // If the fork of a child is in the dump, the dump lists no blocks of the child, because the
        // child inherits the blocks of its parent.
        bool forked_later = forks[p] && cut < whole->n && forks[p] > whole->events[cut].stamp;
        if (!forked_later)
            blocks_after(whole, cut, p, forks[p], want[p]);
        assert_memory_equal(want[p], listed[p], sizeof want[p]);
    }
    return n_listed;
}

// Checks that only processes that began before the dump are marked as partly recorded.
// Returns the number of processes that began in the dump.
static size_t check_parts(const char *path, uint64_t end_stamp)
{
    struct trace_reader r;
    struct trace_item item;
    struct input in;
    struct err e = {0};
    size_t began = 0, parts = 0;
    assert_int_equal(input_open(&in, path, &e), 0);
    assert_int_equal(trace_reader_open(&r, &in, &e), 0);
    while (trace_next(&r, &item, &e) > 0) {
        const struct trace_process *p = item.process;
        if (item.type != TRACE_PROCESS_END)
            continue;
        assert_int_equal(p->end_stamp, end_stamp);
        assert_true(!p->recorded_to ||
                    (p->recorded_from > p->start_stamp && p->recorded_to == end_stamp));
        parts += p->recorded_to > 0;
        began += !p->recorded_to;
    }
    trace_reader_close(&r);
    input_close(&in);
    assert_true(parts > 0 || began == PROCESSES);
    return began;
}

static uint64_t fork_stamps[PROCESSES];

static void read_forks(const char *path)
{
    struct trace_file t;
    struct trace_forks forks;
    struct input in;
    struct err e = {0};
    assert_int_equal(input_open(&in, path, &e), 0);
    assert_int_equal(trace_file_adopt(&t, &in, true, &e), 0);
    assert_int_equal(trace_forks_find(&forks, &t, &e), 0);
    assert_int_equal(forks.n, PROCESSES - 1);
    for (size_t i = 0; i < forks.n; i++)
        fork_stamps[forks.items[i].child] = forks.items[i].stamp;
    trace_forks_release(&forks);
    trace_file_close(&t);
}

static void test_dumps(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        static struct sim s;
        struct seen whole, part;
        char path[64], dumped[] = "/tmp/heaptape-dump-XXXXXX";
        size_t with_blocks = 0, began = 0;
        close(mkstemp(dumped));
        simulate(&s, seed, 0, false);
        snprintf(path, sizeof path, "/proc/self/fd/%d", s.out.fd);
        walk_file(path, &whole);
        read_forks(path);
        for (uint64_t bytes = 1000; bytes < 2 * s.out.offset; bytes *= 2) {
            dump(&s, dumped, bytes);
            walk_file(dumped, &part);
            with_blocks += check_dump(&whole, &part, fork_stamps) > 0;
            began += check_parts(dumped, s.stamp);
            seen_release(&part);
        }
        assert_true(with_blocks > 5 && began > 2);
        unlink(dumped);
        seen_release(&whole);
        output_close(&s.out, true, NULL);
    }
}

// Returns the number of words that are missing in the streams of a trace.
static uint64_t count_lost(struct input *in)
{
    struct trace_reader r;
    struct trace_item item;
    struct map next = {0};
    struct err e = {0};
    uint64_t lost = 0;
    assert_int_equal(trace_reader_open(&r, in, &e), 0);
    while (trace_next(&r, &item, &e) > 0) {
        for (size_t i = 0; item.type == TRACE_EVENTS && i < item.n_segments; i++) {
            const struct trace_segment *g = &item.segments[i];
            uint64_t key = trace_stream_key(g->process, g->thread, g->stream);
            lost += g->first_word - map_get(&next, key);
            if (g->first_word + g->n_words)
                assert_int_equal(map_put(&next, key, g->first_word + g->n_words), 0);
        }
    }
    map_release(&next);
    trace_reader_close(&r);
    input_close(in);
    return lost;
}

static void write_segments(struct sim *s, const char *pattern, uint64_t bytes)
{
    struct err e = {0};
    int before = dup(STDIN_FILENO);
    const struct segments_settings how = {.path = pattern,
                                          .force = true,
                                          .window = {bytes, UINT64_MAX},
                                          .codec = FRAME_CODEC_NONE,
                                          .note = say_nothing};
    assert_int_equal(lseek(s->out.fd, 0, SEEK_SET), 0);
    assert_true(dup2(s->out.fd, STDIN_FILENO) >= 0);
    assert_int_equal(segments_run(&how, &e), 0);
    dup2(before, STDIN_FILENO);
    close(before);
}

static uint64_t count_lost_in(const char *path)
{
    struct input in;
    struct err e = {0};
    assert_int_equal(input_open(&in, path, &e), 0);
    return count_lost(&in);
}

static void assert_same_calls(const struct seen *x, const struct seen *y)
{
    assert_int_equal(x->n, y->n);
    for (size_t i = 0; i < x->n; i++) {
        const struct event *a = &x->events[i], *b = &y->events[i];
        assert_int_equal(x->pids[i], y->pids[i]);
        assert_true(a->kind == b->kind && a->stamp == b->stamp && a->ptr == b->ptr &&
                    a->size == b->size && a->result == b->result);
    }
}

// Checks the blocks of a process in its first segment. Returns true if the segment lists them.
static bool check_child(const struct sim *s, const struct seen *part, unsigned process)
{
    static struct place listed[PLACES];
    memset(listed, 0, sizeof listed);
    if (part->inherits[process])
        return false;
    for (size_t i = 0; i < part->n; i++) {
        if (part->pids[i] == 7 + process && part->events[i].kind == HT_PREEXISTING)
            allocates(listed, &part->events[i]);
    }
    assert_memory_equal(s->inherited[process], listed, sizeof listed);
    return true;
}

// Checks each segment alone, and removes it. Returns the number of children whose blocks a segment
// lists.
static unsigned check_segments(const struct sim *s, const char *folder)
{
    bool met[PROCESSES] = {true};
    unsigned listed = 0, number = 1;
    for (;; number++) {
        struct seen part;
        char path[128];
        snprintf(path, sizeof path, "%s/%u.ht", folder, number);
        if (access(path, F_OK) < 0)
            break;
        walk_file(path, &part);
        for (unsigned p = 0; p < PROCESSES; p++) {
            listed += !met[p] && part.present[p] && check_child(s, &part, p);
            met[p] |= part.present[p];
        }
        seen_release(&part);
        unlink(path);
    }
    assert_true(number > 2);
    return listed;
}

static void test_segments(void **state)
{
    (void)state;
    unsigned listed = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        static struct sim s;
        struct seen whole, joined;
        struct input in;
        struct err e = {0};
        char path[64], folder[] = "/tmp/heaptape-segments-XXXXXX", pattern[64];
        assert_non_null(mkdtemp(folder));
        snprintf(pattern, sizeof pattern, "%s/%%n.ht", folder);
        simulate(&s, seed, 3 * BATCH_STEPS, seed % 2);
        snprintf(path, sizeof path, "/proc/self/fd/%d", s.out.fd);
        walk_file(path, &whole);
        for (uint64_t bytes = 1; bytes < s.out.offset; bytes = 8 * bytes + 8000) {
            write_segments(&s, pattern, bytes);
            assert_int_equal(trace_join(&in, folder, &e), 0);
            walk_input(&in, &joined);
            assert_same_calls(&whole, &joined);
            assert_int_equal(trace_join(&in, folder, &e), 0);
            // The words lost after the last words of a stream are not counted.
            assert_int_equal(count_lost(&in), count_lost_in(path));
            seen_release(&joined);
            listed += check_segments(&s, folder);
        }
        assert_true(seed % 2 == 0 || count_lost_in(path) > 0);
        assert_int_equal(rmdir(folder), 0);
        seen_release(&whole);
        output_close(&s.out, true, NULL);
    }
    // Some forks precede a segment whose child appears in it.
    assert_true(listed > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dumps),
                                       cmocka_unit_test(test_segments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
