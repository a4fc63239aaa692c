#include "formats/export_outputs.h"

#include "base/buf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct export_output {
    struct export x;
    struct output out;
    char *path; // path of the process's output; NULL if the path is in the settings
    // Temporary directory while the output is incomplete; NULL if the output is a file.
    char *folder;
};

static const char pid_mark[] = "%p";

static bool has_pid_mark(const struct export_settings *s)
{
    return s->fd <= 0 && s->output && strstr(s->output, pid_mark);
}

bool export_outputs_are_many(const struct export_settings *s)
{
    unsigned holds = s->format->export.holds;
    return has_pid_mark(s) || (s->live && !(holds & FORMAT_HOLDS_PIDS) && s->fd <= 0 && s->output &&
                               strcmp(s->output, "-") != 0);
}

// Replaces each "%p" with the pid. Returns the path, which the caller frees, or NULL when out of
// memory.
static char *path_for(const char *pattern, uint32_t pid)
{
    char *path = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&path, &n);
    const char *at;
    if (!to)
        return NULL;
    while ((at = strstr(pattern, pid_mark))) {
        fprintf(to, "%.*s%u", (int)(at - pattern), pattern, pid);
        pattern = at + strlen(pid_mark);
    }
    fputs(pattern, to);
    return fclose(to) == 0 ? path : NULL;
}

int export_outputs_free_path(char **path, unsigned first, struct err *e)
{
    struct stat st;
    char *base = *path, *numbered = NULL;
    unsigned n = first;
    while (n || lstat(base, &st) == 0) {
        n += n == 0;
        if (asprintf(&numbered, "%s.%u", base, n++) < 0)
            return err_no_memory(e, base);
        if (lstat(numbered, &st) < 0) {
            *path = numbered;
            free(base);
            return 0;
        }
        free(numbered);
    }
    return 0;
}

static int open_fd(struct output *out, int fd, struct err *e)
{
    int flags = fcntl(fd, F_GETFL);
    *out = (struct output){
        .fd = fd, .name = fd == STDOUT_FILENO ? "(stdout)" : "(the log's file descriptor)"};
    if (flags < 0)
        return err_set_errno(e, "file descriptor %d", fd);
    if ((flags & O_ACCMODE) == O_RDONLY)
        return err_set(e, -EBADF, "file descriptor %d: is not open for writing", fd);
    return 0;
}

static int open_append(struct output *out, const char *path, struct err *e)
{
    struct stat st;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    bool follows = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    *out = (struct output){.fd = fd, .owns_fd = true, .name = path, .follows = follows};
    return fd < 0 ? err_set_errno(e, "%s: cannot open", path) : 0;
}

// Formats that stay valid when truncated are written in place.
static int open_plain(struct output *out, const struct export_settings *s, const char *path,
                      struct err *e)
{
    bool in_place = s->live && s->format->export.holds & FORMAT_HOLDS_ADDRESSES;
    unsigned flags = (s->force ? OUTPUT_FORCE : 0) | (in_place ? OUTPUT_GROWS : OUTPUT_ASIDE);
    if (s->fd > 0)
        return open_fd(out, s->fd, e);
    if (s->append && strcmp(path, "-") != 0)
        return open_append(out, path, e);
    return output_open(out, path, flags, e);
}

static int check_folder(const struct export_settings *s, const char *path, struct err *e)
{
    struct stat st;
    if (s->fd > 0 || strcmp(path, "-") == 0)
        return err_set(e, -EINVAL, "%s writes a directory: name it with -o", s->format->name);
    if (lstat(path, &st) == 0 && !s->force)
        return err_set(e, -EEXIST, "%s: exists; use -f to replace it", path);
    return 0;
}

int export_outputs_prepare(const struct export_settings *s, struct output *out, struct err *e)
{
    *out = (struct output){.fd = -1};
    if (has_pid_mark(s))
        return 0;
    return s->format->export.folder ? check_folder(s, s->output ? s->output : "-", e)
                                    : open_plain(out, s, s->output, e);
}

static int open_file(struct export_output *o, const struct export_settings *s, struct err *e)
{
    if (o->path || !s->opened || s->opened->fd < 0)
        return open_plain(&o->out, s, o->path ? o->path : s->output, e);
    o->out = *s->opened;
    *s->opened = (struct output){.fd = -1};
    return 0;
}

// Creates the directory under a temporary name. The directory is renamed when it is complete.
static int open_folder(struct export_output *o, const struct export_settings *s, struct err *e)
{
    const char *path = o->path ? o->path : s->output;
    int rc = check_folder(s, path, e);
    if (rc < 0)
        return rc;
    o->out.name = path;
    if (asprintf(&o->folder, "%s.tmp-%ld", path, (long)getpid()) < 0) {
        o->folder = NULL;
        return err_no_memory(e, path);
    }
    return mkdir(o->folder, 0700) < 0 ? err_set_errno(e, "%s: cannot create", o->folder) : 0;
}

// Removes a directory and the files in it. Fails if it contains directories, which exports never
// create.
static int remove_folder(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *d;
    while (dir && (d = readdir(dir))) {
        if (d->d_name[0] != '.')
            unlinkat(dirfd(dir), d->d_name, 0);
    }
    if (dir)
        closedir(dir);
    return rmdir(path);
}

static bool is_export(const char *path)
{
    char *metadata;
    if (asprintf(&metadata, "%s/metadata", path) < 0)
        return false;
    bool is = access(metadata, F_OK) == 0;
    free(metadata);
    return is;
}

