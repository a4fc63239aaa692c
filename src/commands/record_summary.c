#include "commands/record_summary.h"

#include "cli/command.h"
#include "cli/human.h"
#include "record/processes/proc_file.h"
#include "record/unrecorded/running.h"
#include "report/text/balance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_attached(const struct record_result *r)
{
    if (r->visit.threads)
        note("paused %s for at most %s", human_items(r->visit.threads, "thread", "threads"),
             human_time((double)r->visit.paused_ns));
    if (r->visit.listed_blocks)
        note("%s: %s",
             human_items(r->visit.listed_blocks, "preexisting block", "preexisting blocks"),
             human_size(r->visit.listed_bytes));
    if (r->visit.not_listed[0])
        note("preexisting blocks are not recorded: %s (to record all blocks, start the program "
             "with 'heaptape record')",
             r->visit.not_listed);
    if (r->visit.not_redirected[0])
        note("some functions are recorded through the loader's tables, so calls through stored "
             "pointers are not recorded: %s (to record all calls, start the program with 'heaptape "
             "record')",
             r->visit.not_redirected);
    if (r->visit.not_recorded[0])
        note("the program's own malloc is not recorded: its functions cannot be redirected: %s",
             r->visit.not_recorded);
    if (r->not_left[0])
        note("libheaptape.so remains in the process: %s (try 'heaptape ctl PID detach')",
             r->not_left);
}

// Prints notes about functions of started programs that could not be redirected.
static void print_entries(const struct entries_report *r)
{
    if (r->refused[0])
        note("an allocator is not recorded: a function cannot be redirected: %s", r->refused);
    for (unsigned i = 0; r->wrap && i < r->wrap->n; i++) {
        const struct spool_wrapped *item = &r->wrap->items[i];
        if (!item->function || r->named & 1u << i)
            continue;
        if (spool_wrap_address(item->name))
            note("--wrap: the program has no function at %s, or it is a script (start the "
                 "executable itself)",
                 item->name);
        else
            note(
                "--wrap: no symbol of a recorded executable and no dynamic symbol of its libraries "
                "is %s (build it with symbols, or link its allocator as a shared library)",
                item->name);
    }
}

static void print_cut(const struct record_result *r, const struct output *out)
{
    if (r->cut_off && out)
        note("%s accepted no more data: the trace is cut off (recover the intact part with "
             "'heaptape check --salvage')",
             out->name);
    else if (r->cut_off)
        note("the output accepted no more data: it was cut off (check its reader, and record "
             "again)");
}

static void print_cost(const struct record_result *r, double events)
{
    note("recorder: %.1f ns of CPU per event, %s; backpressure: threads waited %s",
         (double)r->cpu_ns / events, human_items(r->batches, "batch", "batches"),
         human_time((double)r->wait_ns));
}

void record_summary_print(bool verbose, const struct record_result *r, const struct output *out)
{
    uint64_t listed = r->visit.listed_blocks <= r->events ? r->visit.listed_blocks : 0;
    double n = r->events ? (double)r->events : 1;
    const char *events = human_items(r->events - listed, "event", "events");
    const char *processes = human_items(r->processes, "process", "processes");
    if (out)
        note("recorded %s of %s to %s: %s, %.2f bytes per event", events, processes, out->name,
             human_size(out->offset), (double)out->offset / n);
    else
        note("recorded %s of %s", events, processes);
    print_attached(r);
    print_entries(&r->entries);
    balance_print(&r->losses, &r->unrecorded, &(struct balance_how){note_text, 10, verbose});
    print_cut(r, out);
    if (verbose)
        print_cost(r, n);
}

// Returns true if heaptape attached to a process that ended, or executed another program, before
// its first event.
static bool is_gone(const struct record_result *r, pid_t pid)
{
    bool found = !r->processes;
    for (size_t i = 0; i < r->unrecorded.n; i++)
        found |= r->unrecorded.items[i].pid == (uint32_t)pid;
    return r->visit.threads && found;
}

// Returns the number of child processes of the process's main thread.
static size_t count_children(pid_t pid)
{
    char name[64], pids[4096];
    size_t n = 0;
    snprintf(name, sizeof name, "task/%ld/children", (long)pid);
    proc_file_read(pid, name, pids, sizeof pids);
    for (const char *at = pids; *at; at++)
        n += *at == ' ';
    return n;
}

// Returns the first reason in the list of unrecorded processes, or NULL. Children that were running
// before heaptape attached do not explain why the program itself was not recorded.
static const char *find_reason(const struct record_result *r)
{
    for (size_t i = 0; i < r->unrecorded.n; i++) {
        if (strcmp(r->unrecorded.items[i].why, RUNNING_WHY) != 0)
            return r->unrecorded.items[i].why;
    }
    return NULL;
}

void record_summary_nothing(const char *program, pid_t pid, const struct record_result *r,
                            struct err *e)
{
    const struct trace_balance *b = &r->unrecorded.balance;
    // These reasons prevent a start with the library. Before an attach, they are checked.
    const char *explained = pid ? NULL : record_explain(program);
    const char *reason = find_reason(r);
    size_t children = pid ? count_children(pid) : 0;
    struct err why = {0};
    if (r->losses.off.processes)
        err_set(&why, 0, "%s", balance_texts(&r->losses.off)->text);
    else if (explained)
        err_set(&why, 0, "the program %s", explained);
    else if (b->without_spool)
        err_set(&why, 0, "no space, memory or file descriptor was left for its spool");
    else if (b->unreadable_spools)
        err_set(&why, 0, "its spool was truncated or overwritten");
    else if (b->unopened_spools)
        err_set(&why, 0, "the recorder had no memory or file descriptor left for its spool");
    else if (is_gone(r, pid))
        err_set(&why, 0, "the process ended, or executed another program");
    else if (reason)
        err_set(&why, 0, "%s", reason);
    else if (r->losses.bypassed.processes)
        err_set(&why, 0, "the program calls its own malloc (in %s)",
                balance_texts(&r->losses.bypassed)->text);
    else if (r->visit.not_recorded[0])
        err_set(&why, 0, "the functions of its own malloc cannot be redirected: %s",
                r->visit.not_recorded);
    else if (r->processes && children)
        err_set(&why, 0, "the program did not call the malloc API; record its %s separately",
                human_items(children, "child process", "child processes"));
    else if (r->processes)
        err_set(&why, 0, "the program did not call the malloc API");
    else
        err_set(&why, 0, "libheaptape.so never started in it");
    const char *not_listed = r->visit.not_listed;
    err_set(e, -ENODATA, "%s: nothing was recorded: %s%s%s", program, why.text,
            not_listed[0] ? "; preexisting blocks are not recorded: " : "", not_listed);
}
