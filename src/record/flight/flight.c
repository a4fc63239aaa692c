#include "record/flight/flight.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "cli/human.h"
#include "record/flight/part.h"
#include "trace/codec.h"
#include "trace/columns.h"
#include "trace/fields.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/wait.h>
#include <unistd.h>

// A frame in stored form.
struct flight_frame {
    STAILQ_ENTRY(flight_frame) later;
    struct frame frame; // its data is in `stored`
    uint64_t came_ns;   // time of arrival, CLOCK_MONOTONIC
    struct buf stored;  // in `bytes`
    uint8_t bytes[];
};

enum { OVERHEAD = sizeof(struct flight_frame) + 16 }; // memory per frame, including malloc's header

// Result of the process that writes a dump.
struct written {
    int rc;
    struct err e;
    // Numbers of events and blocks in the trace. `events` excludes the blocks that were live at its
    // start.
    uint64_t events, blocks;
    uint64_t ns; // time from the trace's start to its end
    uint64_t bytes;
};

struct flight {
    const struct flight_settings *settings;
    struct trace_reader reader;
    struct converter *converter;
    // The last frames of the trace. If a limit is exceeded, the oldest frames are dropped.
    STAILQ_HEAD(, flight_frame) ring;
    uint64_t ring_bytes; // memory of these frames
    struct watch watch;
    struct buf stored;
    bool batch_ended; // the last EVENTS frame ended a batch with a sufficient watermark
    bool requested;   // a dump has been requested
    // The dump must have a batch with at least this watermark, so that it contains all events
    // before a signal. Older batches may still be in the pipe when the signal arrives.
    uint64_t min_watermark;
    char reason[WATCH_REASON_BYTES];
    uint64_t dumps, failed;  // number of dumps started, and number of dumps that failed
    pid_t writer;            // process that writes the current dump, or 0
    char *path;              // path of the current dump
    char *why;               // reason for the current dump
    struct written *written; // shared with the writer
    struct flight_files files;
};

static volatile sig_atomic_t signalled;

static void on_signal(int sig)
{
    (void)sig;
    signalled = 1;
}

int flight_check(const struct flight_settings *s, struct err *e)
{
    char *path = flight_path(s->path, 1);
    int rc =
        path ? output_check_aside(
                   path, s->force,
                   "but a dump must be, because it is written to a temporary file and renamed", e)
             : err_no_memory(e, s->path);
    free(path);
    return rc;
}

static int push_frame(struct flight *f, const struct frame *frame, uint64_t now_ns)
{
    size_t n = f->stored.size;
    struct flight_frame *last = malloc(sizeof *last + n);
    if (!last)
        return -ENOMEM;
    *last =
        (struct flight_frame){.frame = *frame, .came_ns = now_ns, .stored = {last->bytes, n, n}};
    memcpy(last->bytes, f->stored.data, n);
    STAILQ_INSERT_TAIL(&f->ring, last, later);
    f->ring_bytes += n + OVERHEAD;
    return 0;
}

static void drop_oldest(struct flight *f)
{
    struct flight_frame *oldest = STAILQ_FIRST(&f->ring);
    STAILQ_REMOVE_HEAD(&f->ring, later);
    f->ring_bytes -= oldest->stored.size + OVERHEAD;
    free(oldest);
}

// Returns true if the oldest frame exceeds a limit.
static bool is_oldest_over(const struct flight *f, uint64_t now_ns)
{
    const struct flight_window *w = &f->settings->window;
    const struct flight_frame *oldest = STAILQ_FIRST(&f->ring);
    return oldest && (f->ring_bytes > (w->bytes ? w->bytes : FLIGHT_BYTES) ||
                      (now_ns > w->ns && oldest->came_ns < now_ns - w->ns));
}

// Reads a frame of the ring. Returns 1, 0 if the frame has an unknown type, or a negative errno.
static int read_again(struct trace_reader *reader, const struct flight_frame *from,
                      struct trace_item *item, struct err *e)
{
    struct frame frame = from->frame;
    int rc = frame_reader_unpack(&reader->frames, &from->stored, &frame, e);
    return rc > 0 ? trace_read_frame(reader, &frame, item, e) : rc;
}

