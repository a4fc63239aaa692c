#include "record/processes/watch.h"

#include "base/thread.h"
#include "record/processes/pages.h"
#include "trace/codec.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MS(n) ((n)*1000000ull)

// A process that runs for a day gets about 2,000 maps if its RSS changes little.
#define FIRST_NS   MS(20) // minimum age for the first map, so that short-lived programs are skipped
#define CHANGED_NS MS(50) // minimum time between two maps if RSS changes
#define SAME_NS    MS(200) // minimum time between two maps if RSS does not change
// These times are also at least 1/CHANGED_AGE and 1/SAME_AGE of the process's age.
#define CHANGED_AGE 1024
#define SAME_AGE    128
// Between two maps of a process, the pause is PAUSE_CPU times the CPU time of the first map, so
// that maps use at most 0.5 % of a CPU. The pause is at least PAUSE_WALL times the map's duration,
// but this minimum exceeds the duration by at most WAIT_NS, because a short map can take long on a
// busy machine. The pause is multiplied by the number of competing processes. If the process is
// older than YOUNG_NS, its RSS has not changed, and it has written few words, the pause is
// multiplied by CALM_PAUSE. Maps then use at most 0.05 % of a CPU.
#define PAUSE_CPU  200
#define PAUSE_WALL 20
#define WAIT_NS    MS(1000)
#define CALM_PAUSE 10
#define CALM_WORDS 10000
#define YOUNG_NS   MS(2000)
// After reading a process's map, read no map at all for 1/REST_PART of that process's pause. The
// first maps of new processes thus take at most 4 % of a CPU.
#define REST_PART  8
#define MAX_CPU_NS MS(250) // a map that takes more CPU time is dropped

enum watch_state { WATCH_IDLE, WATCH_REQUESTED, WATCH_DONE, WATCH_ENDING };

struct proc_watch {
    const char *recording;
    enum clock_kind clock;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t requested;
    _Atomic enum watch_state state; // written under the mutex
    struct proc_turns turns;        // the requester owns the turns
    // The requester owns the following members while IDLE, the thread while REQUESTED, and the
    // collector while DONE.
    uint32_t number;
    pid_t pid;
    struct buf payload;       // empty if the map could not be read
    uint64_t cpu_ns, wall_ns; // CPU time and duration of reading the map
};

static uint64_t stamp_now(const struct proc_watch *w)
{
    return clock_ticks(w->clock) >> CODEC_STAMP_SHIFT;
}

static uint64_t max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void read_map(struct proc_watch *w)
{
    // Limit the CPU time instead of the duration: on a busy machine, a short map can take long, and
    // a short recording has no time for a second map.
    const struct proc_pages_how how = {
        .recording = w->recording, .max_ns = MAX_CPU_NS, .clock = CLOCK_THREAD_CPUTIME_ID};
    struct trace_pages p = {.process = w->number, .stamp = stamp_now(w)};
    uint64_t began_ns = clock_monotonic_ns(), began_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int rc = proc_pages_read(&p, w->pid, &how);
    p.end_stamp = stamp_now(w);
    if (rc < 0 || trace_pages_put(&w->payload, &p) < 0)
        w->payload.size = 0;
    trace_pages_release(&p);
    w->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_cpu_ns;
    w->wall_ns = clock_monotonic_ns() - began_ns;
}

static void *serve_requests(void *arg)
{
    struct proc_watch *w = arg;
    pthread_mutex_lock(&w->mutex);
    while (w->state != WATCH_ENDING) {
        if (w->state != WATCH_REQUESTED) {
            pthread_cond_wait(&w->requested, &w->mutex);
            continue;
        }
        pthread_mutex_unlock(&w->mutex);
        read_map(w);
        pthread_mutex_lock(&w->mutex);
        if (w->state == WATCH_REQUESTED)
            w->state = WATCH_DONE;
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

struct proc_watch *proc_watch_new(const char *recording, enum clock_kind clock)
{
    struct proc_watch *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->recording = recording;
    w->clock = clock;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->requested, NULL);
    if (thread_start(&w->thread, 0, serve_requests, w) == 0)
        return w;
    pthread_cond_destroy(&w->requested);
    pthread_mutex_destroy(&w->mutex);
    free(w);
    return NULL;
}

static void set_state(struct proc_watch *w, enum watch_state state)
{
    pthread_mutex_lock(&w->mutex);
    w->state = state;
    pthread_cond_signal(&w->requested);
    pthread_mutex_unlock(&w->mutex);
}

void proc_watch_free(struct proc_watch *w)
{
    if (!w)
        return;
    set_state(w, WATCH_ENDING);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->requested);
    pthread_mutex_destroy(&w->mutex);
    buf_release(&w->payload);
    free(w);
}

