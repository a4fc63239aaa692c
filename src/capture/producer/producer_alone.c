// Starts a recorder for a process that was run with LD_PRELOAD=libheaptape.so but without `heaptape
// record`.
//
// The recorder is not a child of the program. An intermediate process starts the recorder and
// exits. The intermediate process has no exit signal, so the program's wait(2) does not see it. The
// recorder runs in its own session. The only descriptor that it inherits from the program is
// standard error.
#include "capture/producer/producer_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

enum {
    MAX_ARGUMENTS = 64,
    MAX_OPTIONS = 4096, // size of the options in bytes
    MAX_VARIABLES = 16384,
    CALLED = 4096, // size of the recorder's path in bytes
    START_WAIT_S = 10,
    END_WAIT_MS = 10000,
};

// Arguments of the recorder, in a mapping because they are too large for a small stack.
struct alone_start {
    char path[CALLED], options[MAX_OPTIONS], stacks[64], attach[64];
    char *arguments[MAX_ARGUMENTS];
    char *environment[MAX_VARIABLES];
    int report, keep; // descriptors
};

// Set if this process or an ancestor (by fork) has started a recorder.
static bool has_started;

static const char *find_variable(const char *name)
{
    const char *value = NULL;
    for (char **e = producer_environment(); e && *e && !value; e++)
        value = producer_env_value(*e, name);
    return value;
}

static bool print_failure(const char *what)
{
    char line[512];
    producer_format(line, sizeof line,
                    "heaptape: cannot record with LD_PRELOAD alone: %s; use 'heaptape record'\n",
                    what);
    (void)!syscall(SYS_write, STDERR_FILENO, line, strlen(line));
    return false;
}

// Finds the heaptape executable relative to the library, whose path may be a symbolic link.
static bool find_heaptape(char path[CALLED], const char *library, const char *installed)
{
    // The second path is used in the build directory.
    const char *const places[] = {installed, "../../heaptape"};
    char link[64], real[CALLED];
    struct stat st;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, library, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    producer_format(link, sizeof link, "/proc/self/fd/%u", (unsigned)fd);
    long n = syscall(SYS_readlinkat, AT_FDCWD, link, real, sizeof real - 64);
    syscall(SYS_close, fd);
    if (n <= 0)
        return false;
    real[n] = 0;
    *strrchr(real, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        bool is_absolute = places[i][0] == '/';
        if (producer_format(path, CALLED, "%s%s%s", is_absolute ? "" : real, is_absolute ? "" : "/",
                            places[i]) &&
            syscall(SYS_newfstatat, AT_FDCWD, path, &st, 0) == 0 && S_ISREG(st.st_mode))
            return true;
    }
    return false;
}

static bool is_heaptape(const char *path)
{
    struct stat self, other;
    return syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/exe", &self, 0) == 0 &&
           syscall(SYS_newfstatat, AT_FDCWD, path, &other, 0) == 0 && self.st_ino == other.st_ino &&
           self.st_dev == other.st_dev;
}

// Returns the file descriptor in MALLOC_LOG, or -1 if MALLOC_LOG is not a number. logalloc uses the
// same convention.
static int log_descriptor(const char *log)
{
    int fd = 0;
    for (const char *at = log; at && *at; at++) {
        if (*at < '0' || *at > '9' || fd > 1000)
            return -1;
        fd = fd * 10 + (*at - '0');
    }
    return log && *log ? fd : -1;
}

