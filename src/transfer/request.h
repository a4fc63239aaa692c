// One upload at a time, by libcurl: libheaptape-upload.so, for module_load.
#ifndef HEAPTAPE_TRANSFER_REQUEST_H
#define HEAPTAPE_TRANSFER_REQUEST_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define REQUEST_LIBRARY "libheaptape-upload.so"
#define REQUEST_PACKAGE "libcurl4-openssl-dev"

struct request; // the connection

struct request_settings {
    const char *token_file; // of which the first token is sent; NULL: none
    const char *
        s3_region; // requests are signed with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; NULL: not
    uint32_t
        timeout_s; // for the connection with the first 64 KiB, each further 64 KiB, and the answer
    const char *timeout_option; // for messages
    // Asked about once a second during a request: shall it end?
    bool (*ends)(void *context);
    void *context;
};

struct request_result {
    long status;            // of HTTP; 0: there is no answer
    bool permanent;         // … and there will be none: the settings are wrong
    uint32_t retry_after_s; // that the server asks for
    char text[200];         // what is wrong; printable
};

// libheaptape-upload.so exports `request_calls` of this type.
struct request_calls {
    // Do the settings have all that they need? 0 or a negative errno with the text set.
    int (*check)(const struct request_settings *s, struct err *e);
    // In the process that makes requests. NULL when out of memory.
    struct request *(*open)(const struct request_settings *s);
    void (*put)(struct request *r, const char *url, int fd, uint64_t bytes,
                struct request_result *result);
    void (*close)(struct request *r);
};

#endif
