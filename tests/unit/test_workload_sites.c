#include "unit.h"

#include "base/bytes.h"
#include "workload/sites.h"

#include <stdio.h>
#include <stdlib.h>

static void define(struct workload_sites *s, uint32_t number, const uint64_t *addresses, uint32_t n)
{
    uint8_t text[64 * 8];
    for (uint32_t i = 0; i < n; i++)
        put_u64(text + 8 * (size_t)i, addresses[i]);
    assert_int_equal(workload_sites_define(s, number, (const char *)text, n), 0);
}

static void module(struct workload_sites *s, uint64_t start, const char *text)
{
    const struct workload_module m = {.start = start, .bytes = 0x1000, .offset = 0x2000};
    assert_int_equal(workload_sites_module(s, &m, text, strlen(text)), 0);
}

static void fill(struct workload_sites *s)
{
    module(s, 0x10000, "0123abcd /bin/one");
    module(s, 0x40000, " [vdso]");
    define(s, 2, (uint64_t[]){0x10010, 0x40fff, 0x41000}, 3);
    module(s, 0x10000, "ffff /bin/two, loaded where one was");
    define(s, 3, (uint64_t[]){0x10010}, 1);
    define(s, 2, (uint64_t[]){1}, 1); // an existing site
}

static void check_filled(const struct workload_sites *s)
{
    assert_int_equal(s->n_modules, 3);
    assert_string_equal(s->modules[0].build_id, "0123abcd");
    assert_string_equal(s->modules[0].path, "/bin/one");
    assert_string_equal(s->modules[1].build_id, "");
    assert_string_equal(s->modules[1].path, "[vdso]");
    assert_string_equal(s->modules[2].path, "/bin/two, loaded where one was");
    assert_int_equal(s->modules[2].offset, 0x2000);
    assert_int_equal(s->n_sites, 3);
    assert_int_equal(s->sites[0].n, 0);
    assert_int_equal(s->sites[1].n, 3);
    const struct workload_frame *f = &s->frames[s->sites[1].first];
    assert_true(f[0].address == 0x10010 && f[0].module == 1);
    assert_true(f[1].address == 0x40fff && f[1].module == 2);
    assert_true(f[2].address == 0x41000 && f[2].module == 0);
    assert_int_equal(s->frames[s->sites[2].first].module, 3);
}

static void round_trip(void **state)
{
    (void)state;
    struct workload_sites s = {0}, back = {0};
    struct buf b = {0};
    size_t m = 0, n = 0;
    fill(&s);
    check_filled(&s);
    assert_int_equal(workload_sites_put(&b, &s, &m, &n), 0);
    assert_true(m == 3 && n == 3);
    assert_int_equal(workload_sites_get(b.data, b.size, &back), 0);
    check_filled(&back);
    workload_sites_release(&back);
    workload_sites_release(&s);
    buf_release(&b);
}

// More sites than fit into one frame.
static void many(void **state)
{
    (void)state;
    enum { SITES = 20000, DEPTH = 30 };
    struct workload_sites s = {0}, back = {0};
    size_t m = 0, n = 0, frames = 0;
    uint64_t addresses[DEPTH];
    for (uint32_t i = 1; i <= SITES; i++) {
        for (uint32_t k = 0; k < DEPTH; k++)
            addresses[k] = (uint64_t)i * 1000003 * (k + 1);
        define(&s, i, addresses, DEPTH);
    }
    for (; n < s.n_sites; frames++) {
        struct buf b = {0};
        assert_int_equal(workload_sites_put(&b, &s, &m, &n), 0);
        assert_true(b.size <= WORKLOAD_SITES_BYTES);
        assert_int_equal(workload_sites_get(b.data, b.size, &back), 0);
        buf_release(&b);
    }
    assert_true(frames > 1);
    assert_int_equal(back.n_sites, SITES);
    assert_int_equal(back.n_frames, s.n_frames);
    for (size_t i = 0; i < s.n_frames; i++)
        assert_true(back.frames[i].address == s.frames[i].address &&
                    back.frames[i].module == s.frames[i].module);
    workload_sites_release(&back);
    workload_sites_release(&s);
}

static void hostile(void **state)
{
    (void)state;
    struct workload_sites s = {0};
    struct buf b = {0};
    size_t m = 0, n = 0;
    fill(&s);
    assert_int_equal(workload_sites_put(&b, &s, &m, &n), 0);
    for (size_t i = 0; i < b.size; i++) {
        struct workload_sites cut = {0};
        assert_true(workload_sites_get(b.data, i, &cut) < 0);
        workload_sites_release(&cut);
        for (unsigned bit = 0; bit < 8; bit++) {
            struct workload_sites flipped = {0};
            b.data[i] ^= (uint8_t)(1u << bit);
            workload_sites_get(b.data, b.size, &flipped);
            for (size_t k = 0; k < flipped.n_frames; k++)
                assert_true(flipped.frames[k].module <= flipped.n_modules);
            workload_sites_release(&flipped);
            b.data[i] ^= (uint8_t)(1u << bit);
        }
    }
    const uint8_t much[] = {0, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    struct workload_sites none = {0};
    assert_true(workload_sites_get(much, sizeof much, &none) < 0);
    workload_sites_release(&none);
    workload_sites_release(&s);
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(many),
        cmocka_unit_test(hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
