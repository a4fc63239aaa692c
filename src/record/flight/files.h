// The files that a recording writes: their limits and names. A command is run for each written
// file, in order, and the oldest files are removed.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Maximum number of stored bytes (0 if unlimited) and maximum duration (UINT64_MAX if unlimited).
struct flight_window {
    uint64_t bytes, ns;
};

enum { FLIGHT_MIN_BYTES = 1 << 20 };

// Parses "64M", "5min" or both, separated by a comma. Returns 0, -EINVAL, or -ERANGE if the number
// of bytes is below FLIGHT_MIN_BYTES.
int flight_window_parse(const char *text, struct flight_window *w);

// Returns the pattern with %n replaced with `number`, or NULL if out of memory. The caller must
// free the result.
char *flight_path(const char *pattern, uint64_t number);

// Signal after which flight_files_reap no longer waits. The process must block it.
enum { FLIGHT_FILES_END = SIGUSR1 };

struct flight_file;

struct flight_files {
    uint64_t keep;       // number of latest files to keep; 0 keeps all files
    const char *command; // shell command with the file's path as $1, or NULL
    const char *option;  // name of the option that set the command
    void (*note)(const char *text);
    struct flight_file *files; // files with an entry, oldest first; owned
    size_t n, capacity;
    size_t commanded;  // number of files whose command has ended
    pid_t command_pid; // pid of the command that runs for the next file, or 0
};

// Adds a file. `trigger` is the value of $HEAPTAPE_TRIGGER, or NULL. Copies both strings. Only one
// command runs at a time, so that commands do not pile up, for example while the network is down. A
// file is not removed before its command has ended. Returns 0, or -ENOMEM.
int flight_files_add(struct flight_files *f, const char *path, const char *trigger);

// If the command of a file has ended, runs the command for the next file. If `wait` is set, waits
// until the last command has ended or FLIGHT_FILES_END is pending. In the latter case, prints a
// note about the running command.
void flight_files_reap(struct flight_files *f, bool wait);

void flight_files_release(struct flight_files *f);
