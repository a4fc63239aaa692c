#include "record/processes/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int proc_file_open(pid_t pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

ssize_t proc_file_read(pid_t pid, const char *name, char *to, size_t room)
{
    int fd = proc_file_open(pid, name);
    ssize_t n = fd < 0 ? fd : read(fd, to, room - 1);
    to[n > 0 ? n : 0] = 0;
    if (fd < 0)
        return fd;
    close(fd);
    return n > 0 ? n : 0;
}

bool proc_file_lines_open(struct proc_file_lines *l, const char *path, ...)
{
    char formatted[128];
    va_list values;
    va_start(values, path);
    vsnprintf(formatted, sizeof formatted, path, values);
    va_end(values);
    *l = (struct proc_file_lines){.file = fopen(formatted, "re")};
    return l->file;
}

char *proc_file_lines_next(struct proc_file_lines *l)
{
    if (!l->file || getline(&l->line, &l->room, l->file) <= 0)
        return NULL;
    l->line[strcspn(l->line, "\n")] = 0;
    return l->line;
}

char *proc_file_lines_find(struct proc_file_lines *l, const char *start)
{
    size_t n = strlen(start);
    char *line = proc_file_lines_next(l);
    while (line && strncmp(line, start, n) != 0)
        line = proc_file_lines_next(l);
    return line ? line + n : NULL;
}

void proc_file_lines_close(struct proc_file_lines *l)
{
    free(l->line);
    if (l->file)
        fclose(l->file);
}

DIR *proc_file_folder(pid_t pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    return opendir(path);
}

pid_t proc_file_next(DIR *folder)
{
    const struct dirent *d;
    long number = 0;
    while (folder && number <= 0 && (d = readdir(folder)))
        number = strtol(d->d_name, NULL, 10);
    return number > 0 ? (pid_t)number : 0;
}

uint64_t proc_file_stat(const char *stat, enum proc_file_field field)
{
    const char *at = strrchr(stat, ')');
    for (unsigned i = 2; at && i < (unsigned)field; i++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}
