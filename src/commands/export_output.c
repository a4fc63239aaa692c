#include "commands/export_output.h"

#include "cli/command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char pid_place[] = "%p";

bool export_output_is_per_process(const struct export_file_options *options)
{
    return options->fd <= 0 && options->output && strstr(options->output, pid_place);
}

// The path with the pid in its places. The caller frees it; NULL when out of memory.
static char *path_for(const char *pattern, uint32_t pid)
{
    char *path = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&path, &n);
    const char *place;
    if (!to)
        return NULL;
    while ((place = strstr(pattern, pid_place))) {
        fprintf(to, "%.*s%u", (int)(place - pattern), pattern, pid);
        pattern = place + strlen(pid_place);
    }
    fputs(pattern, to);
    return fclose(to) == 0 ? path : NULL;
}

// A process that calls exec is a new image with the same pid: its file gets a number behind the name.
static int make_path_free(char **path, struct err *e)
{
    struct stat st;
    for (unsigned i = 1; lstat(*path, &st) == 0; i++) {
        char *next, *dot = i > 1 ? strrchr(*path, '.') : NULL;
        int n = dot ? (int)(dot - *path) : (int)strlen(*path);
        if (asprintf(&next, "%.*s.%u", n, *path, i) < 0)
            return err_set(e, -ENOMEM, "%s: out of memory", *path);
        free(*path);
        *path = next;
    }
    return 0;
}

static int open_fd(struct output *out, int fd, struct err *e)
{
    int flags = fcntl(fd, F_GETFL);
    *out = (struct output){.fd = fd, .name = fd == STDOUT_FILENO ? "(stdout)" : "(the log's file descriptor)"};
    if (flags < 0)
        return err_set_errno(e, "file descriptor %d", fd);
    if ((flags & O_ACCMODE) == O_RDONLY)
        return err_set(e, -EBADF, "file descriptor %d: is not open for writing", fd);
    return 0;
}

static int open_append(struct output *out, const char *path, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    *out = (struct output){.fd = fd, .owns_fd = true, .name = path};
    return fd < 0 ? err_set_errno(e, "%s: cannot open", path) : 0;
}

// Files that are good when they are cut off are written in place while they grow.
static int open_plain(struct output *out, const struct export_file_options *options, const char *path, struct err *e)
{
    bool in_place = options->live && options->format->holds & FORMAT_HOLDS_ADDRESSES;
    unsigned flags = (options->force ? OUTPUT_FORCE : 0) | (in_place ? 0 : OUTPUT_ASIDE);
    if (options->fd > 0)
        return open_fd(out, options->fd, e);
    if (options->append && strcmp(path, "-") != 0)
        return open_append(out, path, e);
    return output_open(out, path, flags, e);
}

static int check_folder(const struct export_file_options *options, const char *path, struct err *e)
{
    struct stat st;
    if (options->fd > 0 || strcmp(path, "-") == 0)
        return err_set(e, -EINVAL, "%s writes a directory: name it with -o", options->format->name);
    if (lstat(path, &st) == 0 && !options->force)
        return err_set(e, -EEXIST, "%s: exists; use -f to replace it", path);
    return 0;
}

int export_file_prepare(const struct export_file_options *o, struct output *out, struct err *e)
{
    *out = (struct output){.fd = -1};
    if (export_output_is_per_process(o))
        return 0;
    return o->format->folder ? check_folder(o, o->output ? o->output : "-", e) : open_plain(out, o, o->output, e);
}

static int take_opened(struct export_output *o, const struct export_file_options *options, struct err *e)
{
    if (!options->opened || options->opened->fd < 0)
        return open_plain(&o->out, options, o->path ? o->path : options->output, e);
    o->out = *options->opened;
    *options->opened = (struct output){.fd = -1};
    return 0;
}

// Folders are filled beside their name and renamed.
static int open_folder(struct export_output *o, const struct export_file_options *options, struct err *e)
{
    const char *path = o->path ? o->path : options->output;
    int rc = check_folder(options, path, e);
    if (rc < 0)
        return rc;
    o->out.name = path;
    if (asprintf(&o->folder, "%s.tmp-%ld", path, (long)getpid()) < 0) {
        o->folder = NULL;
        return err_set(e, -ENOMEM, "%s: out of memory", path);
    }
    return mkdir(o->folder, 0777) < 0 ? err_set_errno(e, "%s: cannot create", o->folder) : 0;
}

// Removes the folder and the files in it. What holds other folders was not written by an export and stays.
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

static void say(const char *text)
{
    note("%s", text);
}

int export_output_open(struct export_output *o, const struct export_file_options *options,
                       const struct export_facts *facts, uint32_t pid, struct err *e)
{
    int rc = 0;
    *o = (struct export_output){.x = {.format = options->format, .facts = *facts, .name_dropped = say}, .out.fd = -1};
    if (export_output_is_per_process(options)) {
        o->path = path_for(options->output, pid);
        rc = !o->path ? err_set(e, -ENOMEM, "out of memory") : options->force ? 0 : make_path_free(&o->path, e);
    }
    if (rc == 0)
        rc = options->format->folder ? open_folder(o, options, e) : take_opened(o, options, e);
    o->x.folder = o->folder;
    return rc < 0 ? rc : export_open(&o->x, &o->out, e);
}

int export_output_close(struct export_output *o, const struct export_file_options *options, bool commit,
                        struct export *lost, struct err *e)
{
    int rc = commit ? export_finish(&o->x) : 0;
    commit = commit && rc == 0;
    if (commit)
        export_add_losses(lost, &o->x);
    export_release(&o->x);
    int closed = !options->format->folder ? output_close(&o->out, commit, e)
                 : o->folder              ? close_folder(o, commit, e)
                                          : 0;
    free(o->path);
    o->path = NULL;
    return rc < 0 ? rc : closed;
}
