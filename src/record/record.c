#include "record/record.h"

#include "base/thread.h"
#include "record/attach/attach.h"
#include "record/attach/status.h"
#include "record/drain/encoder.h"
#include "record/drain/facts.h"
#include "record/launch.h"
#include "record/processes/limit.h"
#include "record/processes/watch.h"
#include "record/unrecorded/unrecorded.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MS(n) ((n)*1000000ull)

enum {
    BATCH_WORDS = 1 << 16, // a batch is written when it has this many words
    SMALL_BATCH_WORDS = 1 << 12,
    QUIET_WORDS = 512,     // a process that writes more words between two passes is not quiet
    SAMPLES_AT_ONCE = 256, // number of samples in a frame
    // A batch may contain records with stamps above its watermark. A reader can order records only
    // up to the watermark of the second-to-last batch (docs/design/convert.md).
    SETTLING_BATCHES = 2,
    // Number of full chunks at which the backup thread drains: half of a program's limit.
    CHUNKS_LATE = 12,
    MAX_BUNDLES = 4,   // number of bundles that the main thread writes between two passes
    MAX_PLANS = 32,    // maximum number of plans that a process may request
    RECORDER_NICE = 5, // lowers the priority of the recorder, so that the program runs first
    // Raises the priority of the backup thread, so that the program is not kept waiting.
    BACKUP_UNNICE = 10,
};
#define BATCH_NS       MS(20)  // a batch is also written when it reaches this age
#define SMALL_BATCH_NS MS(100) // like BATCH_NS, for a batch of fewer than SMALL_BATCH_WORDS words
#define SAMPLE_NS      MS(10)  // interval between RSS samples of each process
#define CHECK_NS       MS(2)   // interval between checks for ended processes
#define BACKUP_NAP     400000u // ns
#define CALM_NS        MS(50)  // interval between drains while no chunks fill up
#define IDLE_NS        MS(20)  // sleep while few chunks fill up; limits the delay of events
// QUIET_SLEEP_NS: sleep if all processes have used little CPU time and written few words for
// QUIET_NS.
#define QUIET_NS       MS(500)
#define QUIET_SLEEP_NS MS(100)
// Sleep while many chunks fill up. Kept short, because some processes cannot make the system call
// that wakes the recorder.
#define BUSY_NS      MS(1)
#define SURVIVORS_NS MS(50)  // interval between searches for processes without a spool
#define REFUSED_NS   MS(200) // interval between checks of spools that could not be mapped

struct ended_process {
    struct trace_process facts;
    struct names names; // names of the process's code
};

struct recorder {
    const struct record_settings *settings;
    struct record_result *result;
    struct drain drain;
    struct encoder *encoder; // NULL before the program runs
    struct output *out;
    struct record_launch launch;
    struct unrecorded unrecorded;
    struct entries_answers answers;
    enum clock_kind clock;
    struct clock_point started;
    uint64_t realtime_ns; // real time at `started`
    struct trace_session facts;
    bool in_batch;
    // Held during a drain: by the main thread between two bundles, or by the backup thread if
    // encoding takes too long.
    pthread_mutex_t draining;
    pthread_cond_t active_again;
    pthread_t backup;
    struct proc_watch *pages; // NULL if page maps are not read
    bool has_backup, ending;
    bool visiting;       // the recorder attached to a running program
    uint64_t visited_ns; // if `visiting`: time of attaching
    bool active;         // the encoder has work, so the backup thread checks for full chunks
    int backup_failed;   // 0, or a negative errno
    struct err backup_error;
    uint32_t seen;      // value of drain_wakeups before the last pass
    bool full;          // the last pass drained nothing because the backlog was full
    uint64_t watermark; // watermark of the last drain that left no stream waiting
    uint64_t batch_began_ns, checked_ns, sampled_ns, survivors_ns, refused_ns;
    uint64_t busy_ns; // time of the last pass that found a busy process
    bool quiet;       // no pass has found a busy process for QUIET_NS
    // Number of batches begun, and number of words drained since the last batch began.
    uint64_t batches_begun, batch_words;
    // Number of additional batches that a reader needs to order all records written so far.
    unsigned unsettled;
    struct ended_process *ended; // processes whose PROCESS_END frames follow the current batch
    size_t n_ended, ended_capacity;
    struct trace_sample samples[SAMPLES_AT_ONCE];
    size_t n_samples;
};

static uint64_t stamp_now(const struct recorder *r)
{
    return clock_ticks(r->clock) >> CODEC_STAMP_SHIFT;
}

static int put_process(struct recorder *r, struct drain_spool *s, struct err *e)
{
    struct trace_process p;
    r->result->processes++;
    unrecorded_add_spool(&r->unrecorded, s);
    if (facts_process(&p, s) < 0)
        return err_no_memory(e, NULL);
    uint64_t now = stamp_now(r);
    p.start_stamp = p.start_stamp < now ? p.start_stamp : now;
    snprintf(s->program, sizeof s->program, "%s", basename(p.exe));
    struct trace_sample first = {.process = s->number, .stamp = p.start_stamp};
    int rc = encoder_put_process(r->encoder, &p, e);
    return rc == 0 && facts_start_memory(&first, s) ? encoder_put_samples(r->encoder, &first, 1, e)
                                                    : rc;
}

