#include "transfer/request.h"

#include "base/clock.h"
#include "base/printable.h"
#include "transfer/digest.h"
#include "transfer/module.h"
#include "transfer/tokens.h"

#include <curl/curl.h>
#include <errno.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

// A body stalls if fewer than STEP_BYTES are sent within the time limit.
enum { STEP_BYTES = 64 << 10, BODY_BYTES = 120 };

struct request {
    const struct request_settings *settings;
    CURL *curl;
    curl_socket_t socket; // of the last connection
    int fd;
    off_t at;
    uint64_t bytes;        // size of the file
    struct digest *digest; // digest of the bytes sent so far
    bool sent_all;         // all bytes were sent before a response
    bool keyed;            // the ETag of S3 is not an MD5, because of the encryption
    char xxh3[DIGEST_DIGITS + 1], etag[DIGEST_DIGITS + 3]; // from the response; "" if not sent
    char body[BODY_BYTES + 1];                             // first bytes of the response
    // Size of the request body, and number of bytes sent when the time limit was last restarted.
    uint64_t to_send, seen_bytes;
    uint64_t deadline_ns;
    bool late;
    size_t body_bytes;
    char error[CURL_ERROR_SIZE];
};

static const char *get_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static int check_settings(const struct request_settings *s, struct err *e)
{
    struct tokens tokens;
    const char *authorities = get_variable("CURL_CA_BUNDLE");
    if (s->token_file && tokens_read(s->token_file, &tokens, e) < 0)
        return -EINVAL;
    if (authorities && access(authorities, R_OK) < 0)
        return err_set_errno(e, "%s (CURL_CA_BUNDLE)", authorities);
    if (s->s3_region &&
        (!get_variable("AWS_ACCESS_KEY_ID") || !get_variable("AWS_SECRET_ACCESS_KEY")))
        return err_set(e, -EINVAL,
                       "--s3 needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment");
    return 0;
}

static struct request *open_request(const struct request_settings *s)
{
    struct request *r = calloc(1, sizeof *r);
    if (r && (!(r->digest = digest_new(true)) ||
              curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(r->curl = curl_easy_init()))) {
        digest_free(r->digest);
        free(r);
        return NULL;
    }
    if (r)
        r->settings = s;
    return r;
}

static void close_request(struct request *r)
{
    curl_easy_cleanup(r->curl);
    digest_free(r->digest);
    free(r);
}

static size_t read_body(char *to, size_t size, size_t n, void *context)
{
    struct request *r = context;
    ssize_t got = pread(r->fd, to, size * n, r->at);
    if (got < 0)
        return CURL_READFUNC_ABORT;
    digest_add(r->digest, to, (size_t)got);
    r->at += got;
    return (size_t)got;
}

// Restarts the body on a new connection after the old connection broke.
static int seek_body(void *context, curl_off_t offset, int origin)
{
    struct request *r = context;
    if (origin != SEEK_SET || offset != 0)
        return CURL_SEEKFUNC_CANTSEEK;
    r->at = 0;
    digest_restart(r->digest);
    return CURL_SEEKFUNC_OK;
}

// CURLINFO_ACTIVESOCKET is unknown until the end of a connection's first request.
static int keep_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
    (void)purpose;
    ((struct request *)context)->socket = fd;
    return CURL_SOCKOPT_OK;
}

// Returns true if the peer has acknowledged the whole file.
static bool has_sent_all(const struct request *r, bool http_1)
{
    curl_off_t sent = 0;
    int unacknowledged = 0;
    if (curl_easy_getinfo(r->curl, CURLINFO_SIZE_UPLOAD_T, &sent) != CURLE_OK ||
        (uint64_t)sent < r->bytes)
        return false;
    // With HTTP/1, bytes that are unacknowledged when the response arrives have not been received.
    // With HTTP/2, unacknowledged bytes may belong to other frames.
    return !http_1 || ioctl(r->socket, SIOCOUTQ, &unacknowledged) < 0 || unacknowledged == 0;
}

// If the line contains the header `name` (in lower case) and the value fits into `size` bytes,
// copies the value. Returns false for other headers.
static bool read_header(const char *line, size_t n, const char *name, char *to, size_t size)
{
    size_t named = strlen(name), length = 0;
    if (n <= named || line[named] != ':' || strncasecmp(line, name, named) != 0)
        return false;
    line += named + 1;
    n -= named + 1;
    while (n && (*line == ' ' || *line == '\t'))
        line++, n--;
    while (n && strchr(" \t\r\n", line[n - 1]))
        n--;
    if (n >= size)
        return true;
    for (; length < n; length++)
        to[length] =
            (char)(line[length] >= 'A' && line[length] <= 'Z' ? line[length] | 0x20 : line[length]);
    to[length] = 0;
    return true;
}

