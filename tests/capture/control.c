// Controls its own recording and reports (told_count) the events that the trace must contain:
//   control phases THREADS TIMES pauses TIMES while threads work; each call is in only one phase
//   control storm THREADS TIMES   the same without synchronization; reports nothing
//   control verbs                 prints the result of each verb on a line
//   control reset | sync | fork | start
//   control loop                  works until SIGTERM
#include "capture/told.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

enum { MOST_THREADS = 16, STEPS = 200 };

static pthread_rwlock_t phase_lock = PTHREAD_RWLOCK_INITIALIZER;
static bool heed = true, paused;
static atomic_bool over;
static atomic_ulong recorded, unrecorded;

// Calls malloc, realloc and free with TOLD_SIZE(0) while recording and TOLD_SIZE(1) while paused.
static void work(bool in_pause)
{
    void *p = malloc(TOLD_SIZE(in_pause));
    TOLD_HIDE(p);
    p = realloc(p, TOLD_SIZE(in_pause));
    TOLD_HIDE(p);
    free(p);
    atomic_fetch_add(in_pause ? &unrecorded : &recorded, 1);
}

static void *worker(void *arg)
{
    while (!over) {
        if (heed)
            pthread_rwlock_rdlock(&phase_lock);
        for (int i = 0; i < STEPS; i++)
            work(paused && heed);
        if (heed)
            pthread_rwlock_unlock(&phase_lock);
        nanosleep(&(struct timespec){0, 10000}, NULL);
    }
    return arg;
}

static void change(bool to)
{
    if (heed)
        pthread_rwlock_wrlock(&phase_lock);
    if (to ? heaptape_pause() : heaptape_resume())
        exit(3);
    paused = to;
    if (heed)
        pthread_rwlock_unlock(&phase_lock);
}

// Waits for 0.3 ms, and until a thread has made a call in a phase of this kind: on a busy machine
// no thread may run for 0.3 ms.
static void stay(const atomic_ulong *calls)
{
    do
        nanosleep(&(struct timespec){0, 300000}, NULL);
    while (!*calls);
}

static void tell(unsigned long n)
{
    told_count("malloc", TOLD_SIZE(0), n);
    told_count("realloc", TOLD_SIZE(0), n);
    told_count("free", TOLD_SIZE(0), n);
}

static void phases(int n_threads, int times)
{
    pthread_t threads[MOST_THREADS];
    for (int i = 0; i < n_threads; i++) {
        if (pthread_create(&threads[i], NULL, worker, NULL))
            exit(2);
    }
    for (int i = 0; i < times; i++) {
        change(true);
        if (heed)
            stay(&unrecorded);
        change(false);
        if (heed)
            stay(&recorded);
    }
    over = true;
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    if (heed)
        tell(recorded);
}

static void work_times(int n, bool in_pause)
{
    for (int i = 0; i < n; i++)
        work(in_pause);
}

static void copy(const char *from, const char *to)
{
    static char bytes[1 << 20];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ssize_t n = read(in, bytes, sizeof bytes);
    if (n <= 0 || n == (ssize_t)sizeof bytes || write(out, bytes, (size_t)n) != n)
        exit(5);
    close(in);
    close(out);
}

static void say(const char *verb, int rc)
{
    printf("%s %d status %d\n", verb, rc, heaptape_status());
}

static void verbs(void)
{
    work_times(1, false);
    say("pause", heaptape_pause());
    say("pause", heaptape_pause());
    say("resume", heaptape_resume());
    say("pause", heaptape_pause());
    say("unpause", heaptape_unpause());
    say("stop", heaptape_stop());
    say("resume", heaptape_resume());
    say("pause", heaptape_pause());
    say("start", heaptape_start());
    say("sync", heaptape_sync());
    fflush(stdout);
}

static void forks(void)
{
    heaptape_pause();
    if (fork() == 0) {
        work_times(100, true);
        heaptape_resume();
        work_times(50, false);
        tell(50);
        exit(0);
    }
    wait(NULL);
    work_times(100, true);
    heaptape_resume();
    if (fork() == 0) {
        work_times(7, false);
        tell(7);
        exit(0);
    }
    wait(NULL);
}

static void on_term(int sig)
{
    (void)sig;
    over = true;
}

static void loop(void)
{
    signal(SIGTERM, on_term);
    while (!over) {
        work_times(20, false);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "phases") == 0 || strcmp(what, "storm") == 0) {
        heed = *what == 'p';
        phases(atoi(argv[2]), atoi(argv[3]));
    } else if (strcmp(what, "verbs") == 0) {
        verbs();
    } else if (strcmp(what, "reset") == 0) {
        work_times(5000, true);
        int rc = heaptape_reset();
        work_times(300, false);
        tell(300);
        return rc;
    } else if (strcmp(what, "sync") == 0) {
        work_times(2345, false);
        int rc = heaptape_sync();
        copy("t.ht", "synced.ht");
        work_times(10, true);
        tell(2345);
        return rc;
    } else if (strcmp(what, "start") == 0) {
        work_times(1000, true);
        int rc = heaptape_start();
        work_times(200, false);
        tell(200);
        return rc;
    } else if (strcmp(what, "fork") == 0) {
        forks();
    } else if (strcmp(what, "loop") == 0) {
        loop();
    } else {
        return 2;
    }
    return 0;
}
