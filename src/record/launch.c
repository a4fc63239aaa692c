#include "record/launch.h"

#include "base/clock.h"
#include "base/fio.h"
#include "capture/spool/spool.h"
#include "record/processes/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    TICK_NS = 20000000,
    // After the second termination request: maximum duration of one write (one second).
    MAX_TICKS_BLOCKED = 50,
    MAX_TICKS = 1500, // after the second termination request: maximum duration of all writes
};

static _Atomic int signals_seen;    // number of termination requests
static _Atomic uint64_t counted_ns; // time of the last counted signal, CLOCK_MONOTONIC
static _Atomic int counted_sender;
static _Atomic int signals_received;
static _Atomic int last_signal;
static _Atomic int forwarded;
static _Atomic int child; // 0 before the program is started and after it was reaped
static _Atomic int child_ended;
static timer_t timer;

// Futex word that the recorder sleeps on. Signal handlers increment it, so that a signal just
// before the sleep also wakes the recorder.
static _Atomic uint32_t *volatile bell;

static void wake_recorder(void)
{
    _Atomic uint32_t *at = bell;
    if (at)
        atomic_fetch_add(at, SPOOL_CHUNKS_A_WAKE);
}

// Forwards the signal to the program. Called in the signal handler, because the recorder may be
// blocked in a write.
static void forward_signal(void)
{
    pid_t pid = child;
    if (signals_seen && !forwarded && pid > 0) {
        forwarded = 1;
        kill(pid, last_signal);
    }
}

// Starts the timer at the second termination request. The timer limits the time for pending output.
static void start_cancel_timer(void)
{
    const struct itimerspec tick = {.it_value = {0, TICK_NS}, .it_interval = {0, TICK_NS}};
    if (signals_seen == 2)
        timer_settime(timer, 0, &tick, NULL);
}

// Sets output_cancelled repeatedly, because a signal may arrive between a check of the flag and the
// write.
static void on_tick(int sig, siginfo_t *info, void *context)
{
    static volatile sig_atomic_t ticks, blocked, last;
    (void)sig, (void)info, (void)context;
    blocked = output_writing && output_writes == last ? blocked + 1 : 0;
    last = output_writes;
    ticks = ticks + 1;
    output_cancelled =
        blocked >= MAX_TICKS_BLOCKED || ticks >= MAX_TICKS || signals_seen > 2 || output_cancelled;
}

// Returns true if the signal is no additional request: timeout(1) sends its signal to heaptape and
// then to heaptape's process group, and systemd may send SIGTERM and SIGHUP.
static bool is_repeated(const siginfo_t *info)
{
    const uint64_t together_ns = 100000000;
    uint64_t now_ns = clock_monotonic_ns();
    bool repeated =
        signals_seen && info->si_pid == counted_sender && now_ns - counted_ns < together_ns;
    if (!repeated)
        counted_ns = now_ns;
    counted_sender = info->si_pid;
    return repeated;
}

// Returns true if the program sent the signal, usually to its whole process group, as Apache does
// when it ends. Such a signal must not be sent back to the program.
static bool is_of_program(const siginfo_t *info)
{
    return info->si_code <= 0 && info->si_pid > 0 && info->si_pid == child;
}

static void count_request(int sig)
{
    int saved_errno = errno;
    signals_seen = signals_seen + 1;
    signals_received = signals_received + 1;
    last_signal = sig;
    forward_signal();
    start_cancel_timer();
    wake_recorder();
    errno = saved_errno;
}

static void on_termination(int sig, siginfo_t *info, void *context)
{
    (void)context;
    if (!is_of_program(info) && !is_repeated(info))
        count_request(sig);
}

// Handles SIGINT and SIGQUIT, which are meant for the program. If the program has ended and only
// its descendants are running, these signals end the recording.
static void on_interrupt(int sig, siginfo_t *info, void *context)
{
    (void)context;
    if (!child_ended || is_repeated(info))
        return;
    signals_seen = signals_seen ? signals_seen : 1;
    count_request(sig);
}

static void on_child(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    wake_recorder();
}

static const struct {
    int sig;
    void (*handler)(int, siginfo_t *, void *); // NULL ignores the signal
} taken_over[] = {
    {SIGPIPE, NULL},           {SIGXFSZ, NULL},          {SIGCHLD, on_child},
    {SIGVTALRM, on_tick},      {SIGINT, on_interrupt},   {SIGQUIT, on_interrupt},
    {SIGTERM, on_termination}, {SIGHUP, on_termination},
};

enum { SIGNALS = sizeof taken_over / sizeof *taken_over };

static struct sigaction actions[SIGNALS]; // original actions
static sigset_t original_mask;

void record_launch_wake_on_signal(_Atomic uint32_t *wakeups)
{
    bell = wakeups;
}

