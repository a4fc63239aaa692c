#include "experiments/matrix/jobs.h"

#include "base/buf.h"
#include "base/fio.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MATRIX     "heaptape matrix "
#define FIRST_LINE MATRIX "1"
#define LIST       "a list of jobs"

enum { MAX_LIST_BYTES = 64 << 20 };

void matrix_release(struct matrix *m)
{
    for (size_t i = 0; i < m->n_jobs; i++) {
        free(m->jobs[i].workload);
        free(m->jobs[i].allocator);
    }
    for (size_t i = 0; i < m->n_options; i++)
        free(m->options[i]);
    free(m->jobs);
    free(m->options);
    free(m->folder);
    *m = (struct matrix){0};
}

static int check_text(const char *text, struct err *e)
{
    return strpbrk(text, "\t\n") || !*text
               ? err_set(e, -EINVAL, "'%s': is empty, or has a tab or a newline", text)
               : 0;
}

int matrix_add(struct matrix *m, const char *workload, const char *allocator, struct err *e)
{
    int rc = check_text(workload, e);
    rc = rc < 0 ? rc : check_text(allocator, e);
    if (rc < 0)
        return rc;
    if (HT_GROW(&m->jobs, &m->jobs_capacity, m->n_jobs + 1) < 0)
        return err_no_memory(e, NULL);
    struct matrix_job *j = &m->jobs[m->n_jobs++];
    *j = (struct matrix_job){strdup(workload), strdup(allocator)};
    return j->workload && j->allocator ? 0 : err_no_memory(e, NULL);
}

int matrix_add_option(struct matrix *m, const char *option, struct err *e)
{
    int rc = check_text(option, e);
    if (rc < 0)
        return rc;
    if (HT_GROW(&m->options, &m->options_capacity, m->n_options + 1) < 0)
        return err_no_memory(e, NULL);
    m->options[m->n_options] = strdup(option);
    return m->options[m->n_options++] ? 0 : err_no_memory(e, NULL);
}

static char *list_text(const struct matrix *m, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);
    if (!f)
        return NULL;
    fputs(FIRST_LINE "\n", f);
    for (size_t i = 0; i < m->n_options; i++)
        fprintf(f, "option\t%s\n", m->options[i]);
    for (size_t i = 0; i < m->n_jobs; i++)
        fprintf(f, "job\t%s\t%s\n", m->jobs[i].workload, m->jobs[i].allocator);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

static char *list_path(const struct matrix *m)
{
    char *path = NULL;
    return asprintf(&path, "%s/jobs", m->folder) < 0 ? NULL : path;
}

// Writes a temporary file and then renames it, so that readers never see a partial file.
static int write_all(const char *path, const char *text, size_t n, struct err *e)
{
    char *beside = NULL;
    if (asprintf(&beside, "%s.%ld", path, (long)getpid()) < 0)
        return err_no_memory(e, NULL);
    FILE *f = fopen(beside, "wex");
    bool is_written = f && fwrite(text, 1, n, f) == n && fflush(f) == 0;
    int rc = is_written ? 0 : err_set_errno(e, "%s", beside);
    if (f && fclose(f) != 0)
        rc = err_set_errno(e, "%s", beside);
    if (rc == 0 && rename(beside, path) < 0)
        rc = err_set_errno(e, "%s", path);
    if (rc < 0 && f)
        unlink(beside);
    free(beside);
    return rc;
}

int matrix_create(struct matrix *m, const char *folder, struct err *e)
{
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        return err_set_errno(e, "%s", folder);
    m->folder = realpath(folder, NULL);
    if (!m->folder)
        return err_set_errno(e, "%s", folder);
    size_t n = 0;
    struct buf there = {0};
    struct err why = {0};
    char *text = list_text(m, &n), *path = list_path(m);
    int rc = text && path ? input_read_file(path, &there, MAX_LIST_BYTES, LIST, &why)
                          : err_no_memory(&why, NULL);
    if (rc == -ENOENT)
        rc = write_all(path, text, n, e);
    else if (rc < 0)
        err_set(e, rc, "%s", why.text);
    else if (n != there.size || memcmp(text, there.data, n) != 0)
        rc = err_set(e, -EEXIST, "%s: has other jobs; without -w and -a they are continued",
                     m->folder);
    free(text);
    free(path);
    buf_release(&there);
    return rc;
}

