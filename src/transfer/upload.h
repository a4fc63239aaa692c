// Uploads the files of a spool, and removes each that the server has.
#ifndef HEAPTAPE_TRANSFER_UPLOAD_H
#define HEAPTAPE_TRANSFER_UPLOAD_H

#include "transfer/request.h"

struct upload_settings {
    const char *url;                    // that upload_url has made
    const char *folder;                 // the spool; URL + the path in it is the address of a file
    const char *token_file, *s3_region; // as in struct request_settings
    uint32_t timeout_s;                 // as in struct request_settings
    const char *timeout_option;         // …
    uint64_t wait_ns;
    // In the process of `record` that is told by this pipe when a file is added, and whose end is the end of the recording: from
    // there on it lasts for wait_ns at most, and a signal ends it. It holds the lock of the folder already. -1: nothing is
    // added; it ends when wait_ns have passed without an upload, and at once where the settings are wrong.
    int added;
    const struct request_calls *calls;
    void (*note)(const char *text);
    bool verbose; // a note for each file
};

struct upload_result {
    uint64_t files, bytes;           // uploaded
    uint64_t left_files, left_bytes; // in the spool
};

// Is it an address of files, http:// or https://?
bool upload_is_url(const char *text);

// The URL with a slash at its end, to be freed; NULL with the text set.
char *upload_url(const char *text, struct err *e);

// What stands in the way is noted. 0, also where files are left, or a negative errno with the text set.
int upload_run(const struct upload_settings *s, struct upload_result *result, struct err *e);

#endif
