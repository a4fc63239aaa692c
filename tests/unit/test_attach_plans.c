// Checks where attaching places the code of redirected functions, and which jumps it restores.
#include "unit.h"

#include "record/attach/plans.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 32 };

static uint64_t page;
static char *memory; // PAGES pages

static int map_pages(void **state)
{
    page = (uint64_t)sysconf(_SC_PAGESIZE);
    memory = mmap(NULL, PAGES * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    *state = NULL;
    return 0;
}

static int unmap_pages(void **state)
{
    (void)state;
    return munmap(memory, PAGES * page);
}

// Chooses the place for an area of two pages and an object that begins at page 20. Returns the
// address.
static uint64_t choose_place(uint64_t span)
{
    struct entries_plan plan = {
        .area_bytes = 2 * (uint32_t)page, .span = span, .place = -77 * (int64_t)page};
    struct plans_object o = {.plan = &plan, .base = (uintptr_t)memory + 20 * page};
    const struct remote r = {.pid = getpid()};
    plans_choose_place(&o, &r);
    return o.base + (uint64_t)plan.place;
}

static void test_nearest_gap_below_the_object(void **state)
{
    (void)state;
    munmap(memory + 4 * page, 4 * page);  // large enough, but farther away
    munmap(memory + 11 * page, 3 * page); // large enough
    munmap(memory + 16 * page, page);     // too small
    munmap(memory + 24 * page, 4 * page); // above the object
    assert_int_equal(choose_place(12 * page), (uintptr_t)memory + 12 * page);
}

static void test_no_gap_in_reach(void **state)
{
    (void)state;
    munmap(memory + 4 * page, 4 * page);
    // The jump from the object's end would reach only addresses above the gap.
    assert_int_equal(choose_place(ENTRIES_REACH - 2 * page),
                     (uintptr_t)memory + 20 * page - 77 * page);
}

// Two functions are redirected, and their bytes are the original ones. Their jumps are pending only
// if the stubs and trampolines of both are in the area.
static void test_jumps_need_code(void **state)
{
    enum { STUB = 64, TRAMPOLINE = 16, CODE = 0x90, BYTES = 5 };
    static uint8_t object[2 * BYTES], area[256];
    struct entries_redirected all[2];
    struct remote r = {.memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)};
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        all[i] = (struct entries_redirected){.base = (uintptr_t)object,
                                             .area = (uintptr_t)area,
                                             .entry = {.at = i * BYTES,
                                                       .stub = STUB * i,
                                                       .trampoline = STUB * i + TRAMPOLINE,
                                                       .bytes = BYTES}};
    for (unsigned written = 0; written <= 4; written++) {
        struct plans p = {0};
        assert_true(plans_add_redirected(&p, &r, (uintptr_t)all, 2));
        assert_int_equal(p.n, 1);
        assert_int_equal(p.objects[0].pending, written == 4);
        plans_release(&p);
        area[STUB * (written / 2) + TRAMPOLINE * (written % 2)] = CODE;
    }
    object[0] = object[BYTES] = CODE; // the jumps are stored
    struct plans p = {0};
    assert_true(plans_add_redirected(&p, &r, (uintptr_t)all, 2));
    assert_false(p.objects[0].pending);
    plans_release(&p);
    close(r.memory);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_nearest_gap_below_the_object, map_pages, unmap_pages),
    cmocka_unit_test_setup_teardown(test_no_gap_in_reach, map_pages, unmap_pages),
    cmocka_unit_test(test_jumps_need_code),
};

UNIT_MAIN(tests)
