// Plans for the executables of started programs that define an allocator of their own.
#ifndef HEAPTAPE_ENTRIES_ANSWER_H
#define HEAPTAPE_ENTRIES_ANSWER_H

#include <sys/types.h>

// Writes the plan of a process's executable to the directory `dir_fd` (entries_name_file), unless
// the file is there. Omits an allocator if one of its functions cannot be redirected, because a
// recording of only some functions would be wrong. The file is empty if no allocator remains.
void entries_answer(int dir_fd, pid_t pid);

#endif
