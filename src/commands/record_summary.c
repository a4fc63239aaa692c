#include "commands/record_summary.h"

#include "base/printable.h"
#include "cli/command.h"
#include "cli/human.h"
#include "report/text/unrecorded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void print_unrecorded(bool verbose, const struct record_result *r)
{
    enum { PRINTED = 10 };
    char processes[64];
    const struct trace_unrecorded *u = &r->unrecorded;
    uint64_t printed = 0;
    for (size_t i = 0; i < u->n && i < PRINTED; i++) {
        char *line = unrecorded_line(&u->items[i]);
        note("%s", line ? line : "out of memory");
        free(line);
        printed += 1 + u->items[i].forks;
    }
    if (u->processes > printed)
        note("%s not recorded", human_plural(processes, u->processes - printed, "other process was",
                                             "other processes were"));
    const char *limits = unrecorded_limits(u);
    if (limits && (u->processes || verbose))
        note("%s", limits);
}

// Printable texts of a fact, which come from the traced program. Valid until the next call.
struct fact_texts {
    char process[4 * sizeof((struct record_fact *)0)->program + 32]; // "process 12 (NAME)"
    char text[4 * sizeof((struct record_fact *)0)->text];
    char others[80]; // ", and 2 other processes", or ""
};

static const struct fact_texts *fact_texts(const struct record_fact *f)
{
    static struct fact_texts t;
    char program[4 * sizeof f->program];
    char others[64];
    printable_copy(program, sizeof program, f->program, strlen(f->program));
    // If the program truncated its spool, its name is unknown.
    snprintf(t.process, sizeof t.process, program[0] ? "process %u (%s)" : "process %u", f->pid,
             program);
    printable_copy(t.text, sizeof t.text, f->text, strlen(f->text));
    snprintf(t.others, sizeof t.others, f->processes > 1 ? ", and %s" : "%s",
             f->processes > 1
                 ? human_plural(others, f->processes - 1, "other process", "other processes")
                 : "");
    return &t;
}

static void print_facts(const struct record_result *r)
{
    const struct fact_texts *t;
    if (r->bypassed.processes) {
        t = fact_texts(&r->bypassed);
        note(
            "%s calls its own malloc (in %s)%s: those calls were not recorded (link it without that malloc)",
            t->process, t->text, t->others);
    }
    if (r->off.processes) {
        t = fact_texts(&r->off);
        note("recording turned itself off in %s%s: %s", t->process, t->others, t->text);
    }
}

static void print_deepbound(const struct record_result *r)
{
    static char name[4 * sizeof r->deepbound];
    for (uint32_t at = 0; at < r->deepbound_bytes; at += (uint32_t)strlen(r->deepbound + at) + 1) {
        printable_copy(name, sizeof name, r->deepbound + at, strlen(r->deepbound + at));
        note(
            "%s was opened with RTLD_DEEPBIND: its calls of malloc, realloc and free were not recorded (open it without the flag)",
            name);
    }
}

// Returns why records were lost, or "" if another line says it.
static const char *loss_cause(const struct record_result *r)
{
    bool is_named = r->off.processes || r->untraced || r->unreadable || r->unopened ||
                    r->session_broken || r->cut_off;
    for (size_t i = 0; i < r->unrecorded.n; i++)
        is_named |= r->unrecorded.items[i].calls != UINT64_MAX;
    if (is_named || r->full || r->stopped_by)
        return "";
    return r->lossy ? ": the recorder fell behind (try without --lossy, or with -z none)" : "";
}

static void print_attached(const struct record_result *r)
{
    char threads[64], blocks[64], bytes[32], ns[32];
    if (r->visit.threads)
        note("paused %s for at most %s",
             human_plural(threads, r->visit.threads, "thread", "threads"),
             human_ns(ns, (double)r->visit.paused_ns));
    if (r->visit.listed_blocks)
        note(
            "%s: %s",
            human_plural(blocks, r->visit.listed_blocks, "preexisting block", "preexisting blocks"),
            human_bytes(bytes, r->visit.listed_bytes));
    if (r->visit.not_listed[0])
        note("preexisting blocks are not recorded: %s", r->visit.not_listed);
    if (r->not_left[0])
        note("libheaptape.so remains in the process: %s (try 'heaptape ctl PID detach')",
             r->not_left);
}

static void print_losses(const struct record_result *r)
{
    char text[64];
    if (r->lost_words)
        note("%s%s lost%s", r->lost_is_bound ? "at least " : "",
             human_plural(text, r->lost_words, "record was", "records were"), loss_cause(r));
    if (r->untraced)
        note(
            "%s not recorded: no space, memory or file descriptor was left for a spool (try more space in /dev/shm, or a higher "
            "ulimit -n or -v)",
            human_plural(text, r->untraced, "process was", "processes were"));
    if (r->unreadable)
        note(
            "%s could not be read: a program truncated or overwrote it before the recorder read it",
            human_plural(text, r->unreadable, "spool", "spools"));
    if (r->unopened)
        note(
            "%s could not be opened: the recorder had no memory or file descriptor left (try a higher ulimit -n or -v)",
            human_plural(text, r->unopened, "spool", "spools"));
}

