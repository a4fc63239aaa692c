// Stubs for machines other than x86-64 and aarch64, whose registers and breakpoints differ.
#include "record/attach/attach.h"

#include <errno.h>

static int refuse(pid_t pid, struct err *e)
{
    return err_set(e, -ENOTSUP, "%ld: heaptape attaches to processes on x86-64 and aarch64 only",
                   (long)pid);
}

int attach_begin(pid_t pid, const struct attach_how *how, const struct attach_meanwhile *meanwhile,
                 struct attach_result *result, struct err *e)
{
    (void)how, (void)meanwhile, (void)result;
    return refuse(pid, e);
}

int attach_end(pid_t pid, pid_t owner, const struct attach_meanwhile *meanwhile,
               struct attach_result *result, struct err *e)
{
    (void)owner, (void)meanwhile, (void)result;
    return refuse(pid, e);
}

int attach_call(pid_t pid, struct attach_call *calls, size_t n, struct attach_result *result,
                struct err *e)
{
    (void)calls, (void)n, (void)result;
    return refuse(pid, e);
}
