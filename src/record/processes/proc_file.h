// Files of a process in /proc.
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

// Opens /proc/PID/NAME for reading. Returns a descriptor, or a negative errno.
int proc_file_open(pid_t pid, const char *name);

// Closes a file or directory that may not be open: `fd` may be negative, and `folder` may be NULL.
static inline void proc_file_close(int fd)
{
    if (fd >= 0)
        close(fd);
}
static inline void proc_file_close_folder(DIR *folder)
{
    if (folder)
        closedir(folder);
}

// Reads /proc/PID/NAME with one read(2). Truncates the contents to fit, and terminates them.
// Returns their size. Returns a negative errno, and sets *to to "", if the file cannot be opened.
ssize_t proc_file_read(pid_t pid, const char *name, char *to, size_t room);

// Lines of a file, without their newlines. A line is valid until the next call. If the file cannot
// be opened, proc_file_lines_open returns false and sets errno, and the other functions find no
// line. proc_file_lines_find returns the rest of the next line that begins with `start`, or NULL.
struct proc_file_lines {
    FILE *file;
    char *line;
    size_t room;
};
bool proc_file_lines_open(struct proc_file_lines *l, const char *path, ...)
    __attribute__((format(printf, 2, 3)));
char *proc_file_lines_next(struct proc_file_lines *l);
char *proc_file_lines_find(struct proc_file_lines *l, const char *start);
void proc_file_lines_close(struct proc_file_lines *l);

// Opens the directory /proc/PID/NAME. Returns NULL on failure.
DIR *proc_file_folder(pid_t pid, const char *name);

// Returns the next entry of a directory whose name is a positive number, or 0 at the end. `folder`
// may be NULL.
pid_t proc_file_next(DIR *folder);

// Fields of /proc/PID/stat, by their numbers in proc(5).
enum proc_file_field {
    PROC_FILE_PARENT = 4,
    PROC_FILE_MINOR_FAULTS = 10,
    PROC_FILE_CHILDREN_FAULTS = 11, // minor faults of children that the process has waited for
    PROC_FILE_MAJOR_FAULTS = 12,
    PROC_FILE_USER_TICKS = 14,
    PROC_FILE_SYSTEM_TICKS = 15,
    PROC_FILE_START_TICKS = 22, // since boot
    PROC_FILE_ENV_END = 51,
};

// Returns a number from the text of /proc/PID/stat, or 0 if unknown.
uint64_t proc_file_stat(const char *stat, enum proc_file_field field);
