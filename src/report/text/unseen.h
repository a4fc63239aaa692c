// How much memory of the processes whose calls were not all recorded the recording does not explain.
#ifndef HEAPTAPE_PRINT_UNSEEN_H
#define HEAPTAPE_PRINT_UNSEEN_H

// Notes for the trace that was recorded to `path`, which is read again; nothing where it is no regular file.
void unseen_note(const char *path);

#endif
