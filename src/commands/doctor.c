#include "report/doctor.h"

#include "base/clock.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/span.h"
#include "cli/wrap.h"
#include "record/aggregate/stat.h"
#include "record/attach/attach.h"
#include "record/drain/facts.h"
#include "report/text/watch.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FIRST_NS    400000000u  // time limit of the first look
#define SECOND_NS   1300000000u // start of the second look; the first result needs both
#define LOOK_NS     1400000000u // time limit of the second look
#define WATCH_NS    3000000000u // time limit of later looks
#define MIN_WAIT_NS 500000000u  // minimum time between looks of --watch
#define SAMPLE_NS   100000000u

enum {
    WATCH_LOOKS = 120,
    MAX_TRIES = 4,
    MOVED_SHARE = 8, // if RSS changes by 1/MOVED_SHARE, a look is outdated
    MAX_COST = 20,   // the CPU time of a look is at most 1/MAX_COST of the time between looks
};

struct doctor_options {
    bool json, tries, yes, asks;
    const char *output;
    uint64_t watch_ns;
};

static int parse_watch(const char *text, void *field)
{
    uint64_t *ns = field;
    int rc = span_parse_seconds(text, ns);
    return rc == 0 && *ns == 0 ? -EINVAL : rc;
}

#define AT(member) offsetof(struct doctor_options, member)

static const struct option options[] = {
    {0, "watch", OPTION_PARSED, "TIME", NULL,
     "after the first answer, sample for TIME, such as 60s or 10m, and judge growth", AT(watch_ns),
     .parse = parse_watch},
    {0, "allocator-stats", OPTION_FLAG, NULL, NULL,
     "read the statistics of jemalloc or tcmalloc by calls in the process, which stop a thread",
     AT(asks)},
    {0, "try", OPTION_FLAG, NULL, NULL,
     "if malloc holds free memory, ask, call its function that returns the memory, and print the "
     "effect",
     AT(tries)},
    {0, "yes", OPTION_FLAG, NULL, NULL, "with --try: do not ask", AT(yes)},
    {'o', "output", OPTION_STRING, "FILE", NULL, "with -- PROGRAM: keep the recording in FILE",
     AT(output)},
    {0, "json", OPTION_FLAG, NULL, NULL, "print one JSON object", AT(json)},
    {0},
};

static const struct command_mode modes[] = {{.option = "try", .accepts = "yes"}, {0}};

// State of consecutive looks (inspections) of a process.
struct doctor_watch {
    struct doctor doctor;
    pid_t pid;
    uint64_t start_ns, until_ns;
    uint64_t low, high; // range of RSS since the last look; UINT64_MAX, 0 if not sampled
    uint64_t cost_ns;   // CPU time of the last look
    bool shows_line;
    bool asks; // read the allocator's statistics in each look
};

// Adds the allocator's statistics to a look, unless the look has already read the heap or the
// allocator is glibc's. After a failure, later looks have no statistics.
static void ask_allocator(struct doctor_watch *w, struct look *l)
{
    struct attach_result result = {0};
    struct err e = {0};
    if (l->heap.is_read || l->heap.has_statistics || l->heap.allocator == SOFTWARE_GLIBC)
        return;
    if (look_ask(l, &result, &e) < 0) {
        note("the allocator's statistics were not read: %s", e.text);
        w->asks = false;
    }
    if (result.paused_ns > w->doctor.asked_ns)
        w->doctor.asked_ns = result.paused_ns;
}

// Returns true if RSS has changed since the look, so that statistics read now would not match the
// look.
static bool is_outdated(const struct look *l)
{
    struct trace_sample s = {0};
    if (!facts_memory(&s, l->pid))
        return false;
    uint64_t now = s.rss_bytes, then = l->rss_bytes;
    return (now > then ? now - then : then - now) > then / MOVED_SHARE;
}

// Takes a look. If the allocator's statistics were requested, includes them. Returns 0, or a
// negative errno with *e set.
static int take_look(struct doctor_watch *w, struct look *l, uint64_t max_ns, struct err *e)
{
    for (unsigned i = 0; i < MAX_TRIES; i++) {
        // On a busy machine, a look takes much longer than its CPU time.
        uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        int rc = look_take(l, w->pid, max_ns, e);
        if (rc < 0)
            return rc;
        // Measure before ask_allocator, which waits for a thread that can make the calls.
        w->cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
        if (!w->asks)
            return 0;
        ask_allocator(w, l);
        if (!is_outdated(l))
            return 0;
    }
    return 0;
}

