#include "formats/export_live.h"

#include "formats/export_outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    FIRST_NAME = 10000,   // logalloc treats smaller numbers as file descriptors
    PIPE_BYTES = 1 << 20, // default limit for unprivileged processes (pipe(7))
};

static const char mtrace_default[] = "/tmp/mtrace.out.%p";

// Parses MALLOC_LOG like logalloc. Returns a file descriptor from 1 to 9,999, 0 if logging is off,
// or -1 if the text is a file name.
static int parse_descriptor(const char *text)
{
    int fd = 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        fd = fd * 10 + (*text - '0');
        if (fd >= FIRST_NAME)
            return -1;
    }
    return fd;
}

// Uses MALLOC_LOG. Like logalloc, appends to an existing file.
static bool use_malloc_log(struct export_live_target *t)
{
    const char *log = getenv("MALLOC_LOG");
    int fd = log && *log ? parse_descriptor(log) : 0;
    if (fd == 0)
        return false;
    t->format = formats_find("logalloc");
    t->append = fd < 0;
    t->fd = fd > 0 ? fd : 0;
    t->output = fd < 0 ? log : NULL;
    return true;
}

// Uses the file that an environment variable names or, if the variable is empty, the file
// `otherwise`.
static bool use_file(struct export_live_target *t, const char *variable, const char *format,
                     const char *otherwise)
{
    const char *file = getenv(variable);
    if (!file || (!*file && !otherwise))
        return false;
    t->format = formats_find(format);
    t->output = *file ? file : otherwise;
    // Like libmtracectl, never overwrite a file.
    t->made = strdup(t->output);
    if (t->made && export_outputs_free_path(&t->made, 0, NULL) == 0)
        t->output = t->made;
    return true;
}

static bool is_format(const struct export_live_target *t, const char *name)
{
    return !t->format || strcmp(t->format->name, name) == 0;
}

int export_live_complete(struct export_live_target *t)
{
    if (t->fd > 0 && !t->format)
        t->format = formats_find("logalloc");
    if (t->output || t->fd > 0)
        return 0;
    if ((is_format(t, "logalloc") && use_malloc_log(t)) ||
        (is_format(t, "mtrace") && use_file(t, "MTRACE_CTL_FILE", "mtrace", mtrace_default)) ||
        (is_format(t, "tcmalloc") && use_file(t, "TCMALLOC_TRACE_OUTPUT", "tcmalloc", NULL)))
        return 0;
    if (!t->format) {
        t->output = "heaptape.ht";
        return 0;
    }
    if (is_format(t, "mtrace")) {
        t->output = mtrace_default;
        return 0;
    }
    if (asprintf(&t->made, "heaptape.%s", t->format->name) < 0) {
        t->made = NULL;
        return -ENOMEM;
    }
    t->output = t->made;
    return 0;
}

