// Files of a process in /proc.
#ifndef HEAPTAPE_PROC_FILE_H
#define HEAPTAPE_PROC_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Opens /proc/PID/NAME for reading. Returns a descriptor, or a negative errno.
int proc_file_open(pid_t pid, const char *name);

// Reads /proc/PID/NAME with one read(2). Truncates the contents to fit, and terminates them.
// Returns their size. Returns a negative errno, and sets *to to "", if the file cannot be opened.
ssize_t proc_file_read(pid_t pid, const char *name, char *to, size_t room);

// Returns the start time of a process from the text of /proc/PID/stat, in clock ticks since the
// boot, or 0 if unknown.
uint64_t proc_file_start_ticks(const char *stat);

#endif
