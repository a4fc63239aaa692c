#include "record/entries/answer.h"

#include "base/fio.h"
#include "base/thread.h"
#include "record/entries/plan.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNNAMED_PLAN "plan.new" // name until the file is complete

// If an executable has at least this size, its plan is made before a process asks for the plan: a
// process waits for at most 100 ms, and planning an executable of 300 MB takes longer on a busy
// machine.
enum { LARGE_BYTES = 16 << 20 };

// Removes the families with a function that cannot be redirected. Returns the number of entries
// that remain.
static uint32_t drop_partial_families(struct entries_result *r)
{
    uint32_t partial = 0, n = 0;
    for (size_t i = 0; i < r->n_refused; i++)
        partial |= (uint32_t)(r->refused[i].reason != ENTRIES_REASON_ALIAS) << r->refused[i].family;
    for (uint32_t i = 0; r->plan && i < r->plan->n_entries; i++) {
        if (!(partial & 1u << r->plan->entries[i].family))
            r->plan->entries[n++] = r->plan->entries[i];
    }
    if (r->plan)
        r->plan->n_entries = n;
    return n;
}

// Returns the bits of all --wrap functions with this name.
static uint32_t find_named(const struct spool_wrap *wrap, const char *name)
{
    uint32_t found = 0;
    for (unsigned i = 0; wrap && i < wrap->n; i++)
        found |= (uint32_t)(strcmp(wrap->items[i].name, name) == 0) << i;
    return found;
}

// Reports which functions of --wrap exist, and the first function that cannot be redirected.
// Ignores functions with libc's names in two cases: in a library, because they are not redirected
// there, and if an executable exports them, because this is reported elsewhere.
static void report_functions(struct entries_report *to, const struct entries_result *r,
                             const char *path, bool is_executable)
{
    to->named |= r->named;
    for (size_t i = 0; i < r->n_refused; i++) {
        const struct entries_refusal *f = &r->refused[i];
        bool wanted = f->family != ENTRIES_FAMILY_LIBC || (is_executable && !f->is_dynamic);
        to->named |= find_named(to->wrap, f->name);
        if (!to->refused[0] && f->reason != ENTRIES_REASON_ALIAS && wanted)
            snprintf(to->refused, sizeof to->refused, "%.60s in %.200s: %s", f->name, path,
                     entries_reason_texts[f->reason]);
    }
}

// Writes a file that appears under its name only when it is complete. If writing fails, the process
// that waits for the file continues after its time limit.
static void write_file(int dir_fd, const char *name, const struct entries_plan *plan)
{
    size_t bytes = plan ? sizeof *plan : 0;
    unlinkat(dir_fd, UNNAMED_PLAN, 0);
    int fd = openat(dir_fd, UNNAMED_PLAN, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    // Programs that root starts also read the plan after dropping their privileges.
    bool done = fd >= 0 && (!bytes || write(fd, plan, bytes) == (ssize_t)bytes) &&
                fchmod(fd, geteuid() == 0 ? 0644 : 0600) == 0;
    if (fd >= 0)
        close(fd);
    if (!done || renameat(dir_fd, UNNAMED_PLAN, dir_fd, name) < 0)
        unlinkat(dir_fd, UNNAMED_PLAN, 0);
}

static bool is_executable_of(pid_t pid, const struct stat *file)
{
    char path[64];
    struct stat exe;
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    return stat(path, &exe) == 0 && exe.st_dev == file->st_dev && exe.st_ino == file->st_ino;
}

// Writes the plan of an open file, unless the plan exists.
static void plan_file(struct entries_answers *a, int fd, const char *path, const struct stat *file,
                      bool is_executable)
{
    char name[ENTRIES_FILE_BYTES];
    const struct entries_names names = {.wrap = a->report->wrap,
                                        .addresses = file->st_ino == a->program.inode &&
                                                     file->st_dev == a->program.device,
                                        .families = ENTRIES_RECORDED_FAMILIES,
                                        .reordered = true};
    const struct entries_object object = {.path = path, .file = fd, .memory = -1};
    struct err ignored = {0};
    struct entries_result result = {0};
    entries_name_file(file, name);
    pthread_mutex_lock(&a->mutex);
    if (faccessat(a->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
        bool good = entries_plan_object(&object, &names, &result, &ignored) == 0 &&
                    drop_partial_families(&result);
        write_file(a->dir_fd, name, good ? result.plan : NULL);
        report_functions(a->report, &result, path, is_executable);
    }
    pthread_mutex_unlock(&a->mutex);
    entries_result_release(&result);
}

void entries_answers_init(struct entries_answers *a, struct entries_report *report)
{
    *a = (struct entries_answers){.dir_fd = -1, .report = report};
    pthread_mutex_init(&a->mutex, NULL);
}

void entries_answers_release(struct entries_answers *a)
{
    if (a->has_thread)
        pthread_join(a->thread, NULL);
    pthread_mutex_destroy(&a->mutex);
}

void entries_answer(struct entries_answers *a, struct entries_request request)
{
    char link[64], path[PATH_MAX];
    struct stat file;
    snprintf(link, sizeof link, "/proc/%ld/fd/%d", (long)request.pid, request.fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    int fd = input_regular_fd(link, &file);
    path[n < 0 ? 0 : n] = 0;
    if (fd < 0)
        return;
    plan_file(a, fd, path, &file, is_executable_of(request.pid, &file));
    close(fd);
}

// Opens the file if it has at least `bytes` bytes and its plan does not exist. Returns the
// descriptor, or -1.
static int open_large(const struct entries_answers *a, const char *path, off_t bytes)
{
    char name[ENTRIES_FILE_BYTES];
    struct stat file;
    if (stat(path, &file) < 0 || !S_ISREG(file.st_mode) || file.st_size < bytes)
        return -1;
    entries_name_file(&file, name);
    return faccessat(a->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ? input_regular_fd(path, &file)
                                                                     : -1;
}

// Writes the plan of the file a->fd, and closes the file.
static void *answer_ahead(void *context)
{
    struct entries_answers *a = context;
    struct stat file;
    if (fstat(a->fd, &file) == 0)
        plan_file(a, a->fd, a->path, &file, true);
    close(a->fd);
    atomic_store(&a->busy, false);
    return NULL;
}

void entries_answer_program(struct entries_answers *a, const char *path)
{
    struct stat file;
    if (stat(path, &file) == 0) {
        a->program.device = file.st_dev;
        a->program.inode = file.st_ino;
    }
    a->fd = open_large(a, path, a->report->wrap ? 1 : LARGE_BYTES);
    if (a->fd >= 0 && snprintf(a->path, sizeof a->path, "%s", path) > 0)
        answer_ahead(a);
}

void entries_answer_exec(struct entries_answers *a, pid_t pid)
{
    enum { STACK_BYTES = 256 << 10 };
    char link[64];
    snprintf(link, sizeof link, "/proc/%ld/exe", (long)pid);
    int fd = atomic_load(&a->busy) ? -1 : open_large(a, link, LARGE_BYTES);
    if (fd < 0)
        return;
    if (a->has_thread)
        pthread_join(a->thread, NULL);
    ssize_t n = readlink(link, a->path, sizeof a->path - 1);
    a->path[n < 0 ? 0 : n] = 0;
    a->fd = fd;
    atomic_store(&a->busy, true);
    a->has_thread = thread_start(&a->thread, STACK_BYTES, answer_ahead, a) == 0;
    if (!a->has_thread) {
        close(fd);
        atomic_store(&a->busy, false);
    }
}
