// Wrappers for the functions with which a program enters a sandbox. From then on, an unexpected
// system call or a read of the time-stamp counter may kill the program, so the resources for the
// recording are allocated first.
#include "capture/wrap/next.h"
#include "capture/wrap/wrap.h"

#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// Programs such as Firefox pass a NULL filter to find out whether the kernel supports filters, so
// the call may fail.
static void undo(unsigned changes, bool strict)
{
    if (changes)
        producer_sandbox_refused(changes);
    if (strict)
        producer_enable();
}

WRAPPER int prctl(int option, ...)
{
    unsigned long a[4];
    va_list rest;
    va_start(rest, option);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(rest, unsigned long);
    va_end(rest);
    bool forbids_counter = option == PR_SET_TSC && a[0] == PR_TSC_SIGSEGV;
    bool strict = option == PR_SET_SECCOMP && a[0] == SECCOMP_MODE_STRICT;
    unsigned changes = 0;
    if (!wrap_has_thread())
        return next.prctl(option, a[0], a[1], a[2], a[3]);
    if (option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP)
        changes = producer_before_sandbox(option == PR_SET_SECCOMP);
    if (strict || forbids_counter)
        producer_disable(forbids_counter);
    int rc = next.prctl(option, a[0], a[1], a[2], a[3]);
    if (rc < 0)
        undo(changes, strict);
    return rc;
}

static WRAP_COLD long call_seccomp NEXT_SYSCALL_PARAMETERS
{
    bool strict = a == SECCOMP_SET_MODE_STRICT, installs = strict || a == SECCOMP_SET_MODE_FILTER;
    if (!installs || !wrap_has_thread())
        return next.syscall NEXT_SYSCALL_ARGUMENTS;
    unsigned changes = producer_before_sandbox(true);
    if (strict)
        producer_disable(false);
    long rc = next.syscall NEXT_SYSCALL_ARGUMENTS;
    if (rc < 0)
        undo(changes, strict);
    return rc;
}

// libc has no function for seccomp(2), so programs and libseccomp call it by its number. All
// other calls are tail calls: a child of clone(2) returns to the caller on a stack of its own.
long wrap_syscall NEXT_SYSCALL_PARAMETERS __asm__("syscall");
WRAPPER long wrap_syscall NEXT_SYSCALL_PARAMETERS
{
    return __builtin_expect(number == SYS_seccomp, 0) ? call_seccomp NEXT_SYSCALL_ARGUMENTS
                                                      : next.syscall NEXT_SYSCALL_ARGUMENTS;
}
