// Files of a process in /proc.
#ifndef HEAPTAPE_PROC_FILE_H
#define HEAPTAPE_PROC_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Opens /proc/PID/NAME for reading. Returns a descriptor, or a negative errno.
int proc_file_open(pid_t pid, const char *name);

// Reads /proc/PID/NAME with one read(2), truncates it to fit, and terminates it. Returns its size,
// or a negative errno if it cannot be opened; *to is then empty.
ssize_t proc_file_read(pid_t pid, const char *name, char *to, size_t room);

// Returns the start time of a process, in clock ticks since the boot, from the text of
// /proc/PID/stat; 0: unknown.
uint64_t proc_file_start_ticks(const char *stat);

#endif