// Returns true if the spool belongs to the program that the recorder started. If the program ended
// before its spool was found, only the program's pid in its own namespace is known.
static bool is_own_child(const struct recorder *r, const struct drain_spool *s)
{
    return s->visible_pid == r->launch.pid ||
           (s->visible_pid == 0 && (pid_t)s->pid == r->launch.pid);
}

// Returns true for the last image of the program's process. The exit status belongs to that image.
static bool is_last_image(const struct recorder *r, const struct drain_spool *s)
{
    for (size_t i = 0; i < r->drain.n_spools; i++) {
        const struct drain_spool *other = r->drain.spools[i];
        if (is_own_child(r, other) && other->number > s->number)
            return false;
    }
    return is_own_child(r, s) && r->launch.reaped;
}

// Reads the names of code, which are needed only for stacks.
static void read_code_names(struct recorder *r, struct drain_spool *s, bool all)
{
    const struct code_names_process p = {s->visible_pid, s->pid, r->realtime_ns};
    uint64_t bad = s->code.bad_lines;
    if (!r->settings->stacks.depth || (!all && !code_names_is_due(&s->code, clock_monotonic_ns())))
        return;
    code_names_read(&s->code, &p, all);
    r->result->balance.bad_code_names += s->code.bad_lines - bad;
    r->result->balance.cut_code_names += s->code.too_long && all;
}

static int write_code_names(struct recorder *r, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < r->drain.n_spools && rc == 0; i++) {
        struct drain_spool *s = r->drain.spools[i];
        if (s->code.names.n_entries)
            rc = encoder_put_names(r->encoder, s->number, &s->code.names, e);
    }
    return rc;
}

static int write_samples(struct recorder *r, struct err *e)
{
    int rc = r->n_samples ? encoder_put_samples(r->encoder, r->samples, r->n_samples, e) : 0;
    r->n_samples = 0;
    return rc;
}

static int put_last_sample(struct recorder *r, const struct drain_spool *s, uint64_t end_stamp,
                           struct err *e)
{
    int rc = r->n_samples == SAMPLES_AT_ONCE ? write_samples(r, e) : 0;
    struct trace_sample *last = &r->samples[r->n_samples];
    *last = (struct trace_sample){.process = s->number, .stamp = end_stamp};
    r->n_samples += facts_end_memory(last, s);
    return rc;
}

// Adds the facts that the kernel reports when the recorder's child ends. The highest RSS may be
// higher than the library reported, because a process can run code after the library has read it.
static void add_exit(struct recorder *r, const struct drain_spool *s, struct trace_process *p)
{
    // Reap the program, because it may have ended since the last check.
    if (is_own_child(r, s))
        record_launch_reap(&r->launch, false);
    p->has_exit_status = is_last_image(r, s) && !r->launch.attached;
    p->exit_status = (uint64_t)r->launch.wait_status;
    bool has_read = !s->broken && s->header->end_status[0];
    if (p->has_exit_status && s->number == 0 && has_read &&
        r->launch.peak_rss_bytes > p->peak_rss_bytes)
        p->peak_rss_bytes = r->launch.peak_rss_bytes;
}

// Saves the data for PROCESS_END and drops the spool. If goes_on is set, the process continues, so
// the spool is kept to count its events.
static int end_process(struct recorder *r, size_t i, bool goes_on, struct err *e)
{
    struct drain_spool *s = r->drain.spools[i];
    if (HT_GROW(&r->ended, &r->ended_capacity, r->n_ended + 1) < 0)
        return err_no_memory(e, NULL);
    struct ended_process *ended = &r->ended[r->n_ended];
    struct trace_process *p = &ended->facts;
    drain_count_unmapped(&r->drain, s);
    r->result->balance.lost_at_least |= s->broken || s->unmapped;
    // `ended_by` is set only in the process that heaptape detached from, not in its children.
    drain_count_early(s, clock_ticks(r->clock));
    uint32_t ended_by = s->broken ? 0 : atomic_load(&s->header->ended_by);
    r->result->ended_by = ended_by ? ended_by : r->result->ended_by;
    if (facts_process(p, s) < 0)
        return err_no_memory(e, NULL);
    r->n_ended++;
    // The process noticed that this recorder had stopped. The reason for the stop is reported
    // separately.
    if (r->drain.stopped && p->off_reason && strcmp(p->off_reason, SPOOL_REASON_ENDED) == 0) {
        free(p->off_reason);
        p->off_reason = NULL;
    }
    if (s->broken || atomic_load(&s->guard.broken)) {
        free(p->exe);
        p->exe = strdup(s->program);
    }
    uint64_t now = stamp_now(r);
    p->end_stamp = p->end_stamp && p->end_stamp < now ? p->end_stamp : now;
    facts_window(p, s);
    p->thread_names = s->thread_names.data;
    p->thread_names_bytes = s->thread_names.size;
    s->thread_names = (struct buf){0};
    read_code_names(r, s, true);
    ended->names = s->code.names;
    s->code.names = (struct names){0};
    add_exit(r, s, p);
    p->attached = r->launch.attached && is_own_child(r, s) && s->number == 0;
    int rc = put_last_sample(r, s, p->end_stamp, e);
    facts_add(r->result, p);
    s->said_lost = p->lost_records;
    if (!goes_on)
        drain_drop(&r->drain, i);
    return rc;
}

