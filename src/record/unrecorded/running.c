#include "record/unrecorded/running.h"

#include "base/buf.h"
#include "record/processes/proc_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct running_process {
    pid_t pid, parent;
    bool is_descendant;
};

struct processes {
    struct running_process *items;
    size_t n, capacity;
};

static void read_processes(struct processes *all)
{
    DIR *proc = opendir("/proc");
    char text[1024];
    for (pid_t pid; (pid = proc_file_next(proc));) {
        if (proc_file_read(pid, "stat", text, sizeof text) <= 0)
            continue;
        const struct running_process p = {pid, (pid_t)proc_file_stat(text, PROC_FILE_PARENT),
                                          false};
        if (HT_APPEND(&all->items, &all->n, &all->capacity, p) < 0)
            break;
    }
    proc_file_close_folder(proc);
}

static bool is_descendant(const struct processes *all, pid_t parent, pid_t of)
{
    if (parent == of)
        return true;
    for (size_t i = 0; i < all->n; i++) {
        if (all->items[i].pid == parent)
            return all->items[i].is_descendant;
    }
    return false;
}

// Repeats the pass, because a child may have a lower pid than its parent.
static void mark_descendants(struct processes *all, pid_t of)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < all->n; i++) {
            struct running_process *p = &all->items[i];
            if (p->is_descendant || !is_descendant(all, p->parent, of))
                continue;
            p->is_descendant = changed = true;
        }
    }
}

static bool read_executable(pid_t pid, struct stat *st)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    return stat(path, st) == 0;
}

static bool runs_file(pid_t pid, const struct stat *file)
{
    struct stat st;
    return read_executable(pid, &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

struct running_child *running_list(pid_t pid, size_t *n)
{
    struct processes all = {0};
    struct stat own;
    struct running_child *list = NULL;
    size_t capacity = 0;
    *n = 0;
    if (!read_executable(pid, &own))
        return NULL;
    read_processes(&all);
    mark_descendants(&all, pid);
    for (size_t i = 0; i < all.n; i++) {
        const struct running_process *p = &all.items[i];
        if (!p->is_descendant || !runs_file(p->pid, &own))
            continue;
        struct running_child child = {.pid = p->pid};
        ssize_t got = proc_file_read(p->pid, "comm", child.name, sizeof child.name);
        child.name[got > 0 ? strcspn(child.name, "\n") : 0] = 0;
        if (HT_APPEND(&list, n, &capacity, child) < 0)
            break;
    }
    free(all.items);
    return list;
}
