#include "report/text/balance.h"

#include "base/err.h"
#include "base/printable.h"
#include "cli/human.h"
#include "record/entries/plan.h"
#include "record/processes/software.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REMEDIES " (remedies: heaptape-record(1))"

struct balance {
    const struct trace_losses *l;
    const struct trace_unrecorded *u;
    const struct trace_balance *b;
    const struct balance_how *how;
};

static void print_printable(FILE *to, const char *text)
{
    printable_print(to, text, strlen(text));
}

char *balance_missed_line(const struct trace_missed *m)
{
    char *line = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&line, &n);
    if (!to)
        return NULL;
    fprintf(to, "process %u (", m->pid);
    print_printable(to, m->name[0] ? m->name : "ended before its name was read");
    fputc(')', to);
    if (m->forks)
        fprintf(
            to, " and %s not recorded: ",
            human_items(m->forks, "process that it forked were", "processes that it forked were"));
    else
        fputs(" was not recorded: ", to);
    print_printable(to, m->why);
    if (m->calls != UINT64_MAX)
        fprintf(to, " (%" PRIu64 " call%s)", m->calls, m->calls == 1 ? "" : "s");
    else if (m->ns != UINT64_MAX)
        fprintf(to, " (it ran for %s)", human_time((double)m->ns));
    return fclose(to) == 0 ? line : NULL;
}

const char *balance_limits(const struct trace_unrecorded *u)
{
    if (u->by == TRACE_MISSED_GAPS)
        return "the kernel did not report all processes: others may not have been recorded (record "
               "fewer processes, with --follow)";
    if (u->by == TRACE_MISSED_PROC)
        return "the kernel did not report processes: others that lived for less than 0.1 s may not "
               "have been recorded (record as root, or with CAP_NET_ADMIN)";
    return NULL;
}

const struct balance_texts *balance_texts(const struct trace_fact *f)
{
    static struct balance_texts t;
    char program[4 * sizeof f->program];
    printable_copy(program, sizeof program, f->program, strlen(f->program));
    // The name is unknown if the program truncated its spool.
    snprintf(t.process, sizeof t.process, program[0] ? "process %u (%s)" : "process %u", f->pid,
             program);
    printable_copy(t.text, sizeof t.text, f->text, strlen(f->text));
    snprintf(t.others, sizeof t.others, f->processes > 1 ? ", and %s" : "%s",
             f->processes > 1 ? human_items(f->processes - 1, "other process", "other processes")
                              : "");
    return &t;
}

// Returns the cause of lost records, and the next step for the user.
static const char *loss_cause(const struct balance *p)
{
    const struct trace_balance *b = p->b;
    bool is_named = p->l->off.processes || b->without_spool || b->unreadable_spools ||
                    b->unopened_spools || b->overwritten_session || b->size_limit || b->stop_signal;
    for (size_t i = 0; i < p->u->n; i++)
        is_named |= p->u->items[i].calls != UINT64_MAX;
    if (is_named)
        return " (see the lines below)";
    return b->lossy ? ": the recorder fell behind (try without --lossy, or with -z none)"
                    : ": overwritten by the program, or cut off with the recording (record again)";
}

static void print_losses(const struct balance *p)
{
    const struct trace_balance *b = p->b;
    uint64_t lost = p->l->lost_records + b->lost_elsewhere;
    if (lost)
        err_note(p->how->print, "%s%s lost%s", b->lost_at_least ? "at least " : "",
                 human_items(lost, "record was", "records were"), loss_cause(p));
    if (b->without_spool)
        err_note(p->how->print,
                 "%s not recorded: no space, memory or file descriptor was left for a spool (try "
                 "more space in /dev/shm, or a higher ulimit -n or -v)",
                 human_items(b->without_spool, "process was", "processes were"));
    if (b->unreadable_spools)
        err_note(p->how->print,
                 "%s could not be read: a program truncated or overwrote it before the recorder "
                 "read it (try --follow, to leave that program out)",
                 human_items(b->unreadable_spools, "spool", "spools"));
    if (b->unopened_spools)
        err_note(p->how->print,
                 "%s could not be opened: the recorder had no memory or file descriptor left (try "
                 "a higher ulimit -n or -v)",
                 human_items(b->unopened_spools, "spool", "spools"));
}

