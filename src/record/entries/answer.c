#include "record/entries/answer.h"

#include "base/fio.h"
#include "record/entries/plan.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNNAMED_PLAN "plan.new" // name until the file is complete

// Removes the families in which a function cannot be redirected. Returns the number of entries that
// remain.
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

// Returns the bits of the functions of --wrap that have this name.
static uint32_t find_named(const struct spool_wrap *wrap, const char *name)
{
    uint32_t found = 0;
    for (unsigned i = 0; wrap && i < SPOOL_WRAPPED; i++)
        found |= (uint32_t)(strcmp(wrap->names[i], name) == 0) << i;
    return found;
}

// Reports which functions of --wrap exist, and one function that cannot be redirected. In
// libraries, functions with libc's names are not redirected. If an executable exports such
// functions, it bypasses the library, which is reported elsewhere.
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

// Writes a file. The file appears under its name only when it is complete. If writing fails, the
// process stops waiting after some time.
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

void entries_answer(int dir_fd, struct entries_request request, struct entries_report *report)
{
    const struct entries_names names = {
        .wrap = report->wrap, .families = ENTRIES_RECORDED_FAMILIES, .reordered = true};
    char link[64], path[PATH_MAX], name[ENTRIES_FILE_BYTES];
    struct stat file;
    struct err ignored = {0};
    struct entries_result result = {0};
    snprintf(link, sizeof link, "/proc/%ld/fd/%d", (long)request.pid, request.fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    int fd = input_regular_fd(link, &file);
    path[n < 0 ? 0 : n] = 0;
    if (fd < 0)
        return;
    entries_name_file(&file, name);
    const struct entries_object object = {.path = path, .file = fd, .memory = -1};
    if (faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
        bool good = entries_plan_object(&object, &names, &result, &ignored) == 0 &&
                    drop_partial_families(&result);
        write_file(dir_fd, name, good ? result.plan : NULL);
        report_functions(report, &result, path, is_executable_of(request.pid, &file));
    }
    entries_result_release(&result);
    close(fd);
}
