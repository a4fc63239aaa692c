#include "record/flight/files.h"

#include "base/buf.h"
#include "base/err.h"
#include "cli/human.h"
#include "cli/options.h"
#include "cli/span.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int flight_window_parse(const char *text, struct flight_window *w)
{
    char *copy = strdup(text), *rest = copy;
    int rc = copy ? 0 : -ENOMEM;
    *w = (struct flight_window){0, UINT64_MAX};
    for (char *one; rc == 0 && (one = strsep(&rest, ","));) {
        if (w->ns == UINT64_MAX && span_parse(one, &w->ns) == 0)
            rc = w->ns ? 0 : -EINVAL;
        else
            rc = w->bytes || options_parse_size(one, &w->bytes) < 0 ? -EINVAL
                 : w->bytes < FLIGHT_MIN_BYTES                      ? -ERANGE
                                                                    : 0;
    }
    free(copy);
    return rc;
}

char *flight_path(const char *pattern, uint64_t number)
{
    const char *at = strstr(pattern, "%n");
    char *path = NULL;
    if (!at)
        return strdup(pattern);
    if (asprintf(&path, "%.*s%llu%s", (int)(at - pattern), pattern, (unsigned long long)number,
                 at + 2) < 0)
        return NULL;
    return path;
}

struct flight_file {
    char *path, *trigger;
};

// Executes the command, in its own process.
_Noreturn static void execute(const char *command, const struct flight_file *file)
{
    static const int reset[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR2};
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, FLIGHT_FILES_END);
    sigprocmask(SIG_UNBLOCK, &ours, NULL);
    for (size_t i = 0; i < sizeof reset / sizeof *reset; i++)
        signal(reset[i], SIG_DFL);
    // Replace standard input, because it is the trace.
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
        _exit(127);
    if (file->trigger)
        setenv("HEAPTAPE_TRIGGER", file->trigger, 1);
    execl("/bin/sh", "sh", "-c", command, "sh", file->path, (char *)NULL);
    _exit(127);
}

static void release_file(struct flight_file *file)
{
    free(file->path);
    free(file->trigger);
}

// Removes the oldest files whose command has ended. If `keep` is 0, keeps the files and removes
// only their entries.
static void remove_old_files(struct flight_files *f)
{
    while (f->commanded && (!f->keep || f->n > f->keep)) {
        if (f->keep)
            unlink(f->files[0].path);
        release_file(&f->files[0]);
        memmove(f->files, f->files + 1, --f->n * sizeof *f->files);
        f->commanded--;
    }
}

static void run_next(struct flight_files *f)
{
    while (f->commanded < f->n && !f->command_pid) {
        const struct flight_file *next = &f->files[f->commanded];
        pid_t pid = f->command ? fork() : 0;
        if (f->command && pid == 0)
            execute(f->command, next);
        if (pid < 0)
            err_note(f->note, "%s: %s cannot be run: %s", next->path, f->option, strerror(errno));
        f->command_pid = pid > 0 ? pid : 0;
        f->commanded += pid <= 0;
    }
    remove_old_files(f);
}

int flight_files_add(struct flight_files *f, const char *path, const char *trigger)
{
    struct flight_file file = {strdup(path), trigger ? strdup(trigger) : NULL};
    if (!file.path || (trigger && !file.trigger) ||
        HT_APPEND(&f->files, &f->n, &f->capacity, file) < 0) {
        release_file(&file);
        return -ENOMEM;
    }
    run_next(f);
    return 0;
}

// Waits 10 ms. If the end was requested, prints a note about the running command and returns true.
static bool is_end_requested(const struct flight_files *f)
{
    const struct timespec nap = {.tv_nsec = 10000000};
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, FLIGHT_FILES_END);
    if (sigtimedwait(&end, NULL, &nap) != FLIGHT_FILES_END)
        return false;
    size_t later = f->n - f->commanded - 1;
    err_note(f->note, "%s: %s is still running (process %ld); heaptape does not wait for it",
             f->files[f->commanded].path, f->option, (long)f->command_pid);
    if (later)
        err_note(f->note, "%s: %s was not run for %s", f->files[f->n - 1].path, f->option,
                 human_items(later, "file", "files"));
    return true;
}

void flight_files_reap(struct flight_files *f, bool wait)
{
    int status;
    while (f->command_pid) {
        pid_t pid = waitpid(f->command_pid, &status, WNOHANG);
        if (pid == 0 && (!wait || is_end_requested(f)))
            return;
        if (pid == 0)
            continue;
        if (pid < 0 || status != 0)
            err_note(f->note, "%s: %s failed", f->files[f->commanded].path, f->option);
        f->command_pid = 0;
        f->commanded++;
        run_next(f);
    }
}

void flight_files_release(struct flight_files *f)
{
    for (size_t i = 0; i < f->n; i++)
        release_file(&f->files[i]);
    free(f->files);
    *f = (struct flight_files){0};
}
