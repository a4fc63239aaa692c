// Callbacks of libmicrohttpd for the server of receive.h.
#pragma once

#include "transfer/connections.h"
#include "transfer/receive.h"
#include "transfer/store.h"

#include <microhttpd.h>

struct receive_server {
    const struct receive_settings *settings;
    struct store store;
    struct connections connections;
    char *certificate, *key; // contents of the files
    struct MHD_Daemon *daemon;
};

// Called when a connection opens or closes.
void receive_on_connection(void *receiver, struct MHD_Connection *c, void **connection,
                           enum MHD_ConnectionNotificationCode what);

// Called after the first line of a request. Returns the request for the other callbacks.
void *receive_on_target(void *receiver, const char *target, struct MHD_Connection *c);

// Decodes %xx in place. Returns the new length.
size_t receive_unescape(void *context, struct MHD_Connection *c, char *text);

// Called for the head, for each part of the body, and at the end of the body.
enum MHD_Result receive_on_request(void *receiver, struct MHD_Connection *c, const char *path,
                                   const char *method, const char *version, const char *data,
                                   size_t *n, void **request);

void receive_on_completed(void *receiver, struct MHD_Connection *c, void **request,
                          enum MHD_RequestTerminationCode why);
