// The command that is run after each file that has been written.
#ifndef HEAPTAPE_FLIGHT_HOOK_H
#define HEAPTAPE_FLIGHT_HOOK_H

#include <sys/types.h>

// Starts it by the shell, with the path as $1 and `trigger`, unless that is NULL, as $HEAPTAPE_TRIGGER; its standard input is empty. Its process, or a
// negative errno.
pid_t hook_run(const char *command, const char *path, const char *trigger);

#endif