static void set_blocked(int how, sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    for (unsigned i = 0; i < SIGNALS; i++)
        sigaddset(&set, taken_over[i].sig);
    sigprocmask(how, &set, before);
}

void record_launch_signals(void)
{
    counted_ns = 0;
    signals_seen = signals_received = forwarded = child = child_ended = output_cancelled = 0;
    for (unsigned i = 0; i < SIGNALS; i++) {
        int sig = taken_over[i].sig;
        struct sigaction a = {.sa_handler = SIG_IGN};
        if (taken_over[i].handler)
            a = (struct sigaction){.sa_sigaction = taken_over[i].handler, .sa_flags = SA_SIGINFO};
        sigaction(sig, &a, &actions[i]);
        // Under nohup and in a script's background job, keep ignoring terminal signals, so that the
        // program and the recording continue.
        bool of_terminal = sig == SIGHUP || sig == SIGINT || sig == SIGQUIT;
        if (of_terminal && actions[i].sa_handler == SIG_IGN)
            sigaction(sig, &actions[i], NULL);
    }
    // Do not use SIGALRM, because the parent may have set an alarm for the program.
    timer_create(CLOCK_MONOTONIC,
                 &(struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM},
                 &timer);
    // The parent may have blocked these signals.
    set_blocked(SIG_UNBLOCK, &original_mask);
}

void record_launch_block_signals(void)
{
    set_blocked(SIG_BLOCK, NULL);
}

void record_unblock_signals(void)
{
    set_blocked(SIG_UNBLOCK, NULL);
}

void record_restore_signals(void)
{
    timer_delete(timer);
    for (unsigned i = 0; i < SIGNALS; i++)
        sigaction(taken_over[i].sig, &actions[i], NULL);
    sigprocmask(SIG_SETMASK, &original_mask, NULL);
}

// Returns a path without spaces and colons, because these separate the entries of LD_PRELOAD. If
// necessary, creates a symbolic link in the session directory. Returns NULL on failure. The caller
// must free the path.
static char *make_preload_path(const char *path, const char *session_dir, const char *name)
{
    char *link = NULL;
    if (!strpbrk(path, " :"))
        return strdup(path);
    if (asprintf(&link, "%s/%s", session_dir, name) < 0)
        return NULL;
    if (symlink(path, link) == 0)
        return link;
    free(link);
    return NULL;
}

// Returns the value of LD_PRELOAD, or NULL if out of memory. The value lists the capture library,
// the allocator, and the user's own libraries.
static char *preload_list(const struct record_settings *s, const char *session_dir)
{
    const char *own = getenv("LD_PRELOAD");
    char *list = NULL, *library = make_preload_path(s->library, session_dir, "libheaptape.so");
    char *allocator =
        s->allocator ? make_preload_path(s->allocator, session_dir, "allocator.so") : strdup("");
    bool has_own = own && *own;
    if (library && allocator &&
        asprintf(&list, "%s%s%s%s%s", library, *allocator ? ":" : "", allocator, has_own ? ":" : "",
                 has_own ? own : "") < 0)
        list = NULL;
    free(library);
    free(allocator);
    return list;
}

static int set_environment(const struct record_settings *s, const char *session_dir)
{
    char *list = preload_list(s, session_dir);
    int rc = list ? setenv("LD_PRELOAD", list, 1) : -1;
    free(list);
    rc = rc ?: setenv(SPOOL_ENV_DIR, session_dir, 1);
    for (size_t i = 0; rc == 0 && i < s->n_variables; i++)
        rc = putenv(s->variables[i]);
    return rc;
}

static _Noreturn void run_child(struct record_launch *l, const struct record_settings *s,
                                const char *session_dir, int report)
{
    int failed = ENOMEM;
    char path[PATH_MAX];
    record_restore_signals();
    setrlimit(RLIMIT_NOFILE, &l->files);
    if (set_environment(s, session_dir) == 0) {
        execvp(s->argv[0], s->argv);
        failed = errno;
        // If a directory in PATH is not accessible, execvp reports a missing file as EACCES.
        if (failed == EACCES && !strchr(s->argv[0], '/') &&
            !record_find_program(s->argv[0], F_OK, path))
            failed = ENOENT;
    }
    // The pipe has space for an int, so the write does not block.
    ssize_t n = write(report, &failed, sizeof failed);
    _exit(n == (ssize_t)sizeof failed ? 127 : 126);
}

// Raises the limit of open files, because the recorder needs a descriptor per process. The usual
// soft limit is meant for programs that use select(2).
static void raise_files(struct record_launch *l)
{
    if (getrlimit(RLIMIT_NOFILE, &l->files) == 0)
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){l->files.rlim_max, l->files.rlim_max});
}