static int end_batch(struct recorder *r, struct err *e)
{
    if (!r->in_batch)
        return 0;
    r->in_batch = false;
    r->unsettled = r->batch_words ? SETTLING_BATCHES : r->unsettled - (r->unsettled > 0);
    int rc = encoder_end_batch(r->encoder, r->watermark, e);
    // Samples must precede the PROCESS_END frames of their processes. A reader that requests
    // regular batches also needs samples.
    if (rc == 0 && (r->n_ended || r->n_samples == SAMPLES_AT_ONCE || r->settings->beat_ns))
        rc = write_samples(r, e);
    rc = rc ?: write_code_names(r, e);
    for (size_t i = 0; i < r->n_ended; i++) {
        struct ended_process *p = &r->ended[i];
        if (rc == 0 && p->names.n_entries)
            rc = encoder_put_names(r->encoder, p->facts.number, &p->names, e);
        rc = rc ?: encoder_put_process_end(r->encoder, &p->facts, e);
        trace_process_release(&p->facts);
        names_release(&p->names);
    }
    r->n_ended = 0;
    return rc < 0 ? rc : encoder_flush(r->encoder, e);
}

static int begin_batch(struct recorder *r, struct err *e)
{
    if (r->in_batch)
        return 0;
    r->in_batch = true;
    // The first batch ends after one pass, so that there is a trace if the program is killed early.
    r->batch_began_ns = r->batches_begun++ ? clock_monotonic_ns() : 0;
    r->batch_words = 0;
    return encoder_begin_batch(r->encoder, e);
}

static uint64_t *room_for_segment(void *ctx, uint32_t n_words, struct err *e)
{
    struct recorder *r = ctx;
    return begin_batch(r, e) == 0 ? encoder_room(r->encoder, n_words, e) : NULL;
}

static uint64_t epochs_ns(const struct recorder *r, uint64_t epochs)
{
    uint64_t hz = r->facts.clock_hz ? r->facts.clock_hz : 1000000000u;
    return clock_to_ns(epochs << (CODEC_STAMP_BITS + CODEC_STAMP_SHIFT), hz);
}

// Records how far timestamps are ahead of the current time, or behind the start of the recording or
// the preceding records of their stream. The resolution is one epoch, which is 262,144 ticks.
static void check_clock(struct recorder *r, const struct drain_spool *s,
                        const struct trace_segment *g)
{
    struct trace_balance *b = &r->result->balance;
    // A program that starts its own recorder records events before the recorder starts.
    uint64_t now = clock_ticks(r->clock), started = r->launch.attached ? 0 : r->started.ticks,
             latest = codec_epoch_of_ticks(now) + 1, earliest = codec_epoch_of_ticks(started);
    earliest = g->epoch0 > earliest ? g->epoch0 : earliest;
    uint64_t ahead = g->epoch_end > latest ? epochs_ns(r, g->epoch_end - latest) : 0,
             behind = g->epoch_end + 1 < earliest ? epochs_ns(r, earliest - g->epoch_end - 1) : 0;
    if (!ahead && !behind)
        return;
    b->clock_pid = b->clock_pid ? b->clock_pid : s->pid;
    b->clock_ahead_ns = ahead > b->clock_ahead_ns ? ahead : b->clock_ahead_ns;
    b->clock_behind_ns = behind > b->clock_behind_ns ? behind : b->clock_behind_ns;
}

static int put_segment(void *ctx, struct drain_spool *s, struct trace_segment *g, struct err *e)
{
    struct recorder *r = ctx;
    struct encoder_seen seen = {0};
    int rc = encoder_put_segment(r->encoder, g, &seen, e);
    r->batch_words += g->n_words;
    s->events += seen.events;
    check_clock(r, s, g);
    if (rc == 0 && seen.modules)
        code_names_find(&s->code, seen.words, g->n_words);
    return rc;
}

static int sample_memory(struct recorder *r, uint64_t now, struct err *e)
{
    uint64_t age_ns = now - r->started.ns, between_ns = facts_sample_ns(age_ns, SAMPLE_NS);
    if (now - r->sampled_ns < between_ns)
        return 0;
    r->sampled_ns = now;
    int rc = 0;
    for (size_t i = 0; i < r->drain.n_spools && rc == 0; i++) {
        struct drain_spool *s = r->drain.spools[i];
        if (s->dead || !facts_is_sample_due(s, now, age_ns, between_ns + between_ns / 2))
            continue;
        facts_update_thread_names(s, now);
        read_code_names(r, s, false);
        if (r->n_samples == SAMPLES_AT_ONCE)
            rc = write_samples(r, e);
        struct trace_sample *sample = &r->samples[r->n_samples];
        *sample = (struct trace_sample){.process = s->number, .stamp = stamp_now(r)};
        if (!facts_memory(sample, s->visible_pid))
            continue;
        r->n_samples++;
        facts_update_peak(s);
        if (!s->pages_due.last_ns)
            facts_update_libraries(s);
        s->pages_due.words = s->words;
        proc_watch_request(r->pages, &s->pages_due, s->number, s->visible_pid, sample->rss_bytes);
    }
    proc_watch_start(r->pages);
    for (size_t i = 0; i < r->drain.n_spools; i++) {
        struct drain_spool *s = r->drain.spools[i];
        if (s->pages_due.last_ns >= now) // its page map is read from now on
            s->begun_spool_bytes = drain_resident_bytes(s);
    }
    return rc;
}

