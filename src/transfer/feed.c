#include "transfer/feed.h"

#include "base/clock.h"
#include "cli/human.h"
#include "transfer/names.h"
#include "transfer/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { UPLOAD_NICE = 10 };

// Returns the path of the spool, or NULL with the message set. The caller must free the path.
static char *find_spool(const char *spool, struct err *e)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n = 0;
    if (spool)
        n = asprintf(&path, "%s", spool);
    else if (state && state[0] == '/')
        n = asprintf(&path, "%s/heaptape/upload", state);
    else if (home && home[0] == '/')
        n = asprintf(&path, "%s/.local/state/heaptape/upload", home);
    else
        return err_set(e, -ENOENT, "--spool is needed: neither XDG_STATE_HOME nor HOME is set"),
               NULL;
    if (n < 0)
        return err_no_memory(e, NULL), NULL;
    return path;
}

// Returns HOST/PROGRAM-TIME-PID, or NULL when out of memory. The caller must free the string.
static char *make_name(const char *program, pid_t pid)
{
    char host[65] = "", safe_host[65], safe_program[65], when[32] = "", *name = NULL;
    time_t now = time(NULL);
    struct tm utc;
    gethostname(host, sizeof host - 1);
    names_make(host, safe_host, sizeof safe_host);
    names_make(basename(program), safe_program, sizeof safe_program);
    if (gmtime_r(&now, &utc))
        strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &utc);
    return asprintf(&name, "%s/%s-%s-%ld", safe_host, safe_program, when, (long)pid) < 0 ? NULL
                                                                                         : name;
}

int feed_init(struct feed *f, const char *spool, const char *url, const char *program, pid_t pid,
              struct err *e)
{
    f->lock = f->notify = -1;
    f->url = f->folder = f->pattern = NULL;
    f->spool = find_spool(spool, e);
    f->name = make_name(program, pid);
    char *base = f->spool ? upload_url(url, e) : NULL;
    int rc = !base ? -EINVAL : 0;
    if (rc == 0 && (!f->name || asprintf(&f->folder, "%s/%s", f->spool, f->name) < 0 ||
                    asprintf(&f->url, "%s%s/", base, f->name) < 0 ||
                    asprintf(&f->pattern, "%s/%%n.ht", f->folder) < 0))
        rc = err_no_memory(e, NULL);
    f->upload.folder = f->folder;
    f->upload.url = f->url;
    free(base);
    return rc;
}

void feed_release(struct feed *f)
{
    free(f->spool);
    free(f->name);
    free(f->url);
    free(f->folder);
    free(f->pattern);
}

// glibc before 2.34 has no function for this system call.
static void close_all(unsigned first, unsigned last)
{
    syscall(SYS_close_range, first, last, 0);
}

// Closes all descriptors except a, b and stderr, so that the process keeps no pipe open.
static void close_others(int a, int b)
{
    int low = a < b ? a : b, high = a < b ? b : a;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    if (low > STDERR_FILENO + 1)
        close_all(STDERR_FILENO + 1, (unsigned)low - 1);
    if (low >= 0 && high > low + 1)
        close_all((unsigned)low + 1, (unsigned)high - 1);
    close_all((unsigned)high + 1, ~0u);
}

static _Noreturn void run_uploads(const struct feed *f, int added)
{
    struct upload_settings how = f->upload;
    struct upload_result result;
    struct err e = {0};
    how.added = added;
    // On a busy machine, the program and the recorder have priority.
    setpriority(PRIO_PROCESS, 0, UPLOAD_NICE);
    close_others(added, f->lock);
    if (upload_run(&how, &result, &e) < 0)
        how.note(e.text);
    _exit(0);
}

static int start_process(struct feed *f)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    f->pid = fork();
    if (f->pid == 0) {
        close(ends[1]);
        run_uploads(f, ends[0]);
    }
    int rc = f->pid < 0 ? -errno : 0;
    f->pid = f->pid < 0 ? 0 : f->pid;
    close(ends[0]);
    f->notify = ends[1];
    if (rc < 0) {
        close(f->notify);
        f->notify = -1;
    }
    return rc;
}

int feed_start(struct feed *f, struct err *e)
{
    f->notify = -1;
    f->pid = 0;
    f->lock = queue_lock(f->folder);
    int rc = f->lock < 0 ? f->lock : start_process(f);
    return rc < 0
               ? err_set(e, rc, "%s: cannot start the upload process: %s", f->folder, strerror(-rc))
               : 0;
}

