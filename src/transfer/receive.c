#include "transfer/receive.h"

#include "transfer/module.h"
#include "transfer/names.h"
#include "transfer/store.h"
#include "transfer/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONNECTIONS = 256, THREADS = 4, TIMEOUT_S = 60, PEM_BYTES = 1 << 20, DRAINED_BYTES = 64 << 20 };

struct receiver {
    const struct receive_settings *settings;
    struct store store;
    char *certificate, *key; // the content of the files
    struct MHD_Daemon *daemon;
};

// A request under work.
struct receive_request {
    struct store_file file;
    uint64_t body_bytes;
    unsigned status; // 0: nothing is wrong so far
    const char *why; // literal
};

static void refuse(struct receive_request *q, unsigned status, const char *why)
{
    q->status = status;
    q->why = why;
}

static void refuse_errno(struct receive_request *q, int rc)
{
    if (rc == -ENOSPC || rc == -EDQUOT || rc == -EFBIG)
        refuse(q, MHD_HTTP_INSUFFICIENT_STORAGE, "the disk is full, or a limit is reached");
    else if (rc == -ENOTDIR || rc == -EISDIR || rc == -ELOOP)
        refuse(q, MHD_HTTP_CONFLICT, "a file and a folder have the same name");
    else
        refuse(q, MHD_HTTP_INTERNAL_SERVER_ERROR, strerrordesc_np(-rc));
}

static bool is_allowed(const struct receiver *r, struct MHD_Connection *c)
{
    static const char scheme[] = "Bearer ";
    struct tokens tokens;
    struct err e = {0};
    const char *given = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    if (!r->settings->token_file)
        return true;
    if (tokens_read(r->settings->token_file, &tokens, &e) < 0) {
        err_note(r->settings->note, "%s", e.text);
        return false;
    }
    return given && strncasecmp(given, scheme, sizeof scheme - 1) == 0 &&
           tokens_have(&tokens, given + sizeof scheme - 1);
}

// What the head of a request is refused for; else its file is open.
static void begin(const struct receiver *r, struct MHD_Connection *c, const char *method, const char *path,
                  struct receive_request *q)
{
    const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
    uint64_t bytes = length ? strtoull(length, NULL, 10) : 0;
    if (!is_allowed(r, c)) {
        refuse(q, MHD_HTTP_UNAUTHORIZED, "the token is missing or wrong");
    } else if (strcmp(method, "PUT") != 0) {
        refuse(q, MHD_HTTP_METHOD_NOT_ALLOWED, "only PUT is allowed");
    } else if (path[0] != '/' || names_check(path + 1) < 0) {
        refuse(q, MHD_HTTP_BAD_REQUEST, "expected the path /HOST/PROCESS/NAME.ht of letters, digits and ._+-");
    } else if (bytes > r->settings->max_bytes) {
        refuse(q, MHD_HTTP_CONTENT_TOO_LARGE, "the file is larger than --max-size");
    } else {
        int rc = store_begin(&r->store, &q->file, bytes);
        if (rc < 0)
            refuse_errno(q, rc);
    }
}

static void add_body(const struct receiver *r, struct receive_request *q, const char *data, size_t n)
{
    q->body_bytes += n;
    if (q->status)
        return;
    if (q->body_bytes > r->settings->max_bytes) {
        refuse(q, MHD_HTTP_CONTENT_TOO_LARGE, "the file is larger than --max-size");
        store_abort(&r->store, &q->file);
        return;
    }
    int rc = store_write(&q->file, data, n);
    if (rc < 0) {
        refuse_errno(q, rc);
        store_abort(&r->store, &q->file);
    }
}

static void finish(const struct receiver *r, const char *path, struct receive_request *q)
{
    enum store_result result;
    if (q->status)
        return;
    int rc = store_commit(&r->store, &q->file, path + 1, &result);
    if (rc < 0)
        refuse_errno(q, rc);
    else if (result == STORE_NEW)
        refuse(q, MHD_HTTP_CREATED, "stored");
    else if (result == STORE_SAME)
        refuse(q, MHD_HTTP_OK, "was stored before");
    else
        refuse(q, MHD_HTTP_CONFLICT, "another file has this name");
}

