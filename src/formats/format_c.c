// Writes a workload as a self-contained C program for bug reports, which format_c_program.c.in
// describes.
#include "formats/export.h"
#include "formats/streams.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// format_c_program.c.in, embedded by embed.py
extern const char format_c_program[];

enum {
    LINE_BYTES = 96,
    MAX_CALL_BYTES = 64, // a letter and three numbers of up to 20 digits
    MIN_ALIGN = 8,       // minimum for posix_memalign
};

// The calls become arrays of strings in the program. Stream 0 holds the preexisting blocks, and
// stream N + 1 holds the calls of thread N.
struct c_stream {
    unsigned line_bytes; // length of the open string; 0 if no string is open
    uint64_t skipped;    // number of calls skipped since the last call that was written
    bool created;        // true if another thread creates this thread
};

struct c_export {
    struct streams text;
    struct c_stream *streams;
    size_t n, capacity;
    uint64_t highest, calls; // highest slot, number of calls written
};

static int put_text(struct c_export *c, size_t stream, const char *text)
{
    return streams_put(&c->text, stream, text, strlen(text));
}

// Creates the stream and all streams before it.
static int make_stream(struct export *x, size_t stream)
{
    struct c_export *c = x->state;
    char head[MAX_CALL_BYTES];
    int rc = 0;
    if (HT_GROW(&c->streams, &c->capacity, stream + 1) < 0)
        return export_no_memory(x);
    for (; rc == 0 && c->n <= stream; c->n++) {
        c->streams[c->n] = (struct c_stream){0};
        if (c->n)
            snprintf(head, sizeof head, "static const char *const thread%zu[] = {\n", c->n - 1);
        rc = put_text(c, c->n, c->n ? head : "static const char *const before[] = {\n");
    }
    return rc;
}

// Appends a call to the open string, or starts a new string.
static int put_call(struct export *x, size_t stream, const char *text)
{
    struct c_export *c = x->state;
    struct c_stream *s = &c->streams[stream];
    size_t n = strlen(text);
    int rc = 0;
    if (s->line_bytes && s->line_bytes + n > LINE_BYTES) {
        rc = put_text(c, stream, "\",\n");
        s->line_bytes = 0;
    }
    if (rc == 0 && !s->line_bytes)
        rc = put_text(c, stream, "\"");
    s->line_bytes += (unsigned)n;
    return rc == 0 ? put_text(c, stream, text) : rc;
}

static int put_skipped(struct export *x, size_t stream)
{
    struct c_export *c = x->state;
    struct c_stream *s = &c->streams[stream];
    char text[MAX_CALL_BYTES];
    if (!s->skipped)
        return 0;
    snprintf(text, sizeof text, "k%" PRIu64, s->skipped);
    s->skipped = 0;
    return put_call(x, stream, text);
}

static int put_waits(struct export *x, const struct export_call *call)
{
    char text[MAX_CALL_BYTES];
    int rc = call->n_dependencies ? put_skipped(x, call->thread + 1ull) : 0;
    for (uint32_t i = 0; rc == 0 && i < call->n_dependencies; i++) {
        const struct workload_dependency *d = &call->dependencies[i];
        snprintf(text, sizeof text, "w%" PRIu32 ",%" PRIu64, d->thread, d->op + 1);
        rc = put_call(x, call->thread + 1, text);
    }
    return rc;
}

static void print_call(const struct event *ev, char text[MAX_CALL_BYTES])
{
    uint64_t align = export_power_of_two(ev->align);
    switch (ev->kind) {
    case HT_CALLOC:
        snprintf(text, MAX_CALL_BYTES, "c%" PRIu64 ",%" PRIu64 ",%" PRIu64, ev->result, ev->count,
                 ev->size);
        break;
    case HT_REALLOC:
        snprintf(text, MAX_CALL_BYTES, "r%" PRIu64 ",%" PRIu64, ev->result, ev->size);
        break;
    case HT_MEMALIGN:
        snprintf(text, MAX_CALL_BYTES, "a%" PRIu64 ",%" PRIu64 ",%" PRIu64, ev->result,
                 align > MIN_ALIGN ? align : MIN_ALIGN, ev->size);
        break;
    case HT_FREE:
        snprintf(text, MAX_CALL_BYTES, ev->ptr ? "f%" PRIu64 : "n", ev->ptr);
        break;
    case HT_THREAD_CREATE:
        snprintf(text, MAX_CALL_BYTES, "t%" PRIu64, ev->value);
        break;
    default:
        snprintf(text, MAX_CALL_BYTES, "m%" PRIu64 ",%" PRIu64, ev->result, ev->size);
    }
}