static int read_line(struct matrix *m, char *line, struct err *e)
{
    char *workload = strncmp(line, "job\t", 4) == 0 ? line + 4 : NULL,
         *tab = workload ? strchr(workload, '\t') : NULL;
    if (strncmp(line, "option\t", 7) == 0)
        return matrix_add_option(m, line + 7, e);
    if (!tab)
        return -EBADMSG;
    *tab = 0;
    return matrix_add(m, workload, tab + 1, e);
}

static int read_list(struct matrix *m, const char *path, char *text, size_t n, struct err *e)
{
    bool is_list = n && text[n - 1] == '\n' && !memchr(text, 0, n) &&
                   strncmp(text, MATRIX, strlen(MATRIX)) == 0;
    int rc = is_list ? 0 : -EBADMSG;
    if (is_list && strncmp(text, FIRST_LINE "\n", strlen(FIRST_LINE) + 1) != 0)
        return err_set(e, -EPROTO, "%s: expected '" FIRST_LINE "': written by a newer heaptape?",
                       path);
    char *line = text;
    for (char *next = text, *end; rc == 0 && next < text + n; next = end + 1) {
        line = next;
        end = strchr(line, '\n');
        *end = 0;
        rc = line == text ? 0 : read_line(m, line, e);
    }
    if (rc == -EBADMSG || rc == -EINVAL)
        return err_set(e, -EBADMSG, "%s: is not " LIST ", at byte %zu", path,
                       (size_t)(line - text));
    return rc == 0 && !m->n_jobs ? err_set(e, -EBADMSG, "%s: has no jobs", path) : rc;
}

int matrix_open(struct matrix *m, const char *folder, struct err *e)
{
    m->folder = realpath(folder, NULL);
    if (!m->folder)
        return err_set_errno(e, "%s", folder);
    struct buf text = {0};
    char *path = list_path(m);
    int rc = path ? input_read_file(path, &text, MAX_LIST_BYTES, LIST, e) : err_no_memory(e, NULL);
    if (rc == 0)
        rc = read_list(m, path, (char *)text.data, text.size, e);
    buf_release(&text);
    free(path);
    return rc;
}

char *matrix_path(const struct matrix *m, size_t number, bool failed)
{
    char *path = NULL;
    return asprintf(&path, "%s/%zu.%s", m->folder, number, failed ? "err" : "json") < 0 ? NULL
                                                                                        : path;
}

static bool has_file(const struct matrix *m, size_t number, bool failed)
{
    char *path = matrix_path(m, number, failed);
    bool there = path && access(path, F_OK) == 0;
    free(path);
    return there;
}

enum matrix_state matrix_state(const struct matrix *m, size_t number)
{
    return has_file(m, number, false)  ? MATRIX_DONE
           : has_file(m, number, true) ? MATRIX_FAILED
                                       : MATRIX_UNDONE;
}

char **matrix_command(const char *const *first, const char *const *options, size_t n_options,
                      const char *const *last)
{
    size_t n_first = 0, n_last = 0;
    while (first[n_first])
        n_first++;
    while (last[n_last])
        n_last++;
    const char **words = calloc(n_first + n_options + n_last + 1, sizeof *words);
    if (!words)
        return NULL;
    memcpy(words, first, n_first * sizeof *words);
    if (n_options)
        memcpy(words + n_first, options, n_options * sizeof *words);
    memcpy(words + n_first + n_options, last, n_last * sizeof *words);
    return (char **)words;
}

static volatile sig_atomic_t running, signalled; // pid of the replay; signal to forward

static void forward_signal(int number)
{
    signalled = number;
    if (running > 0)
        kill((pid_t)running, number);
}

// Begins or ends the forwarding of SIGINT and SIGTERM to the replay. If these signals ended this
// process directly, it would leave the replay's files behind. Signals that the caller ignores stay
// ignored.
static void forward_signals(bool begin, struct sigaction before[2])
{
    static const int numbers[2] = {SIGINT, SIGTERM};
    const struct sigaction handler = {.sa_handler = forward_signal};
    for (int i = 0; i < 2; i++) {
        if (begin && sigaction(numbers[i], &handler, &before[i]) == 0 &&
            before[i].sa_handler == SIG_IGN)
            signal(numbers[i], SIG_IGN);
        else if (!begin)
            sigaction(numbers[i], &before[i], NULL);
    }
}