static void print_code_names(const struct record_result *r)
{
    char text[64];
    if (r->bad_code_names)
        note(
            "%s skipped: expected START SIZE NAME in a line, in hexadecimal digits, or a record of jitdump",
            human_plural(text, r->bad_code_names, "record of perf-PID.map or jit-PID.dump was",
                         "records of perf-PID.map or jit-PID.dump were"));
    if (r->cut_code_names)
        note("only the first 64 MiB of perf-PID.map and jit-PID.dump were read, of %s",
             human_plural(text, r->cut_code_names, "process", "processes"));
}

static void print_end(const struct record_result *r, const struct output *out)
{
    if (r->session_broken)
        note(
            "a program overwrote the memory that it shares with the recorder: the recording may be incomplete");
    if (r->ended_early && r->ended_by)
        note(
            "process %u ended the recording, as 'heaptape ctl PID detach' does; the program continued",
            r->ended_by);
    else if (r->ended_early)
        note("the recording ended early; the program continued");
    if (r->full)
        note(
            "the recording stopped at --max-size; the program continued untraced (try --flight or --segment)");
    if (r->stopped_by)
        note("signal %d stopped the recording%s", r->stopped_by,
             r->exited ? "" : " before the program exited");
    if (r->cut_off && out)
        note(
            "%s accepted no more data: the trace is cut off (recover the intact part with 'heaptape check --salvage')",
            out->name);
    else if (r->cut_off)
        note("the output accepted no more data: it was cut off");
}

static void print_cost(const struct record_result *r, double events)
{
    char batches[64], fallbacks[64], ns[32];
    note(
        "recorder: %.1f ns of CPU per event, %s, %s to cheaper compression; backpressure: threads waited %s",
        (double)r->cpu_ns / events, human_plural(batches, r->batches, "batch", "batches"),
        human_plural(fallbacks, r->steps_down, "fallback", "fallbacks"),
        human_ns(ns, (double)r->wait_ns));
}

void record_summary_print(bool verbose, const struct record_result *r, const struct output *out)
{
    char events[64], processes[64], bytes[32];
    uint64_t listed = r->visit.listed_blocks < r->events ? r->visit.listed_blocks : 0;
    double n = r->events ? (double)r->events : 1;
    human_plural(events, r->events - listed, "event", "events");
    human_plural(processes, r->processes, "process", "processes");
    if (out)
        note("recorded %s of %s to %s: %s, %.2f bytes per event", events, processes, out->name,
             human_bytes(bytes, out->offset), (double)out->offset / n);
    else
        note("recorded %s of %s", events, processes);
    print_attached(r);
    print_losses(r);
    print_unrecorded(verbose, r);
    if (r->left > r->unrecorded.processes)
        note(
            "%s not recorded after exec: the new program is static, privileged or in another root directory",
            human_plural(processes, r->left - r->unrecorded.processes, "process was",
                         "processes were"));
    print_code_names(r);
    print_facts(r);
    print_deepbound(r);
    print_end(r, out);
    if (verbose)
        print_cost(r, n);
}

void record_summary_nothing(const char *program, const struct record_result *r, struct err *e)
{
    const char *why = record_explain(program);
    if (r->off.processes)
        err_set(e, -ENODATA, "%s: nothing was recorded: %s", program, fact_texts(&r->off)->text);
    else if (why)
        err_set(e, -ENODATA, "%s: nothing was recorded: the program %s", program, why);
    else if (r->untraced)
        err_set(
            e, -ENODATA,
            "%s: nothing was recorded: no space, memory or file descriptor was left for its spool",
            program);
    else if (r->unreadable)
        err_set(e, -ENODATA, "%s: nothing was recorded: its spool was truncated or overwritten",
                program);
    else if (r->unopened)
        err_set(
            e, -ENODATA,
            "%s: nothing was recorded: the recorder had no memory or file descriptor left for its spool",
            program);
    else if (r->unrecorded.n)
        err_set(e, -ENODATA, "%s: nothing was recorded: %s", program, r->unrecorded.items[0].why);
    else if (r->bypassed.processes)
        err_set(e, -ENODATA, "%s: nothing was recorded: the program calls its own malloc (in %s)",
                program, fact_texts(&r->bypassed)->text);
    else if (r->processes)
        err_set(e, -ENODATA, "%s: nothing was recorded: the program did not call the malloc API",
                program);
    else
        err_set(e, -ENODATA, "%s: nothing was recorded: libheaptape.so never started in it",
                program);
}
