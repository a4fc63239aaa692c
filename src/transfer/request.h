// Uploads single files with libcurl. The code is in libheaptape-upload.so (see module_load).
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define REQUEST_LIBRARY "libheaptape-upload.so"
#define REQUEST_PACKAGE "libcurl4-openssl-dev"

struct request; // a connection

struct request_settings {
    const char *token_file; // the first token in the file is sent; NULL for no token
    // Requests are signed with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN for
    // this region. NULL for unsigned requests.
    const char *s3_region;
    // Time limit for connecting and sending the first 64 KiB, for each additional 64 KiB, and for
    // the response.
    uint64_t timeout_ns;
    const char *timeout_option; // name of the option, for messages
    // Called at least once a second during a request. Returns true to abort the request.
    bool (*ends)(void *context);
    void *context;
};

struct request_result {
    long status;    // HTTP status, or 0 if there was no response
    bool permanent; // there was no response, and a retry would also fail because of the settings
    uint32_t retry_after_s; // delay requested by the server
    char text[200];         // description of the failure; printable
};

// Type of `request_calls` in libheaptape-upload.so.
struct request_calls {
    // Checks that the settings are complete. Returns 0, or a negative errno with the message set.
    int (*check)(const struct request_settings *s, struct err *e);
    // Call in the process that makes the requests. Returns NULL when out of memory.
    struct request *(*open)(const struct request_settings *s);
    void (*put)(struct request *r, const char *url, int fd, uint64_t bytes,
                struct request_result *result);
    void (*close)(struct request *r);
};
