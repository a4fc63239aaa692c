#include "transfer/upload.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/seed.h"
#include "transfer/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS_PER_MS 1000000u

enum { FIRST_DELAY_MS = 500, MAX_DELAY_MS = 60000, MAX_RETRY_AFTER_S = 600 };

struct upload {
    const struct upload_settings *settings;
    struct request *request;
    struct upload_result *result;
    int added;            // see struct upload_settings; -1 after the end of the recording
    uint64_t deadline_ns; // UINT64_MAX before the recording ends
    unsigned failures;    // number of failures since the last success
    uint64_t jitter;      // state of the random sequence for delays
    // Last failure that was reported, or "" after a success.
    char trouble[sizeof((struct request_result *)0)->text];
    char **refused; // paths of files that the server refused
    size_t n_refused, refused_capacity;
    bool attempted; // an upload was attempted
    bool over;      // no more uploads are made
};

static volatile sig_atomic_t signalled;

static void on_signal(int sig)
{
    (void)sig;
    signalled = 1;
}

bool upload_is_url(const char *text)
{
    return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

char *upload_url(const char *text, struct err *e)
{
    char *url = NULL;
    const char *host = strstr(text, "://");
    host = host ? host + 3 : text;
    size_t host_bytes = strcspn(host, "/");
    if (!upload_is_url(text) || host_bytes == 0)
        err_set(e, -EINVAL, "'%s' is not a URL of the form http://HOST/PATH/ or https://HOST/PATH/",
                text);
    else if (memchr(host, '@', host_bytes))
        err_set(e, -EINVAL,
                "the URL has a name or password, which 'ps' would show: put them into ~/.netrc or "
                "a token file");
    else if (strpbrk(text, "?#% \"'\\<>^`{|}"))
        err_set(e, -EINVAL,
                "'%s': the URL of a directory must not contain '?', '#', '%%' or a space", text);
    else if (asprintf(&url, "%s%s", text, text[strlen(text) - 1] == '/' ? "" : "/") < 0)
        url = NULL, err_no_memory(e, NULL);
    return url;
}

// Returns the URL of a file. Escapes all characters except unreserved characters and slashes. The
// caller must free the URL.
static char *make_url(const struct upload *u, const char *path)
{
    static const char hex[] = "0123456789ABCDEF";
    const char *base = u->settings->url;
    char *url = malloc(strlen(base) + 3 * strlen(path) + 1), *to = url ? stpcpy(url, base) : NULL;
    for (; url && *path; path++) {
        unsigned char c = (unsigned char)*path;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr("-._~/", c)) {
            *to++ = (char)c;
            continue;
        }
        *to++ = '%';
        *to++ = hex[c >> 4];
        *to++ = hex[c & 15];
    }
    if (url)
        *to = 0;
    return url;
}

// Reads the pipe until it is empty. The end of the pipe marks the end of the recording. From then
// on, the time is limited and signals are handled.
static void read_added(struct upload *u)
{
    char bytes[256];
    ssize_t n = 1;
    while (u->added >= 0 && n > 0)
        n = read(u->added, bytes, sizeof bytes);
    if (u->added < 0 || n < 0)
        return;
    u->added = -1;
    signalled = 0;
    u->deadline_ns = clock_monotonic_ns() + u->settings->wait_ns;
}

// The command `upload` always makes the first attempt, even if the time has run out on a busy
// machine, so that it can report why the attempt failed.
static bool is_over(struct upload *u)
{
    bool limited = u->attempted || u->settings->added >= 0;
    read_added(u);
    if (u->added < 0 && (signalled || (limited && clock_monotonic_ns() >= u->deadline_ns)))
        u->over = true;
    return u->over;
}

// Called during a request. Returns true to abort the request.
static bool is_aborted(void *context)
{
    struct upload *u = context;
    read_added(u);
    // The command `upload` limits the wait for an unreachable server, but not the time of a
    // request.
    bool bounded = u->settings->added >= 0;
    return u->added < 0 && (signalled || (bounded && clock_monotonic_ns() >= u->deadline_ns));
}

// Waits until `then_ns`, the end of the recording, a deadline, or a signal.
static void wait_until(struct upload *u, uint64_t then_ns)
{
    bool had_added = u->added >= 0;
    for (uint64_t now;
         !is_over(u) && (u->added >= 0) == had_added && (now = clock_monotonic_ns()) < then_ns;) {
        uint64_t until = u->deadline_ns < then_ns ? u->deadline_ns : then_ns;
        uint64_t ms = (until - now) / NS_PER_MS + 1;
        struct pollfd fd = {u->added, POLLIN, 0};
        // Wait at most one second, because a signal may arrive just before poll.
        poll(&fd, 1, ms < 1000 ? (int)ms : 1000);
    }
}

