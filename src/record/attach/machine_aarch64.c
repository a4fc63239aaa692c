// The kernel rewinds a thread to the instruction of an interrupted system call, with the original
// registers, before the stop. It reports neither the call nor whether the call continues after the
// time that has passed: a relative timeout, such as that of nanosleep, begins again.
#include "record/attach/machine.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { NUMBER = 8, BACK = 30, FP = 29, RESULT = 19 }; // registers
#define SVC        0xd4000001u
#define BTYPE_BITS 0xc00ull // of pstate: the last instruction was an indirect jump

const uint8_t machine_breakpoint[] = {0, 0, 0x20, 0xd4}; // brk 0

const long machine_waits[] = {SYS_read,
                              SYS_pselect6,
                              SYS_ppoll,
                              SYS_epoll_pwait,
                              SYS_nanosleep,
                              SYS_wait4,
                              SYS_clock_nanosleep,
                              SYS_restart_syscall,
                              SYS_waitid,
                              SYS_accept,
                              SYS_recvmsg,
                              SYS_recvfrom,
                              SYS_rt_sigsuspend,
                              SYS_accept4,
                              SYS_rt_sigtimedwait,
                              SYS_epoll_pwait2,
                              -1};

static bool get_set(pid_t tid, int set, void *to, size_t bytes)
{
    struct iovec v = {to, bytes};
    return ptrace(PTRACE_GETREGSET, tid, set, &v) == 0;
}

static bool set_set(pid_t tid, int set, const void *from, size_t bytes)
{
    struct iovec v = {(void *)from, bytes};
    return ptrace(PTRACE_SETREGSET, tid, set, &v) == 0;
}

// Returns the number of the system call that the thread makes next or has just made, or -1.
static long find_syscall(pid_t tid, const struct user_regs_struct *r)
{
    uint32_t words[2];
    long code = ptrace(PTRACE_PEEKTEXT, tid, r->pc - sizeof *words, 0);
    memcpy(words, &code, sizeof words);
    return words[0] == SVC || words[1] == SVC ? (long)r->regs[NUMBER] : -1;
}

bool machine_get(pid_t tid, struct machine_registers *r)
{
    if (!get_set(tid, NT_PRSTATUS, &r->all, sizeof r->all) ||
        !get_set(tid, NT_ARM_TLS, &r->thread, sizeof r->thread))
        return false;
    r->pc = r->all.pc;
    r->sp = r->all.sp;
    r->syscall = find_syscall(tid, &r->all);
    r->second = r->all.regs[1];
    return true;
}

bool machine_set(pid_t tid, const struct machine_registers *r)
{
    struct user_regs_struct all = r->all;
    all.pc = r->pc;
    all.sp = r->sp;
    return set_set(tid, NT_PRSTATUS, &all, sizeof all);
}

// The state is struct user_fpsimd_state. If the processor has SVE, the kernel's format of the SVE
// registers follows.
bool machine_get_vectors(pid_t tid, struct machine_vectors *v)
{
    const size_t bytes = sizeof(struct user_fpsimd_struct);
    struct iovec sve = {v->state + bytes, sizeof v->state - bytes};
    bool has_sve = ptrace(PTRACE_GETREGSET, tid, NT_ARM_SVE, &sve) == 0;
    v->bytes = bytes + (has_sve ? sve.iov_len : 0);
    return get_set(tid, NT_PRFPREG, v->state, bytes);
}

bool machine_set_vectors(pid_t tid, const struct machine_vectors *v)
{
    const size_t bytes = sizeof(struct user_fpsimd_struct);
    return v->bytes > bytes ? set_set(tid, NT_ARM_SVE, v->state + bytes, v->bytes - bytes)
                            : set_set(tid, NT_PRFPREG, v->state, bytes);
}

uint64_t machine_return_address(const struct remote *r, const struct machine_registers *registers)
{
    (void)r;
    return registers->all.regs[BACK];
}

static void set_arguments(struct machine_registers *r, const uint64_t arguments[6])
{
    for (unsigned i = 0; i < 6; i++)
        r->all.regs[i] = arguments[i];
    r->all.pstate &= ~BTYPE_BITS;
}

bool machine_prepare_call(struct machine_registers *registers, const struct remote *r,
                          uint64_t stack, uint64_t back, const uint64_t arguments[6])
{
    set_arguments(registers, arguments);
    registers->sp = stack;
    registers->all.regs[BACK] = back;
    registers->all.regs[FP] = 0;
    return !remote_is_over(r);
}

void machine_prepare_syscall(struct machine_registers *r, long number, const uint64_t arguments[6])
{
    set_arguments(r, arguments);
    r->all.regs[NUMBER] = (unsigned long long)number;
}

bool machine_skip_syscall(pid_t tid, struct machine_registers *r, uint64_t pc)
{
    const int number = SYS_mmap;
    r->pc = pc;
    r->all.regs[1] = r->all.regs[2] = 0;
    return machine_set(tid, r) && set_set(tid, NT_ARM_SYSTEM_CALL, &number, sizeof number);
}

uint64_t machine_syscall_result(const struct machine_registers *r)
{
    return r->all.regs[0];
}

uint64_t machine_function_result(const struct machine_registers *r)
{
    return r->all.regs[RESULT];
}
