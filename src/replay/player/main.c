// heaptape-replay: heaptape starts this program under an allocator and passes the plan and the
// memory for the results as open descriptors.
#include "replay/player/player.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct player_thread main_thread;

enum { EXIT_WITHOUT_RESULTS = 2 };

static void *map_file(int fd, int protection, size_t size, uint64_t at)
{
    void *mapped = mmap(NULL, size, protection, MAP_SHARED | MAP_POPULATE, fd, (off_t)at);
    return mapped == MAP_FAILED ? NULL : mapped;
}

// Prints why there is no memory for results, and exits.
static _Noreturn void exit_without_results(bool is_started_by_hand)
{
    const char *text = is_started_by_hand
                           ? "heaptape-replay: only 'heaptape replay' can start this program\n"
                           : "the player cannot map its own memory (try a higher ulimit -v)\n";
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n;
    _exit(EXIT_WITHOUT_RESULTS);
}

static void map_results(void)
{
    struct stat st;
    struct results *r = NULL;
    if (fstat(RESULTS_FD, &st) == 0 && st.st_size >= (off_t)sizeof *r) {
        r = map_file(RESULTS_FD, PROT_READ | PROT_WRITE, (size_t)st.st_size, 0);
        if (!r && errno == ENOMEM)
            exit_without_results(false);
    }
    if (!r || r->magic != RESULTS_MAGIC)
        exit_without_results(true);
    player.results = r;
    atomic_store_explicit(&r->status, RESULTS_STARTED, memory_order_relaxed);
}

