// Tests plans for the entries of functions: limits, displacements, jumps, and threads that are
// stopped within the replaced bytes.
#include "capture/spool/entries.h"

#include "trace/event/event.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

enum { TRAMPOLINE = 32, STUB = 16, AT = 0x1000 };

// The first instructions of malloc.
#if defined(__aarch64__)
// bti c; mov x29, sp
static const uint8_t before[] = {0x5f, 0x24, 0x03, 0xd5, 0xfd, 0x03, 0x00, 0x91};
#else
// endbr64 (4 bytes); push rbp (1); mov rbp, rsp (3); push rbx (1)
static const uint8_t before[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x53};
#endif

static struct entries_plan *new_plan(void)
{
    struct entries_plan *p = calloc(1, sizeof *p);
    assert_non_null(p);
    *p = (struct entries_plan){.magic = ENTRIES_MAGIC,
                               .place = -65536,
                               .span = 0x10000,
                               .code_bytes = 4096,
                               .area_bytes = 2 * ENTRIES_PAGE_BYTES,
                               .n_entries = 1,
                               .n_fixups = 1,
                               .fixups = {64}};
    struct entries_entry *e = &p->entries[0];
    *e = (struct entries_entry){.at = AT,
                                .trampoline = TRAMPOLINE,
                                .stub = STUB,
                                .slot = ENTRIES_PAGE_BYTES,
                                .function = HT_MALLOC,
                                .bytes = sizeof before,
                                .keep = ENTRIES_KEEP_BYTES};
    memcpy(e->was, before, sizeof before);
    memset(e->moved, ENTRIES_NO_INSTRUCTION, sizeof e->moved);
    e->moved[0] = 0;
    e->moved[4] = 4;
#if !defined(__aarch64__)
    e->moved[5] = 5;
    e->moved[8] = 8;
#endif
    return p;
}

static void valid_plans_and_others(void **state)
{
    (void)state;
    struct entries_plan *good = new_plan(), *p = new_plan();
    assert_true(entries_are_valid(good));
#define REFUSES(change)                                                                            \
    do {                                                                                           \
        *p = *good;                                                                                \
        change;                                                                                    \
        assert_false(entries_are_valid(p));                                                        \
    } while (0)
    REFUSES(p->magic++);
    REFUSES(p->code_bytes = 100);
    REFUSES(p->code_bytes = 2 * ENTRIES_PAGE_BYTES);
    REFUSES(p->area_bytes = ENTRIES_PAGE_BYTES);
    REFUSES(p->area_bytes += 8);
    REFUSES(p->area_bytes = 1 << 30);
    REFUSES(p->n_entries = 0);
    REFUSES(p->n_entries = ENTRIES_MAX + 1);
    REFUSES(p->n_fixups = ENTRIES_MAX_FIXUPS + 1);
    REFUSES(p->fixups[0] = 4093);
    REFUSES(p->span = 1ull << 31);
    REFUSES(p->span = AT + sizeof before - 1);
    REFUSES(p->place = 1);
    REFUSES(p->place = 1ll << 31);
    REFUSES(p->entries[0].at = UINT64_MAX);
    REFUSES(p->entries[0].trampoline = 4096);
    REFUSES(p->entries[0].stub = 4096);
    REFUSES(p->entries[0].slot = 4095);
    REFUSES(p->entries[0].slot = 4100);
    REFUSES(p->entries[0].slot = 2 * ENTRIES_PAGE_BYTES);
    REFUSES(p->entries[0].slot = ENTRIES_PAGE_BYTES - 8);
    REFUSES(p->entries[0].function = HT_REALLOC_BEGIN);
    REFUSES(p->entries[0].function = ENTRIES_FUNCTION_LIMIT);
    REFUSES(p->entries[0].bytes = sizeof before - 1);
    REFUSES(p->entries[0].bytes = ENTRIES_MAX_BYTES + 1);
    REFUSES(p->entries[0].keep = 3);
    REFUSES((p->entries[0].trampoline = 4090, p->entries[0].moved[4] = 8));
    REFUSES((p->n_entries = 2, p->entries[1] = p->entries[0]));
    REFUSES((p->n_entries = 2, p->entries[1] = p->entries[0], p->entries[1].at += 100));
    free(p);
    free(good);
}

#if defined(__aarch64__)
// Encodings of the GNU assembler: b .+0x1000, b .-0x2000; adrp x3, .+0x1000, adrp x3, .-0x2000.
static void displacements_follow_the_area(void **state)
{
    (void)state;
    static const uint32_t codes[][2] = {{0x14000400, 0x17fff800}, {0xb0000003, 0xd0ffffe3}};
    for (unsigned i = 0; i < 2; i++) {
        struct entries_plan *p = new_plan();
        memcpy(p->code + 64, &codes[i][0], 4);
        assert_true(entries_relocate(p, 0x3000));
        assert_memory_equal(p->code + 64, &codes[i][1], 4);
        assert_int_equal(p->place, -65536 + 0x3000);
        assert_false(entries_relocate(p, 1ll << (i ? 33 : 28)));
        free(p);
    }
}

