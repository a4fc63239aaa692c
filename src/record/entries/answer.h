// Plans for the objects of started programs that define an allocator.
#ifndef HEAPTAPE_ENTRIES_ANSWER_H
#define HEAPTAPE_ENTRIES_ANSWER_H

#include "capture/spool/attach.h"

#include <stdint.h>
#include <sys/types.h>

// A process that waits for a plan, and the process's descriptor of the object's file.
struct entries_request {
    pid_t pid;
    int fd;
};

// Report on the functions that the plans redirect.
struct entries_report {
    const struct spool_wrap *wrap; // functions of --wrap to find, or NULL
    uint32_t named;    // bits 1 << SPOOL_WRAP_* of the functions of --wrap that were found
    char refused[400]; // "NAME in FILE: REASON" of a function that cannot be redirected, or ""
};

// Writes the plan of the object to the directory `dir_fd` (entries_name_file), unless the file
// exists. Omits an allocator if one of its functions cannot be redirected, because a recording of
// only some functions would be wrong. The file is empty if no allocator remains.
void entries_answer(int dir_fd, struct entries_request request, struct entries_report *report);

#endif
