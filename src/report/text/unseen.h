// Notes about memory of processes whose calls were not all recorded.
#ifndef HEAPTAPE_TEXT_UNSEEN_H
#define HEAPTAPE_TEXT_UNSEEN_H

#include <stdbool.h>

// If the trace at `path` is a regular file, reads it again and prints the notes about it. If
// `has_losses` is set, a process calls its own malloc or has opened an object with RTLD_DEEPBIND.
void unseen_note(const char *path, bool has_losses);

#endif
