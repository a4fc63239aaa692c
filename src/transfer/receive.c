#include "transfer/receive.h"

#include "base/clock.h"
#include "transfer/module.h"
#include "transfer/receive_private.h"
#include "transfer/secret.h"
#include "transfer/tokens.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

// libmicrohttpd's default allows TLS 1.0 and 1.1, which are insecure.
#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

enum { THREADS = 4, PEM_BYTES = 1 << 20, CLOSING = 256, MAX_DESCRIPTORS = 8192 };

// Splits "HOST:PORT", "[::1]:PORT" or ":PORT" in place. Returns 0 or -EINVAL.
static int split_address(char *text, char **host, char **port)
{
    char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    // getaddrinfo reduces the port modulo 65536. The names of services convert to 0.
    if (!colon || !colon[1] || strtoul(colon + 1, NULL, 10) > UINT16_MAX)
        return -EINVAL;
    *colon = 0;
    *port = colon + 1;
    *host = n ? text : NULL;
    if (n >= 2 && text[0] == '[' && colon[-1] == ']') {
        colon[-1] = 0;
        *host = text + 1;
    } else if (strchr(text, ':')) {
        return -EINVAL;
    }
    return 0;
}

// Returns a socket that listens at the address. With `both`, an IPv6 socket also accepts IPv4.
static int listen_on(const struct addrinfo *a, bool both)
{
    const int on = 1, only = !both;
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int failed = errno;
    close(fd);
    errno = failed;
    return -1;
}

// Returns a listening socket, or a negative errno with the message set.
static int open_socket(const char *listens, struct err *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char text[NI_MAXHOST + NI_MAXSERV], *host, *port;
    int fd = -1;
    snprintf(text, sizeof text, "%s", listens);
    if (strlen(listens) >= sizeof text || split_address(text, &host, &port) < 0)
        return err_set(e, -EINVAL, "--listen %.64s: expected HOST:PORT or [ADDRESS]:PORT", listens);
    int rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0)
        return err_set(e, -EINVAL, "--listen %s: %s", listens, gai_strerror(rc));
    // If no host is given, prefer an IPv6 socket that also accepts IPv4. If the system has no IPv6,
    // use an IPv4 socket.
    for (const struct addrinfo *a = found; a && !host && fd < 0; a = a->ai_next)
        fd = a->ai_family == AF_INET6 ? listen_on(a, true) : -1;
    for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next)
        fd = listen_on(a, false);
    rc = fd < 0 ? err_set_errno(e, "--listen %s", listens) : fd;
    freeaddrinfo(found);
    return rc;
}

