#include "base/json.h"
#include "cli/command.h"
#include "record/attach/attach.h"
#include "record/attach/status.h"
#include "record/drain/target.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ctl_options {
    bool json;
    uint64_t timeout_ns;
};

static const struct option options[] = {
    {0, "json", OPTION_FLAG, NULL, NULL, "print the status as a JSON object",
     offsetof(struct ctl_options, json)},
    {0, "timeout", OPTION_SECONDS, "SECONDS", "60", "stop waiting for the recorder after SECONDS",
     offsetof(struct ctl_options, timeout_ns), .min = 1, .max = OPTION_MAX_NS},
    {0},
};

// Verbs that enum control_verb does not contain.
enum { VERB_STATUS = CONTROL_RESET + 1, VERB_DETACH, VERB_DUMP };

static const char *state_name(const struct spool_header *h)
{
    unsigned state = atomic_load(&h->control.state);
    return atomic_load(&h->status) == SPOOL_OFF ? "off"
           : state == SPOOL_RECORDING           ? "recording"
           : state == SPOOL_PAUSED              ? "paused"
           : state == SPOOL_STOPPED             ? "stopped"
                                                : "unknown";
}

static void print_json(const struct spool_header *h, long pid, const char *reason)
{
    struct json j = {.to = stdout, .pretty = true};
    json_begin_document(&j);
    json_put_u64(&j, "pid", (uint64_t)pid);
    json_put_string(&j, "state", state_name(h));
    if (*reason)
        json_put_string(&j, "off_reason", reason);
    json_put_u64(&j, "events", atomic_load(&h->control.events));
    json_put_u64(&j, "threads", atomic_load(&h->threads_live));
    json_put_u64(&j, "spool_bytes", (uint64_t)atomic_load(&h->fresh_chunks) * SPOOL_CHUNK_BYTES);
    json_put_u64(&j, "backpressure_waits", atomic_load(&h->waits));
    json_put_u64(&j, "backpressure_ns", atomic_load(&h->wait_ns));
    json_put_u64(&j, "lost_records", spool_unrecorded(h));
    json_end_object(&j);
}

static void print_text(const struct spool_header *h, long pid, const char *reason)
{
    printf("%ld: %s%s%s\n", pid, state_name(h), *reason ? ": " : "", cli_text(reason));
    printf("%s recorded, %s, spool of %s, backpressure: %s, %s; %s lost\n",
           human_items(atomic_load(&h->control.events), "event", "events"),
           human_items(atomic_load(&h->threads_live), "thread", "threads"),
           human_size((uint64_t)atomic_load(&h->fresh_chunks) * SPOOL_CHUNK_BYTES),
           human_items(atomic_load(&h->waits), "wait", "waits"),
           human_time((double)atomic_load(&h->wait_ns)),
           human_items(spool_unrecorded(h), "record", "records"));
}

static void print_status(const struct spool_header *h, long pid, bool json)
{
    char reason[sizeof h->reason + 1] = "";
    if (atomic_load(&h->status) == SPOOL_OFF)
        memcpy(reason, h->reason, sizeof h->reason);
    (json ? print_json : print_text)(h, pid, reason);
}

static const char *explain_error(int error)
{
    static const char *const texts[] = {
        [EPERM] = "recording is stopped and cannot be resumed (use 'start')",
        [EPIPE] = "the recorder of this process has ended",
        [ESRCH] = "the process has ended",
        [ENOTSUP] = "cannot reset: the trace is not a regular file",
        [ENOSPC] = "too many state changes for a recording without a recorder",
        [ENODATA] =
            "recording has turned itself off in this process (see 'heaptape ctl PID status')",
    };
    bool is_known = (size_t)error < sizeof texts / sizeof *texts && texts[error];
    return is_known ? texts[error] : strerror(error);
}

// Detaches from the process. Also works without a recorder.
static int detach_recorder(pid_t pid)
{
    struct attach_result ignored = {0};
    struct err e = {0};
    die_on_error(attach_end(pid, 0, NULL, &ignored, &e), EXIT_FAILED, &e);
    return EXIT_DONE;
}