static int close_folder(struct export_output *o, bool commit, struct err *e)
{
    const char *path = o->out.name;
    int rc = 0;
    if (commit && rename(o->folder, path) < 0) {
        bool replaces = (errno == ENOTEMPTY || errno == EEXIST) && is_export(path);
        if (!replaces || remove_folder(path) < 0 || rename(o->folder, path) < 0)
            rc = err_set_errno(e, "%s: cannot replace", path);
    }
    if (rc < 0 || !commit)
        remove_folder(o->folder);
    free(o->folder);
    return rc;
}

// Appends a number to the path if an earlier image of the process has the path or, without --force,
// if the file exists. The file of an earlier image may not exist before its export is complete.
static int number_path(struct export_outputs *all, struct export_output *o, uint32_t pid)
{
    uint64_t n = map_get(&all->images, (uint64_t)pid + 1);
    size_t base_bytes = strlen(o->path);
    char *path = NULL;
    int rc = 0;
    if (!all->settings->force)
        rc = export_outputs_free_path(&o->path, (unsigned)n, all->e);
    else if (n && asprintf(&path, "%s.%u", o->path, (unsigned)n) < 0)
        return err_no_memory(all->e, o->path);
    if (path) {
        free(o->path);
        o->path = path;
    }
    if (rc == 0 && o->path[base_bytes])
        n = strtoul(o->path + base_bytes + 1, NULL, 10);
    if (rc == 0 && map_put(&all->images, (uint64_t)pid + 1, n + 1) < 0)
        rc = err_no_memory(all->e, o->path);
    return rc;
}

// Chooses the name of a process's file. After an exec, the new process image has the same pid, so a
// number may be appended.
static int make_path(struct export_outputs *all, struct export_output *o, uint32_t pid,
                     unsigned first)
{
    const struct export_settings *s = all->settings;
    o->path = path_for(s->output, pid);
    if (!o->path)
        return err_no_memory(all->e, NULL);
    return has_pid_mark(s) ? number_path(all, o, pid)
                           : export_outputs_free_path(&o->path, first, all->e);
}

static int open_one(struct export_outputs *all, struct export_output *o, size_t number,
                    uint32_t pid)
{
    const struct export_settings *s = all->settings;
    struct err *e = all->e;
    int rc = 0;
    *o = (struct export_output){
        .x = {.format = s->format, .facts = all->facts, .note = s->watch ? s->watch->note : NULL},
        .out.fd = -1};
    bool in_place = s->format->export.holds & FORMAT_HOLDS_ADDRESSES;
    // If files are not written in place, each gets its name when its process ends. Therefore the
    // file of process 0 does not exist yet while other processes open their files.
    bool is_opened = s->opened && s->opened->fd >= 0 && (in_place || number == 0);
    if (export_outputs_are_many(s) && !is_opened)
        rc = make_path(all, o, pid, !in_place && !has_pid_mark(s) && number ? 1 : 0);
    if (rc == 0)
        rc = s->format->export.folder ? open_folder(o, s, e) : open_file(o, s, e);
    o->x.folder = o->folder;
    return rc < 0 ? rc : export_open(&o->x, &o->out, e);
}

static int close_one(struct export_outputs *all, size_t at, bool commit)
{
    struct export_output *o = at < all->n ? all->all[at] : NULL;
    if (!o)
        return 0;
    int rc = commit ? export_finish(&o->x) : 0;
    commit = commit && rc == 0;
    if (commit)
        export_add_losses(&all->lost, &o->x);
    export_release(&o->x);
    int closed = !all->settings->format->export.folder ? output_close(&o->out, commit, all->e)
                 : o->folder                           ? close_folder(o, commit, all->e)
                                                       : 0;
    free(o->path);
    free(o);
    all->all[at] = NULL;
    return rc < 0 ? rc : closed;
}

static int open_new(struct export_outputs *o, size_t at, uint32_t pid)
{
    if (HT_EXTEND(&o->all, &o->n, &o->capacity, at + 1) < 0)
        return err_no_memory(o->e, NULL);
    o->all[at] = calloc(1, sizeof *o->all[at]);
    return o->all[at] ? open_one(o, o->all[at], at, pid) : err_no_memory(o->e, NULL);
}

int export_outputs_get(struct export_outputs *o, uint32_t process, uint32_t pid, struct export **x)
{
    size_t at = export_outputs_are_many(o->settings) ? process : 0;
    int rc = at < o->n && o->all[at] ? 0 : open_new(o, at, pid);
    *x = rc == 0 ? &o->all[at]->x : NULL;
    return rc;
}

int export_outputs_flush(struct export_outputs *o)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < o->n; i++)
        rc = o->all[i] ? export_buffer_flush(&o->all[i]->x.out) : 0;
    return rc;
}

int export_outputs_end(struct export_outputs *o, uint32_t process)
{
    return export_outputs_are_many(o->settings) ? close_one(o, process, true) : 0;
}

int export_outputs_close(struct export_outputs *o, bool commit)
{
    int rc = 0;
    for (size_t i = 0; i < o->n; i++) {
        int closed = close_one(o, i, commit && rc == 0);
        rc = rc < 0 ? rc : closed;
    }
    free(o->all);
    map_release(&o->images);
    o->all = NULL;
    o->n = 0;
    return rc;
}
