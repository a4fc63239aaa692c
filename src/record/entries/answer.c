#include "record/entries/answer.h"

#include "record/entries/plan.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNNAMED_PLAN "plan.new" // name until the file is complete

// Removes the families of which a function cannot be redirected. Returns the number of entries that
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

// Writes a file whose contents are complete when it appears. If that fails, the process stops
// waiting after some time.
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

void entries_answer(int dir_fd, pid_t pid)
{
    char path[64], name[ENTRIES_FILE_BYTES];
    struct stat exe;
    struct err ignored = {0};
    struct entries_result result = {0};
    const struct entries_names names = {.families = ENTRIES_RECORDED_FAMILIES, .reordered = true};
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    const struct entries_object object = {.path = path, .file = fd, .memory = -1};
    if (fd < 0)
        return;
    bool known = fstat(fd, &exe) < 0;
    if (!known) {
        entries_name_file(&exe, name);
        known = faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    }
    if (!known) {
        bool good = entries_plan_object(&object, &names, &result, &ignored) == 0 &&
                    drop_partial_families(&result);
        write_file(dir_fd, name, good ? result.plan : NULL);
    }
    entries_result_release(&result);
    close(fd);
}
