// Uploads the files of a spool, and removes each file that the server has stored.
#pragma once

#include "transfer/request.h"

struct upload_settings {
    const char *url; // result of upload_url
    // The spool; the URL of a file is `url` followed by the file's path in the spool.
    const char *folder;
    const char *token_file, *s3_region; // see struct request_settings
    uint64_t timeout_ns;                // see struct request_settings
    const char *timeout_option;         // see struct request_settings
    uint64_t wait_ns;
    // For `record`, the read end of a pipe. The pipe receives a byte for each new file and is
    // closed at the end of the recording. `record` also holds the lock of the directory. After the
    // recording, the upload runs for at most wait_ns, and a signal ends it. For `upload`, -1. In
    // that case, the upload ends after wait_ns without a success or, if the settings are wrong,
    // immediately.
    int added;
    const struct request_calls *calls;
    void (*note)(const char *text);
    bool verbose; // report each file
};

struct upload_result {
    uint64_t files, bytes;           // number and total size of uploaded files
    uint64_t left_files, left_bytes; // number and total size of files that are still in the spool
};

// Returns true for http:// and https:// URLs.
bool upload_is_url(const char *text);

// Returns the URL, with a slash appended if necessary, or NULL with the message set. The caller
// must free the URL.
char *upload_url(const char *text, struct err *e);

// Uploads the files, and reports failures as notes. Returns 0 even if files remain, or a negative
// errno with the message set.
int upload_run(const struct upload_settings *s, struct upload_result *result, struct err *e);
