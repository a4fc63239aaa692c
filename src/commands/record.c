#include "record/record.h"
#include "base/clock.h"
#include "capture/spool/spool.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "commands/record_summary.h"
#include "commands/replay_options.h"
#include "formats/export_live.h"
#include "record/aggregate/write.h"
#include "record/drain/target.h"
#include "record/entries/plan.h"
#include "record/flight/files.h"
#include "record/flight/flight.h"
#include "record/flight/segments.h"
#include "replay/allocators.h"
#include "report/text/notes.h"
#include "report/text/watch.h"
#include "transfer/feed.h"
#include "transfer/upload_options.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_LEVEL = 19 }; // maximum level of zstd

// Default size and duration of an uploaded segment, if --segment is not given.
enum { UPLOADED_BYTES = 64 << 20, UPLOADED_S = 600 };

enum record_start { RECORD_NOW, RECORD_PAUSED };
enum record_clock { RECORD_SPARSE, RECORD_EXACT };

struct compression {
    enum frame_codec codec;
    int level;
};

struct record_options {
    const char *output;
    const struct format *format;
    uint64_t log_fd;
    const char *allocator;
    struct compression compression;
    uint64_t aggregate_ns, period_ns; // aggregate_ns is 0 if there is no aggregate
    struct flight_window flight;      // ns is 0 if there is no flight recording
    struct flight_triggers triggers;
    struct flight_window segment; // ns is 0 if the recording is one file
    uint64_t keep;
    const char *on_dump, *on_segment;
    const char *spool, *token_file, *s3; // for uploads
    uint64_t spool_bytes, upload_wait_ns, upload_timeout_ns;
    const char *collect;
    uint64_t pid;
    uint64_t duration_ns;
    enum record_start start;
    const char *follow;
    uint64_t max_bytes;
    struct spool_stacks stacks;
    bool force;
    bool walk;
    const char *wrap;
    bool usable;
    bool no_residency, no_pages;
    bool maps;
    bool lossy;
    enum record_clock clock;
    bool verbose;
};

static int parse_stacks(const char *text, void *field)
{
    return spool_parse_stacks(text, field);
}

// For OPTION_PARSED: parses "zstd:3" into codec and level.
static int parse_compression(const char *text, void *field)
{
    struct compression *c = field;
    // The words are in the order of enum frame_codec.
    int codec = options_parse_choice("none|lz4|zstd", text);
    uint64_t level = 1;
    int rc = 0;
    if (codec < 0)
        rc = strncmp(text, "zstd:", 5) == 0 ? options_parse_number(text + 5, &level) : -EINVAL;
    *c = (struct compression){codec < 0 ? FRAME_CODEC_ZSTD : (enum frame_codec)codec, (int)level};
    return rc == 0 && (level < 1 || level > MAX_LEVEL) ? -ERANGE : rc;
}

static int parse_window(const char *text, void *field)
{
    return flight_window_parse(text, field);
}

static int parse_triggers(const char *text, void *field)
{
    return flight_triggers_parse(text, field);
}

#define AT(member) offsetof(struct record_options, member)

