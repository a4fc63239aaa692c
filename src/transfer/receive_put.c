#include "base/clock.h"
#include "transfer/names.h"
#include "transfer/receive_private.h"
#include "transfer/tokens.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DRAINED_BYTES = 64 << 20, RETRY_S = 5 };

// The current request of a connection.
struct receive_request {
    struct connection *connection;
    struct store_file file;
    const char *target; // as sent by the client, up to the first NUL
    size_t target_bytes;
    bool begun;
    uint64_t body_bytes;
    unsigned status; // 0 if there was no error yet
    const char *why; // string literal
    // Close the connection after the response, because the start of the next request is unknown.
    bool closes;
};

static void refuse(struct receive_request *q, unsigned status, const char *why)
{
    q->status = status;
    q->why = why;
}

static void refuse_framing(struct receive_request *q, unsigned status, const char *why)
{
    refuse(q, status, why);
    q->closes = true;
}

static void refuse_errno(struct receive_request *q, int rc)
{
    if (rc == -ENOSPC || rc == -EDQUOT || rc == -EFBIG)
        refuse(q, MHD_HTTP_INSUFFICIENT_STORAGE, "the disk is full, or a limit is reached");
    else if (rc == -ENOTDIR || rc == -EISDIR || rc == -ELOOP)
        refuse(q, MHD_HTTP_CONFLICT, "a file and a directory have the same name");
    else
        refuse(q, MHD_HTTP_INTERNAL_SERVER_ERROR, strerror(-rc));
}

static bool is_allowed(const struct receive_server *r, struct MHD_Connection *c)
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

// The header fields that describe the body: how many there are, and the values of the last.
struct framing {
    unsigned lengths, codings;
    const char *length, *coding;
    bool bad_name, is_part;
};

static enum MHD_Result note_field(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct framing *f = context;
    (void)kind;
    f->bad_name |= name[strcspn(name, " \t")] != 0;
    if (strcasecmp(name, "Content-Length") == 0) {
        f->lengths++;
        f->length = value;
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        f->codings++;
        f->coding = value;
    } else if (strcasecmp(name, "Content-Range") == 0) {
        f->is_part = true;
    }
    return MHD_YES;
}

// Detects a NUL in the target. libmicrohttpd ends the target at the first NUL, and overwrites the
// space before the version with NUL.
static bool has_nul(const struct receive_request *q, const char *path, const char *version)
{
    enum { MAX_HEAD_BYTES = 1 << 16 };
    const char *end = q->target + q->target_bytes;
    unsigned nuls = 0;
    if (q->target != path || version <= end || version - end > MAX_HEAD_BYTES)
        return false;
    for (; end < version; end++)
        nuls += !*end;
    return nuls > 1;
}

// Refuses requests whose length is ambiguous (request smuggling). Returns false if the request is
// refused.
static bool check_framing(const struct framing *f, const char *version, struct receive_request *q)
{
    if (f->bad_name)
        refuse_framing(q, MHD_HTTP_BAD_REQUEST, "the name of a header field has a space");
    else if (f->lengths > 1)
        refuse_framing(q, MHD_HTTP_BAD_REQUEST, "more than one Content-Length");
    else if (f->lengths && f->codings)
        refuse_framing(q, MHD_HTTP_BAD_REQUEST,
                       "Content-Length and Transfer-Encoding exclude each other");
    else if (f->codings > 1 || (f->codings && strcasecmp(f->coding, "chunked") != 0))
        refuse_framing(q, MHD_HTTP_BAD_REQUEST, "the only Transfer-Encoding allowed is chunked");
    else if (f->codings && strcmp(version, "HTTP/1.1") != 0)
        refuse_framing(q, MHD_HTTP_BAD_REQUEST, "Transfer-Encoding needs HTTP/1.1");
    return !q->status;
}

// The first line of a request.
struct request_line {
    const char *method, *path, *version;
};

