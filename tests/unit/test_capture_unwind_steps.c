// Compares the unwinder with libunwind at every executed instruction of functions with hand-written
// tables, of a signal frame, and of libc functions. The trap flag of the CPU single-steps the code.
#include "capture/unwind/unwind.h"
#include "trace/codec.h"
#include "unit.h"

#if defined HAVE_LIBUNWIND

#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    TRAP_FLAG = 0x100,
    ALTERNATE_BYTES = 1 << 17,
    RED_ZONE_BYTES = 128, // bytes below the stack pointer. After `leave`, the tables still find
                          // registers there.
};

#define FUNCTION(name, body)                                                                       \
    void name(uint64_t n);                                                                         \
    extern const char name##_end[];                                                                \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name                          \
            ":\n.cfi_startproc\n" body "\n.cfi_endproc\n.globl " #name "_end\n" #name              \
            "_end:\n.size " #name ", . - " #name "\n")

// Sets the trap flag.
FUNCTION(step_on, "pushfq\n .cfi_adjust_cfa_offset 8\n orq $0x100, (%rsp)\n"
                  "popfq\n .cfi_adjust_cfa_offset -8\n nop\n ret");

// Has no frame, but data below the stack pointer.
FUNCTION(leaf,
         "mov %rdi, -8(%rsp)\n lea 1(%rdi), %rax\n mov %rax, -16(%rsp)\n mov -8(%rsp), %rax\n ret");

FUNCTION(framed, "push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
                 "mov %rsp, %rbp\n .cfi_def_cfa_register %rbp\n push %rbx\n .cfi_offset %rbx, -24\n"
                 "sub $24, %rsp\n mov %rdi, %rbx\n call leaf\n mov %rbx, %rax\n"
                 "mov -8(%rbp), %rbx\n leave\n .cfi_def_cfa %rsp, 8\n ret");

// Uses the frame pointer for data.
FUNCTION(spilled, "push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
                  "push %rbx\n .cfi_def_cfa_offset 24\n .cfi_offset %rbx, -24\n"
                  "mov $-1, %rbp\n"
                  " sub $40, %rsp\n"
                  " .cfi_def_cfa_offset 64\n"
                  " call framed\n"
                  " mov $8, %ebp\n"
                  " call leaf\n"
                  "add $40, %rsp\n .cfi_def_cfa_offset 24\n pop %rbx\n .cfi_def_cfa_offset 16\n"
                  "pop %rbp\n .cfi_def_cfa_offset 8\n ret");

// Has two epilogues, the first in the middle of the function.
FUNCTION(early,
         "push %rbx\n .cfi_def_cfa_offset 16\n .cfi_offset %rbx, -16\n mov %rdi, %rbx\n"
         "test $1, %dil\n jz 1f\n .cfi_remember_state\n pop %rbx\n .cfi_def_cfa_offset 8\n ret\n"
         "1: .cfi_restore_state\n call spilled\n pop %rbx\n .cfi_def_cfa_offset 8\n ret");

// Allocates n bytes with alloca.
FUNCTION(roomy, "push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
                "mov %rsp, %rbp\n"
                " .cfi_def_cfa_register %rbp\n"
                " lea 15(%rdi), %rax\n"
                " and $-16, %rax\n"
                " sub %rax, %rsp\n"
                "call spilled\n leave\n .cfi_def_cfa %rsp, 8\n ret");

// Makes a tail call: the frame is gone before the jump.
FUNCTION(tail,
         "push %rbx\n .cfi_def_cfa_offset 16\n .cfi_offset %rbx, -16\n mov %rdi, %rbx\n call leaf\n"
         "mov %rbx, %rdi\n pop %rbx\n .cfi_def_cfa_offset 8\n .cfi_restore %rbx\n jmp framed");

// Realigns the stack through r10, as compilers do.
FUNCTION(realigned,
         "lea 8(%rsp), %r10\n .cfi_def_cfa %r10, 0\n and $-64, %rsp\n push -8(%r10)\n push %rbp\n"
         "mov %rsp, %rbp\n"
         " .cfi_escape 0x10, 6, 2, 0x76, 0\n"
         " push %r10\n"
         " .cfi_escape 0xf, 3, 0x76, 0x78, 6\n"
         "sub $56, %rsp\n call spilled\n mov -8(%rbp), %r10\n .cfi_def_cfa %r10, 0\n"
         "leave\n .cfi_restore %rbp\n lea -8(%r10), %rsp\n .cfi_def_cfa %rsp, 8\n ret");

// Handles a signal and steps itself, because the kernel clears the flag.
FUNCTION(handle, "push %rbx\n"
                 " .cfi_def_cfa_offset 16\n"
                 " .cfi_offset %rbx, -16\n"
                 " call step_on\n"
                 " mov $16, %edi\n"
                 " call roomy\n"
                 "pop %rbx\n .cfi_def_cfa_offset 8\n ret");

static struct unwind_memory memory;
static volatile sig_atomic_t stepping;
static volatile unsigned steps, frames, known, ended, different;
static char what_differs[256];

// Returns true if the code returns from a signal handler. unw_is_signal_frame recognizes only
// frames without a table.
static bool is_restorer(uint64_t pc)
{
    static const uint8_t rt_sigreturn[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 5};
    const size_t syscall_at = 7;
    return memcmp((const void *)pc, rt_sigreturn, sizeof rt_sigreturn) == 0 ||
           memcmp((const void *)(pc - syscall_at), rt_sigreturn, sizeof rt_sigreturn) == 0;
}

