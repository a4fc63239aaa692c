#include "formats/import.h"

#include "base/buf.h"
#include "formats/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_WORDS = 1 << 16,
    // Maximum for an event without text: EPOCH, BASE, notes, and the two LONG records of a realloc.
    EVENT_WORDS = 24,
    // Memory that import_put and the conversion need per thread, live block and definition.
    THREAD_BYTES = 8192,
    BLOCK_BYTES = 64,
    DEFINITION_BYTES = 104, // for a module or stack, in addition to its text
    // Limit that import_keep enforces: FIRST_KEPT bytes, plus this many for each byte of the file.
    KEPT_FOR_EACH = 64,
    FIRST_KEPT = 512 << 20,
};

// A larger stamp (this limit is 146 years in ns) is treated as missing, so that later stamps do not
// overflow.
#define LATEST_STAMP (1ull << 62)

// A thread and its words in the current batch.
struct import_thread {
    uint32_t process, number, tid;
    bool created, ended;
    uint32_t creator;
    // `before` is the state before words[0]; `state` is the state after the last word.
    struct codec_state before, state;
    uint64_t first_word; // position of words[0] in the stream
    uint64_t *words;
    size_t n, capacity;
};

struct import_process {
    uint32_t pid, n_threads;
};

int import_no_memory(struct import *im)
{
    return err_no_memory(im->e, im->source.in->name);
}

int import_keep(struct import *im, uint64_t bytes)
{
    const struct input *in = im->source.in;
    uint64_t size = in->size_bytes > in->offset ? in->size_bytes : in->offset;
    im->kept += bytes;
    if (im->kept <= FIRST_KEPT + KEPT_FOR_EACH * size)
        return 0;
    return err_set(im->e, -EFBIG,
                   "%s: exceeds the memory limit for a file of this size, at byte %llu%s", in->name,
                   (unsigned long long)import_source_offset(&im->source),
                   im->source.unpack ? " of the decompressed data (decompress it first)" : "");
}

static uint64_t start_stamp(const struct import *im)
{
    return im->has_times && im->from_start ? 0 : im->stamp;
}

static int begin_session(struct import *im)
{
    struct trace_session s = {.clock = CLOCK_KIND_MONOTONIC,
                              .clock_hz = 1000000000,
                              .start_stamp = start_stamp(im),
                              .order_only = !im->has_times};
    im->begun = true;
    return im->sink.begin(im->sink.context, &s, im->has_times);
}

static int process_new(struct import *im, uint32_t pid, uint32_t *number)
{
    if (HT_GROW(&im->processes, &im->processes_capacity, im->n_processes + 1) < 0 ||
        map_put(&im->by_pid, pid, im->n_processes + 1) < 0)
        return import_no_memory(im);
    *number = (uint32_t)im->n_processes++;
    im->processes[*number] = (struct import_process){.pid = pid};
    struct trace_process p = {.number = *number,
                              .pid = pid,
                              .start_stamp = start_stamp(im),
                              .exe = im->exe,
                              .argv = im->argv,
                              .argv_bytes = im->argv_bytes};
    return im->sink.process(im->sink.context, &p);
}

static int process_get(struct import *im, uint32_t pid, uint32_t *number)
{
    uint64_t at = map_get(&im->by_pid, pid);
    *number = (uint32_t)at - 1;
    return at ? 0 : process_new(im, pid, number);
}

static uint64_t thread_key(uint32_t process, uint64_t tid)
{
    return (uint64_t)process << IMPORT_TID_BITS ^ tid;
}

static int threads_reserve(struct import *im)
{
    size_t had = im->threads_capacity;
    if (HT_GROW(&im->threads, &im->threads_capacity, im->n_threads + 1) < 0)
        return -ENOMEM;
    if (had == im->threads_capacity)
        return 0;
    struct import_thread **filled = realloc(im->filled, im->threads_capacity * sizeof *filled);
    if (!filled)
        return -ENOMEM;
    im->filled = filled;
    struct trace_segment *segments = realloc(im->segments, im->threads_capacity * sizeof *segments);
    if (!segments)
        return -ENOMEM;
    im->segments = segments;
    return 0;
}

static int thread_new(struct import *im, uint32_t process, uint64_t tid,
                      struct import_thread **thread)
{
    struct import_thread *t = threads_reserve(im) < 0 ? NULL : calloc(1, sizeof *t);
    if (!t)
        return import_no_memory(im);
    int rc = import_keep(im, THREAD_BYTES);
    if (rc < 0) {
        free(t);
        return rc;
    }
    im->threads[im->n_threads++] = t;
    if (map_put(&im->by_tid, thread_key(process, tid), im->n_threads) < 0)
        return import_no_memory(im);
    t->process = process;
    t->number = im->processes[process].n_threads++;
    t->tid = (uint32_t)tid;
    *thread = t;
    return 0;
}

static int thread_get(struct import *im, uint32_t process, uint64_t tid,
                      struct import_thread **thread)
{
    uint64_t at = map_get(&im->by_tid, thread_key(process, tid));
    *thread = at ? im->threads[at - 1] : NULL;
    return *thread && !(*thread)->ended ? 0 : thread_new(im, process, tid, thread);
}

