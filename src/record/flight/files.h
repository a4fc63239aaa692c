// The files that a recording has written, one after the other: a command is run for each, and the oldest are removed.
#ifndef HEAPTAPE_FLIGHT_FILES_H
#define HEAPTAPE_FLIGHT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct flight_file; // its path and trigger

struct flight_files {
    uint64_t keep;       // the last ones; 0: all
    const char *command; // run by the shell with a file's path as $1; NULL: none
    const char *option;  // that the command was set by
    void (*note)(const char *text);
    struct flight_file *files; // that are not removed and not forgotten, the oldest first; owned
    size_t n, capacity;
    size_t commanded;  // of these, the command has ended for so many
    pid_t command_pid; // it runs for the next one; 0: it does not
};

// A file has been written. `trigger`, unless it is NULL, is $HEAPTAPE_TRIGGER for the command. Both are copied. One command runs
// at a time, so that no crowd of them waits while the network is away; a file is removed only after its command. 0, or
// -ENOMEM.
int flight_files_add(struct flight_files *f, const char *path, const char *trigger);

// Looks whether the command has ended, and runs it for the next file; `wait`: until it has been run for all.
void flight_files_reap(struct flight_files *f, bool wait);

void flight_files_release(struct flight_files *f);

#endif