// Walks with libunwind from the interrupted instruction outwards and stores the codes as in struct
// unwind_stack.
static uint32_t walk_theirs(ucontext_t *from, uint64_t *codes)
{
    unw_cursor_t cursor;
    unw_word_t pc;
    uint32_t n = 0;
    bool interrupted = true;
    unw_init_local2(&cursor, from, UNW_INIT_SIGNAL_FRAME);
    do {
        if (unw_get_reg(&cursor, UNW_REG_IP, &pc) || pc == 0)
            break;
        codes[n++] = pc + interrupted;
        interrupted = is_restorer(pc);
    } while (n < UNWIND_DEPTH && unw_step(&cursor) > 0);
    return n;
}

// Returns true if the walk may have ended after its first frame, because the interrupted code is in
// `realigned`. While r10 holds the CFA, the walk must end instead of continuing with a wrong frame.
static bool may_end(const struct unwind_stack *s)
{
    return s->n == 1 && s->codes[0] > (uintptr_t)realigned &&
           s->codes[0] <= (uintptr_t)realigned_end;
}

static void compare(const struct unwind_stack *ours, const uint64_t *theirs, uint32_t n)
{
    if (ours->n == n && memcmp(ours->codes, theirs, n * sizeof *theirs) == 0)
        return;
    uint32_t i = 0;
    while (i < n && i < ours->n && ours->codes[i] == theirs[i])
        i++;
    if (!different++)
        snprintf(what_differs, sizeof what_differs,
                 "from %#lx: %u and %u frames, frame %u is %#lx and not %#lx", (long)theirs[0],
                 ours->n, n, i, i < ours->n ? (long)ours->codes[i] : 0,
                 i < n ? (long)theirs[i] : 0);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    ucontext_t *uc = context;
    greg_t *regs = uc->uc_mcontext.gregs;
    struct unwind_stack stack;
    static uint64_t theirs[UNWIND_DEPTH];
    if (!stepping) {
        regs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
        return;
    }
    struct unwind_cursor c = {
        .from = {(uint64_t)regs[REG_RIP] + 1, (uint64_t)regs[REG_RSP], (uint64_t)regs[REG_RBP]},
        .low = (uintptr_t)regs[REG_RSP] - RED_ZONE_BYTES,
        .high = (uintptr_t)environ & ~(uintptr_t)7};
    uint32_t n = walk_theirs(uc, theirs);
    uint32_t made = memory.made;
    c.memory = &memory;
    uint64_t site = unwind_walk_site(&c, UNWIND_DEPTH);
    steps++;
    frames += n;
    known += memory.made == made;
    for (int kept = 1; kept >= 0; kept--) {
        c.memory = kept ? &memory : NULL;
        unwind_walk(&c, UNWIND_DEPTH, &stack);
        if (may_end(&stack)) {
            ended++;
            continue;
        }
        compare(&stack, theirs, n);
        different += site != stack.sites[0];
    }
}

static int set_up(void **state)
{
    (void)state;
    static char alternate[ALTERNATE_BYTES];
    const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction usr1 = {.sa_handler = (void (*)(int))(uintptr_t)handle};
    unwind_memory_init(&memory);
    // libunwind's cache does not distinguish the address of a call from an interrupted instruction.
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE);
    return sigaltstack(&stack, NULL) || sigaction(SIGTRAP, &trap, NULL) ||
           sigaction(SIGUSR1, &usr1, NULL);
}

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void own_functions(void)
{
    leaf(1);
    framed(2);
    spilled(3);
    early(4);
    early(5);
    roomy(100);
    tail(6);
    realigned(7);
}

static void signals(void)
{
    raise(SIGUSR1);
}

static void libc_functions(void)
{
    char text[64];
    int items[8] = {5, 3, 8, 1, 9, 2, 7, 4};
    snprintf(text, sizeof text, "%d %s %.3f", 17, "seventeen", 17.5);
    qsort(items, 8, sizeof *items, by_value);
    items[0] += (int)strtol(text, NULL, 10);
}

// Single-steps the function twice. The second pass uses the rules that the first pass has cached.
static void step_through(void (*what)(void), unsigned least)
{
    steps = frames = known = ended = different = 0;
    for (int i = 0; i < 2; i++) {
        stepping = 1;
        step_on(0);
        what();
        stepping = 0;
        __asm__ volatile("nop\n nop");
    }
    print_message("# %u instructions, %u frames, %u of the stacks known before\n", steps, frames,
                  known);
    if (different)
        fail_msg("%u walks differ: %s", different, what_differs);
    assert_in_range(steps, least, UINT32_MAX);
    assert_in_range(known, steps / 5, UINT32_MAX);
}

static void test_own_functions(void **state)
{
    (void)state;
    step_through(own_functions, 200);
    // 6 instructions of `realigned`, walked twice in each of two rounds.
    assert_in_range(ended, 1, 40);
}

static void test_signal(void **state)
{
    (void)state;
    step_through(signals, 150);
    assert_int_equal(ended, 0);
}

static void test_libc(void **state)
{
    (void)state;
    step_through(libc_functions, 2000);
    assert_int_equal(ended, 0);
}

#else

static int set_up(void **state)
{
    (void)state;
    return 0;
}

static void needs_libunwind(void **state)
{
    (void)state;
    UNIT_SKIP("libunwind-dev was not installed when this was built");
}

#define test_own_functions needs_libunwind
#define test_signal        needs_libunwind
#define test_libc          needs_libunwind

#endif

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_own_functions),
    cmocka_unit_test(test_signal),
    cmocka_unit_test(test_libc),
};

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, set_up, NULL);
}
