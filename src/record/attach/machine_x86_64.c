#include "record/attach/machine.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

const uint8_t machine_breakpoint[] = {0xcc}; // int3

const long machine_waits[] = {
    SYS_read,       SYS_poll,          SYS_select,          SYS_pselect6,        SYS_ppoll,
    SYS_epoll_wait, SYS_epoll_pwait,   SYS_nanosleep,       SYS_clock_nanosleep, SYS_pause,
    SYS_wait4,      SYS_waitid,        SYS_accept,          SYS_accept4,         SYS_recvfrom,
    SYS_recvmsg,    SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_restart_syscall, -1};

bool machine_get(pid_t tid, struct machine_registers *r)
{
    if (ptrace(PTRACE_GETREGS, tid, 0, &r->all) < 0)
        return false;
    r->pc = r->all.rip;
    r->sp = r->all.rsp;
    r->thread = r->all.fs_base;
    r->syscall = (long)r->all.orig_rax;
    r->second = r->all.rsi;
    return true;
}

bool machine_set(pid_t tid, const struct machine_registers *r)
{
    struct user_regs_struct all = r->all;
    all.rip = r->pc;
    all.rsp = r->sp;
    all.orig_rax = (unsigned long long)r->syscall;
    return ptrace(PTRACE_SETREGS, tid, 0, &all) == 0;
}

bool machine_get_vectors(pid_t tid, struct machine_vectors *v)
{
    struct iovec to = {v->state, sizeof v->state};
    bool good = ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &to) == 0;
    v->bytes = to.iov_len;
    return good;
}

bool machine_set_vectors(pid_t tid, const struct machine_vectors *v)
{
    struct iovec from = {(void *)v->state, v->bytes};
    return ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &from) == 0;
}

uint64_t machine_return_address(const struct remote *r, const struct machine_registers *registers)
{
    uint64_t at;
    return remote_read(r, registers->sp, &at, sizeof at) ? at : 0;
}

// Suppresses the restart of the interrupted system call, and clears the trap flag and the direction
// flag.
static void clear_flags(struct machine_registers *r)
{
    r->syscall = -1;
    r->all.eflags &= ~0x500ull;
}

bool machine_prepare_call(struct machine_registers *registers, const struct remote *r,
                          uint64_t stack, uint64_t back, const uint64_t arguments[6])
{
    struct user_regs_struct *to = &registers->all;
    registers->sp = stack - sizeof back;
    to->rdi = arguments[0], to->rsi = arguments[1], to->rdx = arguments[2];
    to->rcx = arguments[3], to->r8 = arguments[4], to->r9 = arguments[5];
    to->rax = 0;
    clear_flags(registers);
    return remote_write(r, registers->sp, &back, sizeof back);
}

void machine_prepare_syscall(struct machine_registers *r, long number, const uint64_t arguments[6])
{
    struct user_regs_struct *to = &r->all;
    to->rax = (unsigned long long)number;
    to->rdi = arguments[0], to->rsi = arguments[1], to->rdx = arguments[2];
    to->r10 = arguments[3], to->r8 = arguments[4], to->r9 = arguments[5];
    clear_flags(r);
}

bool machine_skip_syscall(pid_t tid, struct machine_registers *r, uint64_t pc)
{
    r->pc = pc;
    r->syscall = SYS_mmap;
    r->all.rsi = 0, r->all.rdx = 0;
    return machine_set(tid, r);
}

uint64_t machine_syscall_result(const struct machine_registers *r)
{
    return r->all.rax;
}

uint64_t machine_function_result(const struct machine_registers *r)
{
    return r->all.rbx;
}
