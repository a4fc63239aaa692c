// Tests the table of live addresses: at any size, the table finds every inserted address, and it is
// empty after all addresses are removed.
#include "convert/table.h"

#include "unit.h"

#include <stdlib.h>

enum { BLOCKS = 60000 };

struct filled {
    struct table table;
    struct table_block *slots; // slots[i] is the entry of the i-th address
    uint32_t n;
};

static void filled_begin(struct filled *f)
{
    *f = (struct filled){.slots = calloc(BLOCKS, sizeof *f->slots)};
    assert_non_null(f->slots);
    assert_int_equal(table_grow(&f->table, NULL), 0);
}

static void put(struct filled *f, uint64_t address)
{
    assert_true(f->n < BLOCKS);
    f->slots[f->n].address = address;
    table_put(&f->table, address, f->n++);
}

static void grow(struct filled *f)
{
    size_t before = f->table.n_buckets;
    assert_int_equal(table_grow(&f->table, f->slots), 0);
    assert_true(f->table.n_buckets > before);
    assert_int_equal(f->table.n, f->n);
}

static void all_are_found(const struct filled *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t *cell = table_find(&f->table, f->slots, f->slots[i].address);
        while (cell && *cell != i)
            cell = table_find_next(&f->table, f->slots, f->slots[i].address, cell);
        assert_non_null(cell);
    }
}

static void empty(struct filled *f)
{
    all_are_found(f);
    for (uint32_t i = 0; i < f->n; i++)
        table_remove(&f->table, f->slots[i].address,
                     table_find(&f->table, f->slots, f->slots[i].address));
    assert_int_equal(f->table.n, 0);
    for (size_t i = 0; i < f->table.n_buckets; i++) {
        assert_int_equal(table_match(&f->table.buckets[i], 0), (1u << TABLE_CELLS) - 1);
        assert_int_equal(f->table.buckets[i].passed, 0);
    }
    table_release(&f->table);
    free(f->slots);
}

static void it_grows_when_it_is_full(void **state)
{
    (void)state;
    struct filled f;
    filled_begin(&f);
    for (uint64_t i = 0; i < BLOCKS; i++) {
        if (f.table.n >= f.table.limit) {
            grow(&f);
            all_are_found(&f);
        }
        put(&f, 0x7f0000000000 + 16 * i);
    }
    empty(&f);
}

// Fills the ends of the table. With this seed, the hash of an address is the address, in units of
// 2^-32 of the table.
static void fill_ends(struct filled *f, uint32_t n)
{
    f->table.seed = 1ull << 32;
    for (uint32_t i = 0; i < n; i++) {
        put(f, 1 + i);
        put(f, UINT32_MAX - i);
    }
}

static void chains_at_both_ends_stay_whole(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 300; n += 13) {
        struct filled f;
        filled_begin(&f);
        fill_ends(&f, n);
        for (int i = 0; i < 9; i++) {
            grow(&f);
            all_are_found(&f);
        }
        empty(&f);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_grows_when_it_is_full),
    cmocka_unit_test(chains_at_both_ends_stay_whole),
};

UNIT_MAIN(tests)
