// Forked children that were running before heaptape attached to their parent, such as the workers
// of a prefork server. They are not recorded.
#pragma once

#include "capture/spool/spool.h"

#include <stddef.h>
#include <sys/types.h>

#define RUNNING_WHY "was running before --pid attached to the process that forked it"

struct running_child {
    pid_t pid;
    char name[SPOOL_NAME_BYTES]; // "" if the process had ended
};

// Lists the descendants of `pid` that run the executable of `pid`. The caller must free the list.
// Returns NULL if there are none or memory is short.
struct running_child *running_list(pid_t pid, size_t *n);