// Adds a look. Returns 0, or a negative errno with *e set.
static int add_look(struct doctor_watch *w, uint64_t max_ns, struct err *e)
{
    struct look l;
    int rc = take_look(w, &l, max_ns, e);
    if (rc < 0)
        return rc;
    const struct look *first = &w->doctor.first;
    if (w->doctor.looks && l.image != first->image)
        return err_set(e, -ESRCH, "%ld: the process executed another program", (long)w->pid);
    w->low = l.rss_bytes < w->low ? l.rss_bytes : w->low;
    w->high = l.rss_bytes > w->high ? l.rss_bytes : w->high;
    if (doctor_add(&w->doctor, &l, w->low, w->high) < 0)
        return err_no_memory(e, NULL);
    w->low = UINT64_MAX;
    w->high = 0;
    return 0;
}

static void show_line(const struct doctor_watch *w, uint64_t now)
{
    if (w->shows_line)
        fprintf(stderr, "\rwatch %ld: %.0f s of %.0f s, RSS %s\033[K", (long)w->pid,
                (double)(now - w->start_ns) / 1e9, (double)(w->until_ns - w->start_ns) / 1e9,
                human_size(w->high));
}

// Samples RSS until the time `until`. Returns false if the process has ended.
static bool sample_until(struct doctor_watch *w, uint64_t until)
{
    for (uint64_t now; (now = clock_monotonic_ns()) < until;) {
        uint64_t next = now + SAMPLE_NS < until ? now + SAMPLE_NS : until;
        const struct timespec t = {(time_t)(next / 1000000000), (long)(next % 1000000000)};
        struct trace_sample s = {0};
        if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
            continue;
        if (!facts_memory(&s, w->pid))
            return false;
        w->low = s.rss_bytes < w->low ? s.rss_bytes : w->low;
        w->high = s.rss_bytes > w->high ? s.rss_bytes : w->high;
        if (w->shows_line)
            show_line(w, next);
    }
    return true;
}

// Takes two looks, because a contradiction in a single look may be accidental.
static void look_first(struct doctor_watch *w)
{
    struct err e = {0};
    w->start_ns = clock_monotonic_ns();
    die_on_error(add_look(w, FIRST_NS, &e), EXIT_FAILED, &e);
    if (!sample_until(w, w->start_ns + SECOND_NS))
        die(EXIT_FAILED, "%ld: the process ended while heaptape examined it", (long)w->pid);
    die_on_error(add_look(w, LOOK_NS, &e), EXIT_FAILED, &e);
}

// Adds looks until the time is over. If the process ends earlier, uses the looks so far.
static void look_on(struct doctor_watch *w, uint64_t watch_ns)
{
    struct err e = {0};
    w->until_ns = w->start_ns + watch_ns;
    w->shows_line = !cli_common.quiet && isatty(STDERR_FILENO);
    uint64_t now = clock_monotonic_ns();
    while (now < w->until_ns && !w->doctor.ended) {
        uint64_t wait = watch_ns / WATCH_LOOKS, cost = w->cost_ns * MAX_COST;
        wait = wait < MIN_WAIT_NS ? MIN_WAIT_NS : wait;
        wait = wait < cost ? cost : wait;
        uint64_t next = now + wait < w->until_ns ? now + wait : w->until_ns;
        w->doctor.ended = !sample_until(w, next) || add_look(w, WATCH_NS, &e) < 0;
        now = clock_monotonic_ns();
    }
    if (w->shows_line)
        fputs("\r\033[K", stderr);
    if (e.text[0])
        note("%s", e.text);
}

static void print_answer(const struct doctor *d, bool as_json)
{
    if (as_json) {
        struct json j = {.to = stdout, .pretty = true};
        doctor_json(&j, d);
        putchar('\n');
    } else if (doctor_print(d) < 0) {
        die(EXIT_FAILED, "out of memory");
    }
    cli_flush();
}