// Requests a dump with SIGUSR2. First checks that the recorder handles the signal, because a
// recorder that was started without --flight would be killed by the signal.
static int request_dump(pid_t pid, const struct target *a)
{
    pid_t recorder = (pid_t)a->control.session->recorder_pid;
    if (!control_recorder_lives(a->control.futexes, a->control.session->owner))
        die(EXIT_FAILED, "%ld: %s", (long)pid, explain_error(EPIPE));
    if (!status_number(recorder, recorder, "Tgid", 10))
        die(EXIT_FAILED, "%ld: its recorder is not in this PID namespace", (long)pid);
    if (!(status_number(recorder, recorder, "SigCgt", 16) >> (SIGUSR2 - 1) & 1))
        die(EXIT_FAILED, "%ld: is not recorded with --flight", (long)pid);
    return kill(recorder, SIGUSR2) < 0 ? -errno : 0;
}

static int run_ctl(const void *fields, char **argv)
{
    const struct ctl_options *o = fields;
    struct target a;
    struct err e = {0};
    char *end;
    errno = 0;
    long pid = strtol(argv[0], &end, 10);
    if (end == argv[0] || *end || errno || pid <= 0 || pid > INT_MAX)
        return usage_error(&cmd_ctl, "'%s' is not a process ID", argv[0]);
    // Also accept glibc's word for resume.
    int verb = strcmp(argv[1], "unpause") == 0 ? CONTROL_RESUME : cli_find_word(&cmd_ctl, argv[1]);
    if (verb < 0)
        return EXIT_USAGE;
    if (o->json && verb != VERB_STATUS)
        return usage_error(&cmd_ctl, "--json requires the verb status");
    if (verb == VERB_DETACH)
        return detach_recorder((pid_t)pid);
    die_on_error(target_open(&a, (pid_t)pid, &e), EXIT_FAILED, &e);
    int rc = 0;
    a.control.timeout_ns = o->timeout_ns;
    if (verb == VERB_STATUS)
        print_status(a.control.header, pid, o->json);
    else if (verb == VERB_DUMP)
        rc = request_dump((pid_t)pid, &a);
    else
        rc = control_execute(&a.control, (enum control_verb)verb);
    if (rc == -ETIMEDOUT)
        die(EXIT_FAILED,
            "%ld: its recorder (process %ld) did not answer within %.9g s (--timeout); "
            "check whether it is stopped",
            pid, (long)a.control.session->recorder_pid, (double)o->timeout_ns / 1e9);
    target_close(&a);
    if (rc < 0)
        die(EXIT_FAILED, "%ld: %s", pid, explain_error(-rc));
    return EXIT_DONE;
}

// In the order of enum control_verb, followed by the other verbs.
static const struct command_word words[] = {
    {"start", "begin recording, or continue it after stop or pause"},
    {"stop", "pause, then sync; only start continues afterwards"},
    {"pause", "suspend recording"},
    {"resume", "continue after pause"},
    {"sync", "wait until all events so far are in the trace file"},
    {"reset", "empty the trace file"},
    {"status", "print the state of the recording"},
    {"detach", "end a recording that 'heaptape record --pid' started"},
    {"dump", "make 'heaptape record --flight' write a dump"},
    {0},
};

const struct command cmd_ctl = {
    .name = "ctl",
    .operands = "PID start|stop|pause|resume|sync|reset|status|detach|dump",
    .summary = "Control recording in a running process",
    .words_title = "Verbs",
    .words = words,
    .examples =
        {
            {"Record five seconds of a server under load",
             "heaptape record --start=paused -o server.ht -- redis-server &\n"
             "heaptape ctl $(pidof redis-server) start\n"
             "sleep 5\n"
             "heaptape ctl $(pidof redis-server) stop"},
            {"Print the state of a recording as JSON",
             "heaptape ctl --json $(pidof redis-server) status"},
            {"Detach from a process that 'heaptape record --pid' records",
             "heaptape ctl $(pidof redis-server) detach"},
        },
    .options = options,
    .options_bytes = sizeof(struct ctl_options),
    .min_operands = 2,
    .max_operands = 2,
    .run = run_ctl,
};
