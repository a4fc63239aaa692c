// Tests the evaluation of seccomp filters with known and unknown arguments.
#include "unit.h"

#include "record/attach/filters.h"
#include "record/attach/machine.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OFFSET(field) ((uint32_t)offsetof(struct seccomp_data, field))
#define LOAD(at)      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)
#define LENGTH(f)     (sizeof(f) / sizeof *(f))

static const struct filters_need needed_mprotect = {
    "mprotect", SYS_mprotect, false, 1 << 2, {0, 0, PROT_READ}};

static uint32_t action_of(const struct sock_filter *f, size_t n)
{
    return filters_action(f, n, &needed_mprotect);
}

static void test_calls_by_number(void **state)
{
    (void)state;
    const struct sock_filter f[] = {LOAD(OFFSET(arch)),
                                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE_AUDIT, 1, 0),
                                    RETURN(SECCOMP_RET_KILL_PROCESS),
                                    LOAD(OFFSET(nr)),
                                    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 2, 0),
                                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 1),
                                    RETURN(SECCOMP_RET_ERRNO | 1),
                                    RETURN(SECCOMP_RET_ALLOW)};
    assert_int_equal(action_of(f, LENGTH(f)), SECCOMP_RET_ERRNO);
    struct filters_need other = needed_mprotect;
    other.number = SYS_munmap;
    assert_int_equal(filters_action(f, LENGTH(f), &other), SECCOMP_RET_ALLOW);
}

// Uses the filter of systemd's MemoryDenyWriteExecute.
static void test_an_argument_that_is_known(void **state)
{
    (void)state;
    struct sock_filter f[] = {LOAD(OFFSET(args[2])),
                              BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
                              RETURN(SECCOMP_RET_KILL_PROCESS), RETURN(SECCOMP_RET_ALLOW)};
    assert_int_equal(action_of(f, LENGTH(f)), SECCOMP_RET_ALLOW);
    f[1].k = PROT_READ;
    assert_int_equal(action_of(f, LENGTH(f)), SECCOMP_RET_KILL_PROCESS);
    f[0].k = OFFSET(args[2]) + 4; // upper half of the argument
    assert_int_equal(action_of(f, LENGTH(f)), SECCOMP_RET_ALLOW);
}

static void test_the_worst_of_an_argument_that_is_not_known(void **state)
{
    (void)state;
    const struct sock_filter f[] = {LOAD(OFFSET(args[0])),
                                    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff),
                                    BPF_STMT(BPF_ST, 3),
                                    LOAD(OFFSET(nr)),
                                    BPF_STMT(BPF_LDX | BPF_MEM, 3),
                                    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_X, 0, 0, 1),
                                    RETURN(SECCOMP_RET_ALLOW),
                                    LOAD(OFFSET(args[1])),
                                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 77, 1, 0),
                                    RETURN(SECCOMP_RET_LOG),
                                    RETURN(SECCOMP_RET_TRAP)};
    assert_int_equal(action_of(f, LENGTH(f)), SECCOMP_RET_TRAP);
}

static void test_arithmetic(void **state)
{
    (void)state;
    const struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_IMM, 7),
                                    BPF_STMT(BPF_MISC | BPF_TAX, 0),
                                    BPF_STMT(BPF_ALU | BPF_MUL | BPF_X, 0), // 49
                                    BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, 9), // 40
                                    BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 2), // 10
                                    BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 4), // 160
                                    BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 5),  // 165
                                    BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 1), // 164
                                    BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), // 23
                                    BPF_STMT(BPF_ALU | BPF_NEG, 0),
                                    BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 24),
                                    BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
                                    RETURN(SECCOMP_RET_KILL_PROCESS),
                                    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1),
                                    RETURN(SECCOMP_RET_ALLOW),
                                    RETURN(SECCOMP_RET_KILL_PROCESS)};
    assert_int_equal(action_of(f, LENGTH(f)), SECCOMP_RET_ALLOW);
}

static void test_an_invalid_program_kills(void **state)
{
    (void)state;
    const struct sock_filter endless[] = {LOAD(OFFSET(nr))},
                             far[] = {BPF_JUMP(BPF_JMP | BPF_JA, 1000, 0, 0)},
                             unknown[] = {LOAD(OFFSET(args[0])), BPF_STMT(BPF_RET | BPF_A, 0)};
    assert_int_equal(action_of(endless, 1), SECCOMP_RET_KILL_PROCESS);
    assert_int_equal(action_of(far, 1), SECCOMP_RET_KILL_PROCESS);
    assert_int_equal(action_of(unknown, 2), SECCOMP_RET_KILL_PROCESS);
    assert_int_equal(action_of(NULL, 0), SECCOMP_RET_KILL_PROCESS);
}

