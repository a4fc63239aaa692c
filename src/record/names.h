// The names of a process's threads, from outside.
#ifndef HEAPTAPE_RECORD_NAMES_H
#define HEAPTAPE_RECORD_NAMES_H

#include "base/buf.h"

#include <sys/types.h>

// Replaces `names` by those of the threads that live, as TRACE_F_THREAD_NAMES holds them; of a process that has ended
// they stay. Of very many threads, some.
void names_look(struct buf *names, pid_t pid);

#endif
