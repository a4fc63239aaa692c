// Copies a plan's windows from its file to the ring that the player maps.
#include "replay/plan/streaming.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/thread.h"
#include "replay/plan/build.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

struct streaming {
    const struct plan *plan;
    int fd;
    struct plan_streaming *head;
    size_t bytes;
    struct plan_window_segment *segments; // segments of the current window
    size_t segments_capacity;
    size_t n_sampled; // number of samples placed so far
    pthread_t thread;
    bool started;
    _Atomic bool stopped; // the player has ended
    _Atomic bool done;    // all windows have been streamed, or streaming a window has failed
    uint64_t idle_ns;
    int rc;
    struct err e;
};

// The player is another process, so the futexes must not be private.
static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void set_ready(struct streaming *s)
{
    if (!atomic_exchange(&s->head->ready, 1))
        futex_wake(&s->head->ready);
}

// Waits until all threads have left the window that window `w` will overwrite. Returns 0, or
// -ECANCELED if the player has ended.
static int wait_for_free_space(struct streaming *s, uint64_t w)
{
    struct plan_streaming *head = s->head;
    _Atomic uint32_t *left = &head->left[w % PLAN_WINDOWS];
    if (atomic_load(left) == 0)
        return 0;
    uint64_t since = clock_monotonic_ns();
    set_ready(s);
    // Pairs with leave_window() and streaming_stop().
    atomic_store(&head->decoder_sleeps, 1);
    for (;;) {
        uint32_t freed = atomic_load(&head->freed);
        if (atomic_load(left) == 0 || atomic_load(&s->stopped))
            break;
        syscall(SYS_futex, &head->freed, FUTEX_WAIT, freed, NULL, NULL, 0);
    }
    atomic_store(&head->decoder_sleeps, 0);
    s->idle_ns += clock_monotonic_ns() - since;
    return atomic_load(&s->stopped) ? -ECANCELED : 0;
}

