#include "base/json.h"

#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static char *text;
static size_t text_bytes;

static struct json begin(void)
{
    return (struct json){.to = open_memstream(&text, &text_bytes)};
}

static void assert_text(struct json *j, const char *want)
{
    fclose(j->to);
    assert_string_equal(text, want);
    free(text);
}

static void nesting_and_commas(void **state)
{
    struct json j = begin();
    json_begin_object(&j);
    json_put_u64(&j, "a", UINT64_MAX);
    json_put_array(&j, "b");
    json_i64(&j, INT64_MIN);
    json_bool(&j, true);
    json_null(&j);
    json_begin_array(&j);
    json_end_array(&j);
    json_begin_object(&j);
    json_end_object(&j);
    json_hex(&j, 0x7f00);
    json_end_array(&j);
    json_put_bool(&j, "c", false);
    json_put_string(&j, "d", NULL);
    json_put_string(&j, "e", "x");
    json_end_object(&j);
    assert_text(
        &j, "{\"a\":18446744073709551615,\"b\":[-9223372036854775808,true,null,[],{},\"0x7f00\"],"
            "\"c\":false,\"d\":null,\"e\":\"x\"}\n");
    (void)state;
}

static void strings_are_escaped(void **state)
{
    struct json j = begin();
    json_begin_array(&j);
    json_string(&j, "\"\\/\n\t\x01\x7f");
    json_string_n(&j, "a\0b", 3);
    json_string(&j, "é€😀");
    json_end_array(&j);
    assert_text(&j, "[\"\\\"\\\\/\\n\\u0009\\u0001\\u007f\",\"a\\u0000b\",\"é€😀\"]\n");
    (void)state;
}

static void broken_utf8_becomes_replacement(void **state)
{
    // Invalid UTF-8: lone continuation, lone start, overlong '/', surrogate, beyond U+10FFFF,
    // truncated.
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"a\x80z", "[\"a\\ufffdz\"]\n"},
        {"\xc3(", "[\"\\ufffd(\"]\n"},
        {"\xc0\xaf", "[\"\\ufffd\\ufffd\"]\n"},
        {"\xe0\x80\xaf", "[\"\\ufffd\\ufffd\\ufffd\"]\n"},
        {"\xed\xa0\x80", "[\"\\ufffd\\ufffd\\ufffd\"]\n"},
        {"\xf4\x90\x80\x80", "[\"\\ufffd\\ufffd\\ufffd\\ufffd\"]\n"},
        {"\xff\xfe", "[\"\\ufffd\\ufffd\"]\n"},
        {"x\xe2\x82", "[\"x\\ufffd\\ufffd\"]\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json j = begin();
        json_begin_array(&j);
        json_string(&j, cases[i].in);
        json_end_array(&j);
        assert_text(&j, cases[i].out);
    }
    (void)state;
}

static void numbers_that_are_not_finite_are_null(void **state)
{
    struct json j = begin();
    json_begin_array(&j);
    json_double(&j, NAN);
    json_double(&j, -INFINITY);
    json_double(&j, 0.5);
    json_double(&j, 1e300);
    json_end_array(&j);
    assert_text(&j, "[null,null,0.5,1e+300]\n");
    (void)state;
}

// Writes a random document with random bytes in its strings; json-c must be able to parse it.
static void write_random(struct json *j, uint64_t *random, unsigned depth)
{
    char bytes[24];
    uint64_t r = unit_random(random);
    switch (depth > 5 ? r % 5 : r % 7) {
    case 0:
        json_u64(j, unit_random(random));
        return;
    case 1:
        json_double(j, (double)(int64_t)unit_random(random) / 3e5);
        return;
    case 2:
        json_bool(j, r & 64);
        return;
    case 3:
    case 4:
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)unit_random(random);
        json_string_n(j, bytes, r >> 8 & 15);
        return;
    case 5:
        json_begin_array(j);
        for (uint64_t n = r >> 8 & 7; n; n--)
            write_random(j, random, depth + 1);
        json_end_array(j);
        return;
    default:
        json_begin_object(j);
        for (uint64_t n = r >> 8 & 7; n; n--) {
            snprintf(bytes, sizeof bytes, "k\"%u", (unsigned)n);
            json_key(j, bytes);
            write_random(j, random, depth + 1);
        }
        json_end_object(j);
    }
}

static void jq_and_python_read_random_documents(void **state)
{
    static const char *const readers[] = {
        "jq -e . > /dev/null", "python3 -c 'import json, sys; [json.loads(l) for l in sys.stdin]'"};
    for (int r = 0; r < 2; r++) {
        uint64_t random = 4;
        struct json j = {.to = popen(readers[r], "w")};
        assert_non_null(j.to);
        for (int i = 0; i < 300; i++) {
            json_begin_array(&j);
            json_bool(&j, true);
            write_random(&j, &random, 0);
            json_end_array(&j);
        }
        assert_int_equal(pclose(j.to), 0);
    }
    (void)state;
}

static void pretty_is_the_same_with_spaces(void **state)
{
    struct json j = begin();
    j.pretty = true;
    json_begin_object(&j);
    json_put_u64(&j, "a", 1);
    json_key(&j, "b");
    json_begin_array(&j);
    json_u64(&j, 2);
    json_end_array(&j);
    json_end_object(&j);
    assert_text(&j, "{\n  \"a\": 1,\n  \"b\": [\n    2\n  ]\n}\n");
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nesting_and_commas),
    cmocka_unit_test(strings_are_escaped),
    cmocka_unit_test(broken_utf8_becomes_replacement),
    cmocka_unit_test(numbers_that_are_not_finite_are_null),
    cmocka_unit_test(jq_and_python_read_random_documents),
    cmocka_unit_test(pretty_is_the_same_with_spaces),
};
UNIT_MAIN(tests)