static void set_arguments(struct alone_start *s, const char *options)
{
    size_t n = 0, length = options ? strlen(options) : 0;
    s->arguments[n++] = s->path;
    s->arguments[n++] = "record";
    s->arguments[n++] = "-q";
    // Interpret HEAPTAPE_STACKS as in a session without a recorder. If HEAPTAPE_RECORD contains a
    // --stacks option, that option takes precedence because it is later on the command line.
    struct spool_stacks ignored = {0};
    const char *stacks = find_variable(SPOOL_ENV_STACKS);
    if (stacks && spool_parse_stacks(stacks, &ignored) == 0 &&
        producer_format(s->stacks, sizeof s->stacks, "--stacks=%s", stacks))
        s->arguments[n++] = s->stacks;
    if (length >= MAX_OPTIONS)
        length = 0;
    memcpy(s->options, options ? options : "", length);
    for (char *at = s->options; n < MAX_ARGUMENTS - 1;) {
        at += strspn(at, " \t\n");
        if (!*at)
            break;
        s->arguments[n++] = at;
        at += strcspn(at, " \t\n");
        if (*at)
            *at++ = 0;
    }
}

// Copies the environment of the program, except LD_PRELOAD. Returns false if the environment is too
// large.
static bool set_environment(struct alone_start *s)
{
    size_t n = 0;
    for (char **e = producer_environment(); *e; e++) {
        if (strncmp(*e, "LD_PRELOAD=", 11) == 0)
            continue;
        if (n == MAX_VARIABLES - 2)
            return false;
        s->environment[n++] = *e;
    }
    s->environment[n] = s->attach;
    return true;
}

static void close_between(unsigned from, unsigned below)
{
    if (from < below)
        syscall(SYS_close_range, from, below - 1, 0);
}

static _Noreturn void run_recorder(struct alone_start *s)
{
    uint64_t none = 0;
    unsigned report = (unsigned)s->report,
             keep = s->keep > STDERR_FILENO ? (unsigned)s->keep : report;
    int null = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
    syscall(SYS_setsid);
    syscall(SYS_dup3, null, STDIN_FILENO, 0);
    if (s->keep != STDOUT_FILENO)
        syscall(SYS_dup3, null, STDOUT_FILENO, 0);
    syscall(SYS_fcntl, report, F_SETFD, 0);
    close_between(STDERR_FILENO + 1, report < keep ? report : keep);
    close_between((report < keep ? report : keep) + 1, report < keep ? keep : report);
    close_between((report < keep ? keep : report) + 1, ~0u);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
    syscall(SYS_execve, s->path, s->arguments, s->environment);
    syscall(SYS_exit_group, 127);
    __builtin_unreachable();
}

// Forks without an exit signal, because SIGCHLD and wait(2) belong to the program.
static long fork_without_signal(void)
{
#ifdef __x86_64__
    return syscall(SYS_clone, 0ul, NULL, NULL, NULL, 0ul);
#else
    return syscall(SYS_clone, 0ul, NULL, NULL, 0ul, NULL);
#endif
}

static bool start_detached(struct alone_start *s)
{
    int status;
    long pid = fork_without_signal();
    if (pid == 0) {
        if (fork_without_signal() == 0)
            run_recorder(s);
        syscall(SYS_exit_group, 0);
    }
    syscall(SYS_close, s->report);
    while (pid > 0 && syscall(SYS_wait4, pid, &status, __WALL, NULL) < 0 && errno == EINTR)
        ;
    return pid > 0;
}

// Reads the session directory from the recorder. If the recorder has ended, prints the reason and
// returns false. Also returns false if the recorder is too slow.
static bool read_report(int fd, char *dir, size_t room)
{
    size_t n = 0;
    long got = 1;
    // The write end may also be open in other processes of the recorder, so stop at the NUL.
    while (n < room && got != 0 && (n == 0 || dir[n - 1])) {
        struct pollfd in = {.fd = fd, .events = POLLIN};
        struct timespec most = {.tv_sec = START_WAIT_S};
        long ready = syscall(SYS_ppoll, &in, 1, &most, NULL, 0);
        if (ready == 0)
            return print_failure("the recorder did not start in time");
        got = ready > 0 ? syscall(SYS_read, fd, dir + n, room - n) : -1;
        if (got < 0 && errno != EINTR)
            break;
        n += got > 0 ? (size_t)got : 0;
    }
    return n && n < room && !dir[n - 1];
}

