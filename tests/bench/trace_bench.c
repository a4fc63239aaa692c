// Measures the cost of writing and reading a trace: reads FILE.ht into memory, writes its records
// with each codec, or one, and reads them back. usage: trace_bench FILE.ht [CODEC]
//
// trace_bench FILE.ht encoders measures the stages of the recorder for frames of 768 KiB of records
// and the rate of 1, 2, 4, ... encoders, one for each CPU. A model extends it to 8 and 32 CPUs: one
// thread drains, another thread writes, and the slowest stage determines the rate.
#include "base/clock.h"
#include "base/ring.h"
#include "record/drain/bundle.h"
#include "record/drain/compressors.h"
#include "trace/columns.h"
#include "trace/reader.h"
#include "trace/writer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct all {
    struct trace_segment *segments;
    size_t n, capacity;
    uint64_t words, records;
    uint32_t processes;
};

static void check(int rc, const struct err *e)
{
    if (rc < 0) {
        fprintf(stderr, "trace_bench: %s\n", e->text);
        exit(1);
    }
}

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct all load(const char *path)
{
    struct input in;
    struct trace_reader r;
    struct trace_item item;
    struct err e = {0};
    struct all a = {0};
    int rc;
    check(input_open(&in, path, &e), &e);
    check(trace_reader_open(&r, &in, &e), &e);
    while ((rc = trace_next(&r, &item, &e)) > 0) {
        for (size_t i = 0; item.type == TRACE_EVENTS && i < item.n_segments; i++) {
            check(HT_GROW(&a.segments, &a.capacity, a.n + 1), &e);
            struct trace_segment *s = &a.segments[a.n++];
            *s = item.segments[i];
            uint64_t *copy = malloc(s->n_words * sizeof *copy);
            memcpy(copy, s->words, s->n_words * sizeof *copy);
            s->words = copy;
            a.words += s->n_words;
            a.records += s->n_records;
            a.processes = s->process >= a.processes ? s->process + 1 : a.processes;
        }
    }
    check(rc, &e);
    trace_reader_close(&r);
    input_close(&in);
    return a;
}

static void write_all(const struct all *a, const char *path, enum frame_codec codec, int level,
                      bool fast)
{
    struct output out;
    struct trace_writer w;
    struct err e = {0};
    check(output_open(&out, path, OUTPUT_FORCE, &e), &e);
    trace_writer_init(&w, &out, codec, level);
    w.fast = fast;
    check(trace_write_session(&w, &(struct trace_session){.clock_hz = 1}, &e), &e);
    for (uint32_t i = 0; i < a->processes; i++)
        check(trace_write_process(&w, &(struct trace_process){.number = i}, &e), &e);
    double t0 = cpu_ns();
    check(trace_batch_begin(&w, &e), &e);
    for (size_t i = 0; i < a->n; i++) {
        struct trace_segment s = a->segments[i];
        check(trace_batch_add(&w, &s, &e), &e);
    }
    check(trace_batch_end(&w, 1, &e), &e);
    double t1 = cpu_ns();
    double file_ns = (double)out.write_ns;
    printf("%.2f B/record, write %.2f ns/record + the file's %.2f",
           (double)out.offset / (double)a->records, (t1 - t0 - file_ns) / (double)a->records,
           file_ns / (double)a->records);
    check(trace_write_end(&w, 1, 0, &e), &e);
    trace_writer_release(&w);
    check(output_close(&out, true, &e), &e);
}

static void read_all(const struct all *a, const char *path)
{
    struct input in;
    struct trace_reader r;
    struct trace_item item;
    struct err e = {0};
    int rc;
    double t0 = cpu_ns();
    check(input_open(&in, path, &e), &e);
    check(trace_reader_open(&r, &in, &e), &e);
    while ((rc = trace_next(&r, &item, &e)) > 0)
        ;
    check(rc, &e);
    trace_reader_close(&r);
    input_close(&in);
    printf(", read %.2f ns/record\n", (cpu_ns() - t0) / (double)a->records);
}

// Consecutive segments of one frame.
struct frames {
    const struct all *all;
    size_t *first, n; // frame i has the segments first[i] to first[i + 1]
    _Atomic size_t next;
    _Atomic uint64_t bytes;
};

static struct frames split_frames(const struct all *a)
{
    struct frames f = {.all = a, .first = calloc(a->n + 2, sizeof *f.first)};
    uint64_t words = 0;
    for (size_t i = 0; i < a->n; i++) {
        words += a->segments[i].n_words;
        if (words > BUNDLE_WORDS) {
            f.first[++f.n] = i;
            words = a->segments[i].n_words;
        }
    }
    f.first[++f.n] = a->n;
    return f;
}