// Maps the ring so that its word numbers continue the numbering of the plan's file.
static void map_streaming(const struct plan_header *h)
{
    size_t ring_bytes = h->window_words * PLAN_WINDOWS * 8 + PLAN_AHEAD_WORDS * 8,
           at_bytes = h->ring_at * 8;
    int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    char *at = mmap(NULL, at_bytes + ring_bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *head = mmap(NULL, h->streaming_bytes, protection, flags, RESULTS_STREAM_FD, 0);
    if (at == MAP_FAILED || head == MAP_FAILED ||
        mmap(at, h->words * 8, PROT_READ, flags | MAP_FIXED, RESULTS_PLAN_FD,
             (off_t)player.results->plan_at) == MAP_FAILED ||
        mmap(at + at_bytes, ring_bytes, protection, flags | MAP_FIXED, RESULTS_STREAM_FD,
             (off_t)h->streaming_bytes) == MAP_FAILED)
        player_fail(RESULTS_NO_SETUP, NULL, 0, ring_bytes, errno);
    player.streaming = head;
    player.words = (const uint64_t *)at;
}

static void map_plan(void)
{
    const struct results *r = player.results;
    const struct plan_header *h = map_file(RESULTS_PLAN_FD, PROT_READ, r->plan_bytes, r->plan_at);
    if (!h)
        player_fail(RESULTS_NO_SETUP, NULL, 0, 0, errno);
    player.plan = h;
    player.words = (const uint64_t *)h;
    if (h->ring_at)
        map_streaming(h);
    atomic_store(&player.results->words, (uintptr_t)player.words);
    player.threads = (const struct plan_thread *)(player.words + h->threads_at);
    player.slot_table =
        player_map_shared(h->slot_table_entries * sizeof *player.slot_table, MAP_POPULATE);
    player.lines = player_map_shared((h->n_threads + 1) * sizeof *player.lines, MAP_POPULATE);
    for (uint32_t i = 0; i < h->n_threads; i++)
        atomic_store_explicit(&player.lines[i].wanted, UINT64_MAX, memory_order_relaxed);
}

static void play_preexisting(void)
{
    main_thread.at = player_unthreaded_position();
    main_thread.line = &player.lines[player.plan->n_threads];
    main_thread.window = PLAYER_NO_WINDOW;
    player_play(&main_thread, player.words + player.plan->preexisting_at);
    player.results->calls_made += main_thread.calls;
}

static uint64_t time_ns(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_usec * 1000u;
}

// Plays the measured part. The clock runs from the first call until the last thread has made its
// calls.
static void play_all(void)
{
    struct results *r = player.results;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    atomic_store_explicit(&r->status, RESULTS_PLAYING, memory_order_relaxed);
    player_counters_start();
    player.start_ns = clock_monotonic_ns();
    player_release_threads();
    if (player.plan->n_threads && player.threads[0].first_word) {
        player_thread_started(&main_thread);
        player_play(&main_thread, player_first_word(&main_thread));
        player_thread_exited(&main_thread);
    }
    player_join_all();
    player_clock_run();
    r->figures.wall_ns = clock_monotonic_ns() - player.start_ns;
    player_counters_stop();
    getrusage(RUSAGE_SELF, &after);
    r->figures.user_ns = time_ns(&after.ru_utime) - time_ns(&before.ru_utime);
    r->figures.system_ns = time_ns(&after.ru_stime) - time_ns(&before.ru_stime);
    r->figures.minor_faults = (uint64_t)(after.ru_minflt - before.ru_minflt);
    r->figures.major_faults = (uint64_t)(after.ru_majflt - before.ru_majflt);
    r->figures.context_switches =
        (uint64_t)(after.ru_nvcsw - before.ru_nvcsw + after.ru_nivcsw - before.ru_nivcsw);
}

static void record_memory(void)
{
    struct results *r = player.results;
    player_sample(0, 0, true);
    r->figures.end_rss_bytes = player_private_bytes();
    r->figures.peak_rss_bytes = player_peak_private_bytes();
    r->figures.library_bytes = player_library_bytes();
    r->figures.replayed_peak_live_bytes = atomic_load(&player.peak_live_bytes);
    uint64_t n = atomic_load_explicit(&r->n_samples, memory_order_relaxed);
    for (uint64_t i = 0; i < n && i < r->max_samples; i++) {
        if (r->samples[i].rss_bytes > r->figures.peak_rss_bytes)
            r->figures.peak_rss_bytes = r->samples[i].rss_bytes;
    }
}

// Frees the leftovers after the measured part, and measures the memory that remains.
static void play_leftovers(void)
{
    struct results *r = player.results;
    main_thread.at = player_unthreaded_position();
    main_thread.calls = 0;
    main_thread.gap_ns = 0; // the latencies are not used
    player_play(&main_thread, player.words + player.plan->leftovers_at);
    r->calls_made += main_thread.calls;
    r->figures.rss_after_free_bytes = player_private_bytes();
    if (!r->task.idle_wait_ns)
        return;
    atomic_store(&r->idle, 1);
    player_idle(r->task.idle_wait_ns);
    atomic_store(&r->idle, 0);
    r->figures.rss_after_idle_bytes = player_private_bytes();
}

static void start_null_allocator(void)
{
    if (!player.null_init)
        return;
    int rc = player.null_init(player.plan->max_block_bytes);
    if (rc < 0)
        player_fail(RESULTS_NO_SETUP, NULL, 0, player.plan->max_block_bytes, -rc);
    player.null_real(false);
}

int main(void)
{
    struct timespec loaded = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &loaded);
    map_results();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (player.results->probe) {
        player_find_allocator();
        player_find_version(player.results->report.version, sizeof player.results->report.version);
        atomic_store_explicit(&player.results->status, RESULTS_DONE, memory_order_release);
        return 0;
    }
    player.results->figures.load_cpu_ns =
        (uint64_t)loaded.tv_sec * 1000000000u + (uint64_t)loaded.tv_nsec;
    map_plan();
    player_clock_init();
    player_memory_init();
    player_find_functions();
    player_wait_init();
    player_evict_init();
    player_extensions_init();
    player_counters_init();
    if (player.results->task.touch == RESULTS_TOUCH_VERIFY)
        player_verify_init();
    player_threads_init(player_play);
    if (player.plan->n_threads)
        player_thread_init(&main_thread, 0);
    start_null_allocator();
    player_release_cxx_pool();
    player_touch_own_pages();
    player_reset_peak();
    player.results->figures.baseline_rss_bytes = player_private_bytes();
    player.virtual_at_start = player_memory().virtual_bytes;
    player.start_ns = clock_monotonic_ns();
    play_preexisting();
    player.results->figures.start_rss_bytes = player_private_bytes();
    if (player.plan->n_threads)
        player_thread_init(&main_thread, 0);
    player_start_threads();
    player_wait_for_stream();
    player_sample(0, 0, true);
    play_all();
    record_memory();
    player_end_threads();
    player_merge_latencies();
    player_snapshot(RESULTS_SNAPSHOT_END);
    if (player.results->task.touch == RESULTS_TOUCH_VERIFY)
        player_verify_leftovers();
    play_leftovers();
    if (player.null_real)
        player.null_real(true);
    player_find_version(player.results->report.version, sizeof player.results->report.version);
    atomic_store_explicit(&player.results->status, RESULTS_DONE, memory_order_release);
    // _exit() would skip the statistics that some allocators print in destructors.
    return 0;
}