static size_t on_header(char *line, size_t size, size_t n, void *context)
{
    struct request *r = context;
    char encryption[16] = "";
    n *= size;
    if (n > 5 && strncmp(line, "HTTP/", 5) == 0) {
        // curl also calls this function for interim responses, whose headers are ignored.
        r->sent_all = has_sent_all(r, line[5] == '1');
        r->xxh3[0] = r->etag[0] = 0;
        r->keyed = false;
    } else if (!read_header(line, n, DIGEST_HEADER, r->xxh3, sizeof r->xxh3) &&
               !read_header(line, n, "ETag", r->etag, sizeof r->etag) &&
               read_header(line, n, "x-amz-server-side-encryption", encryption,
                           sizeof encryption)) {
        r->keyed = strcmp(encryption, "aes256") != 0;
    }
    return n;
}

static size_t keep_answer(char *data, size_t size, size_t n, void *context)
{
    struct request *r = context;
    size_t room = BODY_BYTES - r->body_bytes, kept = size * n < room ? size * n : room;
    memcpy(r->body + r->body_bytes, data, kept);
    r->body_bytes += kept;
    return size * n;
}

static void begin_wait(struct request *r, uint64_t sent_bytes)
{
    r->seen_bytes = sent_bytes;
    r->deadline_ns = clock_monotonic_ns() + r->settings->timeout_ns;
}

// curl calls this function at least once a second. The whole response must arrive within one time
// limit.
static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t sent)
{
    struct request *r = context;
    uint64_t sent_bytes = (uint64_t)sent;
    (void)a, (void)b, (void)c;
    if (sent_bytes >= r->seen_bytes + STEP_BYTES ||
        (sent_bytes == r->to_send && r->seen_bytes != r->to_send))
        begin_wait(r, sent_bytes);
    r->late = clock_monotonic_ns() >= r->deadline_ns;
    return r->late || r->settings->ends(r->settings->context);
}

// Adds "NAME: VALUE". Returns 0 or -ENOMEM.
static int add_header(struct curl_slist **headers, const char *name, const char *value)
{
    char *line = NULL;
    struct curl_slist *more =
        asprintf(&line, "%s: %s", name, value) < 0 ? NULL : curl_slist_append(*headers, line);
    free(line);
    *headers = more ? more : *headers;
    return more ? 0 : -ENOMEM;
}

static int add_headers(const struct request *r, struct curl_slist **headers, struct err *e)
{
    const struct request_settings *s = r->settings;
    const char *session = get_variable("AWS_SESSION_TOKEN");
    char bearer[TOKENS_FILE_BYTES + 16];
    struct tokens tokens;
    int rc = add_header(headers, "Content-Type", "application/octet-stream");
    if (rc == 0 && s->token_file) {
        rc = tokens_read(s->token_file, &tokens, e);
        if (rc < 0)
            return rc;
        snprintf(bearer, sizeof bearer, "Bearer %s", tokens.text);
        rc = add_header(headers, "Authorization", bearer);
    }
    // S3 requires this header, and libcurl 7.88 does not add it. TLS protects the content.
    if (rc == 0 && s->s3_region)
        rc = add_header(headers, "x-amz-content-sha256", "UNSIGNED-PAYLOAD");
    if (rc == 0 && s->s3_region && session)
        rc = add_header(headers, "x-amz-security-token", session);
    return rc < 0 ? err_no_memory(e, NULL) : 0;
}

