#include "record/drain/compressors.h"

#include "base/ring.h"
#include "base/thread.h"
#include "record/processes/cgroup.h"
#include "record/processes/proc_file.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    // A helper encodes only if at least this many bundles are waiting, so that it leaves the last
    // one to the writing thread, which has a higher priority.
    HELP_BUNDLES = 2,
    HELP_WORDS = 1 << 12, // size of a bundle that is worth a wake-up
    HELPER_NICE = 5, // relative to the main thread; other programs and the drain then run first
};
// Time limit for waiting for a helper. The writing thread must also drain and forward signals.
#define WAIT_NS 10000000u

struct compressors {
    struct compressors_settings settings;
    struct trace_writer writer; // used by the writing thread
    struct trace_writer backup; // used by the backup thread
    _Atomic uint32_t backlog;
    pthread_mutex_t mutex;  // protects the following members
    pthread_cond_t queued;  // a helper has work, or `ending` is set
    pthread_cond_t encoded; // the oldest bundle is encoded
    struct bundle *first, **last;
    struct bundle *waiting; // first bundle that no thread has started to encode
    uint32_t n_waiting;
    struct bundle *empty; // stack; the top bundle was used last and may still be in the CPU cache
    pthread_t helpers[COMPRESSORS_HELPERS];
    unsigned n_helpers, n_idle;
    bool ending;
};

unsigned compressors_spare_cpus(const char *cgroups)
{
    char lines[4096];
    proc_file_read(getpid(), "cgroup", lines, sizeof lines);
    uint64_t cpus = ring_cpus(), quota = proc_cgroup_cpus(lines, cgroups);
    uint64_t n = (quota < cpus ? quota : cpus) - 1;
    return n < COMPRESSORS_HELPERS ? (unsigned)n : COMPRESSORS_HELPERS;
}

struct compressors *compressors_new(const struct compressors_settings *s)
{
    struct compressors *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->settings = *s;
    l->last = &l->first;
    trace_writer_init(&l->writer, s->out, s->codec, s->level);
    trace_writer_init(&l->backup, s->out, s->codec, s->level);
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->queued, NULL);
    pthread_cond_init(&l->encoded, NULL);
    return l;
}

void compressors_free(struct compressors *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->mutex);
    l->ending = true;
    pthread_cond_broadcast(&l->queued);
    pthread_mutex_unlock(&l->mutex);
    for (unsigned i = 0; i < l->n_helpers; i++)
        pthread_join(l->helpers[i], NULL);
    bundle_free(l->first);
    bundle_free(l->empty);
    trace_writer_release(&l->writer);
    trace_writer_release(&l->backup);
    pthread_cond_destroy(&l->encoded);
    pthread_cond_destroy(&l->queued);
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

struct bundle *compressors_empty_bundle(struct compressors *l)
{
    pthread_mutex_lock(&l->mutex);
    struct bundle *p = l->empty;
    l->empty = p ? p->next : NULL;
    pthread_mutex_unlock(&l->mutex);
    p = p ? p : bundle_new();
    if (p)
        p->next = NULL;
    return p;
}

// Encodes the bundle before the writing thread needs it. The frames replace the words, which are no
// longer needed. If the frames do not fit, sets `raw`, because compression does not help.
static void encode_ahead(struct bundle *p, struct trace_writer *w)
{
    struct buf *frames = &w->frames.stored;
    w->frames.packs = true;
    frames->size = 0;
    p->failed = bundle_encode(p, w, &p->error);
    p->raw = frames->size > BUNDLE_WORDS * sizeof *p->words;
    if (p->failed || p->raw || frames->size == 0)
        return;
    memcpy(p->words, frames->data, frames->size);
    p->frame_bytes = frames->size;
}

