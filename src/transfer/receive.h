// `heaptape receive`: a server that stores the traces that hosts upload by PUT. libheaptape-receive.so, for module_load.
#ifndef HEAPTAPE_TRANSFER_RECEIVE_H
#define HEAPTAPE_TRANSFER_RECEIVE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define RECEIVE_LIBRARY "libheaptape-receive.so"

struct receive_settings {
    const char *listen; // HOST:PORT
    const char *folder;
    const char *token_file;         // NULL: everybody may upload
    const char *certificate, *key;  // PEM files; NULL: without TLS
    uint64_t max_bytes;             // of a file
    bool verbose;                   // say what arrives, too
    void (*note)(const char *text); // called by several threads
};

// Runs until SIGTERM or SIGINT: 0 then, and nothing is left unfinished. A negative errno with the text set where it cannot begin.
typedef int receive_function(const struct receive_settings *s, struct err *e);
receive_function receive_run;

#endif