// Prepares a PUT of the file, or a HEAD.
static CURLcode set_up(struct request *r, const char *url, bool put, struct curl_slist *headers)
{
    const struct request_settings *s = r->settings;
    CURL *c = r->curl;
    char provider[128];
    const char *authorities = get_variable("CURL_CA_BUNDLE");
    CURLcode rc = CURLE_OK;
    curl_easy_reset(c); // keeps connections open
#define SET(option, value) rc = rc ? rc : curl_easy_setopt(c, option, value)
    SET(CURLOPT_URL, url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (put) {
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->bytes);
    } else {
        SET(CURLOPT_NOBODY, 1L);
    }
    SET(CURLOPT_SOCKOPTFUNCTION, keep_socket);
    SET(CURLOPT_SOCKOPTDATA, r);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, r);
    SET(CURLOPT_READFUNCTION, read_body);
    SET(CURLOPT_READDATA, r);
    SET(CURLOPT_SEEKFUNCTION, seek_body);
    SET(CURLOPT_SEEKDATA, r);
    SET(CURLOPT_WRITEFUNCTION, keep_answer);
    SET(CURLOPT_WRITEDATA, r);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_USERAGENT, "heaptape/" HEAPTAPE_VERSION);
    SET(CURLOPT_ERRORBUFFER, r->error);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(s->timeout_ns / 1000000 + 1)); // 0 is curl's default
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, r);
    // The curl tool reads this variable; libcurl does not.
    if (authorities)
        SET(CURLOPT_CAINFO, authorities);
    if (s->s3_region) {
        snprintf(provider, sizeof provider, "aws:amz:%s:s3", s->s3_region);
        SET(CURLOPT_AWS_SIGV4, provider);
        SET(CURLOPT_USERNAME, get_variable("AWS_ACCESS_KEY_ID"));
        SET(CURLOPT_PASSWORD, get_variable("AWS_SECRET_ACCESS_KEY"));
    } else if (!s->token_file) {
        SET(CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    }
#undef SET
    return rc;
}

// Returns true if a retry would fail in the same way.
static bool is_permanent(CURLcode rc)
{
    return rc == CURLE_UNSUPPORTED_PROTOCOL || rc == CURLE_URL_MALFORMAT ||
           rc == CURLE_NOT_BUILT_IN || rc == CURLE_UNKNOWN_OPTION ||
           rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE ||
           rc == CURLE_SSL_CERTPROBLEM;
}

// Reads the status. If the response is plain text, also reads the reason. Other content types are
// not meant for users.
static void read_answer(struct request *r, struct request_result *to)
{
    const char *type = NULL;
    char line[BODY_BYTES + 1] = "";
    curl_off_t after = 0;
    curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &to->status);
    // 100 Continue is not a response.
    if (to->status < 200) {
        *to =
            (struct request_result){.text = "the server closed the connection before it answered"};
        return;
    }
    curl_easy_getinfo(r->curl, CURLINFO_CONTENT_TYPE, &type);
    curl_easy_getinfo(r->curl, CURLINFO_RETRY_AFTER, &after);
    to->retry_after_s = after > 0 && after < UINT32_MAX ? (uint32_t)after : 0;
    if (type && strncasecmp(type, "text/plain", 10) == 0)
        snprintf(line, sizeof line, "%.*s", (int)strcspn(r->body, "\r\n"), r->body);
    char text[sizeof to->text];
    snprintf(text, sizeof text, "the server answered %ld%s%s", to->status, *line ? ": " : "", line);
    printable_copy(to->text, sizeof to->text, text, strlen(text));
}

// Removes the duration ("after 5 ms") from libcurl's message, so that messages of repeated failures
// are equal.
static void drop_time(char *text)
{
    static const char before[] = " after ", behind[] = " ms";
    char *at = strstr(text, before), *number = at ? at + sizeof before - 1 : text;
    size_t digits = at ? strspn(number, "0123456789") : 0;
    char *end = number + digits;
    if (digits && strncmp(end, behind, sizeof behind - 1) == 0)
        memmove(at, end + sizeof behind - 1, strlen(end + sizeof behind - 1) + 1);
}

static void explain_failure(struct request *r, CURLcode rc, struct request_result *result)
{
    const struct request_settings *s = r->settings;
    char text[CURL_ERROR_SIZE];
    curl_off_t connected_us = 0;
    drop_time(r->error);
    curl_easy_getinfo(r->curl, CURLINFO_PRETRANSFER_TIME_T, &connected_us);
    if (r->late || rc == CURLE_OPERATION_TIMEDOUT)
        snprintf(text, sizeof text, "the server did not %s within %.9g s (%s)",
                 !connected_us                 ? "accept the connection"
                 : r->seen_bytes == r->to_send ? "answer"
                                               : "read the next 64 KiB",
                 (double)s->timeout_ns / 1e9, s->timeout_option);
    else
        snprintf(text, sizeof text, "%s", r->error[0] ? r->error : curl_easy_strerror(rc));
    printable_copy(result->text, sizeof result->text, text, strlen(text));
    result->permanent = is_permanent(rc);
}

