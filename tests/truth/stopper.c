// stopper STOPS PROGRAM [ARG...]: runs the program and stops a thread STOPS times, for up to two
// seconds, between libheaptape.so's reading of the time-stamp counter and the store of the record.
// The thread is stopped anywhere, then single-stepped past the next rdtsc and a few more
// instructions. Other threads keep running. Prints the number of such stops.
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    AT_ONCE = 2, // number of threads that are stopped at the same time
    MAX_STEPS =
        10000, // maximum number of steps to an rdtsc. Most stops need fewer than 1,000, but a
               // thread that waits for a stopped thread may make no calls.
    MAX_READINGS = 4, // number of readings to pass before the thread stays stopped
    MAX_BEHIND = 12,  // maximum number of instructions from the rdtsc to slightly beyond the
                      // store
    RDTSC = 0x310f,   // opcode
    NAP_NS = 1000000,
    LONG_NAP_NS = 20000000, // while AT_ONCE threads are stopped
    WAIT_NS = 50000000,     // time limit for a sleeping thread to stop
};
#define MAX_STOP_NS 2000000000u

struct stopped {
    pid_t tid; // 0 if the element is unused
    uint64_t until_ns;
};

static uint64_t seed = 0x9e3779b97f4a7c15u;
static pid_t program;
static uintptr_t code_start, code_end; // code of libheaptape.so
static int exit_status = -1;

static _Noreturn void fail(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t pick(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void nap(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void on_tick(int sig)
{
    (void)sig;
}

// Interrupts waitpid(2) at intervals of WAIT_NS.
static void start_ticks(void)
{
    const struct timeval tick = {.tv_usec = WAIT_NS / 1000};
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_tick}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){tick, tick}, NULL);
}

static void find_code(void)
{
    char path[64], line[512];
    uintptr_t start, end;
    snprintf(path, sizeof path, "/proc/%ld/maps", (long)program);
    FILE *maps = fopen(path, "re");
    while (maps && fgets(line, sizeof line, maps)) {
        if (strstr(line, "/libheaptape.so") && sscanf(line, "%lx-%lx r-x", &start, &end) == 2 &&
            strstr(line, " r-x")) {
            code_start = start;
            code_end = end;
        }
    }
    if (maps)
        fclose(maps);
}

// Returns one of the program's threads, or 0. Skips the main thread, which only waits for the
// others.
static pid_t pick_thread(const struct stopped of[AT_ONCE])
{
    char path[64];
    pid_t found = 0;
    unsigned n = 0;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)program);
    DIR *threads = opendir(path);
    struct dirent *d;
    while (threads && (d = readdir(threads))) {
        pid_t tid = (pid_t)strtol(d->d_name, NULL, 10);
        bool usable = tid > 0 && tid != program;
        for (int i = 0; i < AT_ONCE; i++)
            usable = usable && of[i].tid != tid;
        if (usable && pick(++n) == 0)
            found = tid;
    }
    if (threads)
        closedir(threads);
    return found;
}

static bool is_asleep(pid_t tid)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/stat", (long)program, (long)tid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (f)
        fclose(f);
    return state == 'S';
}

// Waits for the thread to stop. Returns false if the thread has exited or still sleeps after
// WAIT_NS. A thread that has no CPU may need longer.
static bool wait_for_stop(pid_t tid)
{
    uint64_t until_ns = now_ns() + WAIT_NS;
    int status;
    pid_t got;
    while ((got = waitpid(tid, &status, __WALL)) < 0 && errno == EINTR) {
        if (now_ns() > until_ns && is_asleep(tid))
            return false;
    }
    return got == tid && WIFSTOPPED(status);
}

static bool is_at_counter(pid_t tid)
{
    struct user_regs_struct r;
    uint64_t at = ptrace(PTRACE_GETREGS, tid, NULL, &r) ? 0 : r.rip;
    return at >= code_start && at < code_end &&
           (ptrace(PTRACE_PEEKTEXT, tid, (void *)at, NULL) & 0xffff) == RDTSC;
}

