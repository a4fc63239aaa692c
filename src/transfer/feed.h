// The spool of a recording, and the process that uploads the segments in the spool. A recording
// never blocks on the network.
#pragma once

#include "transfer/upload.h"

#include <sys/types.h>

struct feed {
    struct upload_settings upload;   // feed sets `url`, `folder` and `added`
    void (*error)(const char *text); // called at the end if segments were dropped or not uploaded
    uint64_t limit;                  // maximum size of the spool in bytes
    char *spool, *name; // spool of all recordings; path of this recording in the spool; owned
    char *url, *folder; // URL and directory of this recording; owned
    char *pattern;      // path of the segments, DIR/%n.ht; owned
    int lock;           // lock of the directory, or -1
    int notify;         // pipe that notifies the upload process of new files, or -1
    pid_t pid;          // pid of the upload process, or 0 if it is not running
    uint64_t added_files, dropped_files, dropped_bytes;
};

// Sets the name HOST/PROGRAM-TIME-PID for the recording, below `url` and `spool`. If `spool` is
// NULL, uses heaptape/upload in $XDG_STATE_HOME or ~/.local/state. Creates no files. Returns 0, or
// a negative errno with the message set.
int feed_init(struct feed *f, const char *spool, const char *url, const char *program, pid_t pid,
              struct err *e);
void feed_release(struct feed *f);

// Starts the upload process. Returns 0, or a negative errno with the message set.
int feed_start(struct feed *f, struct err *e);

// Call when a file in the directory is complete. If the spool is too large, drops the oldest files
// and reports them. `feed` is a struct feed.
void feed_added(void *feed);

// Call after the last file. Waits for the upload process to finish, for a limited time. Reports the
// uploaded and the remaining segments. If the directories of the recording and of the host are
// empty, removes them. Returns 0, or a negative errno, after `error` was called, if segments were
// dropped or, unless `upload.wait_ns` is 0, not uploaded.
int feed_end(struct feed *f);