static bool is_local(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
    if (address->ss_family == AF_INET)
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    return address->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

static void note_address(const struct receive_server *r, int fd)
{
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    bool brackets;
    if (getsockname(fd, (struct sockaddr *)&address, &bytes) < 0 ||
        getnameinfo((struct sockaddr *)&address, bytes, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    brackets = address.ss_family == AF_INET6;
    err_note(r->settings->note, "listening on %s://%s%s%s:%s/",
             r->settings->certificate ? "https" : "http", brackets ? "[" : "", host,
             brackets ? "]" : "", port);
    if (!r->settings->token_file && !is_local(&address))
        err_note(r->settings->note, "without --token-file, anyone who can connect can upload");
    else if (!r->settings->certificate && !is_local(&address))
        err_note(r->settings->note,
                 "without --certificate, tokens and recordings are not encrypted");
}

// Returns the content of a PEM file as a string, or NULL with the message set. The caller must free
// the string.
static char *read_pem(const char *path, enum secret_kind kind, struct err *e)
{
    char *text = calloc(1, PEM_BYTES + 1);
    ssize_t n = text ? secret_read(path, kind, text, PEM_BYTES, e) : err_no_memory(e, NULL);
    if (n >= 0 && strstr(text, "-----BEGIN "))
        return text;
    err_set(e, -EINVAL, "%s: is not a PEM file", path);
    if (text)
        explicit_bzero(text, PEM_BYTES);
    free(text);
    return NULL;
}

static int read_keys(struct receive_server *r, struct err *e)
{
    const struct receive_settings *s = r->settings;
    struct tokens tokens;
    if (s->token_file && tokens_read(s->token_file, &tokens, e) < 0)
        return -EINVAL;
    if (!s->certificate)
        return 0;
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return err_set(e, -ENOTSUP, "--certificate: libmicrohttpd was built without TLS");
    r->certificate = read_pem(s->certificate, SECRET_PUBLIC, e);
    r->key = r->certificate ? read_pem(s->key, SECRET_PRIVATE, e) : NULL;
    return r->key ? 0 : -EINVAL;
}

// Suppresses the messages that libmicrohttpd would write to stderr.
static void ignore_message(void *context, const char *format, va_list args)
{
    (void)context;
    (void)format;
    (void)args;
}

static int start_server(struct receive_server *r, int fd, struct err *e)
{
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, r->certificate},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, r->key},
                                   {MHD_OPTION_HTTPS_PRIORITIES, 0, (char[]){PRIORITIES}},
                                   {MHD_OPTION_END, 0, NULL}};
    unsigned flags =
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ERROR_LOG | (r->certificate ? MHD_USE_TLS : 0);
    // libmicrohttpd divides this limit by the number of threads, but one thread may get all
    // connections. Therefore the limit is multiplied here, and connections_add enforces the real
    // limit.
    unsigned limit =
        THREADS * (unsigned)(r->connections.max_waiting + CONNECTIONS_UPLOADS + CLOSING);
    // clang-format off
    r->daemon = MHD_start_daemon(flags, 0, NULL, NULL, receive_on_request, r,
        MHD_OPTION_EXTERNAL_LOGGER, ignore_message, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, limit,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS,
        MHD_OPTION_NOTIFY_CONNECTION, receive_on_connection, r,
        MHD_OPTION_URI_LOG_CALLBACK, receive_on_target, r,
        MHD_OPTION_UNESCAPE_CALLBACK, receive_unescape, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, receive_on_completed, r,
        MHD_OPTION_ARRAY, r->certificate ? tls : tls + 3,
        MHD_OPTION_END);
    // clang-format on
    if (r->daemon)
        return 0;
    if (r->certificate)
        return err_set(e, -EINVAL, "%s, %s: the server cannot start with this certificate and key",
                       r->settings->certificate, r->settings->key);
    return err_set(e, -EIO, "the server cannot start");
}

// Raises the limit of open files. Returns the new limit.
static size_t raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    if (limit.rlim_cur < MAX_DESCRIPTORS) {
        limit.rlim_cur = limit.rlim_max < MAX_DESCRIPTORS ? limit.rlim_max : MAX_DESCRIPTORS;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    return (size_t)limit.rlim_cur;
}

// Serves requests until a signal arrives.
static int serve(struct receive_server *r, struct err *e)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    // Block the signals before creating threads, because threads inherit the mask.
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    int fd = open_socket(r->settings->listen, e);
    int rc = fd < 0 ? fd : start_server(r, fd, e);
    if (rc == 0) {
        note_address(r, fd);
        while (sigtimedwait(&ends, NULL, &(struct timespec){.tv_sec = 1}) < 0)
            connections_expire(&r->connections, clock_monotonic_ns());
        MHD_stop_daemon(r->daemon); // also closes the socket
    } else if (fd >= 0) {
        close(fd);
    }
    return rc;
}

TRANSFER_EXPORT int receive_run(const struct receive_settings *s, struct err *e)
{
    struct receive_server r = {.settings = s};
    int rc = read_keys(&r, e) ?: store_open(&r.store, s->folder, e);
    if (rc == 0) {
        connections_init(&r.connections, raise_limit());
        rc = serve(&r, e);
        connections_release(&r.connections);
        store_close(&r.store);
    }
    if (r.key)
        explicit_bzero(r.key, strlen(r.key));
    free(r.certificate);
    free(r.key);
    return rc;
}