static bool step(pid_t tid)
{
    return ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL) == 0 && wait_for_stop(tid);
}

// Single-steps a stopped thread until it is between a reading of the counter and the store of the
// record. The first reading after a pause is skipped, because it ends the epoch, and the event then
// uses the slow path.
static bool step_to_counter(pid_t tid)
{
    uint64_t readings = 1 + pick(MAX_READINGS);
    for (unsigned steps = 0; readings; steps++) {
        readings -= is_at_counter(tid);
        if (readings && (steps > MAX_STEPS || !step(tid)))
            return false;
    }
    for (uint64_t behind = 1 + pick(MAX_BEHIND); behind; behind--) {
        if (!step(tid))
            return false;
    }
    return true;
}

static bool interrupt(pid_t tid)
{
    return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 && wait_for_stop(tid);
}

// Detaches from a thread. A thread inside a system call is interrupted first. The SIGTRAP of its
// single step may arrive after the interruption and would kill the program.
static void let_go(pid_t tid)
{
    while (ptrace(PTRACE_DETACH, tid, NULL, NULL) && errno == ESRCH && interrupt(tid)) {
        if (ptrace(PTRACE_CONT, tid, NULL, NULL) == 0 && !wait_for_stop(tid))
            interrupt(tid);
    }
}

// Returns true if the program has ended. Also releases threads that stopped too late for let_go.
static bool has_ended(void)
{
    int status;
    for (pid_t got; (got = waitpid(-1, &status, __WALL | WNOHANG)) > 0;) {
        if (WIFSTOPPED(status)) {
            if (ptrace(PTRACE_CONT, got, NULL, NULL) == 0 && !wait_for_stop(got))
                interrupt(got);
            let_go(got);
        } else if (got == program) {
            exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
    }
    return exit_status >= 0;
}

static bool stop(struct stopped *s, pid_t tid)
{
    if (!code_start)
        find_code();
    // The thread may be exiting.
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
        return false;
    if (!interrupt(tid) || !step_to_counter(tid)) {
        let_go(tid);
        return false;
    }
    *s = (struct stopped){tid, now_ns() + MAX_STOP_NS / 8 + pick(MAX_STOP_NS * 7ull / 8)};
    return true;
}

static void release_due(struct stopped of[AT_ONCE], bool all)
{
    for (int i = 0; i < AT_ONCE; i++) {
        if (of[i].tid && (all || now_ns() >= of[i].until_ns)) {
            let_go(of[i].tid);
            of[i].tid = 0;
        }
    }
}

int main(int argc, char **argv)
{
    struct stopped of[AT_ONCE] = {0};
    unsigned wanted = argc > 2 ? (unsigned)atoi(argv[1]) : 0, stops = 0;
    if (argc < 3)
        return 2;
    program = fork();
    if (program < 0)
        fail("fork");
    if (program == 0) {
        execvp(argv[2], argv + 2);
        fail(argv[2]);
    }
    if (ptrace(PTRACE_SEIZE, program, NULL, NULL))
        fail("threads may not be traced");
    start_ticks();
    let_go(program);
    while (stops < wanted && !has_ended()) {
        int free_place = -1;
        release_due(of, false);
        for (int i = 0; i < AT_ONCE; i++)
            free_place = of[i].tid ? free_place : i;
        pid_t tid = free_place >= 0 ? pick_thread(of) : 0;
        if (tid && stop(&of[free_place], tid))
            stops++;
        nap(free_place >= 0 ? NAP_NS : LONG_NAP_NS);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        while (of[i].tid && !has_ended()) {
            release_due(of, false);
            nap(LONG_NAP_NS);
        }
    }
    while (!has_ended())
        nap(LONG_NAP_NS);
    fprintf(stderr, "%u stops\n", stops);
    return exit_status;
}
