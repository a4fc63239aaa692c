// Tests the unwinder on synthetic stacks, with and without the cache. The stack changes slightly
// from one walk to the next.
#include "capture/unwind/unwind.h"
#include "unit.h"

// Code that never runs, with the unwind rule `table`.
#define CODE(name, table)                                                                          \
    extern const char name[];                                                                      \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name                          \
            ":\n.cfi_startproc\n" table "\n nop\n nop\n.cfi_endproc\n.size " #name ", . - " #name  \
            "\n")

CODE(by_sp, ".cfi_def_cfa %rsp, 8");
CODE(by_sp_far, ".cfi_def_cfa %rsp, 32");
CODE(saves_fp, ".cfi_def_cfa %rsp, 24\n .cfi_offset %rbp, -16");
CODE(by_fp, ".cfi_def_cfa %rbp, 16\n .cfi_offset %rbp, -16");
CODE(by_fp_far, ".cfi_def_cfa %rbp, 40");
CODE(loses_fp, ".cfi_def_cfa %rsp, 16\n .cfi_register %rbp, %rbx");
// The CFA is stored at rbp - 8, and the caller's frame pointer at rbp.
CODE(aligned, ".cfi_escape 0x0f, 3, 0x76, 0x78, 0x06\n .cfi_escape 0x10, 6, 2, 0x76, 0");
CODE(with_many_calls, ".skip 4096, 0x90\n .cfi_def_cfa %rsp, 16");
CODE(outermost, ".cfi_undefined %rip");

enum { WORDS = 48, WALKS = 400000 };

static struct unwind_memory memory;
static uint64_t stack[WORDS], state;

static uint64_t random_below(uint64_t n)
{
    return unit_random(&state) % n;
}

// Returns a random stack word: usually a return address, otherwise a frame pointer.
static uint64_t random_word(void)
{
    const char *const code[] = {by_sp, by_sp,     by_sp_far, saves_fp, saves_fp,
                                by_fp, by_fp_far, loses_fp,  aligned,  outermost};
    if (random_below(4) == 0)
        return (uintptr_t)&stack[random_below(WORDS)];
    return (uintptr_t)code[random_below(sizeof code / sizeof *code)] + 1;
}

static void test_same(void **unused)
{
    struct unwind_cursor c = {.low = (uintptr_t)stack, .high = (uintptr_t)(stack + WORDS)};
    uint64_t frames = 0, known = 0;
    (void)unused;
    unwind_memory_init(&memory);
    for (unsigned i = 0; i < WORDS; i++)
        stack[i] = random_word();
    for (unsigned i = 0; i < WALKS; i++) {
        struct unwind_stack kept, anew;
        uint32_t max = random_below(8) ? UNWIND_DEPTH : 1 + (uint32_t)random_below(12);
        for (uint64_t n = random_below(3); n > 0; n--)
            stack[random_below(WORDS)] = random_word();
        do {
            c.from.pc = random_word();
        } while (c.from.pc - (uintptr_t)stack < sizeof stack);
        c.from.sp = (uintptr_t)&stack[random_below(4)];
        c.from.fp = (uintptr_t)&stack[4 + random_below(4)];
        c.memory = NULL;
        unwind_walk(&c, max, &anew);
        c.memory = &memory;
        uint32_t made = memory.made;
        assert_int_equal(unwind_walk_site(&c, max), anew.sites[0]);
        known += memory.made == made;
        if (random_below(4) == 0) {
            unwind_walk(&c, max, &kept);
            assert_int_equal(kept.n, anew.n);
            assert_memory_equal(kept.codes, anew.codes, anew.n * sizeof *anew.codes);
        }
        frames += anew.n;
    }
    // Fails if all walks end at once, or if they never hit the cache.
    assert_in_range(frames, 2 * WALKS, UINT64_MAX);
    assert_in_range(known, WALKS / 2, WALKS);
}

// The cache keeps nearly all rules while it is a quarter full, although their slots are random.
static void test_rules_are_kept(void **unused)
{
    enum { CALLS = UNWIND_RULES / 4 };
    static struct unwind_memory own;
    struct unwind_stack walked;
    struct unwind_cursor c = {
        .low = (uintptr_t)stack, .high = (uintptr_t)(stack + WORDS), .memory = &own};
    uint32_t kept = 0;
    (void)unused;
    unwind_memory_init(&own);
    c.from.sp = c.low;
    for (unsigned i = 1; i <= CALLS; i++) {
        c.from.pc = (uintptr_t)with_many_calls + 3 * i;
        unwind_walk(&c, 1, &walked);
    }
    for (unsigned i = 0; i < UNWIND_RULES; i++)
        kept += own.rules[i] != 0;
    assert_in_range(kept, CALLS - CALLS / 50, CALLS);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_same),
                                          cmocka_unit_test(test_rules_are_kept)};

UNIT_MAIN(tests)