// Returns true if the user agrees on the terminal.
static bool ask(const struct doctor_watch *w)
{
    char answer[16] = "";
    printf("\nCall %s in process %ld? It stops a thread for the time of the call. [y/N] ",
           look_purge_text(w->doctor.last.heap.allocator), (long)w->pid);
    fflush(stdout);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static void print_try(const struct doctor_try *t)
{
    uint64_t bytes = t->before_bytes > t->after_bytes ? t->before_bytes - t->after_bytes : 0;
    printf("\n%s returned %s: RSS was %s, and is %s.\nThe call took %s; a thread was stopped for "
           "%s.\n",
           t->call, human_size(bytes), human_size(t->before_bytes), human_size(t->after_bytes),
           human_time((double)t->call_ns), human_time((double)t->paused_ns));
}

// If the user agrees, calls the remedy in the process, and measures RSS before and after the call.
static void try_remedy(struct doctor_watch *w, const struct doctor_options *o)
{
    struct doctor_try *t = &w->doctor.tried;
    struct attach_result result = {0};
    struct trace_sample s = {0};
    struct err e = {0};
    const char *call = look_purge_text(w->doctor.last.heap.allocator);
    if (!doctor_can_try(&w->doctor))
        die(EXIT_FAILED, "%ld: the remedy is not a call of %s: nothing was tried", (long)w->pid,
            call ? call : "an allocator's function");
    if (!o->yes && !ask(w))
        return;
    if (!facts_memory(&s, w->pid) ||
        look_purge(w->pid, w->doctor.last.heap.allocator, &result, &e) < 0)
        die(EXIT_FAILED, "%s", e.text[0] ? e.text : "the process ended");
    *t = (struct doctor_try){call, s.rss_bytes, 0, result.call_ns, result.paused_ns};
    t->after_bytes = facts_memory(&s, w->pid) ? s.rss_bytes : 0;
}

static int run_process(struct doctor_watch *w, const struct doctor_options *o)
{
    struct doctor *d = &w->doctor;
    if (o->tries && !o->yes && (o->json || !isatty(STDIN_FILENO)))
        return usage_error(&cmd_doctor, "--try requires --yes without a terminal and with --json");
    look_first(w);
    doctor_judge(d);
    if (!o->json)
        print_answer(d, false);
    if (o->watch_ns) {
        look_on(w, o->watch_ns);
        doctor_judge(d);
        if (!o->json) {
            putchar('\n');
            print_answer(d, false);
        }
    }
    if (o->tries)
        try_remedy(w, o);
    if (o->json)
        print_answer(d, true);
    else if (d->tried.call)
        print_try(&d->tried);
    doctor_release(d);
    return EXIT_DONE;
}

// Creates a directory for a recording and writes the path of the file to `path`. Returns `path`.
static const char *make_temporary(char path[PATH_MAX])
{
    const char *parent = getenv("TMPDIR");
    int n =
        snprintf(path, PATH_MAX, "%s/heaptape-doctor-XXXXXX", parent && *parent ? parent : "/tmp");
    if (n >= PATH_MAX - 10 || !mkdtemp(path))
        die(EXIT_FAILED, "%s: cannot create a directory: %s", path, strerror(errno));
    strcpy(path + n, "/trace.ht");
    return path;
}

static void remove_temporary(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    unlink(path);
    rmdir(folder);
}

// Prints doctor's result for a recorded file. If `keeps` is false, removes the file after reading
// it.
static int run_file(struct doctor *d, const char *path, bool keeps, bool as_json)
{
    struct file_stat s;
    struct err e = {0};
    const struct file_stat_settings how = {FILE_STAT_ALL, .watch = watch_begin("doctor")};
    int rc = aggregate_file_stat(&s, path, &how, &e);
    if (!keeps)
        remove_temporary(path);
    die_on_error(rc, EXIT_FAILED, &e);
    d->file = keeps ? path : NULL;
    doctor_judge_file(d, &s);
    print_answer(d, as_json);
    file_stat_release(&s);
    return EXIT_DONE;
}

static pid_t recorder;
static volatile sig_atomic_t pending; // signal that arrived before the recorder was started

static void forward_signal(int sig)
{
    if (recorder > 0 && sig != SIGINT)
        kill(recorder, sig);
    else if (!recorder)
        pending = sig;
}

// Forwards signals to the recorder. Signals that are ignored, as under nohup, stay ignored.
static void forward_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction before;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &(struct sigaction){.sa_handler = forward_signal}, NULL);
    }
}

