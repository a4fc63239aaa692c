#include "record/record.h"
#include "cli/command.h"
#include "cli/paths.h"
#include "commands/live.h"
#include "replay/allocators.h"
#include "spool/spool.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct command cmd_record;

struct record_options {
    const char *output;
    const char *format;
    uint64_t log_fd;
    const char *allocator;
    const char *compression;
    const char *collect;
    const char *start;
    const char *follow;
    uint64_t max_bytes;
    uint64_t depth;
    bool force;
    bool usable;
    bool maps;
    bool lossy;
    bool verbose;
};

static const struct option options[] = {
    {'o', "output", OPTION_STRING, "FILE|-", NULL,
     "write the trace to FILE, or to standard output; heaptape.ht unless given, heaptape.FORMAT with --format",
     offsetof(struct record_options, output)},
    {'F', "format", OPTION_CHOICE, FORMATS_EXPORT_CHOICES, NULL,
     "write in this format of another tool, while PROGRAM runs; see below", offsetof(struct record_options, format)},
    {0, "log-fd", OPTION_NUMBER, "FD", NULL,
     "write to this file descriptor instead, in logalloc's format unless --format says another",
     offsetof(struct record_options, log_fd)},
    {'a', "allocator", OPTION_STRING, "ALLOCATOR", NULL, "run the program on this allocator; as for replay",
     offsetof(struct record_options, allocator)},
    {'z', "compress", OPTION_STRING, "none|lz4|zstd[:LEVEL]", "zstd:1",
     "compress with this; a recorder that falls behind steps down by itself",
     offsetof(struct record_options, compression)},
    {'f', "force", OPTION_FLAG, NULL, NULL, "replace FILE if it exists", offsetof(struct record_options, force)},
    {0, "start", OPTION_CHOICE, "now|paused", "now",
     "record from the start, or when heaptape ctl or the program itself says so",
     offsetof(struct record_options, start)},
    {0, "follow", OPTION_STRING, "all|none|PATTERN", "all",
     "record all children, none, or those whose executable's name matches a glob",
     offsetof(struct record_options, follow)},
    {0, "callers", OPTION_NUMBER, "DEPTH", NULL,
     "record who called: the return address, or with a DEPTH above 1 so many frames along the frame pointers",
     offsetof(struct record_options, depth), .bare = "1"},
    {0, "max-size", OPTION_SIZE, "SIZE", NULL, "end the recording when FILE has reached SIZE; PROGRAM goes on untraced",
     offsetof(struct record_options, max_bytes)},
    {0, "collect", OPTION_STRING, "DIR", NULL,
     "run nothing: make the trace of what was recorded without a recorder in DIR",
     offsetof(struct record_options, collect)},
    {0, "usable", OPTION_FLAG, NULL, NULL, "also record how many bytes of each block can be used (malloc_usable_size)",
     offsetof(struct record_options, usable)},
    {0, "maps", OPTION_FLAG, NULL, NULL, "also record the program's own calls of mmap, munmap, mremap, brk and sbrk",
     offsetof(struct record_options, maps)},
    {0, "lossy", OPTION_FLAG, NULL, NULL, "drop and count events rather than let the program wait for the recorder",
     offsetof(struct record_options, lossy)},
    {'v', "verbose", OPTION_FLAG, NULL, NULL, "also tell what the recording itself cost",
     offsetof(struct record_options, verbose)},
    {0},
};

// "zstd:3" to codec and level.
static bool parse_compression(const char *text, struct record_settings *s)
{
    char *end;
    s->level = 1;
    if (strcmp(text, "none") == 0) {
        s->codec = FRAME_CODEC_NONE;
        return true;
    }
    if (strcmp(text, "lz4") == 0) {
        s->codec = FRAME_CODEC_LZ4;
        return true;
    }
    s->codec = FRAME_CODEC_ZSTD;
    if (strcmp(text, "zstd") == 0)
        return true;
    if (strncmp(text, "zstd:", 5) != 0)
        return false;
    errno = 0;
    long level = strtol(text + 5, &end, 10);
    s->level = (int)level;
    return end != text + 5 && *end == 0 && errno == 0 && level >= 1 && level <= 19;
}

