#include "report/doctor.h"

#include "base/clock.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/span.h"
#include "cli/wrap.h"
#include "record/attach/attach.h"
#include "record/processes/facts.h"
#include "report/text/doctor.h"
#include "report/text/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

extern const struct command cmd_doctor;

#define FIRST_NS    400000000u  // time limit of the first look
#define SECOND_NS   1300000000u // when the second look of the first answer begins
#define LOOK_NS     1400000000u // time limit of the second look
#define WATCH_NS    3000000000u // … of further looks
#define MIN_WAIT_NS 500000000u  // between looks of --watch
#define SAMPLE_NS   100000000u

enum {
    WATCH_LOOKS = 120,
    MAX_COST = 20, // a look takes at most this part of the time between looks
};

struct doctor_options {
    bool json, tries, yes;
    uint64_t watch_ns;
};

static int parse_watch(const char *text, void *field)
{
    uint64_t *ns = field;
    int rc = span_parse(text, ns);
    return rc == 0 && *ns == 0 ? -EINVAL : rc;
}

static const struct option options[] = {
    {0, "watch", OPTION_PARSED, "TIME", NULL,
     "after the first answer, sample for TIME, such as 60s or 10m, and judge growth",
     offsetof(struct doctor_options, watch_ns), .parse = parse_watch},
    {0, "try", OPTION_FLAG, NULL, NULL,
     "if the remedy is malloc_trim(0), ask, call it in the process, and print its effect",
     offsetof(struct doctor_options, tries)},
    {0, "yes", OPTION_FLAG, NULL, NULL, "with --try: do not ask",
     offsetof(struct doctor_options, yes)},
    {0, "json", OPTION_FLAG, NULL, NULL, "print one JSON object",
     offsetof(struct doctor_options, json)},
    {0},
};

static const struct command_mode modes[] = {{.option = "try", .accepts = "yes"}, {0}};

// Looks at a process in sequence.
struct doctor_watch {
    struct doctor doctor;
    pid_t pid;
    uint64_t start_ns, until_ns;
    uint64_t low, high; // RSS since the previous look; low is UINT64_MAX before the first sample
    uint64_t cost_ns;   // cost of the last look
    bool shows_line;
};

// Adds a look. Returns 0, or a negative errno with *e set.
static int add_look(struct doctor_watch *w, uint64_t max_ns, struct err *e)
{
    struct look l;
    uint64_t start = clock_monotonic_ns();
    int rc = look_take(&l, w->pid, max_ns, e);
    if (rc < 0)
        return rc;
    const struct look *first = &w->doctor.first;
    if (w->doctor.looks && l.image != first->image)
        return err_set(e, -ESRCH, "%ld: the process executed another program", (long)w->pid);
    w->cost_ns = clock_monotonic_ns() - start;
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
    char rss[32];
    if (w->shows_line)
        fprintf(stderr, "\rwatch %ld: %.0f s of %.0f s, RSS %s\033[K", (long)w->pid,
                (double)(now - w->start_ns) / 1e9, (double)(w->until_ns - w->start_ns) / 1e9,
                human_bytes(rss, w->high));
}

// Samples RSS until a time. Returns false if the process has ended.
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

