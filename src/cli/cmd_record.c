#include "cli/command.h"
#include "cli/paths.h"
#include "record/record.h"
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
    {'o', "output", OPTION_STRING, "FILE|-", "heaptape.ht", "write the trace to FILE, or to standard output",
     offsetof(struct record_options, output)},
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

static void print_summary(const struct record_options *o, const struct record_result *r, const struct output *out)
{
    char events[32], bytes[32], ns[32];
    double n = r->events ? (double)r->events : 1;
    note("%s events of %u process%s, %s (%.2f bytes an event), %s", human_count(events, r->events), r->processes,
         r->processes == 1 ? "" : "es", human_bytes(bytes, out->offset), (double)out->offset / n, out->name);
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
    if (output_open(&out, o->output, (o->force ? OUTPUT_FORCE : 0) | OUTPUT_ASIDE, &e) < 0)
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
    struct record_result r;
    struct output out;
    struct err e = {0};
    struct allocator allocator = {0};
    char library[PATH_MAX];
    if (!o->collect && argc == 0)
        return usage_error(&cmd_record, "an operand is missing");
    if (o->collect && argc > 0)
        return usage_error(&cmd_record, "--collect runs no program");
    if (!parse_compression(o->compression, &s))
        return usage_error(&cmd_record, "-z wants none, lz4, zstd or zstd:1 to zstd:19, not '%s'", o->compression);
    if (o->depth > SPOOL_MAX_DEPTH)
        return usage_error(&cmd_record, "--callers wants a depth of at most %d", SPOOL_MAX_DEPTH);
    if (o->collect)
        return run_collect(o, &s);
    if (!*o->follow || strlen(o->follow) >= SPOOL_MAX_FOLLOW)
        return usage_error(&cmd_record, "--follow wants all, none or a pattern of at most %d bytes",
                           SPOOL_MAX_FOLLOW - 1);
    if (paths_find("libheaptape.so", library, sizeof library) < 0)
        die(EXIT_RECORD, "libheaptape.so: not found beside the heaptape program");
    s.library = library;
    if (o->allocator && allocator_parse(&allocator, o->allocator, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    s.allocator = allocator.library;
    s.variables = allocator.tunables;
    s.n_variables = allocator.n_tunables;
    if (output_open(&out, o->output, o->force ? OUTPUT_FORCE : 0, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    if (record_run(&s, &out, &r, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    bool nothing = r.events == 0 && !(s.paused && r.processes);
    if (r.start_errno || nothing)
        discard(&out);
    if (r.start_errno)
        die(r.start_errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "%s: %s", argv[0],
            r.start_errno == ENOENT ? "not found" : strerror(r.start_errno));
    if (nothing)
        return explain_nothing(argv[0], &r);
    print_summary(o, &r, &out);
    if (output_close(&out, true, &e) < 0)
        die(EXIT_RECORD, "%s", e.text);
    allocator_release(&allocator);
    return exit_code(&r);
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
        "With -o - the trace goes to standard output, which PROGRAM shares: send PROGRAM's own output elsewhere.",
    .options = options,
    .options_bytes = sizeof(struct record_options),
    .min_operands = 0,
    .max_operands = UINT_MAX,
    .runs_program = true,
    .run = run_record,
};