// Starts a new process if the upload process has died.
static void restart_process(struct feed *f)
{
    if (f->pid && waitpid(f->pid, NULL, WNOHANG) == 0)
        return;
    if (f->notify >= 0)
        close(f->notify);
    f->notify = -1;
    f->pid = 0;
    if (start_process(f) < 0)
        f->upload.note("the upload process has died and cannot be restarted");
}

static void report_dropped(void *feed, const char *path, uint64_t bytes)
{
    struct feed *f = feed;
    if (queue_is_in(path, f->name)) {
        f->dropped_files++;
        f->dropped_bytes += bytes;
    }
    err_note(f->upload.note, "%s/%s: dropped, not uploaded: the spool has reached --spool-limit",
             f->spool, path);
}

void feed_added(void *feed)
{
    struct feed *f = feed;
    struct err e = {0};
    f->added_files++;
    if (queue_limit(f->spool, f->name, f->limit, report_dropped, f, &e) < 0)
        f->upload.note(e.text);
    restart_process(f);
    // A full pipe (EAGAIN) is not an error: the process still has unread notifications.
    if (f->notify >= 0 && write(f->notify, "", 1) < 0 && errno != EAGAIN)
        f->upload.note("the upload process has died");
}

// Returns 0, or -EIO if segments are missing on the server. If the recording was not to wait for
// uploads, segments in the spool are not an error.
static int report_result(const struct feed *f, const struct queue *left)
{
    const struct upload_settings *u = &f->upload;
    err_note(f->upload.note, "uploaded %s to %s",
             human_items(f->added_files - f->dropped_files - left->n, "segment", "segments"),
             f->url);
    if (f->dropped_files)
        err_note(f->error, "%s dropped, %s: --spool-limit was reached before the server had them",
                 human_items(f->dropped_files, "segment was", "segments were"),
                 human_size(f->dropped_bytes));
    if (left->n)
        err_note(f->error, "%s not uploaded yet, %s: run 'heaptape upload%s%s%s%s %s %s'",
                 human_items(left->n, "segment is", "segments are"), human_size(left->bytes),
                 u->token_file ? " --token-file " : "", u->token_file ? u->token_file : "",
                 u->s3_region ? " --s3=" : "", u->s3_region ? u->s3_region : "", f->folder, f->url);
    return f->dropped_files || (left->n && u->wait_ns) ? -EIO : 0;
}

// If the directory and its parent are empty, removes them.
static void remove_empty(const char *folder)
{
    char *path = strdup(folder), *slash = path && rmdir(path) == 0 ? strrchr(path, '/') : NULL;
    if (slash) {
        *slash = 0;
        rmdir(path);
    }
    free(path);
}

static volatile sig_atomic_t ended; // set by a signal

static void on_signal(int sig)
{
    (void)sig;
    ended = 1;
}

// Waits for the process, which usually exits without a signal. A DNS lookup may delay the exit, so
// the process is killed after a grace period.
static void wait_for_process(struct feed *f)
{
    enum { GRACE_S = 5 };
    uint64_t end_ns = clock_monotonic_ns() + f->upload.wait_ns + GRACE_S * 1000000000ull;
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    bool killed = false;
    pid_t pid;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        signal(ends[i], on_signal);
    while (f->pid && (pid = waitpid(f->pid, NULL, WNOHANG)) != f->pid &&
           (pid == 0 || errno == EINTR)) {
        // Repeat the signal, because the process ignores signals until it has read the end of the
        // pipe.
        if (ended)
            kill(f->pid, SIGTERM);
        if (!killed && clock_monotonic_ns() >= end_ns)
            killed = kill(f->pid, SIGKILL) == 0;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

int feed_end(struct feed *f)
{
    struct queue left = {0};
    struct err e = {0};
    if (f->notify >= 0)
        close(f->notify);
    wait_for_process(f);
    int rc = queue_read(&left, f->folder, &e);
    if (rc < 0)
        f->error(e.text);
    else if (f->added_files)
        rc = report_result(f, &left);
    queue_release(&left);
    if (f->lock >= 0)
        close(f->lock);
    remove_empty(f->folder);
    return rc;
}