// `out` is NULL when it was no trace.
static void print_summary(const struct record_options *o, const struct record_result *r, const struct output *out)
{
    char events[32], bytes[32], ns[32];
    double n = r->events ? (double)r->events : 1;
    const char *s = r->processes == 1 ? "" : "es";
    human_count(events, r->events);
    if (out)
        note("%s events of %u process%s, %s (%.2f bytes an event), %s", events, r->processes, s,
             human_bytes(bytes, out->offset), (double)out->offset / n, out->name);
    else
        note("%s events of %u process%s", events, r->processes, s);
    if (r->lost_words)
        note("%s records were lost", human_count(events, r->lost_words));
    if (r->untraced)
        note("%u process%s could not be recorded: no file, memory or place was left for a spool", r->untraced,
             r->untraced == 1 ? "" : "es");
    if (r->left)
        note(
            "%u process%s went on unrecorded after exec: as a program that is static, has other rights or another root",
            r->left, r->left == 1 ? "" : "es");
    if (r->off_reason[0])
        note("tracing turned itself off in a process: %s", r->off_reason);
    if (r->full)
        note("the recording ended at --max-size, and the program went on untraced");
    if (r->stopped_by)
        note("stopped by signal %d before the program had ended", r->stopped_by);
    if (o->verbose)
        note("the recorder took %.1f ns of CPU an event, wrote %s rounds, stepped down %s times; threads waited %s",
             (double)r->cpu_ns / n, human_count(events, r->rounds), human_count(bytes, r->steps_down),
             human_ns(ns, (double)r->wait_ns));
}

// Nothing was recorded: why. The file holds nothing that anybody could want.
static int explain_nothing(const char *program, const struct record_result *r)
{
    const char *why = record_explain(program);
    if (r->off_reason[0])
        die(EXIT_RECORD, "%s: nothing was recorded: %s", program, r->off_reason);
    if (why)
        die(EXIT_RECORD, "%s: nothing was recorded: it %s", program, why);
    if (r->processes)
        die(EXIT_RECORD, "%s: nothing was recorded: it made no call of the malloc API", program);
    die(EXIT_RECORD, "%s: nothing was recorded: it has its own malloc, or makes no call of the C library's", program);
}

static int exit_code(const struct record_result *r)
{
    if (r->stopped_by)
        return 128 + r->stopped_by;
    if (WIFSIGNALED(r->wait_status))
        return 128 + WTERMSIG(r->wait_status);
    return WEXITSTATUS(r->wait_status);
}

static bool is_nothing(const struct record_settings *s, const struct record_result *r)
{
    return r->events == 0 && !(s->paused && r->processes);
}

// What was written is of no use when the program never ran or gave no events.
static void discard(struct output *out)
{
    struct err ignored = {0};
    struct stat st;
    const char *name = out->name;
    bool is_file = out->owns_fd && fstat(out->fd, &st) == 0 && S_ISREG(st.st_mode);
    output_close(out, true, &ignored);
    if (is_file)
        unlink(name);
}