static int find_thread(struct import *im, uint32_t pid, uint64_t tid)
{
    uint32_t process;
    if (tid >> IMPORT_TID_BITS)
        return err_set(im->e, -EBADMSG, "%s: thread id %llu is too large", im->source.in->name,
                       (unsigned long long)tid);
    int rc = process_get(im, pid, &process) ?: thread_get(im, process, tid, &im->last);
    im->last_pid = pid;
    im->last_tid = tid;
    return rc;
}

static int end_batch(struct import *im)
{
    for (size_t i = 0; i < im->n_filled; i++) {
        struct import_thread *t = im->filled[i];
        im->segments[i] = (struct trace_segment){
            .process = t->process,
            .thread = t->number,
            .tid = t->tid,
            .first_word = t->first_word,
            .epoch0 = t->before.epoch,
            .base0 = t->before.base,
            .epoch_end = t->state.epoch,
            .base_end = t->state.base,
            .n_words = (uint32_t)t->n,
            .words = t->words,
        };
    }
    int rc = im->sink.batch(im->sink.context, im->segments, im->n_filled, im->stamp);
    for (size_t i = 0; i < im->n_filled; i++) {
        struct import_thread *t = im->filled[i];
        t->first_word += t->n;
        t->before = t->state;
        t->n = 0;
        if (t->ended) {
            free(t->words);
            t->words = NULL;
            t->capacity = 0;
        }
    }
    im->n_filled = 0;
    im->words = 0;
    return rc;
}

// Reserves space for an event's records, truncating its text to the maximum for a record.
static int words_reserve(struct import *im, struct import_thread *t, struct event *ev)
{
    ev->text_bytes = ev->text_bytes < CODEC_MAX_TEXT_BYTES ? ev->text_bytes : CODEC_MAX_TEXT_BYTES;
    size_t most = EVENT_WORDS + ev->text_bytes / 8;
    if (__builtin_expect(t->n + most > t->capacity, 0) &&
        HT_GROW(&t->words, &t->capacity, t->n + most) < 0)
        return import_no_memory(im);
    if (t->n == 0)
        im->filled[im->n_filled++] = t;
    return 0;
}

static void put_record(struct import_thread *t, struct event *ev)
{
    uint64_t *at = t->words + t->n;
    if (event_infos[ev->kind].class == HT_CLASS_RESIZE && ev->ptr) {
        at = codec_put(&t->state, at, ev->stamp,
                       &(struct event){.kind = HT_REALLOC_BEGIN, .ptr = ev->ptr});
        ev->ptr = 0; // the release half contains the pointer
    }
    t->n = (size_t)(codec_put(&t->state, at, ev->stamp, ev) - t->words);
}

// If a failed call has neither a result nor an error, sets its error.
static void complete_error(struct event *ev)
{
    unsigned class = event_infos[ev->kind].class;
    if (ev->result || ev->error)
        return;
    bool frees =
        class == HT_CLASS_RESIZE && ev->ptr && event_requested(ev->kind, ev->size, ev->count) == 0;
    if ((class == HT_CLASS_ALLOC || class == HT_CLASS_RESIZE) && !frees)
        ev->error = ENOMEM;
}

// Replaces the new thread's tid with its number.
static int name_child(struct import *im, const struct import_thread *t, struct event *ev)
{
    struct import_thread *child;
    int rc = thread_get(im, t->process, ev->value, &child);
    if (rc == 0 && (child->first_word || child->n || child == t))
        rc = thread_new(im, t->process, ev->value, &child);
    if (rc < 0)
        return rc;
    child->created = true;
    child->creator = t->number;
    ev->value = child->number;
    return 0;
}

// Handles events that neither allocate nor free.
static int put_other(struct import *im, struct import_thread *t, struct event *ev)
{
    switch (ev->kind) {
    case HT_MODULE:
    case HT_STACK:
    case HT_FRAME:
        return import_keep(im, DEFINITION_BYTES + ev->text_bytes);
    case HT_THREAD_CREATE:
        return name_child(im, t, ev);
    case HT_THREAD_START:
        ev->value = t->created ? t->creator : IMPORT_NO_TID;
        return 0;
    case HT_THREAD_END:
        t->ended = true;
        im->last = NULL;
        return 0;
    }
    return 0;
}

static int count_block(struct import *im, struct event *ev)
{
    complete_error(ev);
    im->live += ev->result != 0;
    im->live -= ev->ptr && im->live && !ev->error;
    if (im->live <= im->peak_live)
        return 0;
    im->peak_live = im->live;
    return import_keep(im, BLOCK_BYTES);
}

int import_name_thread(struct import *im, uint32_t pid, uint64_t key, uint32_t tid)
{
    int rc = find_thread(im, pid, key);
    if (rc == 0)
        im->last->tid = tid;
    return rc;
}

