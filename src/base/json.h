// Writes JSON to a stdio stream, with commas and escapes right by construction.
#ifndef HEAPTAPE_BASE_JSON_H
#define HEAPTAPE_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// {0} with `to` set is a writer at the start of a document. Nesting is at most 63 deep.
struct json {
    FILE *to;
    uint64_t has_item; // one bit a level: an item came before
    unsigned depth;
    bool after_key;
    bool pretty;           // newline and two spaces a level; else one line
    size_t max_text_bytes; // a longer text becomes "(too long)"; 0: no limit
    size_t max_items;      // for callers that shorten long arrays; 0: no limit
};

void json_begin_object(struct json *j);
void json_end_object(struct json *j);
void json_begin_array(struct json *j);
void json_end_array(struct json *j);

// Inside an object, before each value.
void json_key(struct json *j, const char *key);

// Values. Bytes that are no UTF-8 become U+FFFD. A number that is not finite becomes null.
void json_string(struct json *j, const char *text);
void json_string_n(struct json *j, const char *text, size_t n);
void json_u64(struct json *j, uint64_t v);
void json_i64(struct json *j, int64_t v);
void json_double(struct json *j, double v);
void json_bool(struct json *j, bool v);
void json_null(struct json *j);
void json_hex(struct json *j, uint64_t v); // an address as a string: "0x7f…"

// Key and value in one; an object or array is still to be filled and ended.
void json_put_object(struct json *j, const char *key);
void json_put_array(struct json *j, const char *key);
void json_put_string(struct json *j, const char *key, const char *text); // NULL text: null
void json_put_u64(struct json *j, const char *key, uint64_t v);
void json_put_double(struct json *j, const char *key, double v);
void json_put_bool(struct json *j, const char *key, bool v);
void json_put_raw(struct json *j, const char *key,
                  const char *json); // a value that is JSON already

#endif