// Opens the file, or sets the status for refusing the request.
static void begin_upload(struct receive_server *r, struct MHD_Connection *c,
                         const struct request_line *line, struct receive_request *q,
                         const struct framing *f)
{
    uint64_t bytes = f->length ? strtoull(f->length, NULL, 10) : 0;
    if (!is_allowed(r, c)) {
        refuse(q, MHD_HTTP_UNAUTHORIZED, "the token is missing or wrong");
    } else if (strcmp(line->method, "PUT") != 0) {
        refuse(q, MHD_HTTP_METHOD_NOT_ALLOWED, "only PUT is allowed");
    } else if (line->path[0] != '/' || names_check(line->path + 1) < 0) {
        refuse(q, MHD_HTTP_BAD_REQUEST,
               "expected the path /HOST/PROCESS/NAME.ht of letters, digits and ._+-");
    } else if (!f->lengths && !f->codings) {
        refuse_framing(q, MHD_HTTP_LENGTH_REQUIRED,
                       "expected a Content-Length, or Transfer-Encoding: chunked");
    } else if (f->is_part) {
        refuse(q, MHD_HTTP_BAD_REQUEST, "a part of a file (Content-Range) is not accepted");
    } else if (bytes > r->settings->max_bytes) {
        refuse(q, MHD_HTTP_CONTENT_TOO_LARGE, "the file is larger than --max-size");
    } else if (connections_begin_upload(&r->connections, q->connection, clock_monotonic_ns()) < 0) {
        refuse(q, MHD_HTTP_SERVICE_UNAVAILABLE, "too many uploads at a time");
    } else {
        int rc = store_begin(&r->store, &q->file, bytes);
        if (rc < 0)
            refuse_errno(q, rc);
    }
}

static void add_body(struct receive_server *r, struct receive_request *q, const char *data,
                     size_t n)
{
    q->body_bytes += n;
    if (q->status)
        return;
    connections_progress(&r->connections, q->connection, n, clock_monotonic_ns());
    bool too_large = q->body_bytes > r->settings->max_bytes;
    int rc = too_large ? 0 : store_write(&q->file, data, n);
    if (too_large)
        refuse(q, MHD_HTTP_CONTENT_TOO_LARGE, "the file is larger than --max-size");
    else if (rc < 0)
        refuse_errno(q, rc);
    if (q->status) {
        store_abort(&r->store, &q->file);
        connections_wait(&r->connections, q->connection, CONNECTIONS_HEAD_S, clock_monotonic_ns());
    }
}

