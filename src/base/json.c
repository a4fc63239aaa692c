#include "base/json.h"

#include "base/printable.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void write_separator(struct json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (j->depth == 0)
        return;
    if (j->has_item >> j->depth & 1)
        fputc(',', j->to);
    j->has_item |= 1ull << j->depth;
    if (j->pretty)
        fprintf(j->to, "\n%*s", (int)(2 * j->depth), "");
}

static void begin_container(struct json *j, char bracket)
{
    write_separator(j);
    fputc(bracket, j->to);
    j->depth++;
    j->has_item &= ~(1ull << j->depth);
}

static void end_container(struct json *j, char bracket)
{
    bool had = j->has_item >> j->depth & 1;
    j->depth--;
    if (had && j->pretty)
        fprintf(j->to, "\n%*s", (int)(2 * j->depth), "");
    fputc(bracket, j->to);
    if (j->depth == 0)
        fputc('\n', j->to);
}

void json_begin_object(struct json *j)
{
    begin_container(j, '{');
}

void json_begin_document(struct json *j)
{
    json_begin_object(j);
    json_put_u64(j, "schema_version", JSON_SCHEMA_VERSION);
}

void json_end_object(struct json *j)
{
    end_container(j, '}');
}

void json_begin_array(struct json *j)
{
    begin_container(j, '[');
}

void json_end_array(struct json *j)
{
    end_container(j, ']');
}

// Decodes the two- or three-byte character at `s`.
static unsigned code_point(const unsigned char *s, size_t n)
{
    return n == 2 ? (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu)
                  : (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
}

static void write_string(FILE *to, const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    fputc('"', to);
    for (size_t i = 0; i < n;) {
        size_t len = printable_utf8(text + i, n - i);
        if (len == 0) {
            fputs("\\ufffd", to);
            i++;
            continue;
        }
        if (s[i] == '"' || s[i] == '\\')
            fprintf(to, "\\%c", s[i]);
        else if (s[i] == '\n')
            fputs("\\n", to);
        else if (!printable_length(text + i, n - i))
            fprintf(to, "\\u%04x", len == 1 ? s[i] : code_point(s + i, len));
        else
            fwrite(s + i, 1, len, to);
        i += len;
    }
    fputc('"', to);
}

void json_key(struct json *j, const char *key)
{
    write_separator(j);
    write_string(j->to, key, strlen(key));
    fputs(j->pretty ? ": " : ":", j->to);
    j->after_key = true;
}

void json_string_n(struct json *j, const char *text, size_t n)
{
    static const char too_long[] = "(too long)";
    write_separator(j);
    if (j->max_text_bytes && n > j->max_text_bytes)
        write_string(j->to, too_long, sizeof too_long - 1);
    else
        write_string(j->to, text, n);
}

void json_string(struct json *j, const char *text)
{
    json_string_n(j, text, strlen(text));
}

void json_u64(struct json *j, uint64_t v)
{
    write_separator(j);
    fprintf(j->to, "%" PRIu64, v);
}

void json_i64(struct json *j, int64_t v)
{
    write_separator(j);
    fprintf(j->to, "%" PRId64, v);
}

void json_double(struct json *j, double v)
{
    if (!isfinite(v)) {
        json_null(j);
        return;
    }
    write_separator(j);
    fprintf(j->to, "%.9g", v);
}

void json_bool(struct json *j, bool v)
{
    write_separator(j);
    fputs(v ? "true" : "false", j->to);
}

void json_null(struct json *j)
{
    write_separator(j);
    fputs("null", j->to);
}

void json_hex(struct json *j, uint64_t v)
{
    write_separator(j);
    fprintf(j->to, "\"0x%" PRIx64 "\"", v);
}

void json_put_object(struct json *j, const char *key)
{
    json_key(j, key);
    json_begin_object(j);
}

void json_put_array(struct json *j, const char *key)
{
    json_key(j, key);
    json_begin_array(j);
}

void json_put_string(struct json *j, const char *key, const char *text)
{
    json_key(j, key);
    if (text)
        json_string(j, text);
    else
        json_null(j);
}

void json_put_u64(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_u64(j, v);
}

void json_put_double(struct json *j, const char *key, double v)
{
    json_key(j, key);
    json_double(j, v);
}

void json_put_bool(struct json *j, const char *key, bool v)
{
    json_key(j, key);
    json_bool(j, v);
}

void json_put_raw(struct json *j, const char *key, const char *json)
{
    json_key(j, key);
    write_separator(j);
    fputs(json, j->to);
}
