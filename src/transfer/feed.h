// The spool of a recording, and the process that uploads it: the recording never waits for the network.
#ifndef HEAPTAPE_TRANSFER_FEED_H
#define HEAPTAPE_TRANSFER_FEED_H

#include "transfer/upload.h"

#include <sys/types.h>

struct feed {
    struct upload_settings upload;   // `url`, `folder` and `added` are set here
    void (*error)(const char *text); // called in the end where something was dropped or is left
    uint64_t limit;                  // of the spool, in bytes
    char *spool, *name;              // of all recordings, and of this one in it: owned
    char *url, *folder;              // of this recording: owned
    char *pattern;                   // of the paths of segments: FOLDER/%n.ht; owned
    int lock;                        // of the folder, or -1
    int told;                        // the pipe to the process, or -1
    pid_t pid;                       // 0: it does not run
    uint64_t added_files, dropped_files, dropped_bytes;
};

// Names this recording HOST/PROGRAM-TIME-PID, below `url` and below `spool`, or where that is NULL, heaptape/upload in $XDG_STATE_HOME
// or ~/.local/state. 0 or a negative errno with the text set. Nothing is made.
int feed_init(struct feed *f, const char *spool, const char *url, const char *program, pid_t pid,
              struct err *e);
void feed_release(struct feed *f);

// Starts the process. 0 or a negative errno with the text set.
int feed_start(struct feed *f, struct err *e);

// A file is in the folder, under its name. Drops the oldest ones if there are too many, and says so. `feed` is a struct feed.
void feed_added(void *feed);

// No more files come: waits until the process has ended, which has a limit of its own, says what was uploaded and what is left, and
// removes the folder and that of the host if they are empty.
void feed_end(struct feed *f);

#endif