int record_launch_start(struct record_launch *l, const struct record_settings *s,
                        const char *session_dir, struct err *e)
{
    int report[2], failed = 0;
    raise_files(l);
    if (pipe2(report, O_CLOEXEC) < 0)
        return err_set_errno(e, "cannot create a pipe");
    // Block the signals, so that a forwarded signal does not run the handler in the child.
    record_launch_block_signals();
    l->pid = fork();
    if (l->pid < 0) {
        int rc = err_set_errno(e, "cannot start a process");
        record_unblock_signals();
        close(report[0]);
        close(report[1]);
        return rc;
    }
    if (l->pid == 0)
        run_child(l, s, session_dir, report[1]);
    child = l->pid;
    record_unblock_signals();
    close(report[1]);
    ssize_t n;
    while ((n = read(report[0], &failed, sizeof failed)) < 0 && errno == EINTR)
        ;
    close(report[0]);
    // If nothing was read, exec has closed the pipe, so the program was started.
    if (n != (ssize_t)sizeof failed)
        return 0;
    record_launch_reap(l, true);
    return failed > 0 ? failed : EIO;
}

static bool is_same_namespace(pid_t pid)
{
    struct stat own, other;
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/ns/mnt", (long)pid);
    return stat("/proc/self/ns/mnt", &own) == 0 && stat(path, &other) == 0 &&
           own.st_ino == other.st_ino;
}

void record_launch_find_root(pid_t pid, char *path)
{
    struct stat own, other;
    snprintf(path, PATH_MAX, "/proc/%ld/root", (long)pid);
    // Also compare the mount namespaces: two mounts of one directory have the same device and
    // inode.
    bool is_same =
        !pid || stat("/", &own) < 0 || stat(path, &other) < 0 ||
        (own.st_dev == other.st_dev && own.st_ino == other.st_ino && is_same_namespace(pid));
    if (is_same)
        *path = 0;
}

int record_launch_attach(struct record_launch *l, const struct record_attach *to,
                         const char *session_dir, struct err *e)
{
    size_t n = strlen(session_dir) + 1;
    raise_files(l);
    l->pid = to->pid;
    l->attached = (int)syscall(SYS_pidfd_open, to->pid, 0);
    if (l->attached < 0 && errno == ESRCH)
        return err_set(e, -ESRCH, "%ld: no such process", (long)to->pid);
    if (l->attached < 0)
        return err_set_errno(e, "process %ld", (long)to->pid);
    // From here on, SIGINT is meant for heaptape, not for the program.
    child_ended = to->report < 0;
    if (to->report < 0)
        return 0;
    // The write does not block. It fails if the program no longer waits.
    int rc = write(to->report, session_dir, n) == (ssize_t)n
                 ? 0
                 : err_set_errno(e, "process %ld", (long)to->pid);
    close(to->report);
    return rc;
}

static bool has_ended(struct record_launch *l)
{
    struct pollfd ended = {.fd = l->attached, .events = POLLIN};
    l->reaped = l->reaped || poll(&ended, 1, 0) > 0;
    child_ended = child_ended || l->reaped;
    return l->reaped;
}

// Returns true if an ended process has waited for child processes, or if this is unknown.
static bool had_children(pid_t pid)
{
    char text[512];
    return proc_file_read(pid, "stat", text, sizeof text) <= 0 ||
           proc_file_stat(text, PROC_FILE_CHILDREN_FAULTS) != 0;
}

static uint64_t find_peak_rss(const struct rusage *usage, bool children)
{
    struct rusage own;
    bool is_own = children || getrusage(RUSAGE_SELF, &own) || usage->ru_maxrss <= own.ru_maxrss;
    return is_own ? 0 : (uint64_t)usage->ru_maxrss * 1024;
}

bool record_launch_reap(struct record_launch *l, bool wait)
{
    if (l->attached)
        return has_ended(l);
    siginfo_t ended = {0};
    int how = WEXITED | (wait ? 0 : WNOHANG);
    if (l->reaped || waitid(P_PID, (id_t)l->pid, &ended, how | WNOWAIT) < 0 ||
        ended.si_pid != l->pid)
        return l->reaped;
    // Clear `child` before the pid can be reused, so that signals do not go to another process.
    child = 0;
    child_ended = 1;
    struct rusage usage;
    bool children = had_children(l->pid);
    l->reaped = wait4(l->pid, &l->wait_status, 0, &usage) == l->pid;
    if (l->reaped)
        l->peak_rss_bytes = find_peak_rss(&usage, children);
    return l->reaped;
}

void record_launch_forward(struct record_launch *l)
{
    // Forward a signal that arrived before the program was started.
    forward_signal();
    l->terminations = signals_seen;
    l->signals = signals_received;
    l->last_signal = last_signal;
}

void record_launch_continue_untraced(struct record_launch *l, struct drain *c)
{
    drain_stop(c);
    for (;;) {
        uint32_t seen = drain_wakeups(c);
        record_launch_forward(l);
        if (record_launch_reap(l, false) || l->terminations >= 2)
            return;
        drain_sleep(c, seen, 500000000u);
    }
}
