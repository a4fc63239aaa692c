// `heaptape receive`: a server that stores traces uploaded by PUT. The code is in
// libheaptape-receive.so (see module_load).
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define RECEIVE_LIBRARY "libheaptape-receive.so"

struct receive_settings {
    const char *listen; // HOST:PORT
    const char *folder;
    const char *token_file;         // NULL to allow uploads without a token
    const char *certificate, *key;  // PEM files; NULL if TLS is not used
    uint64_t max_bytes;             // maximum size of a file
    bool verbose;                   // also report successful uploads
    void (*note)(const char *text); // called from several threads
};

// Runs until SIGTERM, SIGINT or SIGHUP arrives, then removes unfinished files and returns 0. If the
// server cannot start, returns a negative errno with the message set.
typedef int receive_function(const struct receive_settings *s, struct err *e);
receive_function receive_run;