int import_put(struct import *im, uint32_t pid, uint64_t tid, const struct event *original)
{
    struct event ev = *original;
    int rc = 0;
    bool has_time =
        im->has_times && (ev.stamp > im->stamp || !im->begun) && ev.stamp < LATEST_STAMP;
    im->stamp = has_time ? ev.stamp : im->stamp + 1;
    ev.stamp = im->stamp;
    if (__builtin_expect(!im->begun, 0))
        rc = begin_session(im);
    if (rc == 0 && (!im->last || im->last_tid != tid || im->last_pid != pid))
        rc = find_thread(im, pid, tid);
    if (rc < 0)
        return rc;
    struct import_thread *t = im->last;
    unsigned class = event_infos[ev.kind].class;
    if (__builtin_expect(class > HT_CLASS_RESIZE, 0))
        rc = put_other(im, t, &ev);
    else
        rc = count_block(im, &ev);
    if (rc == 0)
        rc = words_reserve(im, t, &ev);
    if (rc < 0)
        return rc;
    size_t had = t->n;
    put_record(t, &ev);
    im->words += t->n - had;
    im->events += event_counts(ev.kind);
    return im->words >= BATCH_WORDS ? end_batch(im) : 0;
}

int import_bad(struct import *im, uint64_t offset, const char *fmt, ...)
{
    char what[400];
    bool in_line = offset == IMPORT_LINE;
    struct err text = {0};
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    err_set(&text, 0, "%s: %s %s %llu", im->source.in->name, what, in_line ? "in line" : "at byte",
            (unsigned long long)(in_line ? im->source.line : offset));
    im->skipped++;
    if (!im->keep_going)
        return err_set(im->e, -EBADMSG, "%s", text.text);
    err_set(&im->first_skipped, 0, "%s", text.text);
    if (im->note && im->skipped <= IMPORT_NAMED)
        err_note(im->note, "skipped: %s", text.text);
    return 0;
}

int import_cut_off(struct import *im, uint64_t offset, const char *what)
{
    return import_bad(im, offset, "cut off inside %s that begins", what);
}

int import_line(struct import *im, const char **line, size_t *n)
{
    for (;;) {
        int rc = import_source_line(&im->source, line, n, im->e);
        if (rc == -EMSGSIZE)
            rc = import_bad(im, IMPORT_LINE, "expected a line of up to %d bytes",
                            IMPORT_SOURCE_MAX_BYTES);
        else if (rc <= 0)
            return rc;
        else if (!memchr(*line, 0, *n))
            return 1;
        else
            rc = import_bad(im, IMPORT_LINE, "expected text, found a NUL byte");
        if (rc < 0)
            return rc;
    }
}

static int read_lines(struct import *im)
{
    struct text_line line;
    int rc;
    while ((rc = text_next(im, &line)) > 0 && (rc = im->format->import.line(im, &line)) >= 0)
        ;
    return rc;
}

static int read_records(struct import *im)
{
    const struct format_import *f = &im->format->import;
    struct import_source *s = &im->source;
    ssize_t n;
    while ((n = import_source_want(s, im->record_bytes, im->e)) >= (ssize_t)im->record_bytes) {
        int rc = f->record(im, s->data + s->at);
        if (rc < 0)
            return rc;
        s->at += im->record_bytes;
    }
    return n > 0 ? import_cut_off(im, import_source_offset(s), f->record_name) : (int)n;
}

static int read_input(struct import *im)
{
    const struct format_import *f = &im->format->import;
    im->record_bytes = f->record_bytes;
    im->state = calloc(1, f->state_bytes + 1);
    if (!im->state)
        return import_no_memory(im);
    int rc = f->begin ? f->begin(im) : 0;
    if (rc == 0)
        rc = f->line ? read_lines(im) : f->record ? read_records(im) : f->read(im);
    if (f->release)
        f->release(im->state);
    free(im->state);
    im->state = NULL;
    return rc;
}

int import_run(struct import *im, struct input *in, struct err *e)
{
    im->e = e;
    im->no_early_frees = im->format->import.no_early_frees;
    int rc = im->format->import.seeks ? input_make_seekable(in, e) : 0;
    im->source.in = in;
    if (rc == 0)
        rc = import_source_init(&im->source, in, e);
    im->source.cut_is_end = im->keep_going;
    if (rc == 0 && im->format->import.seeks && im->source.unpack)
        rc = err_set(e, -ESPIPE, "%s: is compressed; decompress it first", in->name);
    if (rc == 0)
        rc = read_input(im);
    if (rc == 0 && !im->begun)
        rc =
            err_set(e, -ENODATA, "%s: contains no events in %s format", in->name, im->format->name);
    if (rc == 0 && im->words)
        rc = end_batch(im);
    return rc == 0 && im->names.n_entries && im->sink.names
               ? im->sink.names(im->sink.context, &im->names)
               : rc;
}

void import_release(struct import *im)
{
    for (size_t i = 0; i < im->n_threads; i++) {
        free(im->threads[i]->words);
        free(im->threads[i]);
    }
    free(im->threads);
    free(im->filled);
    free(im->segments);
    free(im->processes);
    map_release(&im->by_tid);
    map_release(&im->by_pid);
    names_release(&im->names);
    free(im->exe);
    free(im->argv);
    import_source_release(&im->source);
    *im = (struct import){0};
}