// Sends one request: PUT of the file, or HEAD.
static void send_request(struct request *r, const char *url, bool put,
                         struct request_result *result)
{
    struct curl_slist *headers = NULL;
    struct err e = {0};
    *result = (struct request_result){0};
    r->at = 0;
    r->to_send = put ? r->bytes : 0;
    r->late = false;
    begin_wait(r, 0);
    r->body_bytes = 0;
    memset(r->body, 0, sizeof r->body);
    r->error[0] = 0;
    if (add_headers(r, &headers, &e) < 0) {
        printable_copy(result->text, sizeof result->text, e.text, strlen(e.text));
        result->permanent = true;
        curl_slist_free_all(headers);
        return;
    }
    CURLcode rc = set_up(r, url, put, headers);
    rc = rc ? rc : curl_easy_perform(r->curl);
    if (rc == CURLE_OK)
        read_answer(r, result);
    else
        explain_failure(r, rc, result);
    // A server may respond and close the connection before it has read the whole body.
    if (rc == CURLE_SEND_ERROR || rc == CURLE_RECV_ERROR) {
        long status = 0;
        curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
        if (status >= 300)
            read_answer(r, result);
    }
    curl_slist_free_all(headers);
}

static bool is_success(long status)
{
    return status >= 200 && status < 300;
}

// Turns a success into a temporary failure.
__attribute__((format(printf, 2, 3))) static void distrust(struct request_result *result,
                                                           const char *fmt, ...)
{
    va_list args;
    *result = (struct request_result){0};
    va_start(args, fmt);
    vsnprintf(result->text, sizeof result->text, fmt, args);
    va_end(args);
}

// Compares the digest in the response. Returns 1 if the digest proves that the server has the file,
// 0 if the response has no digest, or -EILSEQ.
static int compare_digest(const struct request *r)
{
    char sent[DIGEST_DIGITS + 1];
    if (r->xxh3[0]) {
        digest_xxh3(r->digest, sent);
        return strcmp(sent, r->xxh3) == 0 ? 1 : -EILSEQ;
    }
    if (strlen(r->etag) != DIGEST_DIGITS + 2 ||
        strspn(r->etag + 1, "0123456789abcdef") != DIGEST_DIGITS)
        return 0;
    digest_md5(r->digest, sent);
    if (strncmp(sent, r->etag + 1, DIGEST_DIGITS) == 0)
        return 1;
    // Other servers, and S3 with other encryption, may return ETags that look like an MD5.
    return r->settings->s3_region && !r->keyed ? -EILSEQ : 0;
}

// Checks the size of the stored file with HEAD. Does not change *result if the size is unknown or
// correct.
static void compare_size(struct request *r, const char *url, struct request_result *result)
{
    struct request_result head;
    curl_off_t bytes = -1;
    send_request(r, url, false, &head);
    curl_easy_getinfo(r->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &bytes);
    if (!head.status)
        distrust(result, "the server answered %ld, but not to HEAD: %.150s", result->status,
                 head.text);
    else if (head.status == 404 || head.status == 410)
        distrust(result,
                 "the server answered %ld, but does not have the file: it answered %ld to HEAD",
                 result->status, head.status);
    else if (is_success(head.status) && bytes >= 0 && (uint64_t)bytes != r->bytes)
        distrust(result, "the server answered %ld, but has %lld of %llu bytes", result->status,
                 (long long)bytes, (unsigned long long)r->bytes);
}

// Closes the connection. Otherwise, the server would interpret the rest of the body as the next
// request.
static void disconnect(struct request *r)
{
    CURL *fresh = curl_easy_init();
    if (!fresh)
        return;
    curl_easy_cleanup(r->curl);
    r->curl = fresh;
}

static void put_file(struct request *r, const char *url, int fd, uint64_t bytes,
                     struct request_result *result)
{
    r->fd = fd;
    r->bytes = bytes;
    digest_restart(r->digest);
    send_request(r, url, true, result);
    if (!is_success(result->status))
        return;
    int same = compare_digest(r);
    if (!r->sent_all) {
        distrust(result, "the server answered %ld before it had received the whole file",
                 result->status);
        disconnect(r);
    } else if (same < 0) {
        distrust(result, "the server answered %ld, but has other bytes, by its digest",
                 result->status);
    } else if (same == 0) {
        compare_size(r, url, result);
    }
}

TRANSFER_EXPORT const struct request_calls request_calls = {check_settings, open_request, put_file,
                                                            close_request};
