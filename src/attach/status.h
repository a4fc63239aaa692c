// Fields of /proc/PID/task/TID/status.
#ifndef HEAPTAPE_ATTACH_STATUS_H
#define HEAPTAPE_ATTACH_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// The number in the field of that name, such as "Tgid", and the first letter of its text; 0 where there is no such thread.
uint64_t status_number(pid_t pid, pid_t tid, const char *field, int base);
char status_letter(pid_t pid, pid_t tid, const char *field);

#endif