// Waits before a retry. The delay doubles with each failure, and is partly random, so that clients
// do not retry simultaneously. If the server requested a longer delay, waits that long, up to
// MAX_RETRY_AFTER_S.
static void wait_after_failure(struct upload *u, const struct request_result *r)
{
    unsigned doublings = u->failures < 8 ? u->failures : 8;
    uint64_t ms = (uint64_t)FIRST_DELAY_MS << doublings;
    uint64_t asked_s = r->retry_after_s < MAX_RETRY_AFTER_S ? r->retry_after_s : MAX_RETRY_AFTER_S;
    ms = ms < MAX_DELAY_MS ? ms : MAX_DELAY_MS;
    u->failures++;
    ms = ms / 2 + seed_next(&u->jitter) % (ms / 2 + 1);
    wait_until(u, clock_monotonic_ns() + (ms > asked_s * 1000 ? ms : asked_s * 1000) * NS_PER_MS);
}

static bool is_refused(const struct upload *u, const char *path)
{
    for (size_t i = 0; i < u->n_refused; i++) {
        if (strcmp(u->refused[i], path) == 0)
            return true;
    }
    return false;
}

// Returns 1 or -ENOMEM.
static int add_refused(struct upload *u, const char *path)
{
    char *copy = strdup(path);
    if (copy && HT_APPEND(&u->refused, &u->n_refused, &u->refused_capacity, copy) == 0)
        return 1;
    free(copy);
    return -ENOMEM;
}

// Returns true for failures that concern only this file.
static bool concerns_file(long status)
{
    return status == 400 || status == 409 || status == 413 || status == 415 || status == 422;
}

static bool is_temporary(const struct request_result *r)
{
    return r->status ? r->status >= 500 || r->status == 408 || r->status == 425 || r->status == 429
                     : !r->permanent;
}

static void note_success(struct upload *u, const struct queue_file *f)
{
    u->result->files++;
    u->result->bytes += f->bytes;
    u->failures = 0;
    if (u->trouble[0])
        err_note(u->settings->note, "%s: the server accepts uploads again", u->settings->url);
    u->trouble[0] = 0;
    if (u->settings->verbose)
        err_note(u->settings->note, "%s: uploaded", f->path);
    if (u->settings->added < 0)
        u->deadline_ns = clock_monotonic_ns() + u->settings->wait_ns;
}

// Reports a failed upload. Returns 1 to continue with the next file, 0 after a wait, or a negative
// errno.
static int handle_failure(struct upload *u, const struct queue_file *f,
                          const struct request_result *r)
{
    if (concerns_file(r->status)) {
        err_note(u->settings->note, "%s: %s; the file stays where it is", f->path, r->text);
        return add_refused(u, f->path);
    }
    bool hopeless = u->settings->added < 0 && !is_temporary(r);
    if (strcmp(u->trouble, r->text) != 0)
        err_note(u->settings->note, "%s: cannot be uploaded: %s%s", f->path, r->text,
                 hopeless ? "" : "; heaptape tries again");
    snprintf(u->trouble, sizeof u->trouble, "%s", r->text);
    u->over |= hopeless;
    if (!u->over)
        wait_after_failure(u, r);
    return 0;
}

// Returns 0 if the file is unchanged and still has its name.
static int check_unchanged(int fd, const char *path, const struct stat *before)
{
    struct stat now, named;
    if (fstat(fd, &now) < 0)
        return -errno;
    if (now.st_size != before->st_size || now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != before->st_mtim.tv_nsec)
        return -EBUSY;
    if (lstat(path, &named) < 0)
        return errno == ENOENT ? 0 : -errno;
    return named.st_ino == now.st_ino && named.st_dev == now.st_dev ? 0 : -EBUSY;
}

// Uploads an open file. Returns 1 on success, 0 on failure, or a negative errno. The file is locked
// only during the request, so that it can be dropped while the server is unreachable.
static int try_open_file(struct upload *u, struct queue_file *f, int fd, const char *path,
                         struct request_result *r)
{
    struct stat st;
    char *url = make_url(u, f->path);
    int rc = url ? queue_hold(fd) : -ENOMEM;
    if (rc == 0 && fstat(fd, &st) < 0)
        rc = -errno;
    if (rc == 0) {
        f->bytes = (uint64_t)st.st_size;
        u->settings->calls->put(u->request, url, fd, f->bytes, r);
        rc = r->status >= 200 && r->status < 300;
    }
    free(url);
    if (rc == 1)
        rc = check_unchanged(fd, path, &st) < 0 ? -EBUSY : 1;
    if (rc == 1 && unlink(path) < 0 && errno != ENOENT)
        rc = -errno;
    return rc;
}