// Runs in the writer process.
static _Noreturn void write_all(int (*write)(const void *, struct err *), const void *context,
                                int from, struct export_live_end *end)
{
    struct err *e = &end->e;
    static const int ignored[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    int rc = dup2(from, STDIN_FILENO) < 0 ? err_set_errno(e, "cannot read the trace")
                                          : write(context, e);
    // An empty trace is not a failure of the writer.
    end->code = rc < 0 && rc != -ENODATA;
    _exit(end->code);
}

// Releases an output that the writer now owns, without completing it.
static void release_output(struct output *out)
{
    if (out->owns_fd && out->fd >= 0)
        close(out->fd);
    free(out->aside);
    *out = (struct output){.fd = -1};
}

// Starts the writer process and stores the write end of its pipe in *to.
static int start_writer(struct export_live *l, int (*write)(const void *, struct err *),
                        const void *context, struct output *to, struct err *e)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set_errno(e, "cannot make a pipe");
    // A larger pipe means fewer context switches. Failure is harmless.
    (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
    fflush(stdout);
    l->writer = fork();
    if (l->writer == 0) {
        close(ends[1]);
        // While SIGCHLD is ignored, wait() cannot return the exit status of children.
        signal(SIGCHLD, SIG_DFL);
        write_all(write, context, ends[0], l->end);
    }
    int rc = l->writer < 0 ? err_set_errno(e, "cannot start a process") : 0;
    close(ends[0]);
    *to = (struct output){.fd = ends[1], .owns_fd = true, .name = "(the log)"};
    if (rc < 0)
        output_close(to, false, NULL);
    return rc;
}

int export_live_start_other(struct export_live *l, int (*write)(const void *context, struct err *e),
                            const void *context, struct output *to, struct err *e)
{
    l->end = mmap(NULL, sizeof *l->end, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (l->end == MAP_FAILED)
        return err_set_errno(e, "cannot share memory");
    l->end->code = -1;
    int rc = start_writer(l, write, context, to, e);
    if (rc < 0)
        munmap(l->end, sizeof *l->end);
    return rc;
}

static int write_format(const void *settings, struct err *e)
{
    return export_file("-", settings, e);
}

int export_live_start(struct export_live *l, const struct export_settings *s, struct output *to,
                      struct err *e)
{
    struct output opened;
    struct export_settings how = *s;
    if (s->fd > STDERR_FILENO && fcntl(s->fd, F_SETFD, FD_CLOEXEC) < 0)
        return err_set_errno(e, "file descriptor %d", s->fd);
    int rc = export_outputs_prepare(s, &opened, e);
    if (rc < 0)
        return rc;
    how.opened = &opened;
    rc = export_live_start_other(l, write_format, &how, to, e);
    if (rc < 0)
        output_close(&opened, false, NULL);
    else
        release_output(&opened);
    return rc;
}

// Waits up to a second for the writer to exit. If the writer is still running, kills the writer and
// returns false.
static bool wait_a_second(const struct export_live *l)
{
    siginfo_t ended = {0};
    for (unsigned ms = 0; ms < 1000; ms += 10) {
        if (waitid(P_PID, (id_t)l->writer, &ended, WEXITED | WNOHANG | WNOWAIT) < 0 || ended.si_pid)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    kill(l->writer, SIGKILL);
    return false;
}

enum { LAST_REQUEST = 2 }; // after the request with this number, the writer gets one more second

static volatile sig_atomic_t end_requests;

static void on_request(int sig)
{
    end_requests = end_requests + (sig == SIGINT ? LAST_REQUEST : 1);
}

static void on_child(int sig)
{
    (void)sig;
}

// Waits until the writer has exited or the last request arrives. Returns false if the writer has
// not exited. Does not reap the writer.
static bool wait_for_request(const struct export_live *l, int requests)
{
    enum { REQUESTS = 3, ALL = 4 };
    static const int signals[ALL] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    struct sigaction before[ALL];
    sigset_t ours, mask, waiting;
    siginfo_t ended = {0};
    end_requests = requests;
    sigemptyset(&ours);
    for (int i = 0; i < ALL; i++)
        sigaddset(&ours, signals[i]);
    sigprocmask(SIG_BLOCK, &ours, &mask);
    // Unblock the signals while waiting, because the parent may have blocked these signals.
    waiting = mask;
    for (int i = 0; i < ALL; i++) {
        sigdelset(&waiting, signals[i]);
        const struct sigaction own = {.sa_handler = i < REQUESTS ? on_request : on_child};
        sigaction(signals[i], NULL, &before[i]);
        if (i >= REQUESTS || before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &own, NULL);
    }
    // The signals are blocked except in sigsuspend(2), so no signal is missed.
    while (waitid(P_PID, (id_t)l->writer, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           !ended.si_pid && end_requests < LAST_REQUEST)
        sigsuspend(&waiting);
    // Handle signals that arrived since sigsuspend(2): the restored actions may end this process.
    sigprocmask(SIG_SETMASK, &waiting, NULL);
    sigprocmask(SIG_BLOCK, &ours, NULL);
    for (int i = 0; i < ALL; i++)
        sigaction(signals[i], &before[i], NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    return end_requests < LAST_REQUEST || ended.si_pid;
}

int export_live_finish(struct export_live *l, int requests, struct err *e)
{
    int status, rc = 0;
    bool waits = requests != EXPORT_LIVE_PATIENT && !wait_for_request(l, requests);
    bool cut_off = waits && !wait_a_second(l);
    while (waitpid(l->writer, &status, 0) < 0) {
        if (errno == EINTR)
            continue;
        // This process inherited an ignored SIGCHLD, so the kernel has discarded the writer's exit
        // status.
        status = l->end->code < 0 ? SIGKILL : W_EXITCODE(l->end->code, 0);
        break;
    }
    if (cut_off)
        rc = err_set(e, -ECANCELED, "the output accepts no data: it was cut off");
    else if (WIFSIGNALED(status))
        rc = err_set(e, -EIO, "the process that writes the log was killed by signal %d",
                     WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        rc = err_set(e, -EIO, "%s", l->end->e.text);
    munmap(l->end, sizeof *l->end);
    return rc;
}

void export_live_discard(const struct export_live_target *t)
{
    struct stat st;
    bool own = t->fd <= 0 && !t->append && t->output && strcmp(t->output, "-") != 0;
    if (own && lstat(t->output, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
        unlink(t->output);
}
