// Tests the search for malloc's parameters in libc's data.
#include "record/attach/arena.h"
#include "unit.h"

#include <string.h>

enum { START = 0x1000 };

static const struct arena_parameters usual = {.n_mmaps = 2,
                                              .max_n_mmaps = 2,
                                              .mmapped_mem = 8192,
                                              .max_mmapped_mem = 8192,
                                              .cached_sizes = ARENA_CACHED_SIZES,
                                              .cached_max = 1032,
                                              .cached_count = 127};

// Returns the number of places where a search finds `p`, which is at the end of the data.
static unsigned count_found(struct arena_parameters p)
{
    uint8_t bytes[40 + sizeof p] = {0};
    struct arena_parameters found = {0};
    memcpy(bytes + 40, &p, sizeof p);
    const struct arena_data data = {START, START + sizeof bytes, bytes};
    unsigned n = arena_find_parameters(&data, &found);
    assert_true(n == 0 || memcmp(&found, &p, sizeof p) == 0);
    return n;
}

static void parameters_are_found(void **state)
{
    struct arena_parameters p = usual;
    (void)state;
    assert_int_equal(count_found(p), 1);
    p.n_mmaps = p.max_n_mmaps = 0;
    p.mmapped_mem = 0;
    p.cached_count = 0;
    assert_int_equal(count_found(p), 1);
}

// Each struct differs from possible parameters in one value.
static void other_data_is_not_found(void **state)
{
    struct arena_parameters p[7];
    (void)state;
    for (size_t i = 0; i < sizeof p / sizeof *p; i++)
        p[i] = usual;
    p[0].cached_sizes--;
    p[1].cached_max++;
    p[2].cached_count++;
    p[3].n_mmaps = -1;
    p[4].max_n_mmaps--;
    p[5].max_mmapped_mem -= 4096;
    p[6].mmapped_mem -= 8;
    for (size_t i = 0; i < sizeof p / sizeof *p; i++)
        assert_int_equal(count_found(p[i]), 0);
}

static void two_places(void **state)
{
    struct arena_parameters both[2] = {usual, usual}, found;
    const struct arena_data data = {START, START + sizeof both, (uint8_t *)both};
    (void)state;
    both[1].n_mmaps = 1;
    assert_int_equal(arena_find_parameters(&data, &found), 2);
    assert_int_equal(found.n_mmaps, 1);
}

static void versions(void **state)
{
    (void)state;
    assert_true(arena_is_known("2.35"));
    assert_true(arena_is_known("2.40"));
    assert_false(arena_is_known("2.34"));
    assert_false(arena_is_known("2.41"));
    assert_false(arena_is_known("2.36-9"));
    assert_false(arena_is_known("3.36"));
    assert_false(arena_is_known(""));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(parameters_are_found),
    cmocka_unit_test(other_data_is_not_found),
    cmocka_unit_test(two_places),
    cmocka_unit_test(versions),
};

UNIT_MAIN(tests)
