#include "transfer/connections.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { OTHER_DESCRIPTORS = 64, MIN_WAITING = 64 };

void connections_init(struct connections *all, size_t descriptors)
{
    // An upload also needs a descriptor for its file.
    size_t others = 2 * CONNECTIONS_UPLOADS + OTHER_DESCRIPTORS;
    size_t left = descriptors > others + MIN_WAITING ? descriptors - others : MIN_WAITING;
    *all = (struct connections){.lock = PTHREAD_MUTEX_INITIALIZER,
                                .max_waiting =
                                    left < CONNECTIONS_WAITING ? left : CONNECTIONS_WAITING};
    TAILQ_INIT(&all->waiting.head);
    TAILQ_INIT(&all->uploads.head);
    TAILQ_INIT(&all->closing.head);
}

void connections_release(struct connections *all)
{
    pthread_mutex_destroy(&all->lock);
}

static void append_connection(struct connections_list *list, struct connection *c)
{
    TAILQ_INSERT_TAIL(&list->head, c, link);
    list->n++;
    c->list = list;
}

static void remove_from_list(struct connection *c)
{
    TAILQ_REMOVE(&c->list->head, c, link);
    c->list->n--;
}

// Moves a connection to another list. A closing connection stays in its list.
static void move_connection(const struct connections *all, struct connection *c,
                            struct connections_list *to)
{
    if (c->list == &all->closing)
        return;
    remove_from_list(c);
    append_connection(to, c);
}

// Shuts down the socket. This wakes the thread that serves the connection; the thread then reads
// the end of the stream.
static void shut_down(struct connections *all, struct connection *c)
{
    shutdown(c->fd, SHUT_RDWR);
    move_connection(all, c, &all->closing);
}

// Keeps only the network of an IPv6 address, because a user usually has a whole /64 network.
static void copy_address(struct connection *c, const struct sockaddr *from)
{
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
    if (from->sa_family == AF_INET)
        memcpy(&c->address[1], &((const struct sockaddr_in *)from)->sin_addr,
               sizeof(struct in_addr));
    else if (from->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        memcpy(&c->address[1], &six->sin6_addr.s6_addr[12], sizeof(struct in_addr));
    else if (from->sa_family == AF_INET6)
        memcpy(&c->address[0], &six->sin6_addr, sizeof c->address[0]);
}

// Returns the number of connections that have the same address as `of`, and sets *oldest to the
// oldest of these connections.
static size_t count_address(const struct connections_list *list, const struct connection *of,
                            struct connection **oldest)
{
    struct connection *c;
    size_t n = 0;
    *oldest = NULL;
    TAILQ_FOREACH(c, &list->head, link)
    {
        if (memcmp(c->address, of->address, sizeof c->address) != 0)
            continue;
        *oldest = *oldest ? *oldest : c;
        n++;
    }
    return n;
}

struct connection *connections_add(struct connections *all, int fd, const struct sockaddr *from,
                                   uint64_t now_ns)
{
    struct connection *c = calloc(1, sizeof *c), *oldest;
    if (!c)
        return NULL;
    c->fd = fd;
    c->deadline_ns = now_ns + CONNECTIONS_HEAD_S * CLOCK_NS_PER_S;
    if (from)
        copy_address(c, from);
    pthread_mutex_lock(&all->lock);
    while (count_address(&all->waiting, c, &oldest) >= CONNECTIONS_ADDRESS_WAITING)
        shut_down(all, oldest);
    while (all->waiting.n >= all->max_waiting)
        shut_down(all, TAILQ_FIRST(&all->waiting.head));
    append_connection(&all->waiting, c);
    pthread_mutex_unlock(&all->lock);
    return c;
}

void connections_remove(struct connections *all, struct connection *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&all->lock);
    remove_from_list(c);
    pthread_mutex_unlock(&all->lock);
    free(c);
}

int connections_begin_upload(struct connections *all, struct connection *c, uint64_t now_ns)
{
    struct connection *oldest;
    pthread_mutex_lock(&all->lock);
    bool full = all->uploads.n >= CONNECTIONS_UPLOADS ||
                count_address(&all->uploads, c, &oldest) >= CONNECTIONS_ADDRESS_UPLOADS;
    if (!full) {
        move_connection(all, c, &all->uploads);
        c->begun_ns = now_ns;
        c->bytes = 0;
        c->deadline_ns = now_ns + CONNECTIONS_IDLE_S * CLOCK_NS_PER_S;
    }
    pthread_mutex_unlock(&all->lock);
    return full ? -EBUSY : 0;
}

void connections_progress(struct connections *all, struct connection *c, size_t bytes,
                          uint64_t now_ns)
{
    pthread_mutex_lock(&all->lock);
    c->bytes += bytes;
    uint64_t idle_ns = now_ns + CONNECTIONS_IDLE_S * CLOCK_NS_PER_S;
    uint64_t slow_ns =
        c->begun_ns + (CONNECTIONS_IDLE_S + c->bytes / CONNECTIONS_BYTES_PER_S) * CLOCK_NS_PER_S;
    c->deadline_ns = idle_ns < slow_ns ? idle_ns : slow_ns;
    pthread_mutex_unlock(&all->lock);
}

void connections_finish(struct connections *all, struct connection *c)
{
    pthread_mutex_lock(&all->lock);
    c->deadline_ns = UINT64_MAX;
    pthread_mutex_unlock(&all->lock);
}

void connections_wait(struct connections *all, struct connection *c, unsigned seconds,
                      uint64_t now_ns)
{
    pthread_mutex_lock(&all->lock);
    c->deadline_ns = now_ns + seconds * CLOCK_NS_PER_S;
    move_connection(all, c, &all->waiting);
    pthread_mutex_unlock(&all->lock);
}

static void expire_list(struct connections *all, struct connections_list *list, uint64_t now_ns)
{
    struct connection *next;
    for (struct connection *c = TAILQ_FIRST(&list->head); c; c = next) {
        next = TAILQ_NEXT(c, link);
        if (now_ns >= c->deadline_ns)
            shut_down(all, c);
    }
}

void connections_expire(struct connections *all, uint64_t now_ns)
{
    pthread_mutex_lock(&all->lock);
    expire_list(all, &all->waiting, now_ns);
    expire_list(all, &all->uploads, now_ns);
    pthread_mutex_unlock(&all->lock);
}