// Encodes the first waiting bundle. Call with the mutex held. The function may release the mutex
// temporarily.
static void encode_waiting(struct compressors *l, struct trace_writer *w)
{
    struct bundle *p = l->waiting;
    l->waiting = p->next;
    l->n_waiting--;
    p->fast |= l->waiting != NULL;
    p->raw = l->settings.codec == FRAME_CODEC_NONE;
    if (!p->raw) {
        pthread_mutex_unlock(&l->mutex);
        encode_ahead(p, w);
        pthread_mutex_lock(&l->mutex);
    }
    p->encoded = true;
    if (p == l->first)
        pthread_cond_signal(&l->encoded);
}

static void *run_helper(void *arg)
{
    struct compressors *l = arg;
    struct trace_writer w;
    // Ignore failure: the priority only affects speed.
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, (id_t)getpid()) + HELPER_NICE);
    trace_writer_init(&w, l->settings.out, l->settings.codec, l->settings.level);
    pthread_mutex_lock(&l->mutex);
    while (!l->ending) {
        if (l->n_waiting >= HELP_BUNDLES) {
            encode_waiting(l, &w);
            continue;
        }
        l->n_idle++;
        pthread_cond_wait(&l->queued, &l->mutex);
        l->n_idle--;
    }
    pthread_mutex_unlock(&l->mutex);
    trace_writer_release(&w);
    return NULL;
}

// Call with the mutex held.
static void start_helper(struct compressors *l)
{
    if (thread_start(&l->helpers[l->n_helpers], 0, run_helper, l) == 0)
        l->n_helpers++;
    else
        l->settings.helpers = l->n_helpers; // do not try again
}

void compressors_put(struct compressors *l, struct bundle *p)
{
    p->next = NULL;
    pthread_mutex_lock(&l->mutex);
    *l->last = p;
    l->last = &p->next;
    l->waiting = l->waiting ? l->waiting : p;
    l->n_waiting++;
    l->backlog++;
    // Encoding a small bundle takes less time than waking a thread.
    bool helps = l->n_waiting >= HELP_BUNDLES && p->n_words >= HELP_WORDS;
    if (helps && l->n_idle)
        pthread_cond_signal(&l->queued);
    else if (helps && l->n_helpers < l->settings.helpers)
        start_helper(l);
    pthread_mutex_unlock(&l->mutex);
}

bool compressors_work(struct compressors *l, struct bundle **oldest)
{
    *oldest = NULL;
    pthread_mutex_lock(&l->mutex);
    struct bundle *p = l->first;
    if (p && !p->encoded && l->waiting)
        encode_waiting(l, &l->writer);
    else if (p && !p->encoded)
        thread_wait(&l->encoded, &l->mutex, WAIT_NS);
    if (p && p->encoded) {
        *oldest = p;
        l->first = p->next;
        l->last = l->first ? l->last : &l->first;
    }
    pthread_mutex_unlock(&l->mutex);
    return p != NULL;
}

bool compressors_help(struct compressors *l)
{
    pthread_mutex_lock(&l->mutex);
    bool helps = l->backlog >= COMPRESSORS_BUNDLES && l->n_waiting >= HELP_BUNDLES;
    if (helps)
        encode_waiting(l, &l->backup);
    pthread_mutex_unlock(&l->mutex);
    return helps;
}

void compressors_recycle(struct compressors *l, struct bundle *p)
{
    bundle_clear(p);
    pthread_mutex_lock(&l->mutex);
    p->next = l->empty;
    l->empty = p;
    l->backlog--;
    pthread_mutex_unlock(&l->mutex);
}

uint32_t compressors_backlog(const struct compressors *l)
{
    return atomic_load_explicit(&l->backlog, memory_order_relaxed);
}

uint64_t compressors_events(struct compressors *l)
{
    uint64_t events = 0;
    pthread_mutex_lock(&l->mutex);
    for (const struct bundle *p = l->first; p; p = p->next)
        events += bundle_events(p);
    pthread_mutex_unlock(&l->mutex);
    return events;
}