// Writes a finished page map. Drops the map if its process has ended, or the trace was restarted,
// since the map was requested.
static int write_pages(struct recorder *r, struct err *e)
{
    struct buf payload = {0};
    uint32_t number;
    uint64_t pause_ns;
    if (r->in_batch || !proc_watch_collect(r->pages, &payload, &number, &pause_ns))
        return 0;
    for (size_t i = 0; i < r->drain.n_spools; i++) {
        struct drain_spool *s = r->drain.spools[i];
        if (s->number != number || !s->pages_due.last_ns)
            continue;
        s->pages_due.pause_ns = pause_ns;
        s->mapped_spool_bytes = payload.size ? s->begun_spool_bytes : s->mapped_spool_bytes;
        if (payload.size)
            return encoder_put_pages(r->encoder, &payload, e) < 0 ? -ENOMEM
                                                                  : encoder_flush(r->encoder, e);
    }
    buf_release(&payload);
    return 0;
}

static int discover_spools(struct recorder *r, struct err *e)
{
    int found = drain_discover(&r->drain, e);
    for (int i = 0; i < found; i++) {
        int rc = put_process(r, r->drain.spools[r->drain.n_spools - (size_t)found + (size_t)i], e);
        if (rc < 0)
            return rc;
    }
    return found < 0 ? found : 0;
}

static int end_processes(struct recorder *r, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->drain.n_spools;) {
        if (r->drain.spools[i]->dead)
            rc = begin_batch(r, e) ?: end_process(r, i, false, e);
        else
            i++;
    }
    return rc;
}

// Restarts the trace. If the output cannot be truncated, recording continues and the requester gets
// ENOTSUP.
static int restart_trace(struct recorder *r, struct err *e)
{
    struct err refused;
    int rc = end_batch(r, e) ?: encoder_write_all(r->encoder, e);
    if (rc < 0)
        return rc;
    if (output_restart(r->out, &refused) < 0) {
        drain_answer(&r->drain, SPOOL_RESET, ENOTSUP);
        return 0;
    }
    encoder_restart(r->encoder);
    drain_restart(&r->drain);
    r->n_samples = 0;
    r->result->processes = 0;
    for (size_t i = 0; i < r->drain.n_spools && rc == 0; i++) {
        code_names_restart(&r->drain.spools[i]->code);
        r->drain.spools[i]->pages_due = (struct proc_due){0};
        rc = put_process(r, r->drain.spools[i], e);
    }
    drain_answer(&r->drain, SPOOL_RESET, 0);
    return rc;
}

// Answers the requests of processes whose events before the request have been drained.
static int answer_requests(struct recorder *r, struct err *e)
{
    int rc = drain_has_request(&r->drain, SPOOL_RESET) ? restart_trace(r, e) : 0;
    if (rc < 0 || !drain_has_request(&r->drain, SPOOL_SYNC))
        return rc;
    rc = end_batch(r, e) ?: encoder_write_all(r->encoder, e);
    if (rc == 0)
        drain_answer(&r->drain, SPOOL_SYNC, 0);
    return rc;
}

// If the output is read live, writes empty batches that move the watermark past the last batch with
// records, so that a pause in the program does not delay its last events. If requested, additional
// empty batches report the current time.
static int put_empty_batch(struct recorder *r, uint64_t now, struct err *e)
{
    uint64_t pause_ns = r->unsettled ? BATCH_NS : r->settings->beat_ns;
    bool due = r->settings->live && !r->in_batch && r->batches_begun && pause_ns;
    int rc = due && now >= r->batch_began_ns + pause_ns ? begin_batch(r, e) : 0;
    return rc < 0 || !due || !r->in_batch ? rc : end_batch(r, e);
}

static bool is_batch_due(const struct recorder *r, uint64_t now)
{
    bool small = r->batch_words < SMALL_BATCH_WORDS && !r->settings->live;
    return r->in_batch && (r->batch_words >= BATCH_WORDS ||
                           now >= r->batch_began_ns + (small ? SMALL_BATCH_NS : BATCH_NS));
}

// Returns true if all processes are quiet, so that passes may be rare. Passes request readings of
// the counter, so they must be frequent while a process uses the CPU, and for a process that cannot
// wake the recorder.
static bool is_quiet(const struct recorder *r, uint64_t now)
{
    bool quiet = !r->settings->live;
    for (size_t i = 0; i < r->drain.n_spools && quiet; i++) {
        const struct drain_spool *s = r->drain.spools[i];
        quiet = s->drain_words < QUIET_WORDS && s->cpu_due_ns > now &&
                !atomic_load(&s->header->sandboxed);
    }
    return quiet;
}

static void update_quiet(struct recorder *r, uint64_t now)
{
    r->busy_ns = is_quiet(r, now) ? r->busy_ns : now;
    bool quiet = now - r->busy_ns >= QUIET_NS;
    for (size_t i = 0; i < r->drain.n_spools && quiet != r->quiet; i++)
        atomic_store(&r->drain.spools[i]->header->quiet, quiet);
    r->quiet = quiet;
}

