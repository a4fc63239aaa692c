#include "base/tlv.h"

#include "unit.h"

#include <errno.h>

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
    char *text = tlv_string(&f);
    assert_string_equal(text, "héap");
    free(text);
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

static void string_stops_at_nul(void **state)
{
    struct tlv f = {.bytes = (const uint8_t *)"ab\0cd", .size = 5};
    char *text = tlv_string(&f);
    assert_string_equal(text, "ab");
    free(text);
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
    cmocka_unit_test(string_stops_at_nul),
    cmocka_unit_test(field_that_does_not_fit_is_refused),
    cmocka_unit_test(random_bytes_end),
};
UNIT_MAIN(tests)