static void print_unrecorded(const struct balance *p)
{
    const struct trace_unrecorded *u = p->u;
    uint64_t printed = 0;
    for (size_t i = 0; i < u->n && i < p->how->most; i++) {
        char *line = balance_missed_line(&u->items[i]);
        err_note(p->how->print, "%s" REMEDIES, line ? line : "out of memory");
        free(line);
        printed += 1 + u->items[i].forks;
    }
    if (u->processes > printed)
        err_note(p->how->print, "%s not recorded" REMEDIES,
                 human_items(u->processes - printed, "other process was", "other processes were"));
    const char *limits = balance_limits(u);
    if (limits && (u->processes || p->how->limits))
        p->how->print(limits);
}

static void print_code_names(const struct balance *p)
{
    if (p->b->bad_code_names)
        err_note(
            p->how->print,
            "%s skipped: expected START SIZE NAME in a line, in hexadecimal digits, or a record of "
            "jitdump (their functions have no names: correct the program that writes the file)",
            human_items(p->b->bad_code_names, "record of perf-PID.map or jit-PID.dump was",
                        "records of perf-PID.map or jit-PID.dump were"));
    if (p->b->cut_code_names)
        err_note(p->how->print,
                 "only the first 64 MiB of perf-PID.map and jit-PID.dump were read, of %s (later "
                 "functions have no names: record a shorter run)",
                 human_items(p->b->cut_code_names, "process", "processes"));
}

enum { MOST_OBJECTS = 3 };

static void print_facts(const struct balance *p)
{
    static char name[4 * sizeof p->l->deepbound];
    const struct trace_losses *l = p->l;
    const struct balance_texts *t;
    if (l->bypassed.processes) {
        t = balance_texts(&l->bypassed);
        err_note(p->how->print,
                 "%s calls its own malloc (in %s)%s: those calls were not recorded (record "
                 "again if the machine was busy; otherwise link it without that malloc)",
                 t->process, t->text, t->others);
    }
    if (l->off.processes) {
        t = balance_texts(&l->off);
        err_note(p->how->print,
                 "recording turned itself off in %s%s: %s (remove the cause, and record again)",
                 t->process, t->others, t->text);
    }
    uint32_t objects = 0;
    for (uint32_t at = 0; at < l->deepbound_bytes; at += (uint32_t)strlen(l->deepbound + at) + 1) {
        if (objects++ >= MOST_OBJECTS)
            continue;
        printable_copy(name, sizeof name, l->deepbound + at, strlen(l->deepbound + at));
        err_note(p->how->print,
                 "%s was opened with RTLD_DEEPBIND: its calls of malloc, realloc and free were not "
                 "recorded (open it without the flag)",
                 name);
    }
    if (objects > MOST_OBJECTS)
        err_note(p->how->print,
                 "%s also opened with RTLD_DEEPBIND ('heaptape stat --json' lists all)",
                 human_items(objects - MOST_OBJECTS, "other object was", "other objects were"));
}

