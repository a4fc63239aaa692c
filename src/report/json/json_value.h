// JSON values, which json-c parses. This header hides json-c, whose names collide with the writer
// in base/json.h.
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_value_kind {
    JSON_VALUE_NULL,
    JSON_VALUE_BOOL,
    JSON_VALUE_DOUBLE,
    JSON_VALUE_INTEGER,
    JSON_VALUE_OBJECT,
    JSON_VALUE_ARRAY,
    JSON_VALUE_STRING,
};

// Opaque. A value is borrowed from the root. NULL is a null or missing value, which all functions
// accept.
struct json_value;

// Parses `n` bytes of JSON. Returns 0, -ENODATA if the JSON is truncated, -EBADMSG if the text is
// not JSON, -EFBIG if the values need far more memory than the size of the text justifies, or
// -ENOMEM. The error message begins with `name`. The caller frees *root.
int json_value_parse(struct json_value **root, const char *name, const char *text, size_t n,
                     struct err *e);
void json_value_free(struct json_value *root);

enum json_value_kind json_value_kind(const struct json_value *v);
bool json_value_is_array(const struct json_value *v);
bool json_value_is_object(const struct json_value *v);

// Return the length of an array, and item `i` of an array. For other values, return 0 and NULL.
size_t json_value_length(const struct json_value *v);
const struct json_value *json_value_at(const struct json_value *v, size_t i);

// json_value_get returns the value of a key. json_value_find returns the value at a path of keys,
// such as "peak.bytes". json_value_number_at returns the number at a path, or NAN if the path has
// no number.
const struct json_value *json_value_get(const struct json_value *v, const char *key);
const struct json_value *json_value_find(const struct json_value *v, const char *path);
double json_value_number_at(const struct json_value *v, const char *path);

// Convert a value. For values of another type, return NAN, 0, 0, false and NULL, respectively.
// json_value_i64 is for negative integers, json_value_u64 for other integers.
double json_value_number(const struct json_value *v);
int64_t json_value_i64(const struct json_value *v);
uint64_t json_value_u64(const struct json_value *v);
bool json_value_bool(const struct json_value *v);
const char *json_value_string(const struct json_value *v);

// Iterates over the members of an object, in their order. *m must be {0} for the first call.
// Returns false after the last member, and for values that are not objects.
struct json_value_member {
    const void *entry;
    const char *key;
    const struct json_value *value;
};
bool json_value_next(const struct json_value *v, struct json_value_member *m);
