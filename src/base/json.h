// Writes JSON to a stdio stream, with the necessary commas and escapes.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// JSON writer. Initialize with {.to = stream}. Nesting is limited to 63 levels.
struct json {
    FILE *to;
    uint64_t has_item; // bit N: level N already has an item
    unsigned depth;
    bool after_key;
    bool pretty;           // write one item per line, indented by two spaces per level
    size_t max_text_bytes; // a longer string becomes "(too long)"; 0 means no limit
    size_t max_items;      // for callers that truncate long arrays; 0 means no limit
};

// Begins a document: an object whose first key is schema_version.
enum { JSON_SCHEMA_VERSION = 2 };
void json_begin_document(struct json *j);

void json_begin_object(struct json *j);
void json_end_object(struct json *j);
void json_begin_array(struct json *j);
void json_end_array(struct json *j);

// Writes the key of the next value in an object.
void json_key(struct json *j, const char *key);

// Write a value. Bytes that are not UTF-8 become U+FFFD. NaN and infinity become null.
void json_string(struct json *j, const char *text);
void json_string_n(struct json *j, const char *text, size_t n);
void json_u64(struct json *j, uint64_t v);
void json_i64(struct json *j, int64_t v);
void json_double(struct json *j, double v);
void json_bool(struct json *j, bool v);
void json_null(struct json *j);
void json_hex(struct json *j, uint64_t v); // an address as a string: "0x7f…"

// Write a key and a value. Objects and arrays are left open.
void json_put_object(struct json *j, const char *key);
void json_put_array(struct json *j, const char *key);
// writes null if text is NULL
void json_put_string(struct json *j, const char *key, const char *text);
void json_put_u64(struct json *j, const char *key, uint64_t v);
void json_put_double(struct json *j, const char *key, double v);
void json_put_bool(struct json *j, const char *key, bool v);
void json_put_raw(struct json *j, const char *key,
                  const char *json); // `json` is written unchanged