// Records the program until it ends or a signal ends the recording. Returns the recorder's exit
// code. Does not forward SIGINT, because a terminal sends SIGINT to all processes. If the file is
// temporary, limits its size, so that it does not fill the disk.
static int record_program(char **argv, int argc, const char *path, bool keeps)
{
    char *const first[] = {
        "heaptape", "record",     "-q", "--stacks", keeps ? "--max-size=0" : "--max-size=2G",
        "-o",       (char *)path, "--"};
    enum { FIRST = sizeof first / sizeof *first };
    char **words = calloc((size_t)argc + FIRST + 1, sizeof *words);
    int status = 0, rc;
    if (!words)
        die(EXIT_FAILED, "out of memory");
    memcpy(words, first, sizeof first);
    memcpy(words + FIRST, argv, (size_t)argc * sizeof *argv);
    forward_signals();
    rc = posix_spawn(&recorder, "/proc/self/exe", NULL, NULL, words, environ);
    if (rc)
        die(EXIT_FAILED, "cannot start the recorder: %s", strerror(rc));
    if (pending)
        kill(recorder, pending);
    while (waitpid(recorder, &status, 0) < 0 && errno == EINTR)
        continue;
    recorder = 0;
    free(words);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Records a program, and prints doctor's result when the program has ended.
static int run_program(const struct doctor_options *o, int argc, char **argv)
{
    struct doctor d = {.argv = argv};
    char temporary[PATH_MAX];
    const char *path = o->output ? o->output : make_temporary(temporary);
    struct stat info;
    if (o->output && stat(path, &info) == 0)
        die(EXIT_RECORD, "%s: exists", path);
    int code = record_program(argv, argc, path, o->output);
    if (stat(path, &info) < 0 || (!info.st_size && S_ISREG(info.st_mode))) {
        if (!o->output)
            remove_temporary(path);
        return code ? code : EXIT_FAILED; // the recorder has already printed the reason
    }
    return run_file(&d, path, o->output, o->json);
}

static int run_doctor(const void *fields, char **argv)
{
    const struct doctor_options *o = fields;
    struct doctor_watch w = {.low = UINT64_MAX};
    struct doctor d = {0};
    uint64_t pid = 0;
    bool is_pid = !cli_common.is_program && options_parse_number(argv[0], &pid) == 0;
    if (is_pid && (pid == 0 || pid > INT_MAX))
        return usage_error(&cmd_doctor, "'%s' is not a process ID", argv[0]);
    if (!is_pid && (o->watch_ns || o->tries || o->asks))
        return usage_error(&cmd_doctor, "--%s requires a PID",
                           o->watch_ns ? "watch"
                           : o->tries  ? "try"
                                       : "allocator-stats");
    if (o->output && !cli_common.is_program)
        return usage_error(&cmd_doctor, "-o requires -- PROGRAM");
    if (argv[1] && !cli_common.is_program)
        return usage_error(&cmd_doctor, "unexpected operand '%s'; use -- before a PROGRAM",
                           argv[1]);
    human_ascii = !wrap_is_utf8();
    w.pid = (pid_t)pid;
    w.asks = o->asks;
    if (cli_common.is_program)
        return run_program(o, cli_common.n_operands, argv);
    return is_pid ? run_process(&w, o) : run_file(&d, argv[0], true, o->json);
}

const struct command cmd_doctor = {
    .name = "doctor",
    .operands = "PID|FILE | -- PROGRAM [ARG...]",
    .summary = "Explain why a process uses its memory",
    .examples =
        {
            {"Explain the memory of a server within 3 seconds", "heaptape doctor $(pidof server)"},
            {"Find out whether the server leaks", "heaptape doctor --watch 10m $(pidof server)"},
            {"Run a program, and explain its memory when it ends",
             "heaptape doctor -- ./program input"},
        },
    .options = options,
    .options_bytes = sizeof(struct doctor_options),
    .modes = {modes},
    .min_operands = 1,
    .max_operands = UINT_MAX,
    .run = run_doctor,
};
