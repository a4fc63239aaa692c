#include "record/record.h"
#include "aggregate/write.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "commands/record_summary.h"
#include "flight/flight.h"
#include "flight/segments.h"
#include "formats/export_live.h"
#include "print/coverage.h"
#include "print/unseen.h"
#include "print/watch.h"
#include "record/target.h"
#include "replay/allocators.h"
#include "spool/spool.h"
#include "transfer/feed.h"
#include "transfer/queue.h"
#include "transfer/upload_options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct command cmd_record;

enum { MAX_LEVEL = 19 }; // of zstd

// A segment that is uploaded, unless --segment is given.
enum { UPLOADED_BYTES = 64 << 20, UPLOADED_S = 600 };

enum record_start { RECORD_NOW, RECORD_PAUSED };

struct compression {
    enum frame_codec codec;
    int level;
};

#define WRAP_FUNCTIONS "malloc, calloc, realloc, free, memalign, aligned_alloc, posix_memalign or malloc_usable_size"

struct record_options {
    const char *output;
    const struct format *format;
    uint64_t log_fd;
    const char *allocator;
    struct compression compression;
    uint64_t aggregate_s, period_s; // 0: no aggregate
    struct flight_window flight;    // ns 0: no flight recording
    struct flight_triggers triggers;
    struct flight_window segment; // ns 0: the trace is one file
    uint64_t keep;
    const char *on_dump, *on_segment;
    const char *spool, *token_file, *s3; // of uploads
    uint64_t spool_bytes, upload_wait_s;
    const char *collect;
    uint64_t pid;
    uint64_t duration_s;
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
    bool verbose;
};

static bool is_upload(const struct record_options *o)
{
    return o->output && upload_is_url(o->output);
}

static int parse_stacks(const char *text, void *field)
{
    return spool_parse_stacks(text, field);
}

