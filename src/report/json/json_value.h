// JSON that was read, by json-c. The functions stand between it and base/json.h, the writer, whose names json-c has too.
#ifndef HEAPTAPE_REPORT_JSON_VALUE_H
#define HEAPTAPE_REPORT_JSON_VALUE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_value_kind {
    JSON_VALUE_NULL,
    JSON_VALUE_BOOL,
    JSON_VALUE_INTEGER,
    JSON_VALUE_DOUBLE,
    JSON_VALUE_STRING,
    JSON_VALUE_ARRAY,
    JSON_VALUE_OBJECT,
};

// Opaque. NULL is null, and what stands where nothing is; all functions take it. Values are borrowed from the root.
struct json_value;

// The value of a whole text, to be freed. 0, -ENODATA when the text is cut off, -EBADMSG when it is not JSON, -EFBIG when it
// would need much more memory than its size explains, -ENOMEM; the
// text of the error begins with `name`.
int json_value_parse(struct json_value **root, const char *name, const char *text, size_t n,
                     struct err *e);
void json_value_free(struct json_value *root);

enum json_value_kind json_value_kind(const struct json_value *v);
bool json_value_is_array(const struct json_value *v);
bool json_value_is_object(const struct json_value *v);

// Of an array; 0 and NULL of anything else.
size_t json_value_length(const struct json_value *v);
const struct json_value *json_value_at(const struct json_value *v, size_t i);

// The value of a key, the value at a path of keys ("peak.bytes"), and the number there, NAN if there is none.
const struct json_value *json_value_get(const struct json_value *v, const char *key);
const struct json_value *json_value_find(const struct json_value *v, const char *path);
double json_value_number_at(const struct json_value *v, const char *path);

// NAN, 0, false and NULL of other kinds. An integer is below 0 or fits into the unsigned one.
double json_value_number(const struct json_value *v);
int64_t json_value_i64(const struct json_value *v);
uint64_t json_value_u64(const struct json_value *v);
bool json_value_bool(const struct json_value *v);
const char *json_value_string(const struct json_value *v);

// The members of an object in their order: {0} at first. False at the end, and for what is not an object.
struct json_value_member {
    const void *entry;
    const char *key;
    const struct json_value *value;
};
bool json_value_next(const struct json_value *v, struct json_value_member *m);

#endif