// Runs a command with its outputs in these files. Returns the wait status, or a negative errno with
// the message set.
static int run_command(char **words, const char *out, const char *err, struct err *e)
{
    posix_spawn_file_actions_t files;
    struct sigaction before[2];
    pid_t pid;
    int status = 0, flags = O_WRONLY | O_CREAT | O_EXCL;
    // Remove files of a run that was killed.
    unlink(out);
    unlink(err);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out, flags, 0666);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err, flags, 0666);
    // Set the handlers before creating files that a signal would leave behind.
    signalled = 0;
    forward_signals(true, before);
    int rc = posix_spawn(&pid, words[0], &files, NULL, words, environ);
    posix_spawn_file_actions_destroy(&files);
    if (rc != 0) {
        forward_signals(false, before);
        return err_set(e, -rc, "%s: %s", words[0], strerror(rc));
    }
    running = pid;
    if (signalled)
        kill(pid, signalled);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    forward_signals(false, before);
    running = 0;
    return status;
}

// Renames the output or the error, which marks the job as done or failed.
static int finish_job(const struct matrix *m, size_t number, bool failed, const char *written,
                      struct err *e)
{
    char *result = matrix_path(m, number, failed), *other = matrix_path(m, number, !failed);
    int rc = result && other ? 0 : err_no_memory(e, NULL);
    if (rc == 0 && rename(written, result) < 0)
        rc = err_set_errno(e, "%s", result);
    if (rc == 0 && !failed)
        unlink(other);
    free(result);
    free(other);
    return rc;
}

// Runs a job. If the workload cannot be opened, writes the error that the replay would write.
// Returns the wait status, or a negative errno with the message set.
static int run_job(const char *workload, char **words, const char *out, const char *err,
                   struct err *e)
{
    struct input in;
    struct err why = {0};
    char line[sizeof why + 16];
    int rc = input_open_regular(&in, workload, &why);
    if (rc == 0) {
        input_close(&in);
        return run_command(words, out, err, e);
    }
    int n = snprintf(line, sizeof line, "heaptape: %s\n", why.text);
    rc = write_all(err, line, (size_t)n, e);
    return rc < 0 ? rc : W_EXITCODE(1, 0);
}

int matrix_run(const struct matrix *m, size_t number, const char *heaptape, struct err *e)
{
    if (number == 0 || number > m->n_jobs)
        return err_set(e, -EINVAL, "%s: has jobs 1 to %zu", m->folder, m->n_jobs);
    if (matrix_state(m, number) == MATRIX_DONE)
        return 0;
    const struct matrix_job *job = &m->jobs[number - 1];
    const char *const first[] = {heaptape, "replay", "--json",       "-q", "-r",
                                 "1",      "-a",     job->allocator, NULL},
                      *const last[] = {job->workload, NULL};
    char host[256] = "", *out = NULL, *err = NULL,
         **words = matrix_command(first, (const char *const *)m->options, m->n_options, last);
    gethostname(host, sizeof host - 1);
    // The names include the host name, because several hosts may share the directory.
    if (asprintf(&out, "%s/.%zu.%s.%ld.out", m->folder, number, host, (long)getpid()) < 0)
        out = NULL;
    if (asprintf(&err, "%s/.%zu.%s.%ld.err", m->folder, number, host, (long)getpid()) < 0)
        err = NULL;
    int rc =
        out && err && words ? run_job(job->workload, words, out, err, e) : err_no_memory(e, NULL);
    bool failed = rc != 0;
    // An interrupted job has not failed, and runs again later.
    bool interrupted =
        rc > 0 && WIFSIGNALED(rc) && (WTERMSIG(rc) == SIGINT || WTERMSIG(rc) == SIGTERM);
    if (interrupted)
        rc = err_set(e, -EINTR, "job %zu was interrupted", number);
    if (rc >= 0)
        rc = finish_job(m, number, failed, failed ? err : out, e);
    // The replay had ended before the signal arrived.
    if (rc >= 0 && signalled)
        rc = err_set(e, -EINTR, "signal %d stopped the matrix after job %zu", (int)signalled,
                     number);
    if (out)
        unlink(out);
    if (err)
        unlink(err);
    free(out);
    free(err);
    free(words);
    return rc < 0 ? rc : failed;
}