static void print_clock(const struct balance *p)
{
    const struct trace_balance *b = p->b;
    if (p->l->without_units.processes) {
        const struct balance_texts *t = balance_texts(&p->l->without_units);
        err_note(p->how->print,
                 "the clock was read at each event in a part of the heap of %s%s, because its "
                 "limits or its sandbox left no memory to "
                 "avoid that: no event is missing, but recording took more CPU time (try a higher "
                 "ulimit -v, -d or -l)",
                 t->process, t->others);
    }
    bool ahead = b->clock_ahead_ns >= b->clock_behind_ns;
    if (b->clock_ahead_ns || b->clock_behind_ns)
        err_note(
            p->how->print,
            "the clock of process %" PRIu64
            " is %s %s the recorder's: times and the order of its events are wrong (try %s)",
            b->clock_pid, human_time((double)(ahead ? b->clock_ahead_ns : b->clock_behind_ns)),
            ahead ? "ahead of" : "behind",
            "without a time namespace, or if the CPUs' counters differ, HEAPTAPE_CLOCK=monotonic");
    if (b->clock_distrusted)
        p->how->print("the kernel stopped using the processor's counter as its clock: times and "
                      "the order of events may be wrong (try HEAPTAPE_CLOCK=monotonic)");
}

static void print_end(const struct balance *p)
{
    const struct trace_balance *b = p->b;
    if (b->overwritten_session)
        p->how->print("a program overwrote the memory that it shares with the recorder: the "
                      "recording may be incomplete (correct its wild pointer, and record again)");
    if (b->ended_early && b->ended_by)
        err_note(p->how->print,
                 "process %" PRIu64 " ended the recording, as 'heaptape ctl PID detach' does; the "
                 "program continued (to continue the recording, attach again)",
                 b->ended_by);
    else if (b->ended_early)
        p->how->print("the recording ended early; the program continued (to continue the "
                      "recording, attach again)");
    if (b->size_limit)
        p->how->print("the recording stopped at --max-size; the program continued untraced (try "
                      "--flight or --segment)");
    if (b->stop_signal)
        err_note(p->how->print,
                 "signal %" PRIu64
                 " stopped the recording before its processes exited (end the program instead)",
                 b->stop_signal);
}

void balance_of_file(struct trace_losses *l, const struct file_stat *s)
{
    *l = (struct trace_losses){0};
    for (size_t i = 0; s->kind != FILE_STAT_WORKLOAD && i < s->n_processes; i++)
        trace_losses_add(l, &s->processes[i].facts);
}

void balance_print(const struct trace_losses *l, const struct trace_unrecorded *u,
                   const struct balance_how *how)
{
    const struct balance p = {l, u, &u->balance, how};
    print_losses(&p);
    print_unrecorded(&p);
    print_code_names(&p);
    print_facts(&p);
    print_clock(&p);
    print_end(&p);
}

const char *balance_program(const struct trace_process *p, char *text, size_t room)
{
    const char *program = p->argv_bytes ? p->argv : p->exe ? p->exe : "unknown program";
    printable_copy(text, room, program, strnlen(program, room / 4 - 1));
    return text;
}

void balance_unexplained(char line[BALANCE_LINE_BYTES], const struct trace_process *p,
                         const struct unexplained_process *u)
{
    const struct software_runtime *runtime = software_runtime_of(p->exe);
    char program[BALANCE_PROGRAM_BYTES];
    balance_program(p, program, sizeof program);
    int n = snprintf(line, BALANCE_LINE_BYTES,
                     "process %u (%s): anonymous mappings without recorded blocks %s %s%s of %s of "
                     "resident memory: ",
                     p->pid, program, u->is_growth ? "grew by" : "have", human_size(u->bytes),
                     u->is_growth ? "," : "", human_size(u->rss_bytes));
    if (runtime)
        snprintf(line + n, BALANCE_LINE_BYTES - (size_t)n, "they may be the heap of %s (%s)",
                 runtime->name, runtime->remedy);
    else
        snprintf(
            line + n, BALANCE_LINE_BYTES - (size_t)n,
            "%sthe program called mmap (record its calls with --maps), or its allocator has %s)",
            u->is_growth ? "blocks from before the recording or from a pause were written, " : "",
            p->exe && !entries_have_symbols(p->exe)
                ? "no symbols (install the debug file of the executable, download it with "
                  "debuginfod-find debuginfo FILE, or use --wrap ADDRESS=malloc,ADDRESS=free"
                : "unknown functions (name them with --wrap");
}