// Looks twice, so that contradictions of a single look can be recognized.
static void look_first(struct doctor_watch *w)
{
    struct err e = {0};
    w->start_ns = clock_monotonic_ns();
    if (add_look(w, FIRST_NS, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    if (!sample_until(w, w->start_ns + SECOND_NS))
        die(EXIT_FAILED, "%ld: the process ended while heaptape looked at it", (long)w->pid);
    if (add_look(w, LOOK_NS, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
}

// Adds looks until the time is over. If the process ends, the looks so far are used.
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
    fflush(stdout);
    if (ferror(stdout))
        die(EXIT_FAILED, "(stdout): cannot write");
}

// Returns true if the user agrees on the terminal.
static bool ask(const struct doctor_watch *w)
{
    char answer[16] = "";
    printf(
        "\nCall malloc_trim(0) in process %ld? It stops a thread for the time of the call. [y/N] ",
        (long)w->pid);
    fflush(stdout);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static void print_try(const struct doctor_try *t)
{
    char released[32], before[32], after[32], call[32], paused[32];
    uint64_t bytes = t->before_bytes > t->after_bytes ? t->before_bytes - t->after_bytes : 0;
    printf("\nmalloc_trim(0) returned %s: RSS was %s, and is %s.\nThe call took %s; a thread was "
           "stopped for %s.\n",
           human_bytes(released, bytes), human_bytes(before, t->before_bytes),
           human_bytes(after, t->after_bytes), human_ns(call, (double)t->call_ns),
           human_ns(paused, (double)t->paused_ns));
}

// Calls the remedy in the process, once.
static void try_remedy(struct doctor_watch *w, const struct doctor_options *o)
{
    struct doctor_try *t = &w->doctor.tried;
    struct attach_result result = {0};
    struct trace_sample s = {0};
    struct err e = {0};
    if (!doctor_can_trim(&w->doctor))
        die(EXIT_FAILED, "%ld: the remedy is not a call of malloc_trim(0): nothing was tried",
            (long)w->pid);
    if (!o->yes && !ask(w))
        return;
    if (!facts_memory(&s, w->pid) || attach_trim(w->pid, &result, &e) < 0)
        die(EXIT_FAILED, "%s", e.text[0] ? e.text : "the process ended");
    *t = (struct doctor_try){true, s.rss_bytes, 0, result.call_ns, result.paused_ns};
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
    else if (d->tried.called)
        print_try(&d->tried);
    doctor_release(d);
    return EXIT_DONE;
}

static int run_file(const char *path, bool as_json)
{
    struct doctor d = {0};
    struct file_stat s;
    struct rss_history history;
    struct err e = {0}, ignored = {0};
    if (file_stat(&s, path, FILE_STAT_ALL, watch_begin("doctor"), &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    int rc = verdict_facts_read_history(&history, &s, path, watch_begin("doctor"), &ignored);
    doctor_judge_file(&d, &s, rc == 0 ? &history : NULL);
    print_answer(&d, as_json);
    rss_history_release(&history);
    file_stat_release(&s);
    return EXIT_DONE;
}

static int run_doctor(const void *fields, int argc, char **argv)
{
    const struct doctor_options *o = fields;
    struct doctor_watch w = {.low = UINT64_MAX};
    uint64_t pid = 0;
    (void)argc;
    bool is_pid = options_parse_number(argv[0], &pid) == 0;
    if (is_pid && (pid == 0 || pid > INT_MAX))
        return usage_error(&cmd_doctor, "'%s' is not a process ID", argv[0]);
    if (!is_pid && (o->watch_ns || o->tries))
        return usage_error(&cmd_doctor, "--%s requires a PID", o->watch_ns ? "watch" : "try");
    human_ascii = !wrap_is_utf8();
    w.pid = (pid_t)pid;
    return is_pid ? run_process(&w, o) : run_file(argv[0], o->json);
}

const struct command cmd_doctor = {
    .name = "doctor",
    .operands = "PID|FILE",
    .summary = "Explain why a process uses its memory",
    .examples =
        {
            {"Explain the memory of a server within 3 seconds", "heaptape doctor $(pidof server)"},
            {"Find out whether the server leaks", "heaptape doctor --watch 10m $(pidof server)"},
            {"Print the share of its memory that malloc_trim(0) would return",
             "heaptape doctor --json $(pidof server) |\n    jq '.resident.free_bytes / .rss_bytes'"},
        },
    .options = options,
    .options_bytes = sizeof(struct doctor_options),
    .modes = {modes},
    .min_operands = 1,
    .max_operands = 1,
    .run = run_doctor,
};
