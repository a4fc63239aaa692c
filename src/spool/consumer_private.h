// Shared by the files of the consumer.
#ifndef HEAPTAPE_SPOOL_CONSUMER_PRIVATE_H
#define HEAPTAPE_SPOOL_CONSUMER_PRIVATE_H

#include "spool/consumer.h"

// Finds the process that wrote the header, among those that the recorder can see: its pid here, 0 when it has ended.
// A process in another pid namespace knows itself by another number. start_time 0: the process does not know its own.
pid_t consumer_find_process(uint32_t pid, uint64_t start_time);

// Field 22 of /proc/PID/stat, 0 when there is no such process.
uint64_t consumer_start_time(pid_t pid);

// Has the process ended? A zombie has. For processes without a pidfd.
bool consumer_is_gone(pid_t pid, uint64_t start_time);

#endif