static void say_answer(const struct receiver *r, struct MHD_Connection *c, const char *path,
                       const struct receive_request *q)
{
    char host[NI_MAXHOST] = "?";
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    bool known = names_check(path + 1) > 0; // anything else is not fit for a terminal
    if (q->status < 500 && !r->settings->verbose)
        return;
    if (info && info->client_addr)
        getnameinfo(info->client_addr,
                    info->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
                    host, sizeof host, NULL, 0, NI_NUMERICHOST);
    err_note(r->settings->note, "%s from %s: %s (%u)", known ? path + 1 : "a request", host, q->why, q->status);
}

static enum MHD_Result answer(const struct receiver *r, struct MHD_Connection *c, const char *path,
                              const struct receive_request *q)
{
    char text[160], digest[DIGEST_DIGITS + 1];
    int n = snprintf(text, sizeof text, "%s\n", q->why);
    struct MHD_Response *response = MHD_create_response_from_buffer((size_t)n, text, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", "text/plain");
    // The client compares what arrived.
    if ((q->status == MHD_HTTP_CREATED || q->status == MHD_HTTP_OK) && q->file.digest) {
        digest_xxh3(q->file.digest, digest);
        MHD_add_response_header(response, DIGEST_HEADER, digest);
    }
    if (q->status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (q->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "PUT");
    say_answer(r, c, path, q);
    enum MHD_Result rc = MHD_queue_response(c, q->status, response);
    MHD_destroy_response(response);
    return rc;
}

// The client sends the body only when it is asked for it, or there is none.
static bool waits_for_answer(struct MHD_Connection *c, const struct receive_request *q)
{
    const char *expect = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Expect");
    return (expect && strcasecmp(expect, "100-continue") == 0) || q->status == MHD_HTTP_CONTENT_TOO_LARGE;
}

// For the head, for each part of the body, and at its end.
static enum MHD_Result on_request(void *context, struct MHD_Connection *c, const char *path, const char *method,
                                  const char *version, const char *data, size_t *n, void **request)
{
    const struct receiver *r = context;
    struct receive_request *q = *request;
    (void)version;
    if (!q) {
        q = calloc(1, sizeof *q);
        if (!q)
            return MHD_NO;
        *request = q;
        q->file.fd = -1;
        begin(r, c, method, path, q);
        return q->status && waits_for_answer(c, q) ? answer(r, c, path, q) : MHD_YES;
    }
    if (*n) {
        add_body(r, q, data, *n);
        *n = 0;
        // A client reads the answer after it has sent all; but it may never end.
        return q->body_bytes > r->settings->max_bytes + DRAINED_BYTES ? MHD_NO : MHD_YES;
    }
    finish(r, path, q);
    return answer(r, c, path, q);
}

static void on_completed(void *context, struct MHD_Connection *c, void **request, enum MHD_RequestTerminationCode why)
{
    const struct receiver *r = context;
    struct receive_request *q = *request;
    (void)c;
    (void)why;
    if (q)
        store_abort(&r->store, &q->file);
    free(q);
    *request = NULL;
}

// "HOST:PORT", "[::1]:PORT", ":PORT" to its two parts, in `text`. 0 or -EINVAL.
static int split(char *text, char **host, char **port)
{
    char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    if (!colon || !colon[1])
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

// `both`: IPv6 and IPv4.
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

// A socket that listens, or a negative errno with the text set.
static int open_socket(const char *listens, struct err *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char text[NI_MAXHOST + NI_MAXSERV], *host, *port;
    int fd = -1;
    snprintf(text, sizeof text, "%s", listens);
    if (strlen(listens) >= sizeof text || split(text, &host, &port) < 0)
        return err_set(e, -EINVAL, "--listen %.64s: expected HOST:PORT or [ADDRESS]:PORT", listens);
    int rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0)
        return err_set(e, -EINVAL, "--listen %s: %s", listens, gai_strerror(rc));
    // Without a host, one socket of IPv6 accepts both; a system without IPv6 has only the other.
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

static void say_address(const struct receiver *r, int fd)
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
    err_note(r->settings->note, "listening on %s://%s%s%s:%s/", r->settings->certificate ? "https" : "http",
             brackets ? "[" : "", host, brackets ? "]" : "", port);
    if (!r->settings->token_file && !is_local(&address))
        err_note(r->settings->note, "there is no --token-file: everybody who can connect can upload");
    else if (!r->settings->certificate && !is_local(&address))
        err_note(r->settings->note, "there is no --certificate: tokens and recordings are not encrypted");
}

// The content of a PEM file as a string, to be freed.
static char *read_pem(const char *path, struct err *e)
{
    char *text = calloc(1, PEM_BYTES + 1);
    FILE *file = text ? fopen(path, "re") : NULL;
    bool read = file && (fread(text, 1, PEM_BYTES, file) > 0 || !ferror(file));
    bool ok = read && strstr(text, "-----BEGIN ");
    if (!read)
        err_set_errno(e, "%s", path);
    else if (!ok)
        err_set(e, -EINVAL, "%s: is not a PEM file", path);
    if (file)
        fclose(file);
    if (ok)
        return text;
    free(text);
    return NULL;
}

static int read_keys(struct receiver *r, struct err *e)
{
    const struct receive_settings *s = r->settings;
    struct tokens tokens;
    if (s->token_file && tokens_read(s->token_file, &tokens, e) < 0)
        return -EINVAL;
    if (!s->certificate)
        return 0;
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return err_set(e, -ENOTSUP, "--certificate: libmicrohttpd was built without TLS");
    r->certificate = read_pem(s->certificate, e);
    r->key = r->certificate ? read_pem(s->key, e) : NULL;
    return r->key ? 0 : -EINVAL;
}

// libmicrohttpd's own messages would go to standard error as they are.
static void ignore_message(void *context, const char *format, va_list args)
{
    (void)context;
    (void)format;
    (void)args;
}

static int start(struct receiver *r, int fd, struct err *e)
{
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, r->certificate},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, r->key},
                                   {MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ERROR_LOG | (r->certificate ? MHD_USE_TLS : 0);
    // clang-format off
    r->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, r,
        MHD_OPTION_EXTERNAL_LOGGER, ignore_message, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, r,
        MHD_OPTION_ARRAY, r->certificate ? tls : tls + 2,
        MHD_OPTION_END);
    // clang-format on
    if (r->daemon)
        return 0;
    if (r->certificate)
        return err_set(e, -EINVAL, "%s, %s: the server does not start with this certificate and key",
                       r->settings->certificate, r->settings->key);
    return err_set(e, -EIO, "the server does not start");
}

// Until a signal ends it.
static int serve(struct receiver *r, struct err *e)
{
    sigset_t ends;
    int sig;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    // Before there are threads, which inherit it.
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    int fd = open_socket(r->settings->listen, e);
    int rc = fd < 0 ? fd : start(r, fd, e);
    if (rc == 0) {
        say_address(r, fd);
        sigwait(&ends, &sig);
        MHD_stop_daemon(r->daemon); // closes the socket, too
    } else if (fd >= 0) {
        close(fd);
    }
    return rc;
}

TRANSFER_EXPORT int receive_run(const struct receive_settings *s, struct err *e)
{
    struct receiver r = {.settings = s};
    int rc = read_keys(&r, e);
    if (rc == 0)
        rc = store_open(&r.store, s->folder, e);
    if (rc == 0) {
        rc = serve(&r, e);
        store_close(&r.store);
    }
    if (r.key)
        explicit_bzero(r.key, strlen(r.key));
    free(r.certificate);
    free(r.key);
    return rc;
}
