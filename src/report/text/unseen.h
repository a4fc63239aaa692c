// Notes about memory of processes whose calls were not all recorded.
#ifndef HEAPTAPE_TEXT_UNSEEN_H
#define HEAPTAPE_TEXT_UNSEEN_H

// Reads the trace at `path` again, if it is a regular file, and prints its notes.
void unseen_note(const char *path);

#endif
