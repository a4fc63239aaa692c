// Registers and code of a traced thread. Each machine has a file (machine_x86_64.c,
// machine_aarch64.c).
#pragma once

#include "record/attach/remote.h"

#include <linux/audit.h>
#include <sys/user.h>

#if defined(__aarch64__)
enum {
    MACHINE_SYSCALL_BYTES = 4,    // size of the instruction that makes a system call
    MACHINE_BREAKPOINT_BYTES = 4, // size of a breakpoint
    MACHINE_TRAPPED_BYTES = 0,    // distance from a breakpoint to the program counter of its trap
    MACHINE_AUDIT = AUDIT_ARCH_AARCH64,
    MACHINE_TLS = 1, // direction from the thread pointer to the variables of libc
    // Offset, from the thread pointer, of musl's vector of addresses of modules' variables.
    MACHINE_MUSL_VECTOR = -8,
};
#else
enum {
    MACHINE_SYSCALL_BYTES = 2,
    MACHINE_BREAKPOINT_BYTES = 1,
    MACHINE_TRAPPED_BYTES = 1,
    MACHINE_AUDIT = AUDIT_ARCH_X86_64,
    MACHINE_TLS = -1,
    MACHINE_MUSL_VECTOR = 8,
};
#endif
enum { MACHINE_VECTORS = 16384 }; // size of the buffer for the registers of the FPU, in bytes

struct machine_registers {
    uint64_t pc, sp, thread; // `thread` is the thread pointer, which machine_set keeps
    long syscall;            // number of the system call that the stop interrupted, or -1
    uint64_t second;         // second argument of the system call
    struct user_regs_struct all;
};

// Registers of the FPU, in the kernel's format. The aarch64 file describes its own format.
struct machine_vectors {
    size_t bytes;
    _Alignas(16) uint8_t state[MACHINE_VECTORS];
};

extern const uint8_t machine_breakpoint[MACHINE_BREAKPOINT_BYTES];

// System calls that block, and that the kernel restarts after an interruption. Ends with -1.
extern const long machine_waits[];

// Reads and writes the registers of a stopped thread. machine_set writes `pc` and `sp`. If
// `syscall` is -1, the kernel does not restart a system call. Return false if the thread has ended.
bool machine_get(pid_t tid, struct machine_registers *r);
bool machine_set(pid_t tid, const struct machine_registers *r);
bool machine_get_vectors(pid_t tid, struct machine_vectors *v);
bool machine_set_vectors(pid_t tid, const struct machine_vectors *v);

// Returns the return address of a thread at the entry of a function, or 0.
uint64_t machine_return_address(const struct remote *r, const struct machine_registers *registers);

// Prepares the registers of a thread for a call of a function that returns to `back`. `stack` is
// aligned to 64. Returns false if the process has ended.
bool machine_prepare_call(struct machine_registers *registers, const struct remote *r,
                          uint64_t stack, uint64_t back, const uint64_t arguments[6]);

// Prepares the registers for a system call. The caller sets the program counter.
void machine_prepare_syscall(struct machine_registers *r, long number, const uint64_t arguments[6]);

// Replaces the system call that the thread has entered by a call of mmap that maps nothing, after
// which the thread continues at `pc`. Returns false if the thread has ended.
bool machine_skip_syscall(pid_t tid, struct machine_registers *r, uint64_t pc);

// Returns the result of a system call, and of a function that returned to the code of sigframe.h.
uint64_t machine_syscall_result(const struct machine_registers *r);
uint64_t machine_function_result(const struct machine_registers *r);