// Drains all spools once. Call with `draining` held.
static int drain_pass(struct recorder *r, struct err *e)
{
    const struct drain_sink sink = {r, room_for_segment, put_segment};
    uint64_t now = clock_monotonic_ns(), stamp = stamp_now(r);
    uint32_t seen = r->seen;
    r->seen = drain_wakeups(&r->drain);
    record_launch_forward(&r->launch);
    int rc = encoder_check(r->encoder, e);
    if (rc < 0 || (r->full = encoder_is_full(r->encoder)))
        return rc;
    // Check for exits before the drain, so that the next drain of a dead spool reads everything.
    if (now - r->checked_ns >= CHECK_NS || r->seen != seen) {
        r->checked_ns = now;
        record_launch_reap(&r->launch, false);
        drain_check_ends(&r->drain);
    }
    rc = discover_spools(r, e);
    if (now - r->refused_ns >= REFUSED_NS) {
        r->refused_ns = now;
        drain_check_refused(&r->drain, false);
    }
    rc = rc ?: drain_drain(&r->drain, &sink, e);
    if (r->drain.streams_waiting == 0)
        r->watermark = stamp;
    rc = rc ?: sample_memory(r, now, e) ?: end_processes(r, e);
    if (rc == 0 && is_batch_due(r, now))
        rc = end_batch(r, e);
    rc = rc ?: write_pages(r, e);
    update_quiet(r, now);
    return rc < 0 ? rc : put_empty_batch(r, now, e);
}

// Returns true if the recorder attached to a running program, which continues after the recording.
static bool is_visit(const struct recorder *r)
{
    return r->settings->attach.pid && r->settings->attach.report < 0;
}

// If the program started the recorder, or the recorder attached to the program, returns the
// program's pid. Returns 0 if the recorder started the program.
static pid_t attached_pid(const struct recorder *r)
{
    return r->launch.attached ? r->launch.pid : 0;
}

static bool have_others_ended(struct recorder *r, const struct drain_spool *s)
{
    drain_check_ends(&r->drain);
    for (size_t i = 0; i < r->drain.n_spools; i++) {
        if (r->drain.spools[i] != s && !r->drain.spools[i]->dead)
            return false;
    }
    return true;
}

// Returns true if the program that started the recorder has asked the recorder to finish, and no
// other process of the session is alive.
static bool is_asked_to_finish(struct recorder *r)
{
    for (size_t i = 0; i < r->drain.n_spools; i++) {
        struct drain_spool *s = r->drain.spools[i];
        if (s->broken || atomic_load(&s->header->finishing) != SPOOL_FINISHING)
            continue;
        if (r->drain.n_spools == 1 && is_own_child(r, s) &&
            !unrecorded_has_survivors(&r->unrecorded, attached_pid(r)))
            return true;
        // The other processes may have ended before the request, but after this pass checked for
        // exits.
        if (r->drain.n_spools == 1 || !have_others_ended(r, s))
            atomic_store(&s->header->finishing, SPOOL_GOES_ON);
    }
    return false;
}

// Returns true if the recording of a running program has reached its duration or was ended from
// outside.
static bool is_visit_over(const struct recorder *r)
{
    uint64_t ns = clock_monotonic_ns() - r->visited_ns, asked_ns = r->settings->attach.duration_ns;
    // The program waits for the recorder for up to FOUND_WAIT_NS (producer_chunk.c), so its spool
    // may appear until then.
    bool left = r->drain.n_spools == 0 && (r->drain.n_made || ns >= MS(6000));
    r->result->ended_early = r->visiting && left && !(asked_ns && ns >= asked_ns);
    return r->visiting && (left || (asked_ns && ns >= asked_ns));
}

static bool is_over(struct recorder *r)
{
    if (is_visit_over(r) || r->launch.terminations >= (r->launch.attached ? 1 : 2) ||
        (r->launch.attached && is_asked_to_finish(r)))
        return true;
    r->result->full = encoder_has_ended(r->encoder);
    bool ended = r->launch.reaped && !r->drain.n_spools;
    if (r->result->full || !ended || r->drain.flags & SPOOL_FOLLOW_NONE)
        return r->result->full || ended;
    uint64_t now = clock_monotonic_ns();
    if (now - r->survivors_ns < SURVIVORS_NS)
        return false;
    r->survivors_ns = now;
    return !unrecorded_has_survivors(&r->unrecorded, attached_pid(r));
}

// Backup thread: drains if the main thread compresses or writes for so long that programs would
// otherwise have to wait.
static void *drain_as_backup(void *arg)
{
    struct recorder *r = arg;
    // Ignore failure: the priority only affects speed.
    if (setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - BACKUP_UNNICE) < 0)
        errno = 0;
    pthread_mutex_lock(&r->draining);
    while (!r->ending && r->backup_failed == 0) {
        if (!r->active) {
            thread_wait(&r->active_again, &r->draining, CALM_NS);
            continue;
        }
        pthread_mutex_unlock(&r->draining);
        if (!encoder_help(r->encoder))
            nanosleep(&(struct timespec){0, BACKUP_NAP}, NULL);
        pthread_mutex_lock(&r->draining);
        // While `active` is false, the main thread reads the spools without the mutex before it
        // sleeps.
        if (!r->ending && r->active && drain_wakeups(&r->drain) - r->seen >= CHUNKS_LATE)
            r->backup_failed = drain_pass(r, &r->backup_error);
    }
    pthread_mutex_unlock(&r->draining);
    return NULL;
}

// Starts the backup thread. Call after starting the program, because a forked child has only one
// thread. If no thread can be started, programs wait while the main thread encodes a bundle.
static void begin_backup(struct recorder *r)
{
    r->pages = r->settings->pages ? proc_watch_new("heaptape", r->clock) : NULL;
    r->has_backup = thread_start(&r->backup, 0, drain_as_backup, r) == 0;
}