// Writes the frames in the ring. Reads them with a second reader, which shares the processes of the
// first reader.
static int write_ring(struct part *p, const struct flight *f, struct trace_reader *again,
                      struct err *e)
{
    const struct flight_frame *from;
    int rc = 0;
    STAILQ_FOREACH(from, &f->ring, later)
    {
        struct trace_item item;
        rc = read_again(again, from, &item, e);
        rc = rc > 0 ? part_item(p, &item) : rc;
        if (rc < 0)
            break;
    }
    return rc < 0 ? rc : 0;
}

// Writes a trace that starts where the ring starts. The trace contains the processes that have not
// ended and their live blocks. Modifies the reader's processes.
static int write_trace(struct flight *f, struct output *out, struct written *w)
{
    const struct part_start start = {.reader = &f->reader,
                                     .converter = f->converter,
                                     .dumped = f->why,
                                     .codec = FRAME_CODEC_ZSTD,
                                     .level = 1};
    const struct trace_session *s = &f->reader.session;
    struct part p;
    struct trace_reader again = {.in = f->reader.in,
                                 .session = *s,
                                 .processes = f->reader.processes,
                                 .n_processes = f->reader.n_processes};
    frame_reader_init(&again.frames, f->reader.in, FRAME_MAGIC_TRACE, TRACE_VERSION);
    int rc = part_begin(&p, &start, out, &w->e);
    if (rc == 0)
        rc = write_ring(&p, f, &again, &w->e);
    if (rc == 0)
        rc = part_end(&p, again.saw_unrecorded ? &again.unrecorded : NULL, false);
    uint64_t end = p.end_stamp ? p.end_stamp : p.watermark;
    w->events = p.writer.events - p.snapshot.blocks;
    w->blocks = p.snapshot.blocks;
    w->ns = trace_stamp_ns(s, end) - trace_stamp_ns(s, p.start);
    // The first reader owns the processes.
    again.processes = NULL;
    again.n_processes = 0;
    again.session = (struct trace_session){0};
    trace_reader_close(&again);
    part_release(&p);
    return rc;
}

static int write_dump(struct flight *f, struct written *w)
{
    struct output out;
    // If the path contains no number, a dump replaces the previous dump.
    bool own = f->dumps > 1 && !strstr(f->settings->path, "%n");
    int rc = output_open(&out, f->path,
                         OUTPUT_ASIDE | (f->settings->force || own ? OUTPUT_FORCE : 0), &w->e);
    if (rc < 0)
        return rc;
    rc = write_trace(f, &out, w);
    w->bytes = out.offset;
    return output_finish(&out, rc, &w->e);
}

// Starts a dump in a forked process. The process has a copy of the current state, so the recorder
// never waits for the dump.
static void begin_dump(struct flight *f)
{
    f->requested = false;
    f->min_watermark = 0;
    f->dumps++;
    f->path = flight_path(f->settings->path, f->dumps);
    f->why = strdup(f->reason);
    *f->written = (struct written){.rc = -EINTR};
    f->writer = f->path && f->why ? fork() : -1;
    if (f->writer == 0) {
        signal(SIGUSR2, SIG_IGN);
        f->written->rc = write_dump(f, f->written);
        _exit(0);
    }
    if (f->writer > 0)
        return;
    err_note(f->settings->note, "%s: cannot start a process to write it: %s",
             f->path ? f->path : f->settings->path, strerror(errno));
    free(f->path);
    free(f->why);
    f->writer = 0;
    f->failed++;
}

