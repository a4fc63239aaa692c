// Notes about a recording, which `record` prints after it has reread the trace. The trace at `path`
// must be a regular file.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Prints a note if at least 1 % of the bytes have stacks that end before they reach the program's
// own code. If `verbose` is set, always prints the shares. If there are more than 5 million
// `events`, prints only the name of the command that prints the shares.
void notes_coverage(const char *path, uint64_t events, bool verbose);

// Prints notes about the memory of processes if some of their calls were not recorded. `has_losses`
// means that a process calls its own malloc or has opened an object with RTLD_DEEPBIND. If the
// trace is larger than 256 MiB, prints only the name of the command that finds such memory, or
// nothing if `has_losses` is false.
void notes_unseen(const char *path, bool has_losses);