static void end_backup(struct recorder *r)
{
    if (r->has_backup) {
        pthread_mutex_lock(&r->draining);
        r->ending = true;
        pthread_cond_signal(&r->active_again);
        pthread_mutex_unlock(&r->draining);
        pthread_join(r->backup, NULL);
    }
    r->has_backup = false;
    // Free this only after the join: the backup thread also collects page maps.
    proc_watch_free(r->pages);
    r->pages = NULL;
}

// Returns the request of a process that waits for a plan. If no process waits, the request has pid
// 0.
static struct entries_request next_request(const struct recorder *r)
{
    for (size_t i = 0; i < r->drain.n_spools; i++) {
        struct drain_spool *s = r->drain.spools[i];
        if (s->broken || !s->visible_pid || s->plans == MAX_PLANS)
            continue;
        uint32_t wanted = atomic_exchange(&s->header->plan_wanted, 0);
        s->plans += wanted != 0;
        if (wanted)
            return (struct entries_request){s->visible_pid, (int)(wanted - 1)};
    }
    return (struct entries_request){0};
}

struct record_pass {
    struct entries_request request;
    bool over, full, quiet;
    uint32_t seen, chunks_done;
};

static int run_main_pass(struct recorder *r, struct record_pass *o, struct err *e)
{
    pthread_mutex_lock(&r->draining);
    int rc = r->backup_failed ? err_set(e, r->backup_failed, "%s", r->backup_error.text)
                              : drain_pass(r, e);
    if (rc == 0 && !r->full)
        rc = answer_requests(r, e);
    unrecorded_match(&r->unrecorded, &r->drain);
    *o = (struct record_pass){.request = next_request(r),
                              .over = rc == 0 && is_over(r),
                              .full = r->full,
                              .quiet = r->quiet,
                              .seen = r->seen,
                              .chunks_done = r->drain.chunks_done};
    bool was_active = r->active;
    r->active = encoder_has_work(r->encoder);
    // Wake the backup thread only if the program fills chunks.
    if (r->active && !was_active && r->drain.chunks_done)
        pthread_cond_signal(&r->active_again);
    pthread_mutex_unlock(&r->draining);
    return rc;
}

// Keeps recording while a child process attaches or detaches.
static void continue_recording(void *context)
{
    struct recorder *r = context;
    struct record_pass o;
    struct err ignored = {0}; // the next pass reports the error
    if (run_main_pass(r, &o, &ignored) == 0)
        encoder_work(r->encoder);
}

static int begin_visit(struct recorder *r, struct err *e)
{
    const struct attach_how how = {.library = r->settings->library,
                                   .session_dir = r->drain.dir + r->drain.root_bytes,
                                   .list_blocks = r->settings->attach.list_blocks,
                                   .names = r->settings->wrap};
    int rc = attach_begin(r->launch.pid, &how,
                          &(struct attach_meanwhile){continue_recording, r, &r->draining},
                          &r->result->visit, e);
    continue_recording(r); // find the new spool
    r->visiting = rc == 0;
    r->visited_ns = clock_monotonic_ns();
    return rc;
}

// Returns true if the process is exiting, and the library in it waits until the recorder ends.
static bool waits_for_end(const struct drain_spool *s)
{
    return !s->broken && atomic_load(&s->header->finishing) == SPOOL_FINISHING;
}

// Detaches from the process and its children, including children that have called exec. If
// detaching from a process fails, its recording stops when the recorder exits.
static void end_visit(struct recorder *r)
{
    for (size_t i = 0; i < r->drain.n_spools; i++) {
        struct drain_spool *s = r->drain.spools[i];
        struct err e = {0};
        if (s->dead || s->left || !s->visible_pid || waits_for_end(s))
            continue;
        s->left = true;
        int rc = attach_end(s->visible_pid, getpid(),
                            &(struct attach_meanwhile){continue_recording, r, &r->draining},
                            &r->result->visit, &e);
        if (rc < 0 && rc != -ESRCH && rc != -ENOENT && !r->result->not_left[0])
            strcpy(r->result->not_left, e.text);
        i = SIZE_MAX; // the list of spools may have changed
    }
}

// Encodes and writes some bundles. Returns true if a pass is due, false if the backlog is empty and
// no chunk has filled up since the last pass.
static bool write_bundles(struct recorder *r)
{
    bool due = false;
    for (unsigned n = 0; !due && encoder_work(r->encoder); n++) {
        pthread_mutex_lock(&r->draining);
        due = n == MAX_BUNDLES || drain_wakeups(&r->drain) != r->seen;
        pthread_mutex_unlock(&r->draining);
    }
    pthread_mutex_lock(&r->draining);
    r->active = due || encoder_has_work(r->encoder);
    due = r->active;
    pthread_mutex_unlock(&r->draining);
    return due;
}

static int record_until_over(struct recorder *r, struct err *e)
{
    struct record_pass o;
    int rc;
    while ((rc = run_main_pass(r, &o, e)) >= 0 && !o.over) {
        // The backup thread drains during the wait.
        if (o.request.pid) {
            entries_answer(&r->answers, o.request);
            continue;
        }
        if (!o.full)
            unrecorded_search(&r->unrecorded, r->launch.pid);
        if (write_bundles(r))
            continue;
        uint64_t age_ns = clock_monotonic_ns() - r->started.ns,
                 idle_ns = o.quiet ? QUIET_SLEEP_NS : facts_sample_ns(age_ns, IDLE_NS);
        drain_sleep(&r->drain, o.seen, o.chunks_done >= SPOOL_CHUNKS_A_WAKE ? BUSY_NS : idle_ns);
    }
    return rc;
}

