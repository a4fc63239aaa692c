// The files that a recording has written: runs a command for each of them, in order, and removes
// the oldest.
#ifndef HEAPTAPE_FLIGHT_FILES_H
#define HEAPTAPE_FLIGHT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct flight_file; // path and trigger of a file

struct flight_files {
    uint64_t keep;       // number of latest files to keep; 0: all
    const char *command; // run by the shell with the file's path as $1; NULL: none
    const char *option;  // name of the option that set the command
    void (*note)(const char *text);
    struct flight_file *files; // not removed or forgotten yet, oldest first; owned
    size_t n, capacity;
    size_t commanded;  // number of these whose command has ended
    pid_t command_pid; // command that runs for the next file; 0: none
};

// Adds a file that was written. `trigger` is $HEAPTAPE_TRIGGER for the command, or NULL. Copies
// both strings. Commands run one at a time, so that they do not pile up while the network is down;
// a file is removed only after its command. Returns 0, or -ENOMEM.
int flight_files_add(struct flight_files *f, const char *path, const char *trigger);

// Checks whether the command has ended, and then runs the command for the next file. With `wait`,
// returns after it has run for all files.
void flight_files_reap(struct flight_files *f, bool wait);

void flight_files_release(struct flight_files *f);

#endif
