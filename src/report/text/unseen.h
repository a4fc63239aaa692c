// Notes about memory of processes whose calls were not all recorded.
#ifndef HEAPTAPE_TEXT_UNSEEN_H
#define HEAPTAPE_TEXT_UNSEEN_H

// If the trace at `path` is a regular file, reads it again and prints the notes about it.
void unseen_note(const char *path);

#endif
