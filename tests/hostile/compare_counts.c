// Compares the intact records of a trace with the counts of counted.c: compare_counts TRACE COUNTS
// MODE
//   all       every counted pair is in the trace, and at most one more for each thread
//   at-least  every counted pair is in the trace
//   none      compares nothing
// In each thread, the pairs must be 0, 1, 2, … without a gap, and each free must be of the block of
// the malloc before. Prints the number of records in the trace.
#include "base/buf.h"
#include "counts.h"
#include "trace/codec.h"
#include "trace/event/event.h"
#include "trace/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Counts of a thread.
struct stream {
    uint32_t process, thread;
    bool counts;     // true after the block that identifies the thread was found
    uint32_t number; // number that the first block of the thread encodes
    uint64_t pairs, words, ptr;
    unsigned wrong;
};

static struct stream *streams;
static size_t n_streams, capacity;

static void fail(const char *what)
{
    fprintf(stderr, "compare_counts: %s\n", what);
    exit(1);
}

static struct stream *stream_of(const struct trace_segment *s)
{
    for (size_t i = 0; i < n_streams; i++) {
        if (streams[i].process == s->process && streams[i].thread == s->thread)
            return &streams[i];
    }
    if (HT_GROW(&streams, &capacity, n_streams + 1) < 0)
        fail("out of memory");
    streams[n_streams] = (struct stream){.process = s->process, .thread = s->thread};
    return &streams[n_streams++];
}

static void add_event(struct stream *t, const struct event *ev)
{
    uint64_t number = ev->size - COUNTS_FIRST_SIZE;
    if (ev->kind == HT_MALLOC && !t->counts && number < COUNTS_THREADS) {
        t->counts = true;
        t->number = (uint32_t)number;
        t->ptr = 0; // the block that identifies the thread is not part of a pair
    } else if (t->counts && ev->kind == HT_MALLOC) {
        t->wrong += ev->size != counts_size(t->pairs) || t->ptr;
        t->ptr = ev->result;
    } else if (t->counts && ev->kind == HT_FREE && t->ptr) {
        t->wrong += ev->ptr != t->ptr;
        t->ptr = 0;
        t->pairs++;
    }
}

static uint64_t add_segment(const struct trace_segment *s)
{
    struct codec_state state = {.epoch = s->epoch0, .base = s->base0};
    struct stream *t = s->stream == 0 ? stream_of(s) : NULL;
    struct event ev;
    uint64_t records = 0;
    if (t && s->first_word != t->words)
        fail("words are missing in a stream");
    for (uint32_t at = 0, used; at < s->n_words; at += used) {
        used = codec_get(&state, s->words + at, s->n_words - at, &ev);
        if (!used)
            fail("a word that is no record");
        records += ev.kind != 0;
        if (t && ev.kind)
            add_event(t, &ev);
    }
    if (t)
        t->words += s->n_words;
    return records;
}

static uint64_t read_trace(const char *name)
{
    struct input in = {.fd = -1};
    struct trace_reader r = {0};
    struct trace_item item;
    struct err e = {0};
    uint64_t records = 0;
    // The recorder was killed before the first frame.
    if (access(name, F_OK) || input_open(&in, name, &e) < 0 || trace_reader_open(&r, &in, &e) < 0)
        return 0;
    int rc;
    while ((rc = trace_next(&r, &item, &e)) > 0) {
        for (size_t i = 0; item.type == TRACE_EVENTS && i < item.n_segments; i++)
            records += add_segment(&item.segments[i]);
    }
    if (rc < 0 && rc != -ENODATA)
        fail(e.text);
    trace_reader_close(&r);
    input_close(&in);
    return records;
}

static void compare(const struct counts *counts, bool all)
{
    uint64_t have[COUNTS_THREADS] = {0};
    for (size_t i = 0; i < n_streams; i++) {
        if (streams[i].wrong)
            fail("calls that the program did not make in this order");
        if (streams[i].counts)
            have[streams[i].number] += streams[i].pairs;
    }
    for (unsigned i = 0; i < COUNTS_THREADS; i++) {
        uint64_t want = atomic_load(&counts->done[i]);
        if (have[i] < want || (all && have[i] > want + 1)) {
            fprintf(stderr,
                    "compare_counts: thread %u: %" PRIu64 " pairs recorded of %" PRIu64 "\n", i,
                    have[i], want);
            exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    static struct counts counts;
    if (argc != 4)
        fail("usage: compare_counts TRACE COUNTS all|at-least|none");
    uint64_t records = read_trace(argv[1]);
    bool none = strcmp(argv[3], "none") == 0;
    int fd = open(argv[2], O_RDONLY);
    if (fd >= 0 && !none && read(fd, &counts, sizeof counts) < 0)
        fail("cannot read the counts");
    compare(&counts, strcmp(argv[3], "all") == 0);
    printf("%" PRIu64 "\n", records);
    free(streams);
    return 0;
}
