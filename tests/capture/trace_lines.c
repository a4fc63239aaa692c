// Prints the records of a raw trace; the capture tests compare them with the reports of a program.
//   trace_lines FILE          a line for each event:
//                           STAMP PID THREAD LANE KIND ptr size count align result error value TEXT
//   trace_lines -u FILE       the same plus the usable size, 0 if unknown
//   trace_lines -n FILE|-     the number of events of each kind, and the bytes of the trace
//   trace_lines -c FILE       ticks per second
//   trace_lines -p FILE       a line for each process: PID FORKED_FROM LOST ALLOCATOR OFF_REASON
//   trace_lines -s PID FILE   the process's mallocs with the sizes of service.c, by thread;
//                             fails unless each size follows the previous one
//   trace_lines -m SIZE FILE  the number of mallocs of this size in all processes
// The first half of a realloc is not printed; the second half has its address. Lines are in the
// order of stamps.
#include "base/buf.h"
#include "trace/codec.h"
#include "trace/event/event.h"
#include "trace/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct line {
    uint64_t stamp;
    size_t at, bytes; // in `text`; `at` also orders lines with equal stamps
};

static struct line *lines;
static size_t n_lines, lines_capacity;
static char *text; // all lines, in the order of the file
static size_t n_text, text_capacity;

// Addresses of pending reallocs, by process, thread and stream.
struct pending {
    uint32_t process, thread, stream;
    uint64_t ptr;
};
static struct pending *pendings;
static size_t n_pendings, pendings_capacity;

static bool with_usable;

static void fail(const char *what)
{
    fprintf(stderr, "trace_lines: %s\n", what);
    exit(1);
}

static struct pending *pending_of(const struct trace_segment *s)
{
    for (size_t i = 0; i < n_pendings; i++) {
        if (pendings[i].process == s->process && pendings[i].thread == s->thread &&
            pendings[i].stream == s->stream)
            return &pendings[i];
    }
    if (HT_GROW(&pendings, &pendings_capacity, n_pendings + 1) < 0)
        fail("out of memory");
    pendings[n_pendings] =
        (struct pending){.process = s->process, .thread = s->thread, .stream = s->stream};
    return &pendings[n_pendings++];
}

// Tests print millions of lines, for which printf would be slow, especially with AddressSanitizer.
static void put(const char *from, size_t bytes)
{
    if (HT_GROW(&text, &text_capacity, n_text + bytes) < 0)
        fail("out of memory");
    memcpy(text + n_text, from, bytes);
    n_text += bytes;
}

static void put_number(uint64_t n, unsigned base)
{
    char digits[64], *to = digits + sizeof digits;
    *--to = ' ';
    for (uint64_t left = n; left || to == digits + sizeof digits - 1; left /= base)
        *--to = "0123456789abcdef"[left % base];
    if (base == 16 && n)
        put("0x", 2);
    put(to, (size_t)(digits + sizeof digits - to));
}

static void add_event(const struct trace_segment *s, uint32_t pid, const struct event *ev)
{
    if (HT_GROW(&lines, &lines_capacity, n_lines + 1) < 0)
        fail("out of memory");
    size_t at = n_text;
    put_number(ev->stamp, 10);
    put_number(pid, 10);
    put_number(s->thread, 10);
    put_number(s->stream, 10);
    put(event_infos[ev->kind].name, strlen(event_infos[ev->kind].name));
    put(" ", 1);
    put_number(ev->ptr, 16);
    put_number(ev->size, 10);
    put_number(ev->count, 10);
    put_number(ev->align, 10);
    put_number(ev->result, 16);
    put_number(ev->error, 10);
    put_number(ev->value, 10);
    if (ev->text)
        put(ev->text, strnlen(ev->text, ev->text_bytes));
    if (with_usable)
        put_number(ev->notes[HT_NOTE_USABLE], 10);
    if (with_usable)
        n_text--; // the space after the number
    put("\n", 1);
    lines[n_lines++] = (struct line){.stamp = ev->stamp, .at = at, .bytes = n_text - at};
}

// Sizes of tests/capture/service.c, which repeat in this order.
enum { FIRST_SIZE = 1000, END_SIZE = 6000 };

// The last size of each thread. The segments of a thread are in the order of stamps.
struct sized {
    uint64_t stamp;
    uint32_t thread, size;
};
static struct sized *sized;
static size_t n_sized, sized_capacity, n_sizes;
static uint32_t sized_pid; // process whose sizes are checked; 0: print lines instead
static bool size_missing;

static uint64_t counted_size, n_counted;

static struct sized *sized_of(uint32_t thread)
{
    for (size_t i = 0; i < n_sized; i++) {
        if (sized[i].thread == thread)
            return &sized[i];
    }
    if (HT_GROW(&sized, &sized_capacity, n_sized + 1) < 0)
        fail("out of memory");
    sized[n_sized] = (struct sized){.thread = thread};
    return &sized[n_sized++];
}

static void check_size(uint32_t pid, uint32_t thread, const struct event *ev)
{
    if (pid != sized_pid || ev->kind != HT_MALLOC || ev->size < FIRST_SIZE || ev->size >= END_SIZE)
        return;
    struct sized *last = sized_of(thread);
    uint32_t next = last->size + 1 < END_SIZE ? last->size + 1 : FIRST_SIZE;
    if (ev->stamp < last->stamp)
        fail("a stamp that goes back in its thread");
    if (last->size && ev->size != next) {
        printf("thread %" PRIu32 ": %" PRIu32 ", then %" PRIu64 "\n", thread, last->size, ev->size);
        size_missing = true;
    }
    last->stamp = ev->stamp;
    last->size = (uint32_t)ev->size;
    n_sizes++;
}

