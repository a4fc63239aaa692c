// Measures the cost of writing and reading a trace: reads FILE.ht into memory, writes its records
// with each codec, or one, and reads them back. usage: trace_bench FILE.ht [CODEC]
#include "base/clock.h"
#include "trace/reader.h"
#include "trace/writer.h"

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