static const struct option options[] = {
    {'o', "output", OPTION_STRING, "FILE|URL|-", NULL,
     "write the trace to FILE, to standard output (-) or to a server (default: heaptape.ht)",
     AT(output), .group = "Output"},
    {'F', "format", OPTION_PARSED, FORMATS_EXPORT_CHOICES, NULL,
     "write another tool's format instead of a trace", AT(format), .shown = "FORMAT",
     .parse = formats_parse_export},
    {0, "log-fd", OPTION_NUMBER, "FD", NULL, "write to this inherited file descriptor", AT(log_fd),
     .min = 1, .max = INT_MAX},
    OPTION_FORCE(struct record_options),
    {'z', "compress", OPTION_PARSED, "none|lz4|zstd[:LEVEL]", "zstd:1",
     "compress: none, lz4, zstd[:LEVEL]", AT(compression), .shown = "CODEC",
     .parse = parse_compression, .min = 1, .max = MAX_LEVEL},
    {0, "max-size", OPTION_SIZE, "SIZE", NULL, "stop when FILE reaches SIZE", AT(max_bytes)},
    {0, "start", OPTION_CHOICE, "now|paused", "now", "start now, or with 'heaptape ctl'", AT(start),
     .group = "What to record"},
    {0, "follow", OPTION_STRING, "all|none|PATTERN", "all", "record children: all, none or PATTERN",
     AT(follow), .shown = "WHICH"},
    {'a', "allocator", OPTION_STRING, "ALLOCATOR", NULL,
     "run PROGRAM on this allocator: a name or path", AT(allocator)},
    {0, "stacks", OPTION_PARSED, "DEPTH|sample[:BYTES]", NULL,
     "record call stacks, of all allocations or a sample", AT(stacks), .bare = "128",
     .parse = parse_stacks, .min = 1, .max = SPOOL_MAX_DEPTH},
    {0, "usable", OPTION_FLAG, NULL, NULL, "also record usable sizes (malloc_usable_size)",
     AT(usable)},
    {0, "maps", OPTION_FLAG, NULL, NULL, "also record calls of mmap, munmap, brk and so on",
     AT(maps)},
    {0, "no-residency", OPTION_FLAG, NULL, NULL, "do not measure the resident part of big blocks",
     AT(no_residency)},
    {0, "no-pages", OPTION_FLAG, NULL, NULL, "do not sample resident pages (for 'stat --rss')",
     AT(no_pages)},
    {0, "lossy", OPTION_FLAG, NULL, NULL, "drop events rather than slow down PROGRAM", AT(lossy)},
    {0, "clock", OPTION_CHOICE, "sparse|exact", "sparse", "read the clock rarely or always",
     AT(clock)},
    {0, "aggregate", OPTION_SECONDS, "SECONDS", NULL,
     "write totals by call site, every SECONDS [60]", AT(aggregate_ns), .bare = "60", .min = 1,
     .max = OPTION_MAX_NS, .group = "Long recordings"},
    {0, "period", OPTION_SECONDS, "SECONDS", "3600", "with --aggregate: set the period",
     AT(period_ns), .min = 1, .max = OPTION_MAX_NS},
    {0, "flight", OPTION_PARSED, "SIZE|DURATION[,...]", NULL,
     "keep SIZE or DURATION of events, dump on a trigger", AT(flight), .shown = "LIMIT[,...]",
     .parse = parse_window, .min = FLIGHT_MIN_BYTES},
    {0, "trigger", OPTION_PARSED, "TRIGGER[,...]", NULL,
     "with --flight: set what triggers a dump [exit]", AT(triggers), .shown = "TRIGGER,...",
     .parse = parse_triggers},
    {0, "on-dump", OPTION_STRING, "CMD", NULL, "with --flight: run CMD after each; $1 is its path",
     AT(on_dump)},
    {0, "segment", OPTION_PARSED, "SIZE|DURATION[,...]", NULL,
     "write the trace as files of SIZE or DURATION", AT(segment), .shown = "LIMIT[,...]",
     .parse = parse_window, .min = FLIGHT_MIN_BYTES},
    {0, "on-segment", OPTION_STRING, "CMD", NULL,
     "with --segment: run CMD after each; $1 is its path", AT(on_segment)},
    {0, "keep", OPTION_NUMBER, "N", NULL, "keep only the last N dumps or segments", AT(keep),
     .min = 1, .max = UINT32_MAX},
    {0, "spool", OPTION_STRING, "DIR", NULL, "keep segments in DIR until they are uploaded",
     AT(spool), .group = "Upload, with -o URL"},
    {0, "spool-limit", OPTION_SIZE, "SIZE", "1G", "drop the oldest segments above SIZE",
     AT(spool_bytes), .min = 1, .max = INT64_MAX},
    {0, "upload-wait", OPTION_SECONDS, "SECONDS", "30", "wait for uploads at the end",
     AT(upload_wait_ns), .max = OPTION_MAX_NS},
    {0, "upload-timeout", OPTION_SECONDS, "SECONDS", "60", "cancel requests that stall",
     AT(upload_timeout_ns), .shown = "SEC", .min = 1, .max = OPTION_MAX_NS},
    {0, "upload-token-file", OPTION_STRING, "FILE", NULL,
     "send the token in the first line of FILE", AT(token_file)},
    {0, "s3", OPTION_PARSED, "REGION", NULL, "sign requests for S3", AT(s3), .bare = "",
     .parse = upload_options_parse_s3},
    {'p', "pid", OPTION_NUMBER, "PID", NULL, "attach to a running process and record it", AT(pid),
     .min = 1, .max = INT_MAX, .group = "Running processes"},
    {0, "duration", OPTION_SECONDS, "SECONDS", NULL, "with --pid: stop after SECONDS",
     AT(duration_ns), .min = 1, .max = OPTION_MAX_NS},
    {0, "walk", OPTION_FLAG, NULL, NULL, "with --pid: also record blocks live at the start",
     AT(walk)},
    {0, "wrap", OPTION_STRING, "NAME=FUNCTION[,...]", NULL, "record functions with other names",
     AT(wrap), .shown = "NAME=FUNC,..."},
    {0, "collect", OPTION_STRING, "DIR", NULL, "write the trace of programs that recorded to DIR",
     AT(collect)},
    {'v', "verbose", OPTION_FLAG, NULL, NULL, "also report the cost of recording", AT(verbose),
     .group = "Messages"},
    {0},
};