// HEAPTAPE_SPOOL=DIR LD_PRELOAD=libheaptape.so PROGRAM has been before.
static int run_collect(const struct record_options *o, const struct record_settings *s)
{
    struct record_result r;
    struct output out;
    struct err e = {0};
    if (output_open(&out, o->output ? o->output : "heaptape.ht", (o->force ? OUTPUT_FORCE : 0) | OUTPUT_ASIDE, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    if (record_collect(o->collect, s, &out, &r, &e) < 0) {
        output_close(&out, false, NULL);
        die(EXIT_FAILED, "%s", e.text);
    }
    if (r.events == 0) {
        output_close(&out, false, NULL);
        die(EXIT_FAILED, "%s: nothing was recorded%s%s", o->collect, r.off_reason[0] ? ": " : "", r.off_reason);
    }
    print_summary(o, &r, &out);
    if (output_close(&out, true, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    return EXIT_DONE;
}

static void set_allocator(struct record_settings *s, const struct allocator *a)
{
    s->allocator = a->library;
    s->variables = a->tunables;
    s->n_variables = a->n_tunables;
}

// The program has ended, or was never started: what there is to say, and the exit code.
static int conclude(const struct record_options *o, const struct record_settings *s, const struct record_result *r,
                    const struct output *out)
{
    if (r->start_errno)
        die(r->start_errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "%s: %s", s->argv[0],
            r->start_errno == ENOENT ? "not found" : strerror(r->start_errno));
    if (is_nothing(s, r))
        return explain_nothing(s->argv[0], r);
    print_summary(o, r, out);
    return exit_code(r);
}

static int record_to_trace(const struct record_options *o, const struct record_settings *s, const char *path)
{
    struct record_result r;
    struct output out;
    struct err e = {0};
    if (output_open(&out, path, o->force ? OUTPUT_FORCE : 0, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    if (record_run(s, &out, &r, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    if (r.start_errno || is_nothing(s, &r))
        discard(&out);
    int code = conclude(o, s, &r, &out);
    if (output_close(&out, true, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    return code;
}

static int record_to_format(const struct record_options *o, struct record_settings *s, const struct live_target *t)
{
    struct record_result r;
    struct output out;
    struct live live;
    struct err e = {0};
    const struct export_file_options how = {.format = t->format,
                                            .output = t->output,
                                            .fd = t->fd,
                                            .append = t->append,
                                            .force = o->force,
                                            .stamps = true,
                                            .live = true};
    s->codec = FRAME_CODEC_NONE; // nobody keeps it
    s->live = true;
    if (live_start(&live, &how, &out, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    int rc = record_run(s, &out, &r, &e);
    output_close(&out, true, NULL);
    bool written = live_finish(&live);
    if (rc == 0 && (r.start_errno || is_nothing(s, &r)))
        live_discard(t);
    else if (!written)
        exit(EXIT_RECORD);
    if (rc < 0)
        die(EXIT_RECORD, "%s", e.text);
    return conclude(o, s, &r, NULL);
}

static int record_program(const struct record_options *o, struct record_settings *s)
{
    struct live_target target = {
        .format = o->format ? format_find(o->format) : NULL, .output = o->output, .fd = (int)o->log_fd};
    struct allocator allocator = {0};
    char library[PATH_MAX];
    struct err e = {0};
    if (live_complete(&target) < 0)
        die(EXIT_RECORD, "out of memory");
    if (target.format && o->max_bytes)
        return usage_error(&cmd_record, "--max-size is for traces, not for --format %s", target.format->name);
    if (paths_find("libheaptape.so", library, sizeof library) < 0)
        die(EXIT_RECORD, "libheaptape.so: not found beside the heaptape program");
    if (o->allocator && allocator_parse(&allocator, o->allocator, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    s->library = library;
    set_allocator(s, &allocator);
    int code = target.format ? record_to_format(o, s, &target) : record_to_trace(o, s, target.output);
    allocator_release(&allocator);
    free(target.made);
    return code;
}

static int run_record(const void *fields, int argc, char **argv)
{
    const struct record_options *o = fields;
    struct record_settings s = {.argv = argv,
                                .lossy = o->lossy,
                                .usable = o->usable,
                                .maps = o->maps,
                                .paused = strcmp(o->start, "paused") == 0,
                                .follow = o->follow,
                                .max_bytes = o->max_bytes,
                                .depth = (uint32_t)o->depth};
    if (!o->collect && argc == 0)
        return usage_error(&cmd_record, "an operand is missing");
    if (o->collect && argc > 0)
        return usage_error(&cmd_record, "--collect runs no program");
    if (o->collect && (o->format || o->log_fd))
        return usage_error(&cmd_record, "--collect makes a trace; heaptape export makes the rest of that");
    if (o->output && o->log_fd)
        return usage_error(&cmd_record, "-o and --log-fd exclude each other");
    if (o->log_fd > INT_MAX)
        return usage_error(&cmd_record, "there is no file descriptor %llu", (unsigned long long)o->log_fd);
    if (!parse_compression(o->compression, &s))
        return usage_error(&cmd_record, "-z wants none, lz4, zstd or zstd:1 to zstd:19, not '%s'", o->compression);
    if (o->depth > SPOOL_MAX_DEPTH)
        return usage_error(&cmd_record, "--callers wants a depth of at most %d", SPOOL_MAX_DEPTH);
    if (o->collect)
        return run_collect(o, &s);
    if (!*o->follow || strlen(o->follow) >= SPOOL_MAX_FOLLOW)
        return usage_error(&cmd_record, "--follow wants all, none or a pattern of at most %d bytes",
                           SPOOL_MAX_FOLLOW - 1);
    return record_program(o, &s);
}

const struct command cmd_record = {
    .name = "record",
    .operands = "[--] PROGRAM [ARG...] | --collect DIR",
    .summary = "Run a program and record every call of the malloc API that it and its children make",
    .description =
        "Runs PROGRAM with the capture library preloaded and writes a raw trace of it and of all processes that it "
        "starts, until the last of them has ended. The exit status is PROGRAM's own: 128 + N when signal N ended it, "
        "125 "
        "when heaptape itself failed or nothing could be recorded, 126 when PROGRAM cannot be executed, 127 when it is "
        "not found.\n\n"
        "SIGINT and SIGQUIT are left to PROGRAM. SIGTERM and SIGHUP are passed on to it; a second one ends the "
        "recording "
        "cleanly, and PROGRAM goes on untraced, as it does when the disk is full.\n\n"
        "--follow chooses among the processes that PROGRAM starts; PROGRAM itself, and what it becomes by exec, is "
        "always recorded. With --follow=none they are not waited for either. With --max-size FILE may get larger by "
        "what is recorded in 20 ms.\n\n"
        "What cannot be started by heaptape, a service for example, records itself: start it with HEAPTAPE_SPOOL=DIR "
        "and "
        "LD_PRELOAD=libheaptape.so, where DIR is the absolute path of an existing, empty directory, which then grows "
        "by 8 bytes an event and more. --collect DIR makes the trace afterwards, however the processes ended, and "
        "leaves DIR as it is. Processes that still run must have been stopped: heaptape ctl PID stop.\n\n"
        "With -o - the trace goes to standard output, which PROGRAM shares: send PROGRAM's own output elsewhere.\n\n"
        "With --format another tool's file is written while PROGRAM runs, as heaptape export would write it of the "
        "trace; "
        "lines appear within a tenth of a second, in the order of the calls. A format that holds no addresses is "
        "written "
        "at the end. %p in the name of FILE stands for the process id, and each process gets a file of its own. "
        "--log-fd "
        "writes to a file descriptor that heaptape was started with, as in heaptape record --log-fd 3 -- prog 3>&1 "
        "1>&2 | "
        "gzip; PROGRAM does not get it.\n\n"
        "MALLOC_LOG and MTRACE_CTL_FILE in the environment are honoured when neither -o, --log-fd nor another --format "
        "is given. MALLOC_LOG=FILE adds to FILE in logalloc's format, MALLOC_LOG=N with a number below 10,000 is "
        "--log-fd "
        "N. MTRACE_CTL_FILE=FILE writes FILE in mtrace's format; when it is empty, or with --format mtrace alone, each "
        "process gets a file /tmp/mtrace.out.PID.",
    .options = options,
    .options_bytes = sizeof(struct record_options),
    .min_operands = 0,
    .max_operands = UINT_MAX,
    .runs_program = true,
    .run = run_record,
};
