// Plans for the executables of started programs that define an allocator of their own.
#ifndef HEAPTAPE_ENTRIES_ANSWER_H
#define HEAPTAPE_ENTRIES_ANSWER_H

#include <sys/types.h>

// Writes the plan of a process's executable to the directory `dir_fd` (entries_name_file), unless
// the file is there. The file is empty if the executable has no allocator, or if one of the
// allocator's functions cannot be redirected: a recording of only some functions would be wrong.
void entries_answer(int dir_fd, pid_t pid);

#endif
