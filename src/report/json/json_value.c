#include "report/json/json_value.h"

#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <string.h>

// json-c has no const parameters.
static struct json_object *to_object(const struct json_value *v)
{
    return (struct json_object *)(uintptr_t)v;
}

enum {
    // Memory that json-c allocates for an object with its table, for an array, and for each value.
    OBJECT_BYTES = 800,
    ARRAY_BYTES = 160,
    VALUE_BYTES = 96,
    // Limit on the memory for the values of a JSON text: FIRST_BYTES, and BYTES_FOR_EACH for each
    // byte of the text. Results and statistics need up to 17 bytes per byte.
    BYTES_FOR_EACH = 32,
    FIRST_BYTES = 64 << 20,
};

// Returns the offset at which the values exceed the memory limit, or `n` if they do not.
static size_t find_excess(const char *text, size_t n)
{
    uint64_t left = FIRST_BYTES + BYTES_FOR_EACH * (uint64_t)n;
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        unsigned bytes = 0;
        if (text[i] == '"')
            quoted = !quoted;
        else if (quoted)
            i += text[i] == '\\';
        else if (text[i] == '{')
            bytes = OBJECT_BYTES;
        else if (text[i] == '[')
            bytes = ARRAY_BYTES;
        else if (text[i] == ',' || text[i] == ':')
            bytes = VALUE_BYTES;
        if (bytes > left)
            return i;
        left -= bytes;
    }
    return n;
}

int json_value_parse(struct json_value **root, const char *name, const char *text, size_t n,
                     struct err *e)
{
    struct json_tokener *t = json_tokener_new();
    *root = NULL;
    if (!t || n > INT_MAX) {
        json_tokener_free(t);
        return err_no_memory(e, name);
    }
    size_t excess = find_excess(text, n);
    if (excess < n) {
        json_tokener_free(t);
        return err_set(e, -EFBIG,
                       "%s: has more values than JSON of %zu bytes may have, at byte %zu", name, n,
                       excess);
    }
    json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    *root = (struct json_value *)json_tokener_parse_ex(t, text, (int)n);
    enum json_tokener_error error = json_tokener_get_error(t);
    size_t end = json_tokener_get_parse_end(t);
    json_tokener_free(t);
    if (error == json_tokener_continue)
        return err_set(e, -ENODATA, "%s: truncated JSON at byte %zu", name, n);
    if (error != json_tokener_success)
        return err_set(e, -EBADMSG, "%s: invalid JSON at byte %zu: %s", name, end,
                       json_tokener_error_desc(error));
    return 0;
}

void json_value_free(struct json_value *root)
{
    json_object_put(to_object(root));
}

// The kinds are numbered as in json-c.
_Static_assert((int)JSON_VALUE_BOOL == json_type_boolean &&
                   (int)JSON_VALUE_STRING == json_type_string &&
                   (int)JSON_VALUE_DOUBLE == json_type_double &&
                   (int)JSON_VALUE_INTEGER == json_type_int &&
                   (int)JSON_VALUE_OBJECT == json_type_object &&
                   (int)JSON_VALUE_ARRAY == json_type_array,
               "kinds of json-c");

enum json_value_kind json_value_kind(const struct json_value *v)
{
    return (enum json_value_kind)json_object_get_type(to_object(v));
}

bool json_value_is_array(const struct json_value *v)
{
    return json_value_kind(v) == JSON_VALUE_ARRAY;
}

bool json_value_is_object(const struct json_value *v)
{
    return json_value_kind(v) == JSON_VALUE_OBJECT;
}

size_t json_value_length(const struct json_value *v)
{
    return json_value_is_array(v) ? json_object_array_length(to_object(v)) : 0;
}

const struct json_value *json_value_at(const struct json_value *v, size_t i)
{
    return json_value_is_array(v) ? (struct json_value *)json_object_array_get_idx(to_object(v), i)
                                  : NULL;
}

const struct json_value *json_value_get(const struct json_value *v, const char *key)
{
    return json_value_is_object(v) ? (struct json_value *)json_object_object_get(to_object(v), key)
                                   : NULL;
}

const struct json_value *json_value_find(const struct json_value *v, const char *path)
{
    char key[64];
    for (; v && *path; path += *path == '.') {
        size_t n = strcspn(path, ".");
        if (n >= sizeof key)
            return NULL;
        memcpy(key, path, n);
        key[n] = 0;
        v = json_value_get(v, key);
        path += n;
    }
    return v;
}

double json_value_number_at(const struct json_value *v, const char *path)
{
    return json_value_number(json_value_find(v, path));
}

double json_value_number(const struct json_value *v)
{
    enum json_value_kind kind = json_value_kind(v);
    return kind == JSON_VALUE_INTEGER || kind == JSON_VALUE_DOUBLE
               ? json_object_get_double(to_object(v))
               : NAN;
}

int64_t json_value_i64(const struct json_value *v)
{
    return json_value_kind(v) == JSON_VALUE_INTEGER ? json_object_get_int64(to_object(v)) : 0;
}

uint64_t json_value_u64(const struct json_value *v)
{
    return json_value_kind(v) == JSON_VALUE_INTEGER ? json_object_get_uint64(to_object(v)) : 0;
}

bool json_value_bool(const struct json_value *v)
{
    return json_value_kind(v) == JSON_VALUE_BOOL && json_object_get_boolean(to_object(v));
}

const char *json_value_string(const struct json_value *v)
{
    return json_value_kind(v) == JSON_VALUE_STRING ? json_object_get_string(to_object(v)) : NULL;
}

bool json_value_next(const struct json_value *v, struct json_value_member *m)
{
    if (!json_value_is_object(v))
        return false;
    const struct lh_entry *entry = m->entry ? lh_entry_next((const struct lh_entry *)m->entry)
                                            : lh_table_head(json_object_get_object(to_object(v)));
    if (!entry)
        return false;
    *m = (struct json_value_member){entry, lh_entry_k(entry),
                                    (const struct json_value *)lh_entry_v(entry)};
    return true;
}