static void the_jump_leads_to_the_stub(void **state)
{
    (void)state;
    struct entries_plan *p = new_plan();
    uint8_t to[ENTRIES_MAX_BYTES];
    uint32_t jump;
    assert_true(entries_make_jump(&p->entries[0], 0x500000, 0x400000, to));
    assert_memory_equal(to, before, 4);
    memcpy(&jump, to + 4, sizeof jump);
    assert_int_equal(jump >> 26, 5);
    assert_int_equal(0x500000 + AT + 4 + (int32_t)(jump << 6) / 16, 0x400000 + STUB);
    assert_false(entries_make_jump(&p->entries[0], 0x500000, 0x500000 + (1ull << 28), to));
    free(p);
}

static void threads_continue_in_the_trampoline(void **state)
{
    (void)state;
    struct entries_plan *p = new_plan();
    const struct entries_entry *e = &p->entries[0];
    const uint64_t base = 0x500000, area = 0x400000, at = base + AT;
    // The jump replaces one instruction, so no thread must be moved.
    for (uint64_t k = 0; k <= sizeof before; k += 4)
        assert_int_equal(entries_move(e, base, area, at + k), at + k);
    assert_int_equal(entries_move(e, base, area, at + 6), 0);
    free(p);
}
#else
static void displacements_follow_the_area(void **state)
{
    (void)state;
    struct entries_plan *p = new_plan();
    int32_t displacement = 0x1000;
    memcpy(p->code + 64, &displacement, sizeof displacement);
    assert_true(entries_relocate(p, 0x3000));
    memcpy(&displacement, p->code + 64, sizeof displacement);
    assert_int_equal(displacement, -0x2000);
    assert_int_equal(p->place, -65536 + 0x3000);
    assert_false(entries_relocate(p, 1ll << 31));
    free(p);
}

static void the_jump_leads_to_the_stub(void **state)
{
    (void)state;
    struct entries_plan *p = new_plan();
    uint8_t to[ENTRIES_MAX_BYTES];
    int32_t displacement;
    assert_true(entries_make_jump(&p->entries[0], 0x500000, 0x400000, to));
    assert_memory_equal(to, before, 4);
    assert_int_equal(to[4], 0xe9);
    memcpy(&displacement, to + 5, sizeof displacement);
    assert_int_equal(0x500000 + AT + 9 + displacement, 0x400000 + STUB);
    p->entries[0].bytes = 10;
    assert_true(entries_make_jump(&p->entries[0], 0x500000, 0x400000, to));
    assert_int_equal(to[9], 0xcc);
    assert_false(entries_make_jump(&p->entries[0], 0x500000, 0x500000 + (1ull << 32), to));
    free(p);
}

static void threads_continue_in_the_trampoline(void **state)
{
    (void)state;
    struct entries_plan *p = new_plan();
    const struct entries_entry *e = &p->entries[0];
    const uint64_t base = 0x500000, area = 0x400000, at = base + AT;
    assert_int_equal(entries_move(e, base, area, at), at);
    assert_int_equal(entries_move(e, base, area, at + 4), at + 4);
    assert_int_equal(entries_move(e, base, area, at + 5), area + TRAMPOLINE + 5);
    assert_int_equal(entries_move(e, base, area, at + 8), area + TRAMPOLINE + 8);
    assert_int_equal(entries_move(e, base, area, at + 6), 0);
    assert_int_equal(entries_move(e, base, area, at + 9), at + 9);
    assert_int_equal(entries_move(e, base, area, at - 1), at - 1);
    free(p);
}
#endif

static void arguments_have_the_order_of_the_function(void **state)
{
    static const struct {
        unsigned function;
        const char *letters;
    } wanted[] = {
        {HT_MALLOC, "s"},
        {HT_CALLOC, "cs"},
        {HT_REALLOC, "ps"},
        {HT_REALLOCARRAY, "pcs"},
        {HT_MEMALIGN, "as"},
        {HT_POSIX_MEMALIGN, "xas"},
        {HT_NEW_ALIGNED, "sa"},
        {HT_FREE, "p"},
        {HT_FREE_SIZED, "ps"},
        {HT_FREE_ALIGNED_SIZED, "pas"},
        {HT_DELETE_ALIGNED, "pa"},
        {HT_DELETE_SIZED_ALIGNED, "psa"},
        {ENTRIES_PRCTL, ""},
        {ENTRIES_DLCLOSE, ""},
        {0, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_string_equal(entries_letters(wanted[i].function), wanted[i].letters);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(valid_plans_and_others),
    cmocka_unit_test(displacements_follow_the_area),
    cmocka_unit_test(the_jump_leads_to_the_stub),
    cmocka_unit_test(threads_continue_in_the_trampoline),
    cmocka_unit_test(arguments_have_the_order_of_the_function),
};
UNIT_MAIN(tests)
