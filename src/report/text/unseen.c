#include "report/text/notes.h"

#include "analysis/memory/unexplained.h"
#include "cli/command.h"
#include "convert/peaks.h"
#include "report/text/balance.h"
#include "report/text/watch.h"

#include <sys/stat.h>

enum {
    MOST_PROCESSES = 3,
    // Assumed overhead of a block in glibc's malloc. The overhead is 8 to 24 bytes, and a block
    // with its overhead has at least 32 bytes.
    CHUNK_EXTRA_BYTES = 16,
    MAX_NOTED_BYTES = 256 << 20, // larger traces are not read again
};

// Memory of a process, and the part that was in recorded blocks.
struct unseen {
    const struct trace_process *process;
    uint64_t had, recorded;
};

static uint64_t missing_bytes(const struct unseen *u)
{
    return u->had > u->recorded ? u->had - u->recorded : 0;
}

// Returns false if all calls of the process were recorded, or if the memory of the process is
// unknown. Peaks do not include the blocks that a fork child inherits, although its malloc contains
// them.
static bool find_unseen(struct unseen *u, const struct trace_process *p, const struct peak *peak)
{
    *u = (struct unseen){p, 0, 0};
    if (p->bypassed_by) {
        u->had = peak->private_bytes;
        u->recorded = peak->peak_bytes;
    } else if (p->malloc_system_bytes && !p->forked_from) {
        u->had = p->malloc_in_use_bytes;
        u->recorded = peak->end_bytes + peak->end_blocks * CHUNK_EXTRA_BYTES;
    }
    return u->had != 0;
}

// Inserts `u` into the list of processes with the most unrecorded memory, in descending order.
static void insert_process(struct unseen *most, const struct unseen *u)
{
    for (unsigned i = 0; i < MOST_PROCESSES; i++) {
        if (most[i].process && missing_bytes(&most[i]) >= missing_bytes(u))
            continue;
        for (unsigned k = MOST_PROCESSES - 1; k > i; k--)
            most[k] = most[k - 1];
        most[i] = *u;
        return;
    }
}

static void note_process(const struct unseen *u)
{
    char program[BALANCE_PROGRAM_BYTES];
    unsigned permille = (unsigned)(missing_bytes(u) * 1000.0 / (double)u->had);
    balance_program(u->process, program, sizeof program);
    const char *had = human_size(u->had);
    const char *recorded = human_size(u->recorded);
    if (u->process->bypassed_by)
        note("process %u (%s): private memory grew by %s, recorded blocks explain at most %s: "
             "%u.%u %% was not recorded (its own malloc, stacks and mappings)",
             u->process->pid, program, had, recorded, permille / 10, permille % 10);
    else
        note("process %u (%s): malloc had %s in use at the end, %s of it in recorded blocks: at "
             "most %u.%u %% was not recorded (open its libraries without RTLD_DEEPBIND)",
             u->process->pid, program, had, recorded, permille / 10, permille % 10);
}

static void note_most(const struct trace_reader *r, const struct peaks *peaks)
{
    struct unseen most[MOST_PROCESSES] = {0}, u;
    size_t n = 0;
    for (size_t i = 0; i < peaks->with_idle; i++) {
        if (!find_unseen(&u, r->processes[peaks->items[i].process], &peaks->items[i]))
            continue;
        insert_process(most, &u);
        n++;
    }
    for (unsigned i = 0; i < MOST_PROCESSES && most[i].process; i++)
        note_process(&most[i]);
    if (n > MOST_PROCESSES)
        note("%s calls that were not recorded",
             human_items(n - MOST_PROCESSES, "other process has", "other processes have"));
}

static int find_missing(struct trace_file *t, bool has_losses, struct err *e)
{
    struct peaks peaks = {0};
    struct unexplained u;
    char line[BALANCE_LINE_BYTES];
    struct progress *progress = watch_begin("memory")->progress;
    int rc = unexplained_find(&u, t, progress, e);
    for (size_t i = 0; rc == 0 && i < u.n && i < MOST_PROCESSES; i++) {
        balance_unexplained(line, t->reader.processes[u.items[i].process], &u.items[i]);
        note_text(line);
    }
    unexplained_release(&u);
    if (rc == 0 && has_losses) {
        rc = trace_file_rewind(t, e);
        rc = rc == 0 ? peaks_count(&peaks, t, 0, progress, e) : rc;
        if (rc == 0)
            note_most(&t->reader, &peaks);
        peaks_release(&peaks);
    }
    return rc;
}

void notes_unseen(const char *path, bool has_losses)
{
    struct stat st;
    struct trace_file t = {.in.fd = -1};
    struct input in = {.fd = -1};
    struct err e = {0};
    if (cli_common.quiet || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    if (st.st_size > MAX_NOTED_BYTES) {
        if (has_losses)
            note("run 'heaptape stat %s' to find memory without recorded blocks: the trace is "
                 "larger than 256 MiB",
                 path);
        return;
    }
    int rc = input_open(&in, path, &e);
    rc = rc == 0 ? trace_file_adopt(&t, &in, true, &e) : rc;
    rc = rc == 0 ? find_missing(&t, has_losses, &e) : rc;
    if (rc < 0 && has_losses)
        note("cannot compute how much memory was not recorded: %s", e.text);
    trace_file_close(&t);
}