// OPTION_PARSED: "zstd:3" to codec and level.
static int parse_compression(const char *text, void *field)
{
    struct compression *c = field;
    int codec = options_parse_choice("none|lz4|zstd", text); // as enum frame_codec
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

static const struct option options[] = {
    {'o', "output", OPTION_STRING, "FILE|URL|-", NULL,
     "write the trace to FILE, or to standard output for '-' (default: heaptape.ht; heaptape.FORMAT with --format); or upload "
     "it in segments to a server, whose URL begins with http:// or https://",
     offsetof(struct record_options, output)},
    {'F', "format", OPTION_PARSED, FORMATS_EXPORT_CHOICES, NULL,
     "write another tool's format instead of a trace, while PROGRAM runs", offsetof(struct record_options, format),
     .parse = formats_parse_export},
    {0, "log-fd", OPTION_NUMBER, "FD", NULL,
     "write to an inherited file descriptor instead of a file, in the format logalloc unless --format is given",
     offsetof(struct record_options, log_fd), .min = 1, .max = INT_MAX},
    {'a', "allocator", OPTION_STRING, "ALLOCATOR", NULL,
     "run PROGRAM on this allocator: a name or path, and tunables after commas (default: PROGRAM's own)",
     offsetof(struct record_options, allocator)},
    {'z', "compress", OPTION_PARSED, "none|lz4|zstd[:LEVEL]", "zstd:1",
     "set the compression of the trace; the recorder falls back from zstd to lz4 to none when it cannot keep up",
     offsetof(struct record_options, compression), .parse = parse_compression, .min = 1, .max = MAX_LEVEL},
    {'f', "force", OPTION_FLAG, NULL, NULL, "replace FILE if it exists", offsetof(struct record_options, force)},
    {0, "start", OPTION_CHOICE, "now|paused", "now",
     "start recording at once, or when 'heaptape ctl' or PROGRAM itself starts it",
     offsetof(struct record_options, start)},
    {0, "follow", OPTION_STRING, "all|none|PATTERN", "all",
     "choose the child processes to record: all, none, or those whose executable's name matches a glob pattern",
     offsetof(struct record_options, follow)},
    {0, "stacks", OPTION_PARSED, "DEPTH|sample[:BYTES]", NULL,
     "record the call stack of each allocation, by the unwind tables of the program and its libraries: at most DEPTH "
     "return addresses, from 1, only the call site, to 128; or the stack of one allocation per BYTES allocated on "
     "average, 512K by default, from which the figures of call sites are estimated",
     offsetof(struct record_options, stacks), .bare = "128", .parse = parse_stacks, .min = 1, .max = SPOOL_MAX_DEPTH},
    {0, "max-size", OPTION_SIZE, "SIZE", NULL, "stop recording when FILE reaches SIZE; PROGRAM continues untraced",
     offsetof(struct record_options, max_bytes)},
    {0, "aggregate", OPTION_NUMBER, "SECONDS", NULL,
     "write no events but what is live and what was allocated by call site, in a file of some MiB that is rewritten every "
     "SECONDS, 60 by default; with --stacks=sample unless --stacks is given",
     offsetof(struct record_options, aggregate_s), .bare = "60", .min = 1, .max = UINT32_MAX},
    {0, "period", OPTION_NUMBER, "SECONDS", "3600",
     "with --aggregate, keep the live bytes of each call site at the end of each period of SECONDS",
     offsetof(struct record_options, period_s), .min = 1, .max = UINT32_MAX},
    {0, "flight", OPTION_PARSED, "SIZE|DURATION[,...]", NULL,
     "keep the last SIZE of the trace in memory, or what it has of the last DURATION (30s, 5min, 1h; at most 256M unless SIZE "
     "is given), and write it with all blocks that were live before as a trace when a trigger asks for it; with "
     "--stacks=sample unless --stacks is given",
     offsetof(struct record_options, flight), .parse = parse_window},
    {0, "trigger", OPTION_PARSED, "TRIGGER[,...]", NULL,
     "with --flight, what asks for a dump besides SIGUSR2 and 'heaptape ctl PID dump': rss>SIZE, rss+N%/DURATION, cgroup>N%, "
     "pressure>N%, oom, exit!=0 or exit, which is the default",
     offsetof(struct record_options, triggers), .parse = parse_triggers},
    {0, "segment", OPTION_PARSED, "SIZE|DURATION[,...]", NULL,
     "write the trace as files of SIZE or DURATION, each of which is a trace that begins with the blocks that are live; %n in "
     "FILE is their number. The folder of them is read as one trace",
     offsetof(struct record_options, segment), .parse = parse_window},
    {0, "on-segment", OPTION_STRING, "CMD", NULL,
     "with --segment, run CMD by the shell after each segment, with its path as $1",
     offsetof(struct record_options, on_segment)},
    {0, "keep", OPTION_NUMBER, "N", NULL, "with --flight or --segment, remove older dumps or segments than the last N",
     offsetof(struct record_options, keep), .min = 1, .max = UINT32_MAX},
    {0, "on-dump", OPTION_STRING, "CMD", NULL,
     "with --flight, run CMD by the shell after each dump, with its path as $1 and the trigger as $HEAPTAPE_TRIGGER",
     offsetof(struct record_options, on_dump)},
    {0, "spool", OPTION_STRING, "DIR", NULL,
     "with -o URL, keep segments below DIR until the server has them (default: $XDG_STATE_HOME/heaptape/upload, or "
     "~/.local/state/heaptape/upload)",
     offsetof(struct record_options, spool)},
    {0, "spool-limit", OPTION_SIZE, "SIZE", "1G",
     "with -o URL, drop the oldest segments, also those that earlier recordings left, when the spool has more than SIZE",
     offsetof(struct record_options, spool_bytes), .min = 1, .max = INT64_MAX},
    {0, "upload-wait", OPTION_NUMBER, "SECONDS", "30",
     "with -o URL, wait at most SECONDS for uploads after the recording has ended",
     offsetof(struct record_options, upload_wait_s), .max = UINT32_MAX},
    {0, "upload-token-file", OPTION_STRING, "FILE", NULL, "with -o URL, " UPLOAD_TOKEN_HELP,
     offsetof(struct record_options, token_file)},
    {0, "s3", OPTION_PARSED, "REGION", NULL, "with -o URL, " UPLOAD_S3_HELP, offsetof(struct record_options, s3),
     .bare = "", .parse = upload_options_parse_s3},
    {0, "collect", OPTION_STRING, "DIR", NULL,
     "run nothing; write the trace of processes that recorded themselves into DIR",
     offsetof(struct record_options, collect)},
    {'p', "pid", OPTION_NUMBER, "PID", NULL,
     "record a process that runs already, until it exits, a signal ends heaptape, or --duration is over",
     offsetof(struct record_options, pid), .min = 1, .max = INT_MAX},
    {0, "duration", OPTION_NUMBER, "SECONDS", NULL, "with --pid, stop recording after SECONDS",
     offsetof(struct record_options, duration_s), .min = 1, .max = UINT32_MAX},
    {0, "walk", OPTION_FLAG, NULL, NULL,
     "with --pid, also record the blocks that are live at the start, found in the heap of glibc 2.35 to 2.40",
     offsetof(struct record_options, walk)},
    {0, "wrap", OPTION_STRING, "NAME=FUNCTION[,...]", NULL,
     "with --pid, also record an allocator whose functions have other names, such as je_malloc=malloc,je_free=free. "
     "FUNCTION is " WRAP_FUNCTIONS,
     offsetof(struct record_options, wrap)},
    {0, "usable", OPTION_FLAG, NULL, NULL, "also record the usable size of each block (malloc_usable_size)",
     offsetof(struct record_options, usable)},
    {0, "maps", OPTION_FLAG, NULL, NULL, "also record PROGRAM's own calls of mmap, munmap, mremap, brk and sbrk",
     offsetof(struct record_options, maps)},
    {0, "no-residency", OPTION_FLAG, NULL, NULL,
     "do not record how much of its blocks of 16 KiB and more PROGRAM uses, which is measured when they are freed",
     offsetof(struct record_options, no_residency)},
    {0, "no-pages", OPTION_FLAG, NULL, NULL,
     "do not read now and then which pages of the processes are resident, for 'heaptape stat --rss'",
     offsetof(struct record_options, no_pages)},
    {0, "lossy", OPTION_FLAG, NULL, NULL, "drop and count events instead of making PROGRAM wait for the recorder",
     offsetof(struct record_options, lossy)},
    {'v', "verbose", OPTION_FLAG, NULL, NULL, "also report the cost of recording",
     offsetof(struct record_options, verbose)},
    {0},
};

static int exit_code(const struct record_result *r)
{
    if (r->stopped_by && !r->exited)
        return 128 + r->stopped_by;
    if (WIFSIGNALED(r->wait_status))
        return 128 + WTERMSIG(r->wait_status);
    return WEXITSTATUS(r->wait_status);
}

static bool is_nothing(const struct record_settings *s, const struct record_result *r)
{
    return r->events == 0 && !r->cut_off && !(s->paused && r->processes);
}

// A file without events is of no use: the program did not run or made no calls.
static void discard(struct output *out)
{
    struct err ignored = {0};
    struct stat st;
    const char *name = out->name;
    bool in_place = out->owns_fd && !out->aside && fstat(out->fd, &st) == 0 && S_ISREG(st.st_mode);
    output_close(out, false, &ignored);
    if (in_place)
        unlink(name);
}

// HEAPTAPE_SPOOL=DIR LD_PRELOAD=libheaptape.so PROGRAM has run before.
static int run_collect(const struct record_options *o, const struct record_settings *s)
{
    struct record_result r;
    struct output out;
    struct err e = {0};
    const char *path = o->output ? o->output : "heaptape.ht";
    if (output_open(&out, path, (o->force ? OUTPUT_FORCE : 0) | OUTPUT_ASIDE, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    if (record_collect(o->collect, s, &out, &r, &e) < 0) {
        output_close(&out, false, NULL);
        die(EXIT_FAILED, "%s", e.text);
    }
    if (r.events == 0) {
        output_close(&out, false, NULL);
        die(EXIT_FAILED, "%s: nothing was recorded%s%s", o->collect, r.off.processes ? ": " : "", r.off.text);
    }
    record_summary_print(o->verbose, &r, &out);
    if (output_close(&out, true, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    coverage_note(path, o->verbose);
    return EXIT_DONE;
}

static void set_allocator(struct record_settings *s, const struct allocator *a)
{
    s->allocator = a->library;
    s->variables = a->tunables;
    s->n_variables = a->n_tunables;
}

// Reports on the program, which has exited or was never started, and returns the exit code.
static int conclude(const struct record_options *o, const struct record_settings *s, const struct record_result *r,
                    const struct output *out)
{
    struct err e = {0};
    if (r->start_errno)
        die(r->start_errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "%s: %s", s->argv[0],
            r->start_errno == ENOENT ? "not found" : strerror(r->start_errno));
    if (is_nothing(s, r)) {
        record_summary_nothing(s->argv[0], r, &e);
        die(EXIT_RECORD, "%s", e.text);
    }
    record_summary_print(o->verbose, r, out);
    return exit_code(r);
}

static int record_to_trace(const struct record_options *o, const struct record_settings *s, const char *path)
{
    struct record_result r;
    struct output out;
    struct err e = {0};
    if (output_open(&out, path, o->force ? OUTPUT_FORCE : 0, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    int rc = record_run(s, &out, &r, &e);
    if (rc < 0 ? out.offset == 0 : r.start_errno || is_nothing(s, &r))
        discard(&out);
    if (rc < 0)
        die(EXIT_RECORD, "%s", e.text);
    int code = conclude(o, s, &r, &out);
    if (output_close(&out, true, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    if (r.bypassed.processes || r.deepbound_bytes)
        unseen_note(path);
    if (s->stacks.depth && r.events)
        coverage_note(path, o->verbose);
    trace_unrecorded_release(&r.unrecorded);
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
    s->codec = FRAME_CODEC_NONE; // nobody keeps it
    s->live = true;
    if (export_live_start(&live, &how, &out, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    int rc = record_run(s, &out, &r, &e);
    output_close(&out, true, NULL);
    int written = export_live_finish(&live, r.stopped_by, &lost);
    if (rc == 0 && (r.start_errno || is_nothing(s, &r)))
        export_live_discard(t);
    else if (written < 0)
        die(EXIT_RECORD, "%s", lost.text);
    if (rc < 0)
        die(EXIT_RECORD, "%s", e.text);
    int code = conclude(o, s, &r, NULL);
    trace_unrecorded_release(&r.unrecorded);
    return code;
}

static int write_aggregate(const void *settings, struct err *e)
{
    return aggregate_write(settings, e);
}

static void note_aggregate(const char *text)
{
    note("%s; the file stays as it was until it can be written", text);
}

enum { NS_PER_S = 1000000000 };

// A process of its own that makes something else of the trace than a file of all of it.
struct record_reader {
    const char *path;
    const void *settings;
    int (*check)(const void *settings, struct err *e);
    int (*read)(const void *settings, struct err *e);
    bool asked;   // it is asked by SIGUSR2
    bool uploads; // it may last for longer than the recording: a signal ends it then
};

static pid_t asked_reader;

static void ask_reader(int sig)
{
    kill(asked_reader, sig);
}

// Signals that would end this process reach the reader from here on; it ends soon then, and says what is left.
static void end_reader_by_signals(struct sigaction before[3], bool restore)
{
    static const int ends[3] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = ask_reader, .sa_flags = SA_RESTART};
    for (int i = 0; i < 3; i++) {
        if (!restore)
            sigaction(ends[i], NULL, &before[i]);
        // One that is ignored stays so.
        if (before[i].sa_handler != SIG_IGN)
            sigaction(ends[i], restore ? &before[i] : &action, NULL);
    }
}

static int record_to_reader(const struct record_options *o, struct record_settings *s, const struct record_reader *to)
{
    const struct sigaction action = {.sa_handler = ask_reader, .sa_flags = SA_RESTART};
    struct sigaction before, ended_by[3];
    struct record_result r;
    struct output out;
    struct export_live live;
    struct err e = {0}, lost = {0};
    sigset_t ask;
    s->live = true;
    s->beat_ns = NS_PER_S / 5;
    // Until both processes handle it. The reader unblocks it itself.
    sigemptyset(&ask);
    sigaddset(&ask, SIGUSR2);
    if (to->asked)
        sigprocmask(SIG_BLOCK, &ask, NULL);
    if (to->check(to->settings, &e) < 0 || export_live_start_other(&live, to->read, to->settings, &out, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    asked_reader = live.writer;
    // One that is ignored stays so, as PROGRAM inherits it.
    if (to->asked && sigaction(SIGUSR2, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGUSR2, &action, NULL);
    sigprocmask(SIG_UNBLOCK, &ask, NULL);
    int rc = record_run(s, &out, &r, &e);
    if (to->uploads)
        end_reader_by_signals(ended_by, false);
    output_close(&out, true, NULL);
    int written = export_live_finish(&live, false, &lost);
    if (to->uploads)
        end_reader_by_signals(ended_by, true);
    if (written < 0 && (rc < 0 || (!r.start_errno && !is_nothing(s, &r))))
        die(EXIT_RECORD, "%s: %s", to->path, lost.text);
    if (rc < 0)
        die(EXIT_RECORD, "%s", e.text);
    int code = conclude(o, s, &r, NULL);
    trace_unrecorded_release(&r.unrecorded);
    return code;
}

static int check_aggregate(const void *settings, struct err *e)
{
    return aggregate_check(settings, e);
}

static int record_to_aggregate(const struct record_options *o, struct record_settings *s, const char *path)
{
    const struct aggregate_settings how = {.path = path,
                                           .force = o->force,
                                           .rewrite_ns = o->aggregate_s * NS_PER_S,
                                           .period_ns = o->period_s * NS_PER_S,
                                           .note = note_aggregate};
    s->codec = FRAME_CODEC_NONE; // nobody keeps it
    return record_to_reader(o, s, &(struct record_reader){path, &how, check_aggregate, write_aggregate, false});
}

static int check_flight(const void *settings, struct err *e)
{
    return flight_check(settings, e);
}

static int run_flight(const void *settings, struct err *e)
{
    return flight_run(settings, e);
}

static int record_flight(const struct record_options *o, struct record_settings *s, const char *path)
{
    const struct flight_settings how = {.path = path,
                                        .force = o->force,
                                        .window = o->flight,
                                        .triggers = o->triggers,
                                        .keep = o->keep,
                                        .command = o->on_dump,
                                        .note = note_text};
    return record_to_reader(o, s, &(struct record_reader){path, &how, check_flight, run_flight, true});
}

static int check_segments(const void *settings, struct err *e)
{
    return segments_check(settings, e);
}

static int run_segments(const void *settings, struct err *e)
{
    return segments_run(settings, e);
}

// Segments that are uploaded, and how.
struct record_upload {
    struct segments_settings segments;
    struct feed feed;
};

static int check_uploaded(const void *settings, struct err *e)
{
    const struct record_upload *u = settings;
    return output_make_folder(u->feed.upload.folder, e);
}

// In the process of its own that writes the segments.
static int run_uploaded(const void *settings, struct err *e)
{
    struct record_upload u = *(const struct record_upload *)settings;
    u.segments.published = feed_added;
    u.segments.context = &u.feed;
    int rc = feed_start(&u.feed, e);
    if (rc == 0) {
        rc = segments_run(&u.segments, e);
        feed_end(&u.feed);
    }
    return rc;
}

static int record_uploaded(const struct record_options *o, struct record_settings *s, struct segments_settings *how)
{
    struct record_upload u = {.segments = *how, .feed = {.limit = o->spool_bytes, .error = error_text}};
    struct err e = {0};
    u.feed.upload = (struct upload_settings){
        .token_file = o->token_file, .wait_ns = o->upload_wait_s * NS_PER_S, .note = note_text};
    if (feed_init(&u.feed, o->spool, o->output, s->argv[0], s->attach.pid ? s->attach.pid : getpid(), &e) < 0 ||
        upload_options_complete(&u.feed.upload, o->s3, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    u.segments.path = u.feed.pattern;
    if (!o->segment.ns)
        u.segments.window = (struct flight_window){UPLOADED_BYTES, (uint64_t)UPLOADED_S * NS_PER_S};
    int code =
        record_to_reader(o, s, &(struct record_reader){o->output, &u, check_uploaded, run_uploaded, .uploads = true});
    feed_release(&u.feed);
    return code;
}

static int record_segments(const struct record_options *o, struct record_settings *s, const char *path)
{
    struct segments_settings how = {.path = path,
                                    .force = o->force,
                                    .window = o->segment,
                                    .codec = o->compression.codec,
                                    .level = o->compression.level,
                                    .keep = o->keep,
                                    .command = o->on_segment,
                                    .note = note_text};
    s->codec = FRAME_CODEC_NONE; // the segments are compressed when they are written
    if (upload_is_url(path))
        return record_uploaded(o, s, &how);
    return record_to_reader(o, s, &(struct record_reader){path, &how, check_segments, run_segments, false});
}

static int record_program(const struct record_options *o, struct record_settings *s)
{
    struct export_live_target target = {.format = o->format, .output = o->output, .fd = (int)o->log_fd};
    struct allocator allocator = {0};
    char library[PATH_MAX];
    struct err e = {0};
    if (export_live_complete(&target) < 0)
        die(EXIT_RECORD, "out of memory");
    if (target.format && o->max_bytes)
        return usage_error(&cmd_record, "--max-size applies to traces, not to --format %s", target.format->name);
    if (paths_find("libheaptape.so", library, sizeof library) < 0)
        die(EXIT_RECORD,
            "libheaptape.so: not found beside the heaptape executable; install it or set HEAPTAPE_LIBEXEC");
    if (o->allocator && allocator_parse(&allocator, o->allocator, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    s->library = library;
    set_allocator(s, &allocator);
    int code = o->aggregate_s                  ? record_to_aggregate(o, s, o->output ? o->output : "heaptape.hta")
               : o->flight.ns                  ? record_flight(o, s, o->output ? o->output : "heaptape.%n.ht")
               : o->segment.ns || is_upload(o) ? record_segments(o, s, o->output ? o->output : "heaptape.%n.ht")
               : target.format                 ? record_to_format(o, s, &target)
                                               : record_to_trace(o, s, target.output);
    allocator_release(&allocator);
    free(target.made);
    return code;
}

// A program that was started with LD_PRELOAD=libheaptape.so alone starts its recorder itself.
static bool read_attach(struct record_attach *a)
{
    const char *text = getenv(SPOOL_ENV_ATTACH);
    return text && sscanf(text, "%d:%d", &a->pid, &a->report) == 2 && a->pid > 0 && a->report > STDERR_FILENO;
}

// The command line of a program that runs already. Static.
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

static int record_attached(const struct record_options *o, struct record_settings *s)
{
    struct record_options named = *o;
    char output[64];
    s->argv = read_argv(s->attach.pid);
    unsetenv(SPOOL_ENV_ATTACH);
    fcntl(s->attach.report, F_SETFD, FD_CLOEXEC);
    // Programs that are started so are often several, and have no place for options.
    snprintf(output, sizeof output, "heaptape.%ld.%s", (long)s->attach.pid,
             o->aggregate_s                  ? "hta"
             : o->flight.ns || o->segment.ns ? "%n.ht"
                                             : "ht");
    struct export_live_target target = {.format = o->format, .output = o->output, .fd = (int)o->log_fd};
    if (export_live_complete(&target) == 0 && !target.format && !o->output)
        named.output = output;
    free(target.made);
    return record_program(&named, s);
}

static int record_running(const struct record_options *o, const struct spool_wrap *names, struct record_settings *s)
{
    struct target t;
    struct err e = {0};
    s->attach = (struct record_attach){(pid_t)o->pid, -1, o->duration_s * 1000000000u, o->walk, names};
    s->argv = read_argv(s->attach.pid);
    // Not one that another recorder has.
    if (target_open(&t, s->attach.pid, &e) == 0) {
        bool lives = control_recorder_lives(t.control.futexes, t.control.session->owner);
        target_close(&t);
        if (lives)
            die(EXIT_RECORD, "%llu: is being recorded already", (unsigned long long)o->pid);
    }
    return record_program(o, s);
}

static int run_record(const void *fields, int argc, char **argv)
{
    const struct record_options *o = fields;
    struct spool_wrap names;
    struct record_settings s = {.argv = argv,
                                .lossy = o->lossy,
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
    if ((o->aggregate_s || o->flight.ns) && !s.stacks.depth)
        spool_parse_stacks("sample", &s.stacks);
    if (!o->collect && !o->pid && argc == 0 && read_attach(&s.attach))
        return record_attached(o, &s);
    if (o->pid && (argc > 0 || o->collect || o->allocator))
        return usage_error(&cmd_record, "--pid takes no PROGRAM, --collect or --allocator");
    if (o->duration_s && !o->pid)
        return usage_error(&cmd_record, "--duration requires --pid");
    if (o->wrap && !o->pid)
        return usage_error(&cmd_record, "--wrap requires --pid");
    if (o->wrap && spool_parse_wrap(o->wrap, &names) < 0)
        return usage_error(&cmd_record,
                           "--wrap needs NAME=FUNCTION, each once, separated by commas; FUNCTION is " WRAP_FUNCTIONS);
    if (o->walk && (!o->pid || o->start == RECORD_PAUSED))
        return usage_error(&cmd_record, "--walk requires --pid, and recording from the start");
    if (!o->collect && !o->pid && argc == 0)
        return usage_error(&cmd_record, "an operand is missing");
    if (o->collect && argc > 0)
        return usage_error(&cmd_record, "--collect takes no PROGRAM");
    if (o->collect && (o->format || o->log_fd))
        return usage_error(&cmd_record, "--collect writes a trace; convert it with 'heaptape export' afterwards");
    if (o->aggregate_s && (o->format || o->log_fd || o->collect || o->max_bytes))
        return usage_error(&cmd_record,
                           "--aggregate cannot be combined with --format, --log-fd, --collect or --max-size");
    if (o->flight.ns && (o->aggregate_s || o->format || o->log_fd || o->collect || o->max_bytes))
        return usage_error(&cmd_record,
                           "--flight cannot be combined with --aggregate, --format, --log-fd, --collect or --max-size");
    if (o->segment.ns && (o->flight.ns || o->aggregate_s || o->format || o->log_fd || o->collect || o->max_bytes))
        return usage_error(&cmd_record, "--segment cannot be combined with --flight, --aggregate, --format, --log-fd, "
                                        "--collect or --max-size");
    if (o->segment.ns && o->output && !is_upload(o) && !strstr(o->output, "%n"))
        return usage_error(&cmd_record, "--segment needs %%n in FILE, the number of the segment");
    if ((o->triggers.any || o->on_dump) && !o->flight.ns)
        return usage_error(&cmd_record, "--trigger and --on-dump require --flight");
    if (is_upload(o) &&
        (o->flight.ns || o->aggregate_s || o->format || o->collect || o->max_bytes || o->keep || o->on_segment))
        return usage_error(&cmd_record,
                           "-o URL cannot be combined with --flight, --aggregate, --format, --collect, --max-size, "
                           "--keep or --on-segment");
    if (!is_upload(o) && (o->spool || o->token_file || o->s3))
        return usage_error(&cmd_record, "--spool, --upload-token-file and --s3 require -o URL");
    if (is_upload(o) && o->spool && strstr(o->spool, "%n"))
        return usage_error(&cmd_record, "--spool is the name of a folder, without %%n");
    if (o->on_segment && !o->segment.ns)
        return usage_error(&cmd_record, "--on-segment requires --segment");
    if (o->keep && !o->flight.ns && !o->segment.ns)
        return usage_error(&cmd_record, "--keep requires --flight or --segment");
    if (o->output && o->log_fd)
        return usage_error(&cmd_record, "-o and --log-fd cannot be combined");
    if (o->collect)
        return run_collect(o, &s);
    if (!*o->follow || strlen(o->follow) >= SPOOL_MAX_FOLLOW)
        return usage_error(&cmd_record, "--follow must be all, none or a pattern of at most %d bytes",
                           SPOOL_MAX_FOLLOW - 1);
    if (o->pid)
        return record_running(o, o->wrap ? &names : NULL, &s);
    return record_program(o, &s);
}

const struct command cmd_record = {
    .name = "record",
    .operands = "[--] PROGRAM [ARG...] | --pid PID | --collect DIR",
    .summary = "Run a program and record every malloc call of it and its child processes",
    .description =
        "Runs PROGRAM with the capture library preloaded, and writes a trace of all calls of the malloc API "
        "(malloc, free, new, delete and their variants) by PROGRAM and by the processes that it starts. Recording "
        "ends when the last of these processes exits. The exit status is that of PROGRAM; 128 + N if signal N "
        "terminated it; 125 if heaptape itself failed or nothing was recorded; 126 if PROGRAM cannot be executed; "
        "127 if it was not found.\n\n"
        "While PROGRAM runs, heaptape ignores SIGINT and SIGQUIT, which the terminal also sends to PROGRAM. After "
        "PROGRAM has exited, they end the recording of the processes that it left behind. heaptape forwards the "
        "first SIGTERM or SIGHUP to PROGRAM; the second one ends the recording within about a second, and PROGRAM "
        "continues untraced. PROGRAM also continues untraced when the disk is full.\n\n"
        "--follow selects among the processes that PROGRAM starts. PROGRAM itself is always recorded, also after "
        "it calls exec. With --follow=none heaptape does not wait for the processes that PROGRAM leaves behind. "
        "With --max-size, FILE may exceed SIZE by the events of 20 ms.\n\n"
        "--stacks follows the unwind tables that compilers write for exceptions and debuggers, so nothing has to be "
        "rebuilt; code without them, such as that of a JIT compiler, is followed along its frame pointers. At "
        "the end of the recording, heaptape prints in which objects stacks end that do not reach the program's own code, if "
        "they are those of 1 % of the bytes; with -v also the share of the others.\n\n"
        "--pid attaches to a process that runs already. A thread of it stops at the entry of malloc, or while it waits in a "
        "system call, loads the capture library and redirects the calls of the malloc API of every loaded object; the other "
        "threads continue meanwhile. Child processes that it forks are recorded too, but not programs that they execute. When "
        "the recording ends, the process calls malloc as before and only the library stays loaded, unused. Blocks "
        "from before are recorded when they are freed or reallocated, with the size that malloc_usable_size returns; with --walk, all blocks that are live at the start are. "
        "heaptape needs the right to use ptrace on the process: the same user, as kernel.yama.ptrace_scope allows, or root. "
        "It refuses a process that is stopped, traced by another program, statically linked, linked with another C library than "
        "glibc, restricted by a seccomp filter that does not allow the system calls of the library or that only root may read, or that ignores SIGTRAP, or both blocks and handles it. The exit status is 0 when the recording ended as it was asked to.\n\n"
        "A program that heaptape cannot start, such as a service, can record itself: start it with "
        "HEAPTAPE_SPOOL=DIR and LD_PRELOAD=libheaptape.so in the environment. DIR is the absolute path of an "
        "existing, empty directory; it grows by at least 8 bytes per event. Afterwards, --collect DIR writes the "
        "trace, however the processes ended, and leaves DIR unchanged. Stop a process that still runs first, with "
        "'heaptape ctl PID stop'.\n\n"
        "With -o - the trace goes to standard output, which PROGRAM shares: redirect PROGRAM's own output.\n\n"
        "With --format, heaptape writes another tool's format while PROGRAM runs, with the same content as "
        "'heaptape export' of a trace. Lines appear within 0.1 seconds, in the order of the calls. Formats "
        "without addresses are written at the end. %p in FILE is replaced by the process ID, and each process "
        "gets its own file. Of a format that holds one process (mtrace, android, wl and tcmalloc-replay), the first process "
        "gets FILE, the others FILE.1, FILE.2 and so on; standard output and --log-fd get the first process alone. --log-fd writes to a file descriptor that heaptape inherited, as in 'heaptape record "
        "--log-fd 3 -- prog 3>&1 1>&2 | gzip'; PROGRAM does not inherit it.\n\n"
        "The environment variables MALLOC_LOG, MTRACE_CTL_FILE and TCMALLOC_TRACE_OUTPUT apply if neither -o, --log-fd nor another "
        "--format is given. MALLOC_LOG=FILE appends to FILE in the format logalloc. MALLOC_LOG=N, a number below "
        "10,000, means --log-fd N. MTRACE_CTL_FILE=FILE writes FILE, or FILE.N if it exists, in the format mtrace. If it is empty, or with "
        "--format mtrace alone, each process gets a file /tmp/mtrace.out.PID. TCMALLOC_TRACE_OUTPUT=FILE does the same in "
        "the format tcmalloc.\n\n"
        "LD_PRELOAD=libheaptape.so records without 'heaptape record' if one of these variables, or HEAPTAPE_RECORD, is in the "
        "environment: the library starts the recorder, which is no child of the program. HEAPTAPE_RECORD holds options, "
        "separated by spaces, and may be empty. Without -o the trace is heaptape.PID.ht. It is complete when the program has "
        "exited; if a signal terminated the program, or processes that it started still run, some moments later or when the "
        "last of them has exited. Where the recorder cannot be started, one line on standard error says why, and the program "
        "runs without being recorded.\n\n"
        "With --aggregate, heaptape keeps figures in the place of events: the live blocks and the totals of each process, by call "
        "site. FILE (heaptape.hta by default) has some KiB to a few MiB, however long the recording lasts. It is replaced by a "
        "new one, which is whole, every SECONDS; a recorder that is killed or cannot write leaves the last one. 'heaptape stat', 'report' and 'top' read it. "
        "--period sets how often the live bytes are kept: at most 64 times, then every other one is dropped and the period doubles. "
        "What a fork child has of its parent is not counted as the child's. Of processes that have ended, the 64 with the highest peaks of live bytes are listed, and the others are in the totals.\n\n"
        "With --flight, heaptape keeps the last part of the trace in memory, and what was live before it. A dump is a trace that begins "
        "with these blocks, and can be converted and replayed; FILE (heaptape.%n.ht by default) is its name, with its number in the place "
        "of %n. Without %n each dump replaces the one before. Dumps are asked for by SIGUSR2 to heaptape, by 'heaptape ctl PID dump', and by "
        "the triggers: rss>SIZE, a process has more resident memory, again when it was below 90 % of SIZE in between; rss+N%/DURATION, it "
        "has N % more than that long before; cgroup>N%, the cgroup of the first process uses more than N % of its memory limit; pressure>N%, tasks of that cgroup, "
        "or of the host where the kernel does not measure it by cgroup, waited for memory for more than N % of the last 10 seconds; oom, the kernel killed a process "
        "of that cgroup for want of memory; exit!=0, a signal terminated the program or its exit status is not 0; exit, the recording ended. "
        "With --trigger, exit is one only if it is named. Where the memory limit is one of a cgroup, the recorder must be in another one, or it may be killed "
        "too. heaptape waits for CMD to end before it exits. The program continues while a dump is written.\n\n"
        "With --segment, heaptape writes the trace as files FILE (heaptape.%n.ht by default), with their number, from 1, in the place of %n. "
        "A segment that has reached SIZE or DURATION ends with the batch under work; until then it is FILE.part, which is valid as far as it goes. "
        "Each is a trace of its own: all but the first begin with the blocks that are live, and repeat the last moments of the one before. "
        "Commands that read a trace accept the folder of the segments and read it as one trace, exactly as if it were one file; they need the space "
        "of a copy in $TMPDIR or /tmp. With --keep the first segments are missing, and the whole begins with what was live.\n\n"
        "With -o URL, heaptape uploads segments, of 64 MiB or 10 minutes unless --segment is given, by PUT to "
        "URL/HOST/PROGRAM-TIME-PID/N.ht. Until the server has answered with a status of 200 to 299, they are files of the same "
        "path below the spool, DIR. A process of its own uploads them, so that neither PROGRAM nor the recorder waits for the network. When the "
        "server does not answer, or with an error, it tries again, after at most a minute; a file that the server answers with 400, 409, 413, 415 "
        "or 422 stays in the spool. 'heaptape upload' continues what was left. The exit status is that of PROGRAM also where segments are left or were dropped, which is printed even with --quiet. " UPLOAD_ENVIRONMENT
        "\n\n"
        "A process that was not recorded is named with the reason, such as a static executable or a cleared environment; the "
        "trace keeps the list, and 'heaptape stat' and 'heaptape check' print it. If the kernel does not report processes to "
        "heaptape (before Linux 6.6 it does so only with CAP_NET_ADMIN, and never in a container's namespaces), heaptape searches /proc and says "
        "that processes of less than 0.1 seconds may be missing.",
    .options = options,
    .options_bytes = sizeof(struct record_options),
    .min_operands = 0,
    .max_operands = UINT_MAX,
    .runs_program = true,
    .run = run_record,
};
