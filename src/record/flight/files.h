// Files of a recording: runs a command for each, in order, and removes the oldest.
#ifndef HEAPTAPE_FLIGHT_FILES_H
#define HEAPTAPE_FLIGHT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct flight_file;

struct flight_files {
    uint64_t keep;       // number of latest files to keep; 0: all
    const char *command; // shell command, with the file's path as $1; NULL: none
    const char *option;  // name of the option that set the command
    void (*note)(const char *text);
    struct flight_file *files; // files with an entry, oldest first; owned
    size_t n, capacity;
    size_t commanded;  // number of these files whose command has ended
    pid_t command_pid; // command that runs for the next file; 0: none
};

// Adds a file. `trigger` is the value of $HEAPTAPE_TRIGGER, or NULL. Copies both strings. Commands
// run one at a time, so that they do not pile up, for example while the network is down. A file is
// not removed before its command has ended. Returns 0, or -ENOMEM.
int flight_files_add(struct flight_files *f, const char *path, const char *trigger);

// If the command has ended, runs it for the next file. With `wait`, returns after the last command
// has ended.
void flight_files_reap(struct flight_files *f, bool wait);

void flight_files_release(struct flight_files *f);

#endif
