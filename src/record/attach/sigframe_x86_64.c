#include "record/attach/sigframe.h"

#include <cpuid.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ucontext.h>

enum {
    FPSTATE = 1024,      // offset of the FPU state in the frame
    FX_BYTES = 512,      // fxsave area
    SW_BYTES = 464,      // offset of struct sw_bytes in the fxsave area
    TILES = 18,          // number of the state component whose space the kernel allocates on demand
    RESTART_FIRST = 512, // ERESTARTSYS to ERESTART_RESTARTBLOCK of the kernel
    RESTART_LAST = 516,
    USER_CODE = 0x33,
    USER_STACK = 0x2b,
    UC_FP_XSTATE = 1,
    UC_SIGCONTEXT_SS = 2,
    UC_STRICT_RESTORE_SS = 4,
    NO_ALTERNATE_STACK = 0x100, // an invalid mode, so that the kernel ignores uc_stack
};

// Defined as in asm/sigcontext.h, which conflicts with glibc's header.
struct sw_bytes {
    uint32_t magic, extended_bytes;
    uint64_t features;
    uint32_t bytes, padding[7];
};
#define FIRST_MAGIC 0x46505853u
#define LAST_MAGIC  0x46505845u

struct __attribute__((packed)) load { // movabs
    uint8_t code[2];
    uint64_t value;
};

struct __attribute__((packed)) call_code {
    uint8_t call[MACHINE_SYSCALL_BYTES];
    uint8_t number[10]; // rt_sigprocmask(SIG_SETMASK, &mask, NULL, 8); keeps the flags
    struct load mask_at;
    uint8_t sizes[11], set_mask[2];
    struct load registers[9];
    uint8_t jump[6];
    uint64_t pc, mask;
};

struct __attribute__((packed)) back_code {
    uint8_t keep_result[3]; // in rbx, because the system call needs rax
    struct load errno_at;
    uint8_t set_errno[2];
    uint32_t errno_value;
    struct load frame;
    uint8_t number[5], sigreturn[2];
};

// The code is one block, padded to a multiple of 16.
struct code {
    _Alignas(16) struct call_code call;
    _Alignas(16) struct back_code back;
};

// If the kernel would restart a system call, returns registers with which the thread makes this
// system call again. Otherwise returns the registers unchanged.
static struct user_regs_struct restart(const struct machine_registers *from)
{
    struct user_regs_struct r = from->all;
    long error = -(long)r.rax;
    r.rip = from->pc;
    if (from->syscall >= 0 && error >= RESTART_FIRST && error <= RESTART_LAST) {
        r.rax = (unsigned long long)from->syscall;
        r.rip -= MACHINE_SYSCALL_BYTES;
    }
    return r;
}

int sigframe_begin(struct sigframe *f, const struct remote *r,
                   const struct machine_registers *registers, uint64_t mask, struct err *e)
{
    const struct user_regs_struct to = restart(registers);
    uint64_t at = remote_find_padding(r, sizeof(struct code));
    *f = (struct sigframe){.call = at};
    if (!at)
        return err_set(e, -ENOTSUP, "%ld: no object has %zu unused bytes in its code", (long)r->pid,
                       sizeof(struct code));
    const struct code code = {.call = {
                                  .call = {0x0f, 0x05},
                                  .number = {0xb8, 14, 0, 0, 0, 0xbf, 2, 0, 0, 0},
                                  .mask_at = {{0x48, 0xbe}, at + offsetof(struct code, call.mask)},
                                  .sizes = {0xba, 0, 0, 0, 0, 0x41, 0xba, 8, 0, 0, 0},
                                  .set_mask = {0x0f, 0x05},
                                  .registers = {{{0x48, 0xb8}, to.rax},
                                                {{0x48, 0xb9}, to.rcx},
                                                {{0x48, 0xba}, to.rdx},
                                                {{0x48, 0xbe}, to.rsi},
                                                {{0x48, 0xbf}, to.rdi},
                                                {{0x49, 0xb8}, to.r8},
                                                {{0x49, 0xb9}, to.r9},
                                                {{0x49, 0xba}, to.r10},
                                                {{0x49, 0xbb}, to.r11}},
                                  .jump = {0xff, 0x25},
                                  .pc = to.rip,
                                  .mask = mask,
                              }};
    return remote_write(r, at, &code, sizeof code)
               ? 0
               : err_set(e, -EACCES, "%ld: its code cannot be written to", (long)r->pid);
}