// Each branch on an unknown argument doubles the number of paths.
static void test_a_program_of_too_many_ways_kills(void **state)
{
    (void)state;
    static struct sock_filter f[4096];
    unsigned n = 0;
    for (; n < 4000; n += 4) {
        f[n] = (struct sock_filter)LOAD(OFFSET(args[0]));
        f[n + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1);
        f[n + 2] = (struct sock_filter)BPF_STMT(BPF_ST, 0);
        f[n + 3] = (struct sock_filter)BPF_STMT(BPF_ST, 1);
    }
    f[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    assert_int_equal(action_of(f, n), SECCOMP_RET_KILL_PROCESS);
}

enum { BODY = 50, JUMPS_AT_MOST = 3 };

// Writes a random program that allows or fails the call depending on the final accumulator.
static size_t make_program(struct sock_filter *f, uint64_t *seed)
{
    static const uint16_t codes[] = {
        BPF_LD | BPF_W | BPF_ABS,  BPF_LD | BPF_IMM,          BPF_LD | BPF_W | BPF_LEN,
        BPF_LDX | BPF_IMM,         BPF_ALU | BPF_ADD | BPF_K, BPF_ALU | BPF_SUB | BPF_X,
        BPF_ALU | BPF_MUL | BPF_K, BPF_ALU | BPF_AND | BPF_X, BPF_ALU | BPF_OR | BPF_X,
        BPF_ALU | BPF_XOR | BPF_K, BPF_ALU | BPF_LSH | BPF_K, BPF_ALU | BPF_RSH | BPF_K,
        BPF_ALU | BPF_NEG,         BPF_MISC | BPF_TAX,        BPF_MISC | BPF_TXA,
        BPF_JMP | BPF_JEQ | BPF_X, BPF_JMP | BPF_JGT | BPF_K, BPF_JMP | BPF_JGE | BPF_X,
        BPF_JMP | BPF_JSET | BPF_K};
    size_t n = 0;
    f[n++] = (struct sock_filter)LOAD(OFFSET(nr));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0);
    f[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    while (n < BODY) {
        uint16_t code = codes[unit_random(seed) % LENGTH(codes)];
        uint32_t k = (uint32_t)(unit_random(seed) >> (32 + unit_random(seed) % 32));
        bool shifts = (code & ~BPF_K) == (BPF_ALU | BPF_LSH) || code == (BPF_ALU | BPF_RSH | BPF_K);
        k = code == codes[0] ? OFFSET(args) + k % 12 * 4 : shifts ? k % 32 : k;
        f[n++] = (struct sock_filter){code, unit_random(seed) % JUMPS_AT_MOST,
                                      unit_random(seed) % JUMPS_AT_MOST, k};
    }
    for (unsigned i = 0; i < JUMPS_AT_MOST; i++)
        f[n++] = (struct sock_filter)BPF_STMT(BPF_MISC | BPF_TAX, 0);
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 1000, 0, 1);
    f[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | 7);
    f[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    return n;
}

// Makes the system call under the filter. Returns true if the kernel returns an error for the call.
static bool kernel_fails(const struct sock_filter *f, size_t n, const struct filters_need *call)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct sock_fprog all = {(unsigned short)n, (struct sock_filter *)f};
        const uint64_t *a = call->args;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all))
            _exit(2);
        _exit(syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]) < 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_not_equal(WEXITSTATUS(status), 2);
    return WEXITSTATUS(status);
}

// Compares random programs with the kernel.
static void test_as_the_kernel_follows_it(void **state)
{
    uint64_t seed = 17;
    unsigned failed = 0;
    (void)state;
    if (prctl(PR_GET_SECCOMP) < 0) // qemu's user emulation
        UNIT_SKIP("the kernel has no filters");
    for (unsigned round = 0; round < 300; round++) {
        struct filters_need call = {"getppid", SYS_getppid, false, 0x3f, {0}};
        struct sock_filter f[BODY + JUMPS_AT_MOST + 3];
        for (unsigned i = 0; i < 6; i++)
            call.args[i] = unit_random(&seed) >> (unit_random(&seed) % 64);
        size_t n = make_program(f, &seed);
        bool fails = kernel_fails(f, n, &call);
        assert_int_equal(filters_action(f, n, &call),
                         fails ? SECCOMP_RET_ERRNO : SECCOMP_RET_ALLOW);
        // With unknown arguments, the result must be the worst possible action.
        call.known = 0;
        uint32_t any = filters_action(f, n, &call);
        assert_true(!fails || any == SECCOMP_RET_ERRNO);
        failed += fails;
    }
    assert_in_range(failed, 30, 270);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_calls_by_number),
    cmocka_unit_test(test_an_argument_that_is_known),
    cmocka_unit_test(test_the_worst_of_an_argument_that_is_not_known),
    cmocka_unit_test(test_arithmetic),
    cmocka_unit_test(test_an_invalid_program_kills),
    cmocka_unit_test(test_a_program_of_too_many_ways_kills),
    cmocka_unit_test(test_as_the_kernel_follows_it),
};

UNIT_MAIN(tests)