int plan_read_at(const struct plan *p, void *to, uint64_t bytes, uint64_t at, struct err *e)
{
    int fd = p->settings.file ? p->settings.file->fd : p->memory.fd;
    for (uint64_t done = 0; done < bytes;) {
        ssize_t n = pread(fd, (char *)to + done, bytes - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(e, "%s: cannot read its plan", p->name);
        if (n == 0)
            return err_set(e, -EIO, "%s: its plan is cut off", p->name);
        done += (uint64_t)n;
    }
    return 0;
}

static uint64_t first_word_of(const struct plan *p, uint64_t w)
{
    return PLAN_FIRST_WINDOW + w * (p->facts.window_bytes / 8);
}

static void mark_samples(struct streaming *s, uint64_t w, uint64_t *words)
{
    const struct plan *p = s->plan;
    uint64_t first = first_word_of(p, w), end = first + p->windows[w].words;
    for (; s->n_sampled < p->facts.samples && p->samples[s->n_sampled] < end; s->n_sampled++) {
        uint64_t at = p->samples[s->n_sampled] - first;
        if (at < p->windows[w].words && plan_op_of(words[at]) == PLAN_COUNT)
            words[at] += PLAN_SAMPLE - PLAN_COUNT;
    }
}

// Reads a window into `words`, and its segments into s->segments. If the plan was saved, checks the
// words and the segments.
static int read_window(struct streaming *s, uint64_t w, uint64_t *words, struct err *e)
{
    const struct plan *p = s->plan;
    const struct plan_window *window = &p->windows[w];
    uint64_t bytes = window->words * 8;
    if (HT_GROW(&s->segments, &s->segments_capacity, window->segments) < 0)
        return err_no_memory(e, NULL);
    int rc = plan_read_at(p, words, bytes, window->at, e);
    if (rc == 0 && XXH3_64bits(words, bytes) != window->hash)
        rc = err_set(e, -EBADMSG,
                     "%s: checksum mismatch in window %llu of its saved plan: try again", p->name,
                     (unsigned long long)w);
    if (rc == 0)
        rc = plan_read_at(p, s->segments, window->segments * sizeof *s->segments,
                          window->at + bytes, e);
    if (rc == 0 && !p->settings.file && !plan_check_window(p, words, w, s->segments))
        rc = err_set(e, -EBADMSG, "%s: invalid ops in window %llu of its saved plan: try again",
                     p->name, (unsigned long long)w);
    return rc;
}

// Publishes the window to the threads that have ops in it.
static void publish_window(struct streaming *s, uint64_t w)
{
    size_t n = s->plan->windows[w].segments;
    atomic_store(&s->head->left[w % PLAN_WINDOWS], (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        struct plan_streaming_thread *t = &s->head->threads[s->segments[i].thread];
        uint32_t filled = atomic_load_explicit(&t->filled, memory_order_relaxed);
        t->segments[filled % PLAN_WINDOWS] = s->segments[i].first;
        // Pairs with player_next_segment(). Either the thread sees this segment, or the exchange
        // sees that the thread is sleeping.
        atomic_store(&t->filled, filled + 1);
        if (atomic_exchange(&t->sleeps, 0))
            futex_wake(&t->filled);
    }
}

static void report_failure(struct streaming *s)
{
    atomic_store(&s->head->failed, 1);
    for (size_t i = 0; i < s->plan->n_streams; i++) {
        struct plan_streaming_thread *t = &s->head->threads[i];
        atomic_fetch_add(&t->filled, 1); // wakes the thread, which then reads `failed`
        futex_wake(&t->filled);
    }
}

static void *run_decoder(void *arg)
{
    struct streaming *s = arg;
    const struct plan_facts *f = &s->plan->facts;
    for (uint64_t w = 0; w < f->windows; w++) {
        uint64_t *words =
            (uint64_t *)((char *)s->head + f->streaming_bytes + w % PLAN_WINDOWS * f->window_bytes);
        s->rc = wait_for_free_space(s, w);
        if (s->rc == 0)
            s->rc = read_window(s, w, words, &s->e);
        if (s->rc < 0)
            break;
        mark_samples(s, w, words);
        publish_window(s, w);
    }
    if (s->rc < 0)
        report_failure(s);
    set_ready(s);
    atomic_store(&s->done, true);
    return NULL;
}

static int map_streaming(struct streaming *s, struct err *e)
{
    const struct plan_facts *facts = &s->plan->facts;
    // The player prefetches beyond the last window, so map one more page.
    s->bytes = facts->streaming_bytes + facts->window_bytes * PLAN_WINDOWS + 4096;
    s->fd = memfd_create("heaptape-stream", MFD_CLOEXEC);
    if (s->fd < 0 || ftruncate(s->fd, (off_t)s->bytes) < 0)
        return err_set_errno(e, "cannot create shared memory to stream the plan");
    void *at = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (at == MAP_FAILED)
        return err_set_errno(e, "cannot map the memory to stream the plan");
    s->head = at;
    for (size_t i = 0; i < s->plan->n_streams; i++) {
        const struct plan_stream *stream = s->plan->streams[i];
        struct plan_streaming_thread *t = &s->head->threads[i];
        t->n_segments = stream ? stream->n_segments : 0;
        t->events = stream ? stream->counted_events : 0;
        t->live_change = stream ? (uint64_t)stream->live_change : 0;
    }
    return 0;
}

// Returns the thread's segment in s->segments, or NULL. These segments belong to window `w`.
static const struct plan_window_segment *find_segment(const struct streaming *s, uint64_t w,
                                                      uint32_t thread)
{
    for (size_t i = 0; i < s->plan->windows[w].segments; i++) {
        if (s->segments[i].thread == thread)
            return &s->segments[i];
    }
    return NULL;
}

static uint64_t op_in_window(const struct plan *p, uint32_t thread, uint64_t position)
{
    struct streaming s = {.plan = p};
    struct plan_memory m = {.words = calloc(p->facts.window_bytes, 1)};
    uint64_t op = UINT64_MAX, w = position < PLAN_FIRST_WINDOW
                                      ? UINT64_MAX
                                      : (position - PLAN_FIRST_WINDOW) * 8 / p->facts.window_bytes;
    if (m.words && w < p->facts.windows && read_window(&s, w, m.words, NULL) == 0) {
        const struct plan_window_segment *g = find_segment(&s, w, thread);
        m.words_at = first_word_of(p, w);
        if (g)
            op = plan_memory_op_at(&m, g->first, g->first_op, position);
    }
    free(m.words);
    free(s.segments);
    return op;
}

uint64_t plan_op_at(const struct plan *p, uint32_t thread, uint64_t position)
{
    if (thread >= p->n_streams || !p->streams[thread])
        return 0;
    if (p->facts.streamed)
        return op_in_window(p, thread, position);
    return plan_stream_op_at(p->streams[thread], position);
}

int streaming_start(struct streaming **out, const struct plan *p, struct err *e)
{
    struct streaming *s = calloc(1, sizeof *s);
    if (!s)
        return err_no_memory(e, NULL);
    s->fd = -1;
    s->plan = p;
    int rc = map_streaming(s, e) ?: thread_start(&s->thread, 0, run_decoder, s);
    s->started = rc == 0;
    if (rc < 0) {
        err_set(e, rc, "cannot start the thread that streams the plan");
        streaming_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

int streaming_fd(const struct streaming *s)
{
    return s->fd;
}

int streaming_stop(struct streaming *s, struct err *e)
{
    atomic_store(&s->stopped, true);
    atomic_fetch_add(&s->head->freed, 1);
    futex_wake(&s->head->freed);
    pthread_join(s->thread, NULL);
    s->started = false;
    if (s->rc == 0 || s->rc == -ECANCELED)
        return 0;
    *e = s->e;
    return s->rc;
}

uint64_t streaming_idle_ns(const struct streaming *s)
{
    return s->idle_ns;
}

bool streaming_decodes(const struct streaming *s)
{
    return !atomic_load(&s->done) && !atomic_load(&s->head->decoder_sleeps);
}

void streaming_free(struct streaming *s)
{
    if (!s)
        return;
    if (s->started)
        streaming_stop(s, &s->e);
    free(s->segments);
    if (s->head)
        munmap(s->head, s->bytes);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}
