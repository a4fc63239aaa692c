// Tests the table of call sites. A stack is complete when all frames up to the outer end are
// defined. The number at the outer end may have any value below 4096.
#include "base/bytes.h"
#include "convert/site_table.h"
#include "trace/codec.h"
#include "trace/event/event.h"

#include "unit.h"

#include <string.h>

enum { INNER = 0x401000, OUTER = 0x402000 };

// Defines the frame at `address`, called from the site `outer`.
static void define_frame(struct site_table *t, uint64_t outer, uint64_t address)
{
    char text[8];
    put_u64((uint8_t *)text, address);
    assert_int_equal(site_table_define(t, &(struct site_table_record){.kind = HT_FRAMES,
                                                                      .size = outer,
                                                                      .text = text,
                                                                      .text_bytes = sizeof text}),
                     0);
}

// Returns the number of frames of the site in a copy of the table that contains only complete
// stacks.
static uint32_t complete_frames(const struct site_table *t, uint32_t number)
{
    struct workload_sites whole = {0};
    assert_int_equal(site_table_resolve_whole(t, &whole), 0);
    uint32_t n = number <= whole.n_sites ? whole.sites[number - 1].n : 0;
    workload_sites_release(&whole);
    return n;
}

static void a_stack_is_complete_at_each_outer_end(void **state)
{
    const uint64_t ends[] = {0, 1, CODEC_GENERATIONS - 1};
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct site_table t = {0};
        uint64_t outer = codec_site(ends[i], OUTER);
        uint32_t number = site_table_number(&t, codec_site(outer, INNER));
        define_frame(&t, outer, INNER);
        assert_int_equal(complete_frames(&t, number), 0);
        define_frame(&t, ends[i], OUTER);
        assert_int_equal(complete_frames(&t, number), 2);
        site_table_release(&t);
    }
}

static void equal_addresses_at_two_outer_ends_are_two_sites(void **state)
{
    struct site_table t = {0};
    (void)state;
    uint32_t first = site_table_number(&t, codec_site(0, INNER));
    uint32_t second = site_table_number(&t, codec_site(1, INNER));
    define_frame(&t, 0, INNER);
    define_frame(&t, 1, INNER);
    assert_int_not_equal(first, second);
    assert_int_equal(complete_frames(&t, first), 1);
    assert_int_equal(complete_frames(&t, second), 1);
    site_table_release(&t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_stack_is_complete_at_each_outer_end),
    cmocka_unit_test(equal_addresses_at_two_outer_ends_are_two_sites),
};

UNIT_MAIN(tests)
