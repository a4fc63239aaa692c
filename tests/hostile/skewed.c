// Simulates the counter of a machine whose CPUs are not synchronized, or whose counter changes its
// rate. The kernel forbids rdtsc in this process, and a handler of SIGSEGV emulates the
// instruction. Only libheaptape.so reads changed values.
//
//   skewed TICKS...     adds TICKS, and makes 1000 calls of malloc; waits until the recorder has
//                       read them; then the next TICKS
//   skewed stopped TICKS...  the same, and the counter does not advance
//   skewed PERCENT%     makes calls for 0.5 s while the counter has this rate
#define _GNU_SOURCE
#include "heaptape/heaptape.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static uintptr_t library_start, library_end;
static volatile int64_t offset, percent = 100, start;

#if defined(__x86_64__)
static int64_t changed(int64_t ticks)
{
    return start + (ticks - start) * percent / 100 + offset;
}

static void emulate(int signal, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)r[REG_RIP];
    int plain = at[0] == 0x0f && at[1] == 0x31;
    if (!plain && memcmp(at, "\x0f\x01\xf9", 3) != 0)
        _exit(3);
    syscall(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
    int64_t ticks = (int64_t)__builtin_ia32_rdtsc();
    syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    if ((uintptr_t)at >= library_start && (uintptr_t)at < library_end)
        ticks = changed(ticks);
    r[REG_RAX] = (uint32_t)ticks;
    r[REG_RDX] = (uint64_t)ticks >> 32;
    r[REG_RCX] = plain ? r[REG_RCX] : 0;
    r[REG_RIP] += plain ? 2 : 3;
}

static void find_library(void)
{
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        uintptr_t from, to;
        if (!strstr(line, "libheaptape.so") || sscanf(line, "%lx-%lx", &from, &to) != 2)
            continue;
        library_start = library_start ? library_start : from;
        library_end = to;
    }
    fclose(maps);
}

int main(int argc, char **argv)
{
    struct sigaction how = {.sa_sigaction = emulate, .sa_flags = SA_SIGINFO | SA_NODEFER};
    find_library();
    start = (int64_t)__builtin_ia32_rdtsc();
    sigaction(SIGSEGV, &how, NULL);
    // Uses syscall, because a call of prctl would end the recording.
    syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    for (int i = 1; i < argc; i++) {
        char *rate = strchr(argv[i], '%');
        if (strcmp(argv[i], "stopped") == 0) {
            percent = 0;
            continue;
        }
        if (rate)
            percent = atoll(argv[i]);
        else
            offset = atoll(argv[i]);
        for (int n = 0; n < (rate ? 500 : 1000); n++) {
            free(malloc(100));
            if (rate)
                usleep(1000);
        }
        if (i + 1 < argc && heaptape_sync() != 0)
            return 4;
    }
    return 0;
}
#else
int main(void)
{
    return 77;
}
#endif
