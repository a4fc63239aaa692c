// State shared by all files of the producer, and stateless helpers.
#include "capture/producer/producer_private.h"

#include <signal.h>
#include <sys/syscall.h>

struct producer_inherited producer_inherited;

const struct producer_thread producer_no_thread;

_Thread_local struct producer_tls producer_tls = {
    .thread = (struct producer_thread *)&producer_no_thread};

_Atomic uint32_t producer_releases[PRODUCER_RELEASES];

uint64_t producer_signals_block(void)
{
    uint64_t all = UINT64_MAX, mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof mask);
    return mask;
}

void producer_signals_restore(uint64_t mask)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
}

char *producer_append(char *at, const char *end, const char *text)
{
    while (at && *text) {
        if (at + 1 >= end)
            return NULL;
        *at++ = *text++;
    }
    if (at)
        *at = 0;
    return at;
}

char *producer_append_number(char *at, const char *end, uint64_t value)
{
    char digits[24], *d = digits + sizeof digits - 1;
    *d = 0;
    do
        *--d = (char)('0' + value % 10);
    while (value /= 10);
    return producer_append(at, end, d);
}

const char *producer_env_value(const char *entry, const char *name)
{
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=' ? entry + n + 1 : NULL;
}