// Returns true if a --pid recording ended too early. If `ctl detach` ended the recording, that is
// too early only if --duration was given.
static bool is_cut(const struct record_settings *s, const struct record_result *r)
{
    bool asked = r->ended_by && !s->attach.duration_ns;
    return s->attach.pid && s->attach.report < 0 &&
           (r->losses.off.processes || (r->ended_early && !asked));
}

// Returns the program's exit code. If the recording ended earlier than requested or its output is
// incomplete, returns another code. Gaps within a recording do not change the exit code.
static int exit_code(const struct record_settings *s, const struct record_result *r)
{
    if (is_cut(s, r))
        return EXIT_FAILED;
    if (r->stopped_by && !r->exited)
        return 128 + r->stopped_by;
    if (r->cut_off)
        return EXIT_RECORD;
    if (WIFSIGNALED(r->wait_status))
        return 128 + WTERMSIG(r->wait_status);
    return WEXITSTATUS(r->wait_status);
}

static bool is_empty(const struct record_settings *s, const struct record_result *r)
{
    return r->events == 0 && !r->cut_off && !(s->paused && r->processes);
}

// Closes the output. If the file was created in place, removes it.
static void discard_output(struct output *out)
{
    struct err ignored = {0};
    struct stat st;
    const char *name = out->name;
    bool in_place = out->owns_fd && !out->aside && fstat(out->fd, &st) == 0 && S_ISREG(st.st_mode);
    output_close(out, false, &ignored);
    if (in_place)
        unlink(name);
}

static bool is_started_by_program(const struct record_settings *s)
{
    return s->attach.pid && s->attach.report >= 0;
}

// Returns the name of the output. The default is "heaptape.SUFFIX". If a program starts its
// recorder itself, the default name also contains the process ID, because there are often several
// such programs. The result is static.
static const char *output_name(const struct record_options *o, const struct record_settings *s,
                               const char *suffix)
{
    static char name[64];
    if (is_started_by_program(s))
        snprintf(name, sizeof name, "heaptape.%ld.%s", (long)s->attach.pid, suffix);
    else
        snprintf(name, sizeof name, "heaptape.%s", suffix);
    return o->output ? o->output : name;
}

// Prints the summary of a recording, and releases the list of unrecorded processes. Dies if the
// program could not start or no event was recorded. Returns the exit code.
static int report_result(const struct record_options *o, const struct record_settings *s,
                         struct record_result *r, const struct output *out)
{
    struct err e = {0};
    if (r->start_errno)
        die(r->start_errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "%s: %s", s->argv[0],
            r->start_errno == ENOENT ? "not found" : strerror(r->start_errno));
    if (is_empty(s, r)) {
        record_summary_nothing(s->argv[0], s->attach.pid, r, &e);
        die(EXIT_RECORD, "%s", e.text);
    }
    record_summary_print(o->verbose, r, out);
    trace_unrecorded_release(&r->unrecorded);
    return exit_code(s, r);
}