static int finish_unrecorded(struct recorder *r, struct err *e)
{
    struct trace_unrecorded *to = &r->result->unrecorded;
    const struct unrecorded_clock clock = {stamp_now(r), clock_hz_since(r->clock, r->started) >>
                                                             CODEC_STAMP_SHIFT};
    trace_unrecorded_release(to);
    return unrecorded_finish(&r->unrecorded, &r->drain, clock, to) < 0 ? err_no_memory(e, NULL) : 0;
}

// Adds the losses that are not in any PROCESS_END frame. Calls after the end of an attached
// recording are not losses.
static void count_losses(struct recorder *r, struct trace_balance *b)
{
    b->lost_elsewhere = r->encoder ? encoder_totals(r->encoder).left_out : 0;
    drain_check_ends(&r->drain);
    for (size_t i = 0; i < r->drain.n_spools && !is_visit(r); i++) {
        const struct drain_spool *s = r->drain.spools[i];
        uint64_t now = s->broken ? 0 : spool_unrecorded(s->header) + drain_undrained(s);
        b->lost_elsewhere +=
            now + s->lost_words > s->said_lost ? now + s->lost_words - s->said_lost : 0;
        b->lost_at_least |= !s->dead;
    }
    for (size_t i = 0; i < r->drain.n_reserves; i++)
        unrecorded_count(r->drain.reserves[i], b);
    b->lost_elsewhere += r->drain.refused_lost;
    b->lost_at_least |= r->drain.refused_unknown || r->drain.n_unreadable || r->drain.unopened;
}

// Returns the losses so far. Called at the end of the trace, and at the end of the program for the
// result.
static struct trace_balance current_balance(struct recorder *r)
{
    const struct record_result *result = r->result;
    struct trace_balance b = result->balance;
    b.lossy = r->settings->lossy;
    b.without_spool = r->drain.n_refused;
    b.unreadable_spools = r->drain.n_unreadable;
    b.unopened_spools = r->drain.unopened;
    b.overwritten_session = r->drain.session_broken;
    b.size_limit = result->full;
    b.stop_signal = (uint64_t)result->stopped_by;
    b.ended_early = result->ended_early;
    b.ended_by = result->ended_early ? result->ended_by : 0;
    b.clock_distrusted = clock_is_distrusted(r->clock);
    count_losses(r, &b);
    // If the trace reached --max-size before the program ended, the program continues, and its
    // later events are not counted.
    b.lost_at_least |= result->cut_off || (result->full && !r->launch.reaped);
    return b;
}

static int finish_trace(struct recorder *r, struct err *e)
{
    drain_stop(&r->drain);
    r->checked_ns = 0;
    int rc = encoder_write_all(r->encoder, e) ?: drain_pass(r, e) ?: answer_requests(r, e);
    for (size_t i = 0; rc == 0 && i < r->drain.n_spools; i++)
        rc = begin_batch(r, e) ?: end_process(r, i, true, e);
    rc = rc ?: end_batch(r, e) ?: write_samples(r, e) ?: encoder_write_all(r->encoder, e);
    rc = rc ?: finish_unrecorded(r, e);
    if (r->drain.n_spools == 0)
        drain_check_refused(&r->drain, true);
    // The last buffered bytes may have reached the size limit.
    r->result->full |= encoder_has_ended(r->encoder);
    r->result->unrecorded.balance = current_balance(r);
    return rc < 0 ? rc : encoder_finish(r->encoder, &r->result->unrecorded, stamp_now(r), e);
}

static uint32_t session_flags(const struct record_settings *s)
{
    uint32_t flags = (s->lossy ? SPOOL_LOSSY : 0) | (s->paused ? SPOOL_START_PAUSED : 0) |
                     (s->usable ? SPOOL_USABLE : 0) | (s->maps ? SPOOL_MAPS : 0) |
                     (s->residency ? SPOOL_RESIDENCY : 0) |
                     (s->exact_clock ? SPOOL_EXACT_CLOCK : 0);
    if (strcmp(s->follow, "none") == 0)
        return flags | SPOOL_FOLLOW_NONE;
    return strcmp(s->follow, "all") == 0 ? flags : flags | SPOOL_FOLLOW_MATCH;
}

// Called when a process of the tree has executed a program.
static void plan_program(void *context, pid_t pid)
{
    struct recorder *r = context;
    if (!is_visit(r)) // programs that an attached process executes are not recorded
        entries_answer_exec(&r->answers, pid);
}

static int start_program(struct recorder *r, struct err *e)
{
    char path[PATH_MAX];
    if (record_find_program(r->settings->argv[0], X_OK, path))
        entries_answer_program(&r->answers, path);
    return record_launch_start(&r->launch, r->settings, r->drain.dir, e);
}