// Locks the directory and uploads a file. Returns the same values as try_open_file, and also 1 if
// the file was dropped or another process is using it.
static int try_file(struct upload *u, struct queue_file *f, const char *path,
                    struct request_result *r)
{
    bool alone = u->settings->added < 0;
    char *folder = strndup(path, (size_t)(strrchr(path, '/') - path));
    int lock = !folder ? -ENOMEM : alone ? queue_lock(folder) : 0;
    free(folder);
    if (lock == -EWOULDBLOCK) {
        err_note(u->settings->note, "%s: skipped, because another process records or uploads it",
                 path);
        return add_refused(u, f->path);
    }
    int fd = lock < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int rc = lock < 0 ? lock : fd < 0 ? -errno : try_open_file(u, f, fd, path, r);
    if (rc == 1)
        note_success(u, f);
    if (rc == -EBUSY) {
        err_note(u->settings->note, "%s: is being written; the file stays where it is", path);
        rc = add_refused(u, f->path);
    }
    if (fd >= 0)
        close(fd);
    if (alone && lock >= 0) {
        close(lock);
        queue_clean(u->settings->folder, f->path);
    }
    return rc == -ENOENT ? 1 : rc;
}

// Uploads a file, and waits after a failure. Returns 1 to continue with the next file, 0 after a
// wait, or a negative errno.
static int upload_file(struct upload *u, struct queue_file *f)
{
    struct request_result r = {0};
    char *path = NULL;
    if (asprintf(&path, "%s/%s", u->settings->folder, f->path) < 0)
        return -ENOMEM;
    u->attempted = true;
    int rc = try_file(u, f, path, &r);
    free(path);
    // An aborted request is not a failure.
    if (rc == 0 && !is_aborted(u))
        rc = handle_failure(u, f, &r);
    return rc;
}

// Uploads all files in the spool until the first failure. Sets *tried if there was a file that had
// not been refused before.
static int upload_all(struct upload *u, bool *tried, struct err *e)
{
    struct queue q = {0};
    int rc = queue_read(&q, u->settings->folder, e) < 0 ? -EIO : 1;
    *tried = false;
    for (size_t i = 0; rc == 1 && i < q.n && !is_over(u); i++) {
        if (is_refused(u, q.files[i].path))
            continue;
        *tried = true;
        rc = upload_file(u, &q.files[i]);
        if (rc < 0)
            err_set(e, rc, "%s/%s: %s", u->settings->folder, q.files[i].path, strerror(-rc));
    }
    queue_release(&q);
    return rc < 0 ? rc : 0;
}

static int run_uploads(struct upload *u, struct err *e)
{
    bool tried;
    int rc = 0;
    while (rc == 0 && !is_over(u)) {
        bool ended = u->added < 0;
        rc = upload_all(u, &tried, e);
        if (rc == 0 && !tried && ended)
            break;
        if (rc == 0 && !tried) {
            // Wait for a new file or the end of the recording.
            poll(&(struct pollfd){u->added, POLLIN, 0}, 1, 1000);
            read_added(u);
        }
    }
    return rc;
}

static void catch_signals(void)
{
    const struct sigaction action = {.sa_handler = on_signal};
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        sigaction(caught[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int upload_run(const struct upload_settings *s, struct upload_result *result, struct err *e)
{
    struct queue left = {0};
    struct upload u = {.settings = s, .result = result, .added = s->added, .jitter = seed_random()};
    const struct request_settings how = {.token_file = s->token_file,
                                         .s3_region = s->s3_region,
                                         .timeout_ns = s->timeout_ns,
                                         .timeout_option = s->timeout_option,
                                         .ends = is_aborted,
                                         .context = &u};
    *result = (struct upload_result){0};
    u.deadline_ns = s->added < 0 ? clock_monotonic_ns() + s->wait_ns : UINT64_MAX;
    u.jitter ^= (uint64_t)getpid() << 32 ^ clock_monotonic_ns();
    catch_signals();
    u.request = s->calls->open(&how);
    if (!u.request)
        return err_no_memory(e, s->url);
    int rc = run_uploads(&u, e) ?: queue_read(&left, s->folder, e);
    result->left_files = left.n;
    result->left_bytes = left.bytes;
    queue_release(&left);
    s->calls->close(u.request);
    for (size_t i = 0; i < u.n_refused; i++)
        free(u.refused[i]);
    free(u.refused);
    return rc;
}