static int run_collect(const void *fields, void *settings)
{
    const struct record_options *o = fields;
    const struct record_settings *s = settings;
    struct record_result r;
    struct output out;
    struct err e = {0};
    const char *path = output_name(o, s, "ht");
    die_on_error(output_open(&out, path, (o->force ? OUTPUT_FORCE : 0) | OUTPUT_ASIDE, &e),
                 EXIT_FAILED, &e);
    if (record_collect(o->collect, s, &out, &r, &e) < 0) {
        output_close(&out, false, NULL);
        die(EXIT_FAILED, "%s", e.text);
    }
    if (r.events == 0) {
        output_close(&out, false, NULL);
        die(EXIT_FAILED, "%s: nothing was recorded%s%s", o->collect,
            r.losses.off.processes ? ": " : "", r.losses.off.text);
    }
    record_summary_print(o->verbose, &r, &out);
    die_on_error(output_close(&out, true, &e), EXIT_FAILED, &e);
    notes_coverage(path, r.events, o->verbose);
    return EXIT_DONE;
}

static int record_to_trace(const struct record_options *o, const struct record_settings *s,
                           const char *path)
{
    struct record_result r;
    struct output out;
    struct err e = {0};
    die_on_error(output_open(&out, path, o->force ? OUTPUT_FORCE : 0, &e), EXIT_RECORD, &e);
    int rc = record_run(s, &out, &r, &e);
    bool empty = rc == 0 && !r.start_errno && is_empty(s, &r);
    if (empty && r.processes)
        notes_unseen(path, false);
    if (rc < 0 ? out.offset == 0 : r.start_errno || empty)
        discard_output(&out);
    die_on_error(rc, EXIT_RECORD, &e);
    const struct output written = out;
    rc = output_close(&out, true, &e);
    record_unblock_signals();
    int code = report_result(o, s, &r, &written);
    die_on_error(rc, EXIT_RECORD, &e);
    record_restore_signals(); // the notes reread the trace, which may take a long time
    notes_unseen(path, r.losses.bypassed.processes || r.losses.deepbound_bytes);
    if (s->stacks.depth && r.events)
        notes_coverage(path, r.events, o->verbose);
    return code;
}

static int record_to_format(const struct record_options *o, struct record_settings *s,
                            const struct export_live_target *t)
{
    struct record_result r;
    struct output out;
    struct export_live live;
    struct err e = {0}, lost = {0};
    const struct export_settings how = {.format = t->format,
                                        .output = t->output,
                                        .fd = t->fd,
                                        .append = t->append,
                                        .force = o->force,
                                        .stamps = true,
                                        .live = true,
                                        .watch = watch_notes()};
    s->codec = FRAME_CODEC_NONE; // the trace is written only to a pipe
    s->live = true;
    die_on_error(export_live_start(&live, &how, &out, &e), EXIT_RECORD, &e);
    int rc = record_run(s, &out, &r, &e);
    output_close(&out, true, NULL);
    int written = export_live_finish(&live, r.end_requests, &lost);
    record_unblock_signals();
    if (rc == 0 && (r.start_errno || is_empty(s, &r)))
        export_live_discard(t);
    else if (written < 0)
        die(EXIT_RECORD, "%s", lost.text);
    die_on_error(rc, EXIT_RECORD, &e);
    return report_result(o, s, &r, NULL);
}

// Writes a trace, or another format if --format, --log-fd or an environment variable selects one.
static int run_file(const void *fields, void *settings)
{
    const struct record_options *o = fields;
    struct record_settings *s = settings;
    struct export_live_target target = {
        .format = o->format, .output = o->output, .fd = (int)o->log_fd};
    if (export_live_complete(&target) < 0)
        die(EXIT_RECORD, "out of memory");
    if (target.format && target.output &&
        fnmatch("*.@(gz|lz4|xz|zst)", target.output, FNM_EXTMATCH) == 0)
        note("%s: will not be compressed; compress the file after the recording", target.output);
    if (target.format && o->max_bytes)
        return usage_error(&cmd_record, "--max-size applies to traces, not to format %s",
                           target.format->name);
    int code = target.format ? record_to_format(o, s, &target)
                             : record_to_trace(o, s, output_name(o, s, "ht"));
    free(target.made);
    return code;
}

// A child process that reads the trace from a pipe while the program runs, and writes its own
// files.
struct pipe_reader {
    const char *path;
    const void *settings;
    int (*read)(const void *settings, struct err *e); // called in the child process
    bool forwards_usr2;                               // SIGUSR2 triggers a dump
    // The reader may run longer than the recording. From then on, SIGINT, SIGTERM and SIGHUP end
    // it.
    bool uploads;
    bool runs_command; // the reader waits until its command ends or FLIGHT_FILES_END arrives
};