static void end_dump(struct flight *f, int status)
{
    const struct written *w = f->written;
    f->writer = 0;
    f->failed += WIFSIGNALED(status) || w->rc < 0;
    if (WIFSIGNALED(status))
        err_note(f->settings->note, "%s: the process that writes it was killed by signal %d",
                 f->path, WTERMSIG(status));
    else if (w->rc < 0)
        err_note(f->settings->note, "%s", w->e.text);
    else
        err_note(f->settings->note,
                 "wrote %s: the last %s with %s, and %s live before that: %s (%s)", f->path,
                 human_time((double)w->ns), human_items(w->events, "event", "events"),
                 human_items(w->blocks, "block", "blocks"), human_size(w->bytes), f->why);
    if (!WIFSIGNALED(status) && w->rc == 0 && flight_files_add(&f->files, f->path, f->why) < 0)
        err_note(f->settings->note, "%s: out of memory", f->path);
    free(f->path);
    free(f->why);
    f->path = f->why = NULL;
}

static void reap_writer(struct flight *f, bool wait)
{
    int status;
    while (f->writer) {
        pid_t pid = waitpid(f->writer, &status, wait ? 0 : WNOHANG);
        if (pid == 0 || (pid < 0 && errno != EINTR))
            return;
        if (pid > 0)
            end_dump(f, status);
    }
}

static int feed(struct flight *f, const struct trace_item *item, struct err *e)
{
    int rc = convert_feed(f->converter, item);
    return rc < 0 ? err_set(e, rc, "%s: cannot track live blocks: %s", f->reader.in->name,
                            strerror(-rc))
                  : 0;
}

// Passes the oldest frame to the converter and drops it from the ring.
static int feed_oldest(struct flight *f, struct err *e)
{
    struct trace_item item;
    int rc = read_again(&f->reader, STAILQ_FIRST(&f->ring), &item, e);
    if (rc > 0)
        rc = feed(f, &item, e);
    drop_oldest(f);
    return rc;
}

static void check_samples(struct flight *f, const struct trace_item *item)
{
    for (size_t i = 0; i < item->n_samples && !f->requested; i++) {
        const struct trace_sample *s = &item->samples[i];
        f->requested = watch_sample(&f->watch, f->reader.processes[s->process], s, f->reason);
    }
}

static int check_process_end(struct flight *f, const struct frame *frame, struct err *e)
{
    struct trace_process p = {0};
    int rc = fields_get_process(frame->data, frame->size, &p);
    if (rc == 0)
        watch_process_end(&f->watch, &p);
    trace_process_release(&p);
    return rc < 0 ? err_set(e, rc, "%s: a PROCESS_END frame is invalid", f->reader.in->name) : 0;
}

// Passes PROCESS frames to the converter immediately, so that a forked child is known before its
// parent's events are converted.
static int examine_frame(struct flight *f, struct frame *frame, struct err *e)
{
    struct trace_item item;
    bool events = frame->type == TRACE_EVENTS, announced = frame->type == TRACE_PROCESS;
    bool ends = frame->type == TRACE_PROCESS_END;
    // The end of a batch matters only while a dump is requested.
    if (!(events && f->requested) && !announced && !ends && frame->type != TRACE_SAMPLES)
        return 0;
    int rc = frame_reader_unpack(&f->reader.frames, &f->stored, frame, e);
    if (rc < 0)
        return rc;
    if (events) {
        f->batch_ended = frame->size >= EVENTS_HEADER_BYTES &&
                         get_u32(frame->data + 16) & EVENTS_LAST_OF_BATCH &&
                         get_u64(frame->data + 8) >= f->min_watermark;
        return 0;
    }
    if (ends)
        return check_process_end(f, frame, e);
    rc = trace_read_frame(&f->reader, frame, &item, e);
    if (rc > 0 && !announced)
        check_samples(f, &item);
    if (rc > 0 && announced)
        return feed(f, &item, e);
    return rc < 0 ? rc : 0;
}