static int begin_session(struct recorder *r, struct err *e)
{
    char root[PATH_MAX];
    record_launch_find_root(is_visit(r) ? r->settings->attach.pid : 0, root);
    int rc = drain_open(&r->drain, session_flags(r->settings), r->clock, root, e);
    struct err ended = {0};
    // If the process has ended, its root directory no longer exists.
    if (rc < 0 && *root && status_ended(r->settings->attach.pid, &ended) < 0)
        *e = ended;
    if (rc < 0)
        return rc;
    strncpy(r->drain.session->follow, r->settings->follow, SPOOL_MAX_FOLLOW - 1);
    if (r->settings->wrap)
        r->drain.session->wrap = *r->settings->wrap;
    r->drain.session->depth = r->settings->stacks.depth;
    r->drain.session->sample_bytes = r->settings->stacks.sample_bytes;
    r->drain.session->filters = r->settings->residency ? facts_passable_filters() : 0;
    r->drain.session->attached = (uint32_t)r->settings->attach.pid;
    record_launch_wake_on_signal(&r->drain.session->wakeups);
    r->answers.dir_fd = r->drain.dir_fd;
    const struct unrecorded_how how = {.dir = r->drain.dir + r->drain.root_bytes,
                                       .library = r->settings->library,
                                       .follow = r->settings->follow,
                                       .attached = r->settings->attach.pid != 0,
                                       .executed = plan_program,
                                       .context = r};
    unrecorded_begin(&r->unrecorded, &how, r->clock, r->settings->attach.pid);
    r->started = clock_point_take(r->clock);
    r->realtime_ns = clock_ns(CLOCK_REALTIME);
    return r->settings->attach.pid
               ? record_launch_attach(&r->launch, &r->settings->attach, r->drain.dir, e)
               : start_program(r, e);
}

static int begin_encoder(struct recorder *r, struct err *e)
{
    if (facts_session(&r->facts, r->clock, r->settings->argv) < 0)
        return err_no_memory(e, NULL);
    r->facts.start_stamp = r->started.ticks >> CODEC_STAMP_SHIFT;
    r->facts.stack_sample_bytes = r->settings->stacks.sample_bytes;
    r->facts.realtime_ns = r->realtime_ns;
    const struct encoder_settings settings = {
        r->out,     r->settings->codec,     r->settings->level,
        r->started, r->settings->max_bytes, &r->facts};
    r->encoder = encoder_new(&settings, e);
    return r->encoder ? 0 : -EAGAIN;
}

static int run_recorder(struct recorder *r, struct err *e)
{
    int rc = begin_session(r, e);
    if (rc != 0) {
        r->result->start_errno = rc > 0 ? rc : 0;
        return rc < 0 ? rc : 0;
    }
    rc = begin_encoder(r, e);
    if (rc == 0)
        begin_backup(r);
    if (rc == 0 && is_visit(r))
        rc = begin_visit(r, e);
    if (rc == 0 && setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + RECORDER_NICE) < 0)
        errno = 0;
    rc = rc ?: record_until_over(r, e);
    // The passes during the detach see that the spool has ended and would set ended_early.
    bool ended_early = r->result->ended_early;
    if (r->visiting)
        end_visit(r);
    r->result->ended_early = ended_early;
    end_backup(r);
    r->result->ended_early &= !record_launch_reap(&r->launch, false) && !r->launch.terminations;
    if (r->launch.terminations >= 2 && !is_visit(r))
        r->result->stopped_by = r->launch.last_signal;
    rc = rc ?: finish_trace(r, e);
    r->result->full = r->encoder && encoder_has_ended(r->encoder);
    if ((rc < 0 || r->result->full) && !is_visit(r))
        record_launch_continue_untraced(&r->launch, &r->drain);
    record_launch_forward(&r->launch);
    r->result->cut_off = rc == -ECANCELED;
    rc = r->result->cut_off ? 0 : rc;
    // The first SIGINT is the normal way to end an attached recording. The recorder then completes
    // its output.
    r->result->end_requests =
        is_visit(r) && !r->result->cut_off ? r->launch.signals : r->launch.terminations;
    r->result->wait_status = r->launch.wait_status;
    r->result->exited = r->launch.reaped;
    if (rc == 0) {
        struct encoder_totals t = encoder_totals(r->encoder);
        r->result->events = t.events;
        r->result->batches = t.batches;
    }
    return rc;
}

int record_run(const struct record_settings *settings, struct output *out,
               struct record_result *result, struct err *e)
{
    struct recorder *r = calloc(1, sizeof *r);
    if (!r)
        return err_no_memory(e, NULL);
    *result =
        (struct record_result){.entries = {.wrap = settings->attach.pid ? NULL : settings->wrap}};
    r->settings = settings;
    r->result = result;
    r->clock = clock_best();
    r->out = out;
    pthread_mutex_init(&r->draining, NULL);
    entries_answers_init(&r->answers, &result->entries);
    pthread_cond_init(&r->active_again, NULL);
    record_launch_signals();
    int rc = limit_explain(run_recorder(r, e), e);
    record_launch_wake_on_signal(NULL);
    drain_check_refused(&r->drain, true);
    const struct trace_balance balance = current_balance(r);
    // Count the events after the end of the trace too.
    if (finish_unrecorded(r, &(struct err){0}) < 0)
        result->unrecorded.by = TRACE_MISSED_UNKNOWN;
    result->unrecorded.balance = balance;
    unrecorded_release(&r->unrecorded);
    entries_answers_release(&r->answers);
    // Keep the session mapped until exit. The program that started the recorder detects the end of
    // the recorder through this mapping.
    if (r->launch.attached)
        r->drain.session = NULL;
    drain_close(&r->drain);
    record_launch_block_signals();
    encoder_free(r->encoder);
    trace_session_release(&r->facts);
    for (size_t i = 0; i < r->n_ended; i++) {
        trace_process_release(&r->ended[i].facts);
        names_release(&r->ended[i].names);
    }
    free(r->ended);
    pthread_cond_destroy(&r->active_again);
    pthread_mutex_destroy(&r->draining);
    free(r);
    result->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    return rc;
}
