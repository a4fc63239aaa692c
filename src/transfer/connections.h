// The connections of a server, with limits by number, by address and by time. A connection that reaches one is shut down, so that
// the server's loop closes it. All functions may be called by several threads.
#ifndef HEAPTAPE_TRANSFER_CONNECTIONS_H
#define HEAPTAPE_TRANSFER_CONNECTIONS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct sockaddr;

enum {
    CONNECTIONS_HEAD_S = 10,           // for the head of the first request, and to read the body of a refused one
    CONNECTIONS_IDLE_S = 60,           // between two requests, and while no byte of a body arrives
    CONNECTIONS_BYTES_PER_S = 1000,    // of a body, at least, after CONNECTIONS_IDLE_S
    CONNECTIONS_WAITING = 1024,        // connections without an upload
    CONNECTIONS_ADDRESS_WAITING = 256, // … of one address
    CONNECTIONS_UPLOADS = 256,         // at a time
    CONNECTIONS_ADDRESS_UPLOADS = 64,  // … of one address
};

struct connections_list;

struct connection {
    TAILQ_ENTRY(connection) link;
    struct connections_list *list;
    int fd;
    uint64_t address[2];      // an IPv4 address, or the network of an IPv6 one
    uint64_t deadline_ns;     // UINT64_MAX: none
    uint64_t begun_ns, bytes; // of the upload
};

struct connections_list {
    TAILQ_HEAD(, connection) head; // the oldest first
    size_t n;
};

struct connections {
    pthread_mutex_t lock;
    struct connections_list waiting, uploads, closing;
    size_t max_waiting;
};

// `descriptors` is how many the process may have open: fewer connections may wait if these are few.
void connections_init(struct connections *all, size_t descriptors);
void connections_release(struct connections *all);

// Adds a connection that waits for its first head. If too many wait, of the address or of all, the oldest of them is shut down.
// NULL when out of memory.
struct connection *connections_add(struct connections *all, int fd, const struct sockaddr *from, uint64_t now_ns);

// Call before `fd` is closed. NULL: nothing.
void connections_remove(struct connections *all, struct connection *c);

// The head was accepted. 0, or -EBUSY if the address or all together have too many uploads.
int connections_begin_upload(struct connections *all, struct connection *c, uint64_t now_ns);

// Bytes of the body of an upload have arrived.
void connections_progress(struct connections *all, struct connection *c, size_t bytes, uint64_t now_ns);

// The body has arrived: no limit applies until the request has ended.
void connections_finish(struct connections *all, struct connection *c);

// The request has ended, or was refused (`seconds` CONNECTIONS_HEAD_S): the connection waits for that long.
void connections_wait(struct connections *all, struct connection *c, unsigned seconds, uint64_t now_ns);

// Shuts down each connection whose time has passed.
void connections_expire(struct connections *all, uint64_t now_ns);

#endif