static bool has_changed(const struct proc_due *due, uint64_t rss_bytes)
{
    uint64_t change =
        rss_bytes > due->rss_bytes ? rss_bytes - due->rss_bytes : due->rss_bytes - rss_bytes;
    return change > due->rss_bytes / 16;
}

static bool is_due(const struct proc_due *due, uint64_t now, uint64_t rss_bytes)
{
    uint64_t age = now - due->first_ns, since = now - due->last_ns;
    if (!due->last_ns)
        return age >= FIRST_NS;
    return since >= (has_changed(due, rss_bytes) ? max(CHANGED_NS, age / CHANGED_AGE)
                                                 : max(SAME_NS, age / SAME_AGE));
}

// Returns the pause after the process's last map if no other process competes. Does not extend the
// pause of a young process, because a short recording has no time for later maps.
static uint64_t pause_ns(const struct proc_due *due, uint64_t now, uint64_t rss_bytes)
{
    bool calm = now - due->first_ns >= YOUNG_NS && !has_changed(due, rss_bytes) &&
                due->words - due->last_words < CALM_WORDS;
    return calm ? CALM_PAUSE * due->pause_ns : due->pause_ns;
}

// Returns the time since which the process has been waiting for its turn.
static uint64_t waits_since(const struct proc_due *due)
{
    return due->last_ns ? due->last_ns : due->first_ns;
}

void proc_turns_add(struct proc_turns *t, struct proc_due *due, uint64_t now, uint32_t number,
                    pid_t pid, uint64_t rss_bytes)
{
    due->first_ns = due->first_ns ? due->first_ns : now;
    if (!is_due(due, now, rss_bytes))
        return;
    t->counted++;
    bool paused =
        due->last_ns && now - due->last_ns < pause_ns(due, now, rss_bytes) * max(t->competing, 1);
    if (paused || (t->next && waits_since(t->next) <= waits_since(due)))
        return;
    t->next = due;
    t->number = number;
    t->pid = pid;
    t->rss_bytes = rss_bytes;
}

bool proc_turns_end(struct proc_turns *t, uint64_t now)
{
    struct proc_due *due = t->next;
    t->competing = t->counted;
    t->counted = 0;
    t->next = NULL;
    if (!due || now < t->rest_until_ns)
        return false;
    due->last_ns = now;
    due->rss_bytes = t->rss_bytes;
    due->last_words = due->words;
    t->rest_until_ns = UINT64_MAX;
    return true;
}

uint64_t proc_turns_charge(struct proc_turns *t, uint64_t now, uint64_t cpu_ns, uint64_t wall_ns)
{
    uint64_t most_ns = wall_ns + WAIT_NS, wall_pause_ns = PAUSE_WALL * wall_ns,
             pause_ns = max(PAUSE_CPU * cpu_ns, wall_pause_ns < most_ns ? wall_pause_ns : most_ns);
    t->rest_until_ns = now + pause_ns / REST_PART;
    return pause_ns;
}

void proc_watch_request(struct proc_watch *w, struct proc_due *due, uint32_t number, pid_t pid,
                        uint64_t rss_bytes)
{
    if (w)
        proc_turns_add(&w->turns, due, clock_monotonic_ns(), number, pid, rss_bytes);
}

void proc_watch_start(struct proc_watch *w)
{
    if (!w || !proc_turns_end(&w->turns, clock_monotonic_ns()))
        return;
    w->number = w->turns.number;
    w->pid = w->turns.pid;
    set_state(w, WATCH_REQUESTED);
}

bool proc_watch_collect(struct proc_watch *w, struct buf *payload, uint32_t *number,
                        uint64_t *pause_ns)
{
    if (!w || atomic_load(&w->state) != WATCH_DONE)
        return false;
    *payload = w->payload;
    *number = w->number;
    *pause_ns = proc_turns_charge(&w->turns, clock_monotonic_ns(), w->cpu_ns, w->wall_ns);
    w->payload = (struct buf){0};
    set_state(w, WATCH_IDLE);
    return true;
}
