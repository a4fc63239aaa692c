#include "base/bytes.h"
#include "base/varint.h"

#include "unit.h"

static void round_trip(uint64_t v, size_t want_bytes)
{
    uint8_t bytes[VARINT_MAX_BYTES];
    uint64_t got = ~v;
    size_t n = varint_put(bytes, v);
    assert_int_equal(n, want_bytes);
    assert_int_equal(varint_get(bytes, bytes + n, &got), n);
    assert_true(got == v);
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(varint_get(bytes, bytes + cut, &got), 0);
}

static void boundaries_round_trip(void **state)
{
    round_trip(0, 1);
    for (unsigned bits = 1; bits <= 64; bits++) {
        uint64_t top = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
        round_trip(top, (bits + 6) / 7);
        round_trip(1ull << (bits - 1), (bits + 6) / 7);
    }
    (void)state;
}

static void over_long_is_refused(void **state)
{
    uint64_t v = 5;
    uint8_t bytes[11] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02, 0};
    assert_int_equal(varint_get(bytes, bytes + sizeof bytes, &v), 0); // sets bit 64
    bytes[9] = 0x80;
    assert_int_equal(varint_get(bytes, bytes + sizeof bytes, &v), 0); // an eleventh byte
    bytes[9] = 0x01;
    assert_int_equal(varint_get(bytes, bytes + sizeof bytes, &v), 10);
    assert_true(v == 1ull << 63);
    (void)state;
}

static void zigzag_round_trips(void **state)
{
    const int64_t values[] = {0, -1, 1, -2, 2, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_true(zigzag_get(zigzag_put(values[i])) == values[i]);
    assert_int_equal(zigzag_put(0), 0);
    assert_int_equal(zigzag_put(-1), 1);
    assert_int_equal(zigzag_put(1), 2);
    (void)state;
}

static void bytes_are_little_endian_at_any_alignment(void **state)
{
    uint8_t room[16] = {0};
    for (unsigned at = 0; at < 8; at++) {
        put_u64(room + at, 0x0102030405060708u);
        assert_int_equal(room[at], 8);
        assert_int_equal(room[at + 7], 1);
        assert_true(get_u64(room + at) == 0x0102030405060708u);
        assert_int_equal(get_u32(room + at), 0x05060708u);
        assert_int_equal(get_u16(room + at), 0x0708u);
    }
    put_u16(room, 0xfffe);
    put_u32(room + 4, 0xfffffffdu);
    assert_int_equal(get_u16(room), 0xfffe);
    assert_int_equal(get_u32(room + 4), 0xfffffffdu);
    (void)state;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(boundaries_round_trip),
    cmocka_unit_test(over_long_is_refused),
    cmocka_unit_test(zigzag_round_trips),
    cmocka_unit_test(bytes_are_little_endian_at_any_alignment),
};
UNIT_MAIN(tests)