static void finish_upload(struct receive_server *r, const char *path, struct receive_request *q)
{
    enum store_result result;
    if (q->status)
        return;
    connections_finish(&r->connections, q->connection);
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

static void note_answer(const struct receive_server *r, struct MHD_Connection *c, const char *path,
                        const struct receive_request *q)
{
    char host[NI_MAXHOST] = "?";
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    bool known = names_check(path + 1) > 0; // other names cannot be printed safely
    if (q->status < 500 && !r->settings->verbose)
        return;
    if (info && info->client_addr)
        getnameinfo(info->client_addr,
                    info->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                             : sizeof(struct sockaddr_in),
                    host, sizeof host, NULL, 0, NI_NUMERICHOST);
    err_note(r->settings->note, "%s from %s: %s (%u)", known ? path + 1 : "a request", host, q->why,
             q->status);
}

static enum MHD_Result send_answer(struct receive_server *r, struct MHD_Connection *c,
                                   const char *path, const struct receive_request *q)
{
    char text[160], retry[16], digest[DIGEST_DIGITS + 1];
    snprintf(retry, sizeof retry, "%d", RETRY_S);
    int n = snprintf(text, sizeof text, "%s\n", q->why);
    struct MHD_Response *response =
        MHD_create_response_from_buffer((size_t)n, text, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", "text/plain");
    // The client compares the digest.
    if ((q->status == MHD_HTTP_CREATED || q->status == MHD_HTTP_OK) && q->file.digest) {
        digest_xxh3(q->file.digest, digest);
        MHD_add_response_header(response, DIGEST_HEADER, digest);
    }
    if (q->status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (q->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "PUT");
    if (q->status == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header(response, "Retry-After", retry);
    if (q->closes)
        MHD_add_response_header(response, "Connection", "close");
    note_answer(r, c, path, q);
    connections_wait(&r->connections, q->connection, CONNECTIONS_HEAD_S, clock_monotonic_ns());
    enum MHD_Result rc = MHD_queue_response(c, q->status, response);
    MHD_destroy_response(response);
    return rc;
}

// Returns true if the response is sent before the body is read. The connection closes afterwards.
static bool is_answered_now(struct MHD_Connection *c, const struct receive_request *q)
{
    const char *expect = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Expect");
    return q->closes || (expect && strcasecmp(expect, "100-continue") == 0) ||
           q->status == MHD_HTTP_CONTENT_TOO_LARGE;
}

void receive_on_connection(void *receiver, struct MHD_Connection *c, void **connection,
                           enum MHD_ConnectionNotificationCode what)
{
    struct receive_server *r = receiver;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        connections_remove(&r->connections, *connection);
        *connection = NULL;
        return;
    }
    int fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const struct sockaddr *from =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    *connection = connections_add(&r->connections, fd, from, clock_monotonic_ns());
}

void *receive_on_target(void *receiver, const char *target, struct MHD_Connection *c)
{
    struct receive_request *q = calloc(1, sizeof *q);
    (void)receiver;
    if (!q)
        return NULL;
    q->file.fd = -1;
    q->connection = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    q->target = target;
    q->target_bytes = strlen(target);
    return q;
}

size_t receive_unescape(void *context, struct MHD_Connection *c, char *text)
{
    size_t n = MHD_http_unescape(text);
    (void)context;
    (void)c;
    // A NUL that results from %00 would truncate the path. Replace the NUL with byte 1, which
    // names_check rejects.
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] ? text[i] : 1;
    return n;
}

static enum MHD_Result on_head(struct receive_server *r, struct MHD_Connection *c,
                               const struct request_line *line, struct receive_request *q)
{
    struct framing f = {0};
    MHD_get_connection_values(c, MHD_HEADER_KIND, note_field, &f);
    q->begun = true;
    if (has_nul(q, line->path, line->version))
        refuse_framing(q, MHD_HTTP_BAD_REQUEST, "the path has a NUL");
    else if (check_framing(&f, line->version, q))
        begin_upload(r, c, line, q, &f);
    if (!q->status)
        return MHD_YES;
    connections_wait(&r->connections, q->connection, CONNECTIONS_HEAD_S, clock_monotonic_ns());
    return is_answered_now(c, q) ? send_answer(r, c, line->path, q) : MHD_YES;
}

enum MHD_Result receive_on_request(void *receiver, struct MHD_Connection *c, const char *path,
                                   const char *method, const char *version, const char *data,
                                   size_t *n, void **request)
{
    struct receive_server *r = receiver;
    struct receive_request *q = *request;
    // Out of memory.
    if (!q || !q->connection)
        return MHD_NO;
    if (!q->begun)
        return on_head(r, c, &(struct request_line){method, path, version}, q);
    if (*n) {
        add_body(r, q, data, *n);
        *n = 0;
        // Skip the rest of the body, because clients read the response only after they have sent
        // the whole body. The number of skipped bytes is limited.
        return q->body_bytes > r->settings->max_bytes + DRAINED_BYTES ? MHD_NO : MHD_YES;
    }
    finish_upload(r, path, q);
    return send_answer(r, c, path, q);
}

void receive_on_completed(void *receiver, struct MHD_Connection *c, void **request,
                          enum MHD_RequestTerminationCode why)
{
    struct receive_server *r = receiver;
    struct receive_request *q = *request;
    (void)c;
    (void)why;
    if (!q)
        return;
    store_abort(&r->store, &q->file);
    if (q->connection)
        connections_wait(&r->connections, q->connection,
                         q->status && q->status < 300 ? CONNECTIONS_IDLE_S : CONNECTIONS_HEAD_S,
                         clock_monotonic_ns());
    free(q);
    *request = NULL;
}
