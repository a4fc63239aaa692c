// Included by every unit test: cmocka and the headers that it requires.
#pragma once

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include <stdlib.h>
#include <time.h>

// Returns the next number of a deterministic pseudo-random sequence (splitmix64).
static inline uint64_t unit_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// Returns a limit of CPU time in the unit of clock(): `seconds`, or more on an emulated processor,
// which may need 30 ns for a step that usually takes 1 ns.
static inline clock_t unit_cpu_limit(unsigned seconds)
{
    enum { STEPS = 5000000, USUAL_NS = 1 };
    const double usual = (double)STEPS * USUAL_NS * CLOCKS_PER_SEC / 1e9;
    uint64_t state = 0;
    volatile uint64_t last = 0;
    clock_t start = clock();
    for (unsigned i = 0; i < STEPS; i++)
        last = unit_random(&state);
    double times = (double)(clock() - start) / usual;
    (void)last;
    return (clock_t)((double)seconds * CLOCKS_PER_SEC * (times > 1 ? times : 1));
}

// Ends a test that cannot run here. For meson, the "not ok" of cmocka's skip() is a failure.
#define UNIT_SKIP(reason)                                                                          \
    do {                                                                                           \
        print_message("# skipped: %s\n", reason);                                                  \
        return;                                                                                    \
    } while (0)

// Defines main. If the program has an argument, main runs only the tests whose names match it as a
// pattern.
#define UNIT_MAIN(tests)                                                                           \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        if (argc > 1)                                                                              \
            cmocka_set_test_filter(argv[1]);                                                       \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }

// Like UNIT_MAIN. Skips the tests if there is no ptrace(2), as in qemu's user emulation.
#define UNIT_MAIN_TRACER(tests)                                                                    \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        if (ptrace(PTRACE_SEIZE, 0, 0, 0) < 0 && errno == ENOSYS)                                  \
            return puts("1..0 # SKIP no ptrace") < 0;                                              \
        if (argc > 1)                                                                              \
            cmocka_set_test_filter(argv[1]);                                                       \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }
