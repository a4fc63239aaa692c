#include "base/tlv.h"

#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void fields_round_trip(void **state)
{
    struct buf b = {0};
    struct tlv f;
    assert_int_equal(tlv_put_u64(&b, 1, UINT64_MAX), 0);
    assert_int_equal(tlv_put_string(&b, 300, "héap"), 0);
    assert_int_equal(tlv_put_string(&b, 5, NULL), 0);
    assert_int_equal(tlv_put_bytes(&b, 7, "", 0), 0);
    assert_int_equal(tlv_put_u64(&b, 2, 0), 0);
    const uint8_t *at = b.data, *end = b.data + b.size;
    assert_int_equal(tlv_next(&at, end, &f), 1);
    assert_int_equal(f.tag, 1);
    assert_true(f.number == UINT64_MAX);
    assert_int_equal(tlv_next(&at, end, &f), 1);
    assert_int_equal(f.tag, 300);
    assert_memory_equal(f.bytes, "héap", f.size);
    assert_int_equal(tlv_next(&at, end, &f), 1);
    assert_int_equal(f.tag, 7);
    assert_int_equal(f.size, 0);
    assert_int_equal(f.number, 0);
    assert_int_equal(tlv_next(&at, end, &f), 1);
    assert_int_equal(f.tag, 2);
    assert_int_equal(tlv_next(&at, end, &f), 0);
    buf_release(&b);
    (void)state;
}

struct thing {
    uint8_t small;
    bool flag;
    uint32_t listed_bytes;
    uint64_t number, absent;
    char *name, *missing, *listed;
};

#define THING(member) TLV_MEMBER(struct thing, member)
static const struct tlv_row thing_rows[] = {
    {1, TLV_NUMBER, THING(number)},
    {2, TLV_NUMBER, THING(small), THING(number)},
    {3, TLV_NUMBER, THING(number), THING(absent)},
    {4, TLV_FLAG, THING(flag)},
    {5, TLV_STRING, THING(name)},
    {6, TLV_STRING, THING(missing)},
    {7, TLV_BYTES, THING(listed), THING(listed_bytes), THING(listed_bytes)},
    {0},
};

static int set_thing(void *to, const struct tlv *f)
{
    return tlv_set(thing_rows, to, f);
}

static void rows_round_trip(void **state)
{
    const struct thing t = {200, true, 4, UINT64_MAX - 1, 0, "héap", NULL, "a\0b\0"};
    struct thing read = {.name = strdup("old")};
    struct buf b = {0};
    struct tlv f;
    unsigned tags[8] = {0}, n = 0;
    assert_int_equal(tlv_put_rows(&b, thing_rows, &t), 0);
    for (const uint8_t *at = b.data; tlv_next(&at, b.data + b.size, &f) > 0; n++)
        tags[n] = f.tag;
    assert_memory_equal(tags, ((unsigned[]){1, 2, 4, 5, 7, 0, 0, 0}), sizeof tags);
    assert_int_equal(tlv_read(b.data, b.size, set_thing, &read), 0);
    assert_true(read.number == t.number && read.small == t.small && read.flag && !read.absent);
    assert_string_equal(read.name, "héap");
    assert_null(read.missing);
    assert_int_equal(read.listed_bytes, 4);
    assert_memory_equal(read.listed, "a\0b\0", 5);
    tlv_release_rows(thing_rows, &read);
    buf_release(&b);
    (void)state;
}

static void values_of_a_newer_writer_are_ignored_or_cut(void **state)
{
    struct thing t = {.small = 7, .number = 8, .listed_bytes = 9};
    assert_int_equal(set_thing(&t, &(struct tlv){.tag = 99, .number = 5}), 0);
    assert_int_equal(set_thing(&t, &(struct tlv){.tag = 2, .number = 0x105}), 0);
    assert_int_equal(set_thing(&t, &(struct tlv){.tag = 4, .number = 256}), 0);
    assert_int_equal(t.small, 5);
    assert_true(t.flag);
    assert_int_equal(t.listed_bytes, 9);
    assert_int_equal(t.number, 8);
    assert_int_equal(set_thing(&t, &(struct tlv){.tag = 7, .bytes = (const uint8_t *)""}), 0);
    assert_string_equal(t.listed, "");
    assert_int_equal(t.listed_bytes, 0);
    tlv_release_rows(thing_rows, &t);
    (void)state;
}

static void field_that_does_not_fit_is_refused(void **state)
{
    struct buf b = {0};
    struct tlv f;
    tlv_put_bytes(&b, 9, "0123456789", 10);
    for (size_t cut = 1; cut < b.size; cut++) {
        const uint8_t *at = b.data;
        assert_int_equal(tlv_next(&at, b.data + cut, &f), -EBADMSG);
        assert_true(at == b.data);
    }
    const uint8_t huge[] = {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0};
    const uint8_t *at = huge;
    assert_int_equal(tlv_next(&at, huge + sizeof huge, &f), -EBADMSG);
    buf_release(&b);
    (void)state;
}

static void random_bytes_end(void **state)
{
    uint64_t random = 3;
    for (int round = 0; round < 20000; round++) {
        size_t n = unit_random(&random) % 40;
        uint8_t *bytes = malloc(n + 1); // exact size, so that AddressSanitizer detects overreads
        bytes = realloc(bytes, n ? n : 1);
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)unit_random(&random) & (round & 1 ? 0x07 : 0xff);
        const uint8_t *at = bytes;
        struct tlv f;
        int rc;
        while ((rc = tlv_next(&at, bytes + n, &f)) == 1)
            assert_true(f.bytes >= bytes && f.bytes + f.size <= bytes + n);
        assert_true(rc == 0 || rc == -EBADMSG);
        free(bytes);
    }
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(fields_round_trip),
    cmocka_unit_test(rows_round_trip),
    cmocka_unit_test(values_of_a_newer_writer_are_ignored_or_cut),
    cmocka_unit_test(field_that_does_not_fit_is_refused),
    cmocka_unit_test(random_bytes_end),
};
UNIT_MAIN(tests)