static int sizes_follow(void)
{
    printf("%zu calls in order\n", n_sizes);
    free(sized);
    return size_missing || n_sizes < 1000;
}

static void add_segment(const struct trace_segment *s, uint32_t pid)
{
    struct codec_state state = {.epoch = s->epoch0, .base = s->base0};
    uint64_t last = 0;
    for (uint32_t at = 0, used; at < s->n_words; at += used) {
        struct event ev;
        used = codec_get(&state, s->words + at, s->n_words - at, &ev);
        if (!used)
            fail("a word that is no record");
        // tests/capture/residency.bats tests residency.
        if (!ev.kind || event_has_residency(ev.kind))
            continue;
        if (ev.stamp < last)
            fail("a stamp that goes back in its stream");
        last = ev.stamp;
        if (ev.kind == HT_REALLOC_BEGIN) {
            pending_of(s)->ptr = ev.ptr;
            continue;
        }
        if (event_infos[ev.kind].class == HT_CLASS_RESIZE) {
            struct pending *pending = pending_of(s);
            if (ev.ptr && ev.ptr != pending->ptr)
                fail("a realloc without its release half");
            ev.ptr = pending->ptr;
            pending->ptr = 0;
        }
        if (counted_size)
            n_counted += ev.kind == HT_MALLOC && ev.size == counted_size;
        else if (sized_pid)
            check_size(pid, s->thread, &ev);
        else
            add_event(s, pid, &ev);
    }
}

static uint64_t n_of[HT_KIND_LIMIT];

static void count_segment(const struct trace_segment *s)
{
    struct codec_state state = {.epoch = s->epoch0, .base = s->base0};
    struct event ev;
    for (uint32_t at = 0, used; at < s->n_words; at += used) {
        used = codec_get(&state, s->words + at, s->n_words - at, &ev);
        if (!used)
            fail("a word that is no record");
        n_of[ev.kind]++;
    }
}

static int count_all(struct input *in, struct trace_reader *r)
{
    struct trace_item item;
    struct err e = {0};
    int rc;
    while ((rc = trace_next(r, &item, &e)) > 0) {
        for (size_t i = 0; i < item.n_segments; i++)
            count_segment(&item.segments[i]);
    }
    if (rc < 0)
        fail(e.text);
    for (unsigned kind = 0; kind < HT_KIND_LIMIT; kind++) {
        if (n_of[kind] && event_infos[kind].name)
            printf("%s %" PRIu64 "\n", event_infos[kind].name, n_of[kind]);
    }
    printf("bytes %" PRIu64 "\n", in->offset);
    return r->saw_end ? 0 : 1;
}

static int by_stamp(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->stamp != y->stamp)
        return x->stamp < y->stamp ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

int main(int argc, char **argv)
{
    bool order = argc == 4 && strcmp(argv[1], "-s") == 0;
    bool clock = argc == 3 && strcmp(argv[1], "-c") == 0;
    bool processes = argc == 3 && strcmp(argv[1], "-p") == 0;
    struct input in = {.fd = -1};
    struct trace_reader r = {0};
    struct trace_item item;
    struct err e = {0};
    int rc;
    with_usable = argc == 3 && strcmp(argv[1], "-u") == 0;
    if (argc < 2)
        fail("usage: trace_lines [-c|-n|-p|-u|-m SIZE|-s PID] FILE");
    uint64_t number = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    if (argc == 4 && !number)
        fail("no SIZE or PID");
    sized_pid = order ? (uint32_t)number : 0;
    counted_size = order ? 0 : number;
    if (input_open(&in, argv[argc - 1], &e) < 0 || trace_reader_open(&r, &in, &e) < 0)
        fail(e.text);
    if (argc == 3 && strcmp(argv[1], "-n") == 0)
        return count_all(&in, &r);
    while ((rc = trace_next(&r, &item, &e)) > 0) {
        for (size_t i = 0; item.type == TRACE_EVENTS && !processes && !clock && i < item.n_segments;
             i++)
            add_segment(&item.segments[i], r.processes[item.segments[i].process]->pid);
    }
    if (rc < 0)
        fail(e.text);
    for (size_t i = 0; processes && i < r.n_processes; i++) {
        const struct trace_process *p = r.processes[i];
        printf("%u %u %" PRIu64 " %s %s\n", p->pid, p->forked_from, p->lost_records,
               p->allocator ? p->allocator : "-", p->off_reason ? p->off_reason : "");
    }
    if (clock)
        printf("%" PRIu64 "\n", r.session.clock_hz);
    if (order)
        rc = sizes_follow();
    if (counted_size)
        printf("%" PRIu64 "\n", n_counted);
    if (n_lines)
        qsort(lines, n_lines, sizeof *lines, by_stamp);
    for (size_t i = 0; i < n_lines; i++)
        fwrite(text + lines[i].at, 1, lines[i].bytes, stdout);
    free(lines);
    free(text);
    trace_reader_close(&r);
    input_close(&in);
    return rc;
}
