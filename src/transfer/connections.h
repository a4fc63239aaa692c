// Connections of a server. Connections are limited in total and per address, and each step of a
// connection has a time limit. If a connection reaches a limit, it is shut down, and the server's
// loop then closes it. All functions are thread-safe.
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct sockaddr;

enum {
    CONNECTIONS_HEAD_S = 10, // for the first request head, and for the body of a refused request
    CONNECTIONS_IDLE_S = 60, // time between two requests, and between two reads of a body
    // Minimum average rate of a body in bytes per second, excluding its first CONNECTIONS_IDLE_S
    // seconds.
    CONNECTIONS_BYTES_PER_S = 1000,
    CONNECTIONS_WAITING = 1024,        // connections without an upload
    CONNECTIONS_ADDRESS_WAITING = 256, // connections without an upload from one address
    CONNECTIONS_UPLOADS = 256,         // concurrent uploads
    CONNECTIONS_ADDRESS_UPLOADS = 64,  // concurrent uploads from one address
};

struct connections_list;

struct connection {
    TAILQ_ENTRY(connection) link;
    struct connections_list *list;
    int fd;
    uint64_t address[2];      // IPv4 address, or network of an IPv6 address
    uint64_t deadline_ns;     // UINT64_MAX if there is no deadline
    uint64_t begun_ns, bytes; // start of the current upload and bytes received so far
};

struct connections_list {
    TAILQ_HEAD(, connection) head; // oldest first
    size_t n;
};

struct connections {
    pthread_mutex_t lock;
    struct connections_list waiting, uploads, closing;
    size_t max_waiting;
};

// Initializes the limits. `descriptors` is the maximum number of open files. The lower it is, the
// fewer connections can wait.
void connections_init(struct connections *all, size_t descriptors);
void connections_release(struct connections *all);

// Adds a connection that is waiting for the head of its first request. If too many connections from
// this address, or in total, are waiting, shuts down the oldest of them. Returns NULL when out of
// memory.
struct connection *connections_add(struct connections *all, int fd, const struct sockaddr *from,
                                   uint64_t now_ns);

// Removes and frees a connection, which may be NULL. Call before closing `fd`.
void connections_remove(struct connections *all, struct connection *c);

// Starts an upload. Returns 0, or -EBUSY if there are too many uploads from this address or in
// total.
int connections_begin_upload(struct connections *all, struct connection *c, uint64_t now_ns);

// Call for each part of the body of an upload.
void connections_progress(struct connections *all, struct connection *c, size_t bytes,
                          uint64_t now_ns);

// Call when the whole body has been received. The connection has no deadline until
// connections_wait.
void connections_finish(struct connections *all, struct connection *c);

// Ends an upload. The connection may wait for at most `seconds` for the next request.
void connections_wait(struct connections *all, struct connection *c, unsigned seconds,
                      uint64_t now_ns);

// Shuts down connections whose deadline has passed.
void connections_expire(struct connections *all, uint64_t now_ns);