static void *encode_frames(void *arg)
{
    struct frames *f = arg;
    struct output nowhere = {.fd = -1, .name = "none"};
    struct trace_writer w;
    struct err e = {0};
    trace_writer_init(&w, &nowhere, FRAME_CODEC_ZSTD, 1);
    w.frame_words = BUNDLE_WORDS;
    w.fast = w.frames.packs = true;
    for (size_t i; (i = f->next++) < f->n;) {
        w.frames.stored.size = 0;
        check(trace_batch_begin(&w, &e), &e);
        for (size_t k = f->first[i]; k < f->first[i + 1]; k++) {
            struct trace_segment s = f->all->segments[k];
            check(trace_batch_add(&w, &s, &e), &e);
        }
        check(trace_batch_end(&w, 1, &e), &e);
        f->bytes += w.frames.stored.size;
    }
    trace_writer_release(&w);
    return NULL;
}

// Returns the frames per second of n threads.
static double encode_rate(struct frames *f, unsigned n)
{
    pthread_t threads[64];
    uint64_t began = clock_monotonic_ns();
    f->next = f->bytes = 0;
    for (unsigned i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, encode_frames, f);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return (double)f->n * 1e9 / (double)(clock_monotonic_ns() - began);
}

// Returns the microseconds for draining a frame: copying and scanning its words.
static double drain_us(const struct frames *f)
{
    uint64_t *copy = malloc(sizeof *copy * BUNDLE_WORDS);
    struct columns c;
    columns_init(&c);
    double began = cpu_ns();
    for (size_t i = 0; i < f->all->n; i++) {
        const struct trace_segment *s = &f->all->segments[i];
        struct columns_records r = {.state = {s->epoch0, s->base0}};
        uint32_t n = s->n_words < BUNDLE_WORDS ? s->n_words : BUNDLE_WORDS;
        memcpy(copy, s->words, n * sizeof *copy);
        columns_scan(&c, copy, n, &r);
    }
    free(copy);
    return (cpu_ns() - began) / 1e3 / (double)f->n;
}

// Returns the microseconds for writing a frame of the mean size to a file.
static double write_us(const struct frames *f, const char *path)
{
    size_t bytes = f->bytes / f->n;
    void *zeros = calloc(1, bytes);
    struct output out;
    struct err e = {0};
    check(output_open(&out, path, OUTPUT_FORCE, &e), &e);
    double began = cpu_ns();
    for (size_t i = 0; i < f->n; i++)
        check(output_write(&out, zeros, bytes, &e), &e);
    double us = (cpu_ns() - began) / 1e3 / (double)f->n;
    check(output_close(&out, true, &e), &e);
    free(zeros);
    return us;
}

static void measure_encoders(const struct all *a, const char *path)
{
    struct frames f = split_frames(a);
    unsigned cpus = ring_cpus();
    double began = cpu_ns(), one = encode_rate(&f, 1),
           encode = (cpu_ns() - began) / 1e3 / (double)f.n;
    for (unsigned n = 1; n <= cpus && n <= 64; n *= 2)
        printf("%u encoders: %.0f frames/s\n", n, n == 1 ? one : encode_rate(&f, n));
    double drain = drain_us(&f), writing = write_us(&f, path),
           slowest = drain > writing ? drain : writing;
    printf("%zu frames of %.2f M records: drain %.0f us, encode %.0f us, write %.0f us\n", f.n,
           (double)a->records / 1e6 / (double)f.n, drain, encode, writing);
    for (unsigned n = 8; n <= 32; n *= 4) {
        // One CPU drains and one writes.
        unsigned encoders = n - 2 < COMPRESSORS_HELPERS ? n - 2 : COMPRESSORS_HELPERS;
        double us = encode / encoders > slowest ? encode / encoders : slowest;
        printf("model of %u CPUs: %.0f frames/s\n", n, 1e6 / us);
    }
    free(f.first);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        enum frame_codec codec;
        int level;
        bool fast; // true: compress as while a program with many events per second is recorded
    } ways[] = {{"none", FRAME_CODEC_NONE, 0, false},
                {"lz4", FRAME_CODEC_LZ4, 0, false},
                {"zstd:1, fast", FRAME_CODEC_ZSTD, 1, true},
                {"zstd:1", FRAME_CODEC_ZSTD, 1, false},
                {"zstd:3", FRAME_CODEC_ZSTD, 3, false}};
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: trace_bench FILE.ht [CODEC]\n");
        return 2;
    }
    struct all a = load(argv[1]);
    char path[] = "/tmp/trace-bench-XXXXXX";
    close(mkstemp(path));
    printf("%s: %llu records, %.3f words/record\n", argv[1], (unsigned long long)a.records,
           (double)a.words / (double)a.records);
    if (argc == 3 && strcmp(argv[2], "encoders") == 0)
        measure_encoders(&a, path);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (argc == 3 && strcmp(argv[2], ways[i].name) != 0)
            continue;
        printf("%-12s ", ways[i].name);
        write_all(&a, path, ways[i].codec, ways[i].level, ways[i].fast);
        read_all(&a, path);
    }
    unlink(path);
    return 0;
}