static void check_surroundings(struct flight *f, uint64_t now_ns)
{
    reap_writer(f, false);
    flight_files_reap(&f->files, false);
    if (!f->requested && f->reader.n_processes)
        f->requested = watch_cgroup(&f->watch, f->reader.processes[0], now_ns, f->reason);
    if (signalled && !f->requested) {
        signalled = 0;
        f->requested = true;
        f->min_watermark = clock_ticks(f->reader.session.clock) >> CODEC_STAMP_SHIFT;
        snprintf(f->reason, sizeof f->reason, "requested");
    }
}

// Handles the next frame. Returns 1 if a frame was handled, 0 at the end of the input, or a
// negative errno.
static int handle_frame(struct flight *f, struct err *e)
{
    struct frame frame;
    f->batch_ended = false;
    int rc = frame_read_stored(&f->reader.frames, &f->stored, &frame, e);
    if (rc <= 0)
        return rc;
    uint64_t now_ns = clock_monotonic_ns();
    check_surroundings(f, now_ns);
    rc = examine_frame(f, &frame, e);
    if (rc == 0 && frame.type != TRACE_PROCESS && push_frame(f, &frame, now_ns) < 0)
        rc = err_no_memory(e, f->reader.in->name);
    while (rc == 0 && is_oldest_over(f, now_ns))
        rc = feed_oldest(f, e);
    if (rc == 0 && f->requested && f->batch_ended && !f->writer)
        begin_dump(f);
    return rc < 0 ? rc : 1;
}

static void end_flight(struct flight *f)
{
    reap_writer(f, true);
    if (signalled)
        snprintf(f->reason, sizeof f->reason, "requested");
    if (f->requested || signalled || watch_end(&f->watch, f->reason)) {
        begin_dump(f);
        reap_writer(f, true);
    } else if (!f->dumps) {
        err_note(f->settings->note, "no dump was written: no trigger fired");
    }
    flight_files_reap(&f->files, true);
}

static int run_flight(struct flight *f, struct err *e)
{
    int rc = 1;
    f->converter = convert_new(&f->reader, &part_follow);
    f->written =
        mmap(NULL, sizeof *f->written, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!f->converter || f->written == MAP_FAILED)
        return err_no_memory(e, f->reader.in->name);
    while (rc > 0)
        rc = handle_frame(f, e);
    bool nothing = STAILQ_EMPTY(&f->ring) && !convert_watermark(f->converter);
    if (!nothing)
        end_flight(f);
    munmap(f->written, sizeof *f->written);
    if (f->failed && rc >= 0)
        return err_set(e, -EIO, "%llu of %llu dumps were not written",
                       (unsigned long long)f->failed, (unsigned long long)f->dumps);
    // If the recorder was killed, the input ends early, which is not an error here.
    return nothing ? -ENODATA : rc == -ENODATA ? 0 : rc;
}

static void release_flight(struct flight *f)
{
    convert_free(f->converter);
    while (!STAILQ_EMPTY(&f->ring))
        drop_oldest(f);
    watch_release(&f->watch);
    buf_release(&f->stored);
    trace_reader_close(&f->reader);
    flight_files_release(&f->files);
}

int flight_run(const struct flight_settings *s, struct err *e)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct flight *f = calloc(1, sizeof *f);
    struct input in;
    if (!f)
        return err_no_memory(e, s->path);
    sigset_t asks;
    sigaction(SIGUSR2, &action, NULL);
    sigemptyset(&asks);
    sigaddset(&asks, SIGUSR2);
    sigprocmask(SIG_UNBLOCK, &asks, NULL);
    f->settings = s;
    // If the path contains no number, a dump replaces the previous dump.
    f->files = (struct flight_files){.keep = strstr(s->path, "%n") ? s->keep : 0,
                                     .command = s->command,
                                     .option = "--on-dump",
                                     .note = s->note};
    STAILQ_INIT(&f->ring);
    int rc = input_open(&in, "-", e) ?: trace_reader_open(&f->reader, &in, e);
    if (rc == 0) {
        watch_init(&f->watch, &s->triggers, &f->reader.session);
        rc = run_flight(f, e);
        release_flight(f);
    }
    input_close(&in);
    free(f);
    return rc;
}