static bool start_recorder(struct alone_start *s, struct producer_inherited *in)
{
    int ends[2];
    if (syscall(SYS_pipe2, ends, O_CLOEXEC) < 0)
        return print_failure("cannot create a pipe");
    s->report = (int)syscall(SYS_fcntl, ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    syscall(SYS_close, ends[1]);
    producer_format(s->attach, sizeof s->attach, SPOOL_ENV_ATTACH "=%u:%u",
                    (unsigned)syscall(SYS_getpid), (unsigned)s->report);
    bool started = s->report >= 0 && start_detached(s);
    if (!started)
        print_failure("cannot start a process");
    has_started = started && read_report(ends[0], in->dir, sizeof in->dir);
    if (!has_started)
        in->dir[0] = 0;
    syscall(SYS_close, ends[0]);
    return has_started;
}

static bool is_requested(void)
{
    return find_variable("HEAPTAPE_RECORD") || find_variable("MALLOC_LOG") ||
           find_variable("MTRACE_CTL_FILE") || find_variable("TCMALLOC_TRACE_OUTPUT");
}

bool producer_alone_start(struct producer_inherited *in)
{
    static bool tried; // fork children inherit this value
    int is_subreaper = 0;
    if (tried || !producer_environment() || !is_requested() || !in->library[0])
        return false;
    tried = true;
    struct alone_start *s = producer_mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s == MAP_FAILED)
        return print_failure("out of memory");
    bool found = find_heaptape(s->path, in->library, in->heaptape), started = false;
    syscall(SYS_prctl, PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0);
    s->keep = log_descriptor(find_variable("MALLOC_LOG"));
    set_arguments(s, find_variable("HEAPTAPE_RECORD"));
    if (found && is_heaptape(s->path))
        started = false;
    else if (!found)
        print_failure("cannot find heaptape next to libheaptape.so");
    else if (syscall(SYS_getpid) == 1 || is_subreaper)
        print_failure(
            "the program adopts orphaned processes, so the recorder would become its child");
    else if (!set_environment(s))
        print_failure("the environment is too large");
    else
        started = start_recorder(s, in);
    producer_munmap(s, sizeof *s);
    return started;
}

// Does not use putenv(3), whose malloc calls would be recorded as the program's.
void producer_alone_share(void)
{
    static char variable[sizeof SPOOL_ENV_DIR + PRODUCER_MAX_PATH + 1];
    size_t n = 0;
    if (!has_started || !environ)
        return;
    while (environ[n])
        n++;
    char **with = producer_mmap(NULL, (n + 2) * sizeof *with, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (with == MAP_FAILED)
        return;
    memcpy(with, environ, n * sizeof *with);
    producer_format(variable, sizeof variable, SPOOL_ENV_DIR "=%s", producer_inherited.dir);
    with[n] = variable;
    environ = with;
}

void producer_alone_finish(void)
{
    const struct producer_inherited *in = &producer_inherited;
    struct producer_process *p = producer_current();
    const struct timespec pause = {.tv_nsec = 1000000};
    // Compare with the real PID, because a vfork child shares its parent's memory.
    if (in->filtered || !p || !p->header || p->pid != in->session.attached ||
        p->pid != (uint32_t)syscall(SYS_getpid))
        return;
    atomic_store(&p->header->finishing, SPOOL_FINISHING);
    producer_wake_recorder(p);
    // The trace is complete when the recorder has ended. If the recorder continues for other
    // processes, it changes `finishing`.
    for (unsigned ms = 0; ms < END_WAIT_MS; ms++) {
        uint32_t owner = in->session.owner;
        bool ended = !control_recorder_lives(in->futexes, owner) &&
                     !control_recorder_lives(in->futexes, owner | SPOOL_RECORDER_STOPPED);
        if (ended || atomic_load(&p->header->finishing) != SPOOL_FINISHING)
            return;
        syscall(SYS_nanosleep, &pause, NULL);
    }
}
