#include "base/json.h"
#include "cli/command.h"
#include "cli/suggest.h"
#include "record/target.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct command cmd_ctl;

struct ctl_options {
    bool json;
};

static const struct option options[] = {
    {0, "json", OPTION_FLAG, NULL, NULL, "print the status as one JSON object", offsetof(struct ctl_options, json)},
    {0},
};

enum { VERB_STATUS = CONTROL_RESET + 1, VERBS };

static const char *const verbs[VERBS] = {
    [CONTROL_START] = "start", [CONTROL_STOP] = "stop",   [CONTROL_PAUSE] = "pause", [CONTROL_UNPAUSE] = "unpause",
    [CONTROL_SYNC] = "sync",   [CONTROL_RESET] = "reset", [VERB_STATUS] = "status",
};

// VERBS when there is none of this name.
static int find_verb(const char *name)
{
    int verb = 0;
    while (verb < VERBS && strcmp(verbs[verb], name) != 0)
        verb++;
    return verb;
}

static int unknown_verb(const char *name)
{
    struct suggest s;
    suggest_init(&s, name, strlen(name));
    for (int verb = 0; verb < VERBS; verb++)
        suggest_offer(&s, verbs[verb]);
    if (s.best)
        return usage_error(&cmd_ctl, "unknown verb '%s'; did you mean '%s'?", name, s.best);
    return usage_error(&cmd_ctl, "unknown verb '%s'", name);
}

static const char *state_name(const struct spool_header *h)
{
    if (atomic_load(&h->status) == SPOOL_OFF)
        return "off";
    switch ((enum spool_recording)atomic_load(&h->control.state)) {
    case SPOOL_RECORDING:
        return "recording";
    case SPOOL_PAUSED:
        return "paused";
    case SPOOL_STOPPED:
        return "stopped";
    }
    return "unknown";
}

static void print_json(const struct spool_header *h, long pid, const char *reason)
{
    struct json j = {.to = stdout, .pretty = true};
    json_begin_object(&j);
    json_put_u64(&j, "schema_version", 1);
    json_put_u64(&j, "pid", (uint64_t)pid);
    json_put_string(&j, "state", state_name(h));
    if (*reason)
        json_put_string(&j, "off_reason", reason);
    json_put_u64(&j, "events", atomic_load(&h->control.events));
    json_put_u64(&j, "threads", atomic_load(&h->threads_live));
    json_put_u64(&j, "chunks", atomic_load(&h->fresh_chunks));
    json_put_u64(&j, "waits", atomic_load(&h->waits));
    json_put_u64(&j, "wait_ns", atomic_load(&h->wait_ns));
    json_put_u64(&j, "lost", atomic_load(&h->lost_words));
    json_end_object(&j);
}

static void print_text(const struct spool_header *h, long pid, const char *reason)
{
    char events[32], threads[32], bytes[32], waits[32], ns[32], lost[32];
    printf("%ld: %s%s%s\n", pid, state_name(h), *reason ? ": " : "", reason);
    printf("%s events written, %s threads, %s of chunks, %s waits of %s in all, %s events lost\n",
           human_count(events, atomic_load(&h->control.events)), human_count(threads, atomic_load(&h->threads_live)),
           human_bytes(bytes, (uint64_t)atomic_load(&h->fresh_chunks) * SPOOL_CHUNK_BYTES),
           human_count(waits, atomic_load(&h->waits)), human_ns(ns, (double)atomic_load(&h->wait_ns)),
           human_count(lost, atomic_load(&h->lost_words)));
}

static void print_status(const struct spool_header *h, long pid, bool json)
{
    char reason[sizeof h->reason + 1] = "";
    if (atomic_load(&h->status) == SPOOL_OFF)
        memcpy(reason, h->reason, sizeof h->reason);
    (json ? print_json : print_text)(h, pid, reason);
}

static const char *explain(int error)
{
    switch (error) {
    case EPERM:
        return "is stopped: only start goes on";
    case EPIPE:
        return "its recorder is gone";
    case ESRCH:
        return "has ended";
    case ENOTSUP:
        return "its trace is no regular file, which alone can begin anew";
    case ENOSPC:
        return "has changed too often for a recording without a recorder";
    case ENODATA:
        return "tracing has turned itself off";
    default:
        return strerror(error);
    }
}

static int run(const void *fields, int argc, char **argv)
{
    const struct ctl_options *o = fields;
    struct attached a;
    struct err e = {0};
    char *end;
    (void)argc;
    errno = 0;
    long pid = strtol(argv[0], &end, 10);
    if (end == argv[0] || *end || errno || pid <= 0 || pid > INT_MAX)
        return usage_error(&cmd_ctl, "'%s' is no process id", argv[0]);
    int verb = find_verb(argv[1]);
    if (verb == VERBS)
        return unknown_verb(argv[1]);
    if (o->json && verb != VERB_STATUS)
        return usage_error(&cmd_ctl, "--json goes with status");
    if (attach_open(&a, (pid_t)pid, &e) < 0)
        die(EXIT_FAILED, "%s", e.text);
    int rc = 0;
    if (verb == VERB_STATUS)
        print_status(a.control.header, pid, o->json);
    else
        rc = control_do(&a.control, (enum control_verb)verb);
    attach_close(&a);
    if (rc < 0)
        die(EXIT_FAILED, "%ld: %s", pid, explain(-rc));
    return EXIT_DONE;
}

const struct command cmd_ctl = {
    .name = "ctl",
    .operands = "PID start|stop|pause|unpause|sync|reset|status",
    .summary = "Steer the recording of a running process",
    .description =
        "start, or unpause, begins the recording of a process that was started with record --start=paused, or goes on "
        "after pause. stop pauses and syncs; only start goes on from there. sync returns when everything up to it is "
        "in the file. reset begins the file anew: what was recorded so far, of all processes of the recording, is "
        "thrown away. status tells how the recording stands.\n\n"
        "No call that starts after pause or stop has returned is recorded, and every one that starts after start or "
        "unpause has returned is. Births and ends of threads are recorded always.\n\n"
        "PID alone is meant, and what it forks from then on; a program that is started by exec begins as its recording "
        "did. A program can do the same itself: heaptape/heaptape.h.",
    .options = options,
    .options_bytes = sizeof(struct ctl_options),
    .min_operands = 2,
    .max_operands = 2,
    .run = run,
};
