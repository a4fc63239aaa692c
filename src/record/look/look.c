#include "record/look/look.h"

#include "base/clock.h"
#include "record/attach/status.h"
#include "record/drain/facts.h"
#include "record/look/look_private.h"
#include "record/processes/cgroup.h"
#include "record/processes/proc_file.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static const char *const owner_names[LOOK_OWNERS] = {
    [LOOK_LIVE] = "live",           [LOOK_FREE] = "free",       [LOOK_TOP] = "top",
    [LOOK_CACHED] = "cached",       [LOOK_PINNED] = "pinned",   [LOOK_UNREAD] = "unread",
    [LOOK_STACKS] = "stacks",       [LOOK_RUNTIME] = "runtime", [LOOK_JIT] = "jit",
    [LOOK_ANONYMOUS] = "anonymous", [LOOK_SHARED] = "shared",   [LOOK_FILES] = "files",
    [LOOK_OTHER] = "other",
};

const char *look_owner_name(enum look_owner o)
{
    return owner_names[o];
}

static int check_process(struct look *l, struct err *e)
{
    l->state = status_letter(l->pid, l->pid, "State");
    l->threads = (uint32_t)status_number(l->pid, l->pid, "Threads", 10);
    l->uid = (uint32_t)status_number(l->pid, l->pid, "Uid", 10);
    l->peak_rss_bytes = 1024 * status_number(l->pid, l->pid, "VmHWM", 10);
    uint64_t process = status_number(l->pid, l->pid, "Tgid", 10);
    if (l->state && process != (uint64_t)l->pid)
        return err_set(e, -ESRCH, "%ld: is a thread, not a process", (long)l->pid);
    return status_ended(l->pid, e);
}

static int explain(const struct look *l, int rc, struct err *e)
{
    char state = status_letter(l->pid, l->pid, "State");
    if (rc == -ENOMEM)
        return err_no_memory(e, NULL);
    if (!state || state == 'Z' || state == 'X')
        return err_set(e, -ESRCH, "%ld: the process has ended", (long)l->pid);
    if (rc == -EACCES || rc == -EPERM)
        return status_denied(l->pid, e);
    if (rc == -ESRCH)
        return err_set(e, rc, "%ld: is a kernel thread, which has no memory", (long)l->pid);
    return err_set(e, rc, "%ld: cannot read its mappings: %s", (long)l->pid, strerror(-rc));
}

static void read_group(struct look *l)
{
    char lines[4096];
    struct proc_cgroup c;
    proc_file_read(l->pid, "cgroup", lines, sizeof lines);
    proc_cgroup_read_files(lines, "/sys/fs/cgroup", &c);
    l->group = (struct look_group){c.used, c.limit, c.files};
}

static int read_memory(struct look *l, struct look_maps *m, uint64_t until_ns, struct err *e)
{
    uint64_t start = clock_monotonic_ns();
    int rc = look_maps_read(m, l->pid, until_ns - start);
    if (rc < 0)
        return explain(l, rc, e);
    l->rss_bytes = m->pages.rss_bytes;
    l->swap_bytes = m->pages.swap_bytes;
    l->huge_bytes = m->pages.huge_bytes;
    l->runtime = look_runtime(l->pid, m);
    look_maps_find_stacks(m, l->pid, l->runtime == software_go());
    rc = look_heap_read(l, m, until_ns, e);
    if (rc == 0 && look_maps_finish(m, l) < 0)
        rc = err_no_memory(e, NULL);
    // The mappings that were not read account for the difference.
    uint64_t rss = 1024 * status_number(l->pid, l->pid, "VmRSS", 10);
    l->maps_cut = m->is_cut;
    if (m->is_cut && rss > l->rss_bytes) {
        l->owners[LOOK_OTHER] += rss - l->rss_bytes;
        l->rss_bytes = rss;
    }
    l->time_ns = start + (clock_monotonic_ns() - start) / 2;
    l->cpu_ns = facts_cpu_ns(l->pid);
    return rc;
}

int look_take(struct look *l, pid_t pid, uint64_t max_ns, struct err *e)
{
    struct look_maps maps = {0};
    uint64_t start = clock_monotonic_ns();
    *l = (struct look){.pid = pid};
    look_command(pid, l->command, sizeof l->command);
    l->image = look_image(pid);
    int rc = check_process(l, e) ?: read_memory(l, &maps, start + max_ns, e);
    look_maps_release(&maps);
    if (rc < 0)
        return rc;
    read_group(l);
    look_children_read(l);
    return 0;
}

void look_compare(struct look *now, const struct look *before)
{
    now->heap.is_corrupt |= now->heap.bad_at && now->heap.bad_at == before->heap.bad_at &&
                            now->heap.bad_size == before->heap.bad_size;
}