static int put_before(struct export *x, const struct event *ev)
{
    char text[MAX_CALL_BYTES];
    struct event as = *ev;
    as.kind = ev->align > 16 ? HT_MEMALIGN : HT_MALLOC;
    print_call(&as, text);
    return put_call(x, 0, text);
}

// Counts a call that is not written. Dependencies refer to calls by their numbers in the workload,
// which include skipped calls.
static int skip_call(struct export *x, const struct export_call *call)
{
    struct c_export *c = x->state;
    size_t stream = call->thread + 1ull;
    int rc = stream < c->n ? 0 : make_stream(x, stream);
    if (rc == 0)
        rc = put_waits(x, call);
    if (rc == 0)
        c->streams[stream].skipped++;
    return rc;
}

static int c_put(struct export *x, const struct export_call *call)
{
    struct c_export *c = x->state;
    size_t stream = call->thread + 1ull,
           started = call->ev.kind == HT_THREAD_CREATE ? call->ev.value + 1 : 0;
    char text[MAX_CALL_BYTES];
    int rc =
        stream < c->n && started < c->n ? 0 : make_stream(x, stream > started ? stream : started);
    if (call->ev.result > c->highest)
        c->highest = call->ev.result;
    if (rc == 0 && call->ev.kind == HT_PREEXISTING) {
        rc = put_before(x, &call->ev);
        return rc == 0 ? skip_call(x, call) : rc;
    }
    rc = rc ?: put_waits(x, call) ?: put_skipped(x, stream);
    if (rc < 0)
        return rc;
    c->calls += !started;
    c->streams[started].created |= started != 0;
    print_call(&call->ev, text);
    return put_call(x, stream, text);
}

static void put_string(struct export_buffer *to, const char *text)
{
    export_buffer_put(to, text, strlen(text));
}

// Writes the arrays of all threads.
static void put_threads(struct export *x)
{
    struct c_export *c = x->state;
    char text[MAX_CALL_BYTES];
    put_string(&x->out, "static const char *const *const calls_of[] = {");
    for (size_t i = 1; i < c->n; i++) {
        snprintf(text, sizeof text, "%sthread%zu,", i % 8 == 1 ? "\n" : " ", i - 1);
        put_string(&x->out, text);
    }
    put_string(&x->out, "\n};\nstatic const unsigned char created[] = {");
    for (size_t i = 1; i < c->n; i++) {
        snprintf(text, sizeof text, "%s%d,", i % 32 == 1 ? "\n" : " ", c->streams[i].created);
        put_string(&x->out, text);
    }
    put_string(&x->out, "\n};\n");
}

static int c_end(struct export *x)
{
    struct c_export *c = x->state;
    char head[256];
    int rc = c->n > 1 ? 0 : make_stream(x, 1);
    for (size_t i = 0; rc == 0 && i < c->n; i++)
        rc = put_skipped(x, i);
    for (size_t i = 0; rc == 0 && i < c->n; i++)
        rc = put_text(c, i, c->streams[i].line_bytes ? "\",\nNULL};\n" : "NULL};\n");
    if (rc < 0)
        return rc;
    snprintf(
        head, sizeof head,
        "// Made by heaptape. cc -O2 -pthread FILE.c -o program && LD_PRELOAD=ALLOCATOR ./program\n"
        "#include <stddef.h>\n\n"
        "#define CALLS %" PRIu64 "u\n#define THREADS %zu\n#define SLOTS %" PRIu64 "\n\n",
        c->calls, c->n - 1, c->highest + 1);
    put_string(&x->out, head);
    rc = streams_write(&c->text, &x->out);
    if (rc < 0)
        return rc;
    put_threads(x);
    put_string(&x->out, format_c_program);
    return 0;
}

static int c_begin(struct export *x)
{
    struct c_export *c = x->state;
    c->text.e = x->e;
    return make_stream(x, 0);
}

static void c_release(void *state)
{
    struct c_export *c = state;
    free(c->streams);
    streams_release(&c->text);
}

static const uint8_t kinds[] = {HT_MALLOC,   HT_CALLOC,      HT_FREE,          HT_REALLOC,
                                HT_MEMALIGN, HT_PREEXISTING, HT_THREAD_CREATE, 0};

const struct format format_c = {
    .name = "c",
    .export =
        {
            .holds = FORMAT_HOLDS_TIDS | FORMAT_HOLDS_NULL,
            .kinds = kinds,
            .state_bytes = sizeof(struct c_export),
            .begin = c_begin,
            .put = c_put,
            .drop = skip_call,
            .end = c_end,
            .release = c_release,
        },
};