// Copies the FPU state in the kernel's format for signal frames, with magic numbers at both ends.
static void fill_fpstate(uint8_t *to, const struct machine_vectors *vectors)
{
    struct sw_bytes sw;
    uint64_t used = 0;
    uint32_t bytes = (uint32_t)vectors->bytes, size, begin = 0, c, d;
    memcpy(to, vectors->state, bytes);
    memcpy(&used, to + FX_BYTES, sizeof used);
    memcpy(&sw.features, to + SW_BYTES, sizeof sw.features);
    // The kernel rejects a state that is larger than the space reserved for the thread, so omit
    // tiles that the thread has not used.
    if (sw.features >> TILES & 1 && !(used >> TILES & 1) &&
        __get_cpuid_count(0xd, TILES, &size, &begin, &c, &d) && begin > FX_BYTES && begin < bytes) {
        bytes = begin;
        sw.features &= ~(1ull << TILES);
    }
    const uint32_t last = LAST_MAGIC;
    sw = (struct sw_bytes){FIRST_MAGIC, bytes + (uint32_t)sizeof last, sw.features, bytes, {0}};
    memcpy(to + SW_BYTES, &sw, sizeof sw);
    memcpy(to + bytes, &last, sizeof last);
}

static void fill_context(ucontext_t *to, const struct user_regs_struct *r)
{
    greg_t *g = to->uc_mcontext.gregs;
    g[REG_R8] = (greg_t)r->r8, g[REG_R9] = (greg_t)r->r9, g[REG_R10] = (greg_t)r->r10;
    g[REG_R11] = (greg_t)r->r11, g[REG_R12] = (greg_t)r->r12, g[REG_R13] = (greg_t)r->r13;
    g[REG_R14] = (greg_t)r->r14, g[REG_R15] = (greg_t)r->r15, g[REG_RDI] = (greg_t)r->rdi;
    g[REG_RSI] = (greg_t)r->rsi, g[REG_RBP] = (greg_t)r->rbp, g[REG_RBX] = (greg_t)r->rbx;
    g[REG_RDX] = (greg_t)r->rdx, g[REG_RAX] = (greg_t)r->rax, g[REG_RCX] = (greg_t)r->rcx;
    g[REG_RSP] = (greg_t)r->rsp, g[REG_RIP] = (greg_t)r->rip, g[REG_EFL] = (greg_t)r->eflags;
    g[REG_CSGSFS] = USER_CODE | (greg_t)USER_STACK << 48;
    to->uc_flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
    to->uc_stack.ss_flags = NO_ALTERNATE_STACK;
}

bool sigframe_write(struct sigframe *f, const struct remote *r, uint64_t at,
                    const struct machine_registers *registers, uint64_t mask,
                    const struct machine_vectors *vectors)
{
    const struct user_regs_struct to = restart(registers);
    struct {
        ucontext_t context;
        _Alignas(FPSTATE) uint8_t fpstate[SIGFRAME_BYTES - FPSTATE];
    } frame = {0};
    _Static_assert(offsetof(__typeof__(frame), fpstate) == FPSTATE &&
                       sizeof frame == SIGFRAME_BYTES,
                   "the FPU state is aligned, as xrstor requires");
    const struct back_code back = {
        .keep_result = {0x48, 0x89, 0xc3},
        .errno_at = {{0x48, 0xb9}, at + sizeof frame.context}, // unused bytes of the frame
        .set_errno = {0xc7, 0x01},
        .frame = {{0x48, 0xbc}, at},
        .number = {0xb8, 15},
        .sigreturn = {0x0f, 0x05},
    };
    if (vectors->bytes > sizeof frame.fpstate - sizeof(uint32_t) || vectors->bytes <= FX_BYTES)
        return false;
    fill_context(&frame.context, &to);
    frame.context.uc_mcontext.fpregs = (fpregset_t)(uintptr_t)(at + FPSTATE); // NOLINT
    memcpy(&frame.context.uc_sigmask, &mask, sizeof mask);
    fill_fpstate(frame.fpstate, vectors);
    f->back = f->call + offsetof(struct code, back);
    f->returned = f->back + sizeof back;
    return remote_write(r, at, &frame, sizeof frame) &&
           remote_write(r, f->back, &back, sizeof back);
}

bool sigframe_keep_errno(const struct sigframe *f, const struct remote *r, uint64_t at, int value)
{
    return remote_write(r, f->back + offsetof(struct back_code, errno_at.value), &at, sizeof at) &&
           remote_write(r, f->back + offsetof(struct back_code, errno_value), &value, sizeof value);
}

bool sigframe_set_pc(const struct sigframe *f, const struct remote *r, uint64_t frame, uint64_t pc)
{
    return remote_write(r, f->call + offsetof(struct code, call.pc), &pc, sizeof pc) &&
           (!frame || remote_write(r, frame + offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]), &pc,
                                   sizeof pc));
}

void sigframe_end(struct sigframe *f, const struct remote *r)
{
    static const struct code none;
    if (f->call && !remote_write(r, f->call, &none, sizeof none))
        errno = 0; // the process has ended
    f->call = 0;
}