static pid_t reader_pid;

static void forward_signal(int sig)
{
    kill(reader_pid, sig);
}

static const struct sigaction forward = {.sa_handler = forward_signal, .sa_flags = SA_RESTART};

// Makes the reader stop waiting for its command. If the signal arrives again, its default action
// ends heaptape.
static void end_command(int sig)
{
    signal(sig, SIG_DFL);
    kill(reader_pid, FLIGHT_FILES_END);
}

static const int end_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { END_SIGNALS = sizeof end_signals / sizeof *end_signals };

// Sets the action of the signals that would end heaptape, and stores the old actions. Signals that
// are ignored stay ignored.
static void handle_end_signals(const struct sigaction *how, struct sigaction before[END_SIGNALS])
{
    for (int i = 0; i < END_SIGNALS; i++) {
        sigaction(end_signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(end_signals[i], how, NULL);
    }
}

static void restore_end_signals(const struct sigaction before[END_SIGNALS])
{
    for (int i = 0; i < END_SIGNALS; i++) {
        if (before[i].sa_handler != SIG_IGN)
            sigaction(end_signals[i], &before[i], NULL);
    }
}

// Starts the reader process. Dies on failure. Blocks SIGUSR2 and FLIGHT_FILES_END before the fork,
// so that they do not end a process that has no handler yet. The reader unblocks SIGUSR2 when its
// handler is installed, and keeps FLIGHT_FILES_END blocked.
static void start_reader(const struct pipe_reader *to, struct export_live *live, struct output *out)
{
    struct sigaction before;
    struct err e = {0};
    sigset_t usr2, end, mask;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    sigemptyset(&end);
    sigaddset(&end, FLIGHT_FILES_END);
    sigprocmask(SIG_BLOCK, &end, &mask);
    if (to->forwards_usr2)
        sigprocmask(SIG_BLOCK, &usr2, NULL);
    die_on_error(export_live_start_other(live, to->read, to->settings, out, &e), EXIT_RECORD, &e);
    reader_pid = live->writer;
    // An ignored SIGUSR2 stays ignored, because PROGRAM inherits it.
    if (to->forwards_usr2 && sigaction(SIGUSR2, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGUSR2, &forward, NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigprocmask(SIG_UNBLOCK, &usr2, NULL);
}

// Prints the reason why the process that writes the files failed, and exits. A reason of the
// operating system begins with the name of the file.
static void die_of_reader(const char *path, const char *text)
{
    size_t n = strlen(path);
    bool has_name = strncmp(text, path, n) == 0 && text[n] == ':';
    die(EXIT_RECORD, "%s%s%s", has_name ? "" : path, has_name ? "" : ": ", text);
}

static int record_to_reader(const struct record_options *o, struct record_settings *s,
                            const struct pipe_reader *to)
{
    static const struct sigaction end = {.sa_handler = end_command, .sa_flags = SA_RESTART};
    struct sigaction before[END_SIGNALS];
    struct record_result r;
    struct output out;
    struct export_live live;
    struct err e = {0}, lost = {0};
    bool waits = to->uploads || to->runs_command;
    s->live = true;
    s->beat_ns = CLOCK_NS_PER_S / 5;
    start_reader(to, &live, &out);
    int rc = record_run(s, &out, &r, &e);
    if (waits)
        handle_end_signals(to->uploads ? &forward : &end, before);
    record_unblock_signals();
    if (to->runs_command && r.end_requests > 1)
        kill(reader_pid, FLIGHT_FILES_END);
    output_close(&out, true, NULL);
    int written = export_live_finish(&live, EXPORT_LIVE_PATIENT, &lost);
    if (waits)
        restore_end_signals(before);
    if (lost.text[0] && (rc < 0 || (!r.start_errno && !is_empty(s, &r))))
        die_of_reader(to->path, lost.text);
    die_on_error(rc, EXIT_RECORD, &e);
    int code = report_result(o, s, &r, NULL);
    return written < 0 ? EXIT_RECORD : code; // without a message, the reader has printed the reason
}

static void note_aggregate(const char *text)
{
    note("%s; the file is unchanged until it can be written", text);
}

static int write_aggregate(const void *settings, struct err *e)
{
    return aggregate_write(settings, e);
}

static int run_aggregate(const void *fields, void *settings)
{
    const struct record_options *o = fields;
    struct record_settings *s = settings;
    const char *path = output_name(o, s, "hta");
    const struct aggregate_settings how = {.path = path,
                                           .force = o->force,
                                           .rewrite_ns = o->aggregate_ns,
                                           .period_ns = o->period_ns,
                                           .note = note_aggregate};
    struct err e = {0};
    die_on_error(aggregate_check(&how, &e), EXIT_RECORD, &e);
    s->codec = FRAME_CODEC_NONE; // the trace is written only to a pipe
    return record_to_reader(o, s, &(struct pipe_reader){path, &how, .read = write_aggregate});
}

static int write_dumps(const void *settings, struct err *e)
{
    return flight_run(settings, e);
}

static int run_flight(const void *fields, void *settings)
{
    const struct record_options *o = fields;
    const char *path = output_name(o, settings, "%n.ht");
    const struct flight_settings how = {.path = path,
                                        .force = o->force,
                                        .window = o->flight,
                                        .triggers = o->triggers,
                                        .keep = o->keep,
                                        .command = o->on_dump,
                                        .note = note_text};
    struct err e = {0};
    die_on_error(flight_check(&how, &e), EXIT_RECORD, &e);
    return record_to_reader(o, settings,
                            &(struct pipe_reader){path, &how, .read = write_dumps,
                                                  .forwards_usr2 = true,
                                                  .runs_command = o->on_dump != NULL});
}

static struct segments_settings segments_of(const struct record_options *o, const char *path)
{
    return (struct segments_settings){.path = path,
                                      .force = o->force,
                                      .window = o->segment,
                                      .codec = o->compression.codec,
                                      .level = o->compression.level,
                                      .keep = o->keep,
                                      .command = o->on_segment,
                                      .note = note_text};
}

static int write_segments(const void *settings, struct err *e)
{
    return segments_run(settings, e);
}

static int run_segments(const void *fields, void *settings)
{
    const struct record_options *o = fields;
    struct record_settings *s = settings;
    const char *path = output_name(o, s, "%n.ht");
    const struct segments_settings how = segments_of(o, path);
    if (!strstr(path, "%n"))
        return usage_error(&cmd_record,
                           "--segment requires %%n in FILE for the number of the segment");
    struct err e = {0};
    die_on_error(segments_check(&how, &e), EXIT_RECORD, &e);
    s->codec = FRAME_CODEC_NONE; // the reader compresses the segments
    return record_to_reader(o, s,
                            &(struct pipe_reader){path, &how, .read = write_segments,
                                                  .runs_command = o->on_segment != NULL});
}

struct upload_reader {
    struct segments_settings segments;
    struct feed feed;
};

static int write_and_upload(const void *settings, struct err *e)
{
    struct upload_reader u = *(const struct upload_reader *)settings;
    u.segments.published = feed_added;
    u.segments.context = &u.feed;
    int rc = feed_start(&u.feed, e);
    if (rc == 0) {
        rc = segments_run(&u.segments, e);
        int uploaded = feed_end(&u.feed);
        rc = rc < 0 ? rc : uploaded;
    }
    return rc;
}

static int run_upload(const void *fields, void *settings)
{
    const struct record_options *o = fields;
    struct record_settings *s = settings;
    struct upload_reader u = {.segments = segments_of(o, NULL),
                              .feed = {.limit = o->spool_bytes, .error = error_text}};
    struct err e = {0};
    if (o->spool && strstr(o->spool, "%n"))
        return usage_error(&cmd_record, "--spool names a directory: '%s' must not contain %%n",
                           o->spool);
    u.feed.upload = (struct upload_settings){.token_file = o->token_file,
                                             .timeout_ns = o->upload_timeout_ns,
                                             .timeout_option = "--upload-timeout",
                                             .wait_ns = o->upload_wait_ns,
                                             .note = note_text};
    if (feed_init(&u.feed, o->spool, o->output, s->argv[0],
                  s->attach.pid ? s->attach.pid : getpid(), &e) < 0 ||
        upload_options_complete(&u.feed.upload, o->s3, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    s->codec = FRAME_CODEC_NONE; // the reader compresses the segments
    u.segments.path = u.feed.pattern;
    if (!o->segment.ns)
        u.segments.window =
            (struct flight_window){UPLOADED_BYTES, (uint64_t)UPLOADED_S * CLOCK_NS_PER_S};
    die_on_error(output_make_folder(u.feed.upload.folder, &e), EXIT_RECORD, &e);
    int code = record_to_reader(
        o, s, &(struct pipe_reader){o->output, &u, .read = write_and_upload, .uploads = true});
    feed_release(&u.feed);
    return code;
}

static void find_library(struct record_settings *s)
{
    static char library[PATH_MAX];
    if (paths_find("libheaptape.so", library, sizeof library) < 0)
        die(EXIT_RECORD, "libheaptape.so: not found next to the heaptape executable; install it or "
                         "set HEAPTAPE_LIBEXEC");
    s->library = library;
}

// Parses --wrap. Returns 0, or an exit code after a usage error.
static int set_up_wrap(const struct record_options *o, struct record_settings *s)
{
    static struct spool_wrap names;
    if (o->wrap && spool_parse_wrap(o->wrap, &names) < 0)
        return usage_error(&cmd_record,
                           "--wrap requires up to %d NAME=FUNCTION[,...] without repeated names; "
                           "FUNCTION is malloc, free, another allocator function of libc or C++ "
                           "such as _Znwm, or malloc_usable_size (once)",
                           SPOOL_WRAPPED);
    entries_set_families(&names);
    s->wrap = o->wrap ? &names : NULL;
    return 0;
}

static int set_up_program(const void *fields, void *settings)
{
    static struct allocator allocator;
    const struct record_options *o = fields;
    struct record_settings *s = settings;
    struct err e = {0};
    if (!s->argv[0])
        return usage_error(&cmd_record, "an operand is missing");
    find_library(s);
    if (o->allocator && allocator_parse(&allocator, o->allocator, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    replay_note_unread(&allocator, NULL);
    s->allocator = allocator.library;
    s->variables = allocator.tunables;
    s->n_variables = allocator.n_tunables;
    return set_up_wrap(o, s);
}

// Returns the command line of a running process. The result is static.
static char **read_argv(pid_t pid)
{
    enum { ARGUMENTS = 256 };
    static char text[65536], *argv[ARGUMENTS];
    char path[64];
    size_t n = 0;
    snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
    FILE *file = fopen(path, "re");
    size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    for (size_t at = 0; at < bytes && n < ARGUMENTS - 1; at += strlen(text + at) + 1)
        argv[n++] = text + at;
    if (n == 0)
        argv[n++] = "the program";
    return argv;
}

// Reads "PID:FD" from the environment. A program that was started with LD_PRELOAD=libheaptape.so
// sets the variable when it starts this recorder.
static bool read_attach(struct record_attach *a)
{
    const char *text = getenv(SPOOL_ENV_ATTACH);
    return text && sscanf(text, "%d:%d", &a->pid, &a->report) == 2 && a->pid > 0 &&
           a->report > STDERR_FILENO;
}

static int set_up_started_by_program(const void *fields, void *settings)
{
    struct record_settings *s = settings;
    (void)fields;
    read_attach(&s->attach);
    s->argv = read_argv(s->attach.pid);
    unsetenv(SPOOL_ENV_ATTACH);
    fcntl(s->attach.report, F_SETFD, FD_CLOEXEC);
    find_library(s);
    return 0;
}

static int set_up_pid(const void *fields, void *settings)
{
    const struct record_options *o = fields;
    struct record_settings *s = settings;
    struct target t;
    struct err e = {0};
    int code = set_up_wrap(o, s);
    if (code)
        return code;
    if (o->walk && s->paused)
        return usage_error(&cmd_record, "--walk cannot be combined with --start paused");
    s->attach = (struct record_attach){(pid_t)o->pid, -1, o->duration_ns, o->walk};
    s->argv = read_argv(s->attach.pid);
    if (target_open(&t, s->attach.pid, &e) == 0) {
        bool lives = control_recorder_lives(t.control.futexes, t.control.session->owner);
        uint32_t recorder = t.control.session->recorder_pid;
        target_close(&t);
        if (lives)
            die(EXIT_RECORD, "%llu: is already recorded by process %u", (unsigned long long)o->pid,
                recorder);
    }
    find_library(s);
    return 0;
}

static bool selects_started_by_program(const void *fields, int operands)
{
    const struct record_options *o = fields;
    struct record_attach ignored;
    return operands == 0 && !o->pid && !o->collect && read_attach(&ignored);
}

// HEAPTAPE_RECORD may contain options for several programs, so options that do not apply are
// ignored instead of causing an error.
#define EVENT_OPTIONS                                                                              \
    "start|follow|stacks|usable|maps|no-residency|no-pages|lossy|clock" // for the capture library
#define SOURCE_OPTIONS "allocator|duration|walk|wrap|" EVENT_OPTIONS

// Selects the processes to record. `run` completes the settings and returns 0, or an exit code
// after a usage error.
static const struct command_mode sources[] = {
    {.selects = selects_started_by_program,
     .accepts = SOURCE_OPTIONS,
     .run = set_up_started_by_program},
    {.option = "collect", .accepts = "allocator", .rejects = "PROGRAM"},
    {.option = "pid",
     .accepts = "duration|walk|wrap|" EVENT_OPTIONS,
     .rejects = "PROGRAM",
     .run = set_up_pid},
    {.accepts = "allocator|wrap|" EVENT_OPTIONS, .run = set_up_program},
};

static bool selects_upload(const void *fields, int operands)
{
    const struct record_options *o = fields;
    (void)operands;
    return o->output && upload_is_url(o->output);
}

// Selects the form of the recording. `run` records and returns the exit code.
static const struct command_mode outputs[] = {
    {.selects = selects_upload,
     .name = "-o URL",
     .accepts = "output|segment|spool|spool-limit|upload-wait|upload-timeout|upload-token-file|s3",
     .run = run_upload},
    {.option = "collect", .accepts = "output|max-size", .run = run_collect},
    {.option = "aggregate", .accepts = "output|period", .run = run_aggregate},
    {.option = "flight", .accepts = "output|trigger|on-dump|keep", .run = run_flight},
    {.option = "segment", .accepts = "output|on-segment|keep", .run = run_segments},
    {.option = "log-fd", .accepts = "format", .run = run_file},
    {.option = "format", .accepts = "output", .run = run_file},
    {.accepts = "output|max-size", .run = run_file},
};

enum { SOURCE, OUTPUT };

static int run_record(const void *fields, char **argv)
{
    const struct record_options *o = fields;
    const struct command_mode *const *modes = cli_common.modes;
    struct record_settings s = {.argv = argv,
                                .lossy = o->lossy,
                                .exact_clock = o->clock == RECORD_EXACT,
                                .usable = o->usable,
                                .maps = o->maps,
                                .residency = !o->no_residency,
                                .pages = !o->no_pages,
                                .paused = o->start == RECORD_PAUSED,
                                .codec = o->compression.codec,
                                .level = o->compression.level,
                                .follow = o->follow,
                                .max_bytes = o->max_bytes,
                                .stacks = o->stacks};
    if ((o->aggregate_ns || o->flight.ns) && !s.stacks.depth)
        spool_parse_stacks("sample", &s.stacks);
    if (!*o->follow || strlen(o->follow) >= SPOOL_MAX_FOLLOW)
        return usage_error(&cmd_record,
                           "--follow must be all, none or a pattern of at most %d bytes",
                           SPOOL_MAX_FOLLOW - 1);
    int code = modes[SOURCE]->run ? modes[SOURCE]->run(o, &s) : 0;
    return code ? code : modes[OUTPUT]->run(o, &s);
}

const struct command cmd_record = {
    .name = "record",
    .operands = "[--] PROGRAM [ARG...] | --pid PID | --collect DIR",
    .summary = "Run a program and record every malloc call of its processes",
    .examples =
        {
            {"Record a compilation: compiler, assembler and linker in one trace",
             "heaptape record -o gcc.ht -- gcc -O2 -c big.c"},
            {"Record call stacks, to find the code that allocates",
             "heaptape record --stacks=16 -o program.ht -- ./program"},
            {"Watch a service for days in a file of a few MiB, and see what grows",
             "heaptape record --aggregate -o service.hta --pid 4711\n"
             "heaptape stat --by site --weight growth service.hta"},
        },
    .options = options,
    .options_bytes = sizeof(struct record_options),
    .modes = {sources, outputs},
    .min_operands = 0,
    .max_operands = UINT_MAX,
    .runs_program = true,
    .run = run_record,
};
