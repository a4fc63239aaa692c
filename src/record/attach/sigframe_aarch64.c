#include "record/attach/sigframe.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>

enum {
    LOADED = 9,                 // registers x0 to x8
    NO_ALTERNATE_STACK = 0x100, // an invalid mode, so that the kernel ignores uc_stack
};

#define SVC 0xd4000001u
// Instructions with a distance to a member of the same struct.
#define DISTANCE(type, from, to) ((uint32_t)(offsetof(type, to) - offsetof(type, from)) / 4 << 5)
#define MOVE(x, number)          (0xd2800000u | (uint32_t)(number) << 5 | (x))

struct code_of_call {
    uint32_t call, number, mask_at, sizes[3], set_mask;
    uint32_t load[LOADED], load_pc, jump, padding;
    uint64_t registers[LOADED], pc, mask;
};

struct code_of_back {
    uint32_t keep_result; // in x19, because the system call needs x0
    uint32_t load_errno_at, load_errno, set_errno;
    uint32_t load_frame, set_stack;
    uint32_t number, sigreturn;
    uint64_t errno_at, frame;
    uint32_t errno_value;
};

// The code is one block, padded to a multiple of 16.
struct sigframe_code {
    _Alignas(16) struct code_of_call call;
    _Alignas(16) struct code_of_back back;
};

#define LOAD(type, x, from, to) (0x58000000u | DISTANCE(type, from, to) | (x))

// rt_sigframe of the kernel.
struct kernel_frame {
    siginfo_t info;
    ucontext_t context;
};

int sigframe_begin(struct sigframe *f, const struct remote *r,
                   const struct machine_registers *registers, uint64_t mask, struct err *e)
{
    uint64_t at = remote_find_padding(r, sizeof(struct sigframe_code));
    *f = (struct sigframe){.call = at};
    if (!at)
        return err_set(e, -ENOTSUP, "%ld: no object has %zu unused bytes in its code", (long)r->pid,
                       sizeof(struct sigframe_code));
    struct sigframe_code code = {
        .call = {
            .call = SVC,
            .number = MOVE(8, SYS_rt_sigprocmask),
            .mask_at = 0x10000001 | DISTANCE(struct code_of_call, mask_at, mask),
            .sizes = {MOVE(0, SIG_SETMASK), MOVE(2, 0), MOVE(3, 8)},
            .set_mask = SVC,
            .load_pc = LOAD(struct code_of_call, 17, load_pc, pc),
            // The linker may insert code that changes x17. ret does not require
            // that the target begins with bti.
            .jump = 0xd65f0220,
            .pc = registers->pc,
            .mask = mask,
        }};
    for (unsigned i = 0; i < LOADED; i++) {
        code.call.load[i] = LOAD(struct code_of_call, i, load[i], registers[i]);
        code.call.registers[i] = registers->all.regs[i];
    }
    return remote_write(r, at, &code, sizeof code)
               ? 0
               : err_set(e, -EACCES, "%ld: its code cannot be written to", (long)r->pid);
}

static void fill_context(ucontext_t *to, const struct machine_registers *r, uint64_t mask,
                         const struct machine_vectors *vectors)
{
    struct fpsimd_context *v = (struct fpsimd_context *)(void *)to->uc_mcontext.__reserved;
    struct user_fpsimd_struct state;
    memcpy(&state, vectors->state, sizeof state);
    memcpy(to->uc_mcontext.regs, r->all.regs, sizeof r->all.regs);
    memcpy(&to->uc_sigmask, &mask, sizeof mask);
    to->uc_mcontext.sp = r->sp;
    to->uc_mcontext.pc = r->pc;
    to->uc_mcontext.pstate = r->all.pstate;
    to->uc_stack.ss_flags = NO_ALTERNATE_STACK;
    *v = (struct fpsimd_context){
        .head = {FPSIMD_MAGIC, sizeof *v}, .fpsr = state.fpsr, .fpcr = state.fpcr};
    memcpy(v->vregs, state.vregs, sizeof v->vregs);
}

bool sigframe_write(struct sigframe *f, const struct remote *r, uint64_t at,
                    const struct machine_registers *registers, uint64_t mask,
                    const struct machine_vectors *vectors)
{
    struct kernel_frame frame = {0};
    _Static_assert(sizeof frame + 16 <= SIGFRAME_BYTES, "errno_at follows the frame");
    const struct code_of_back back = {
        .keep_result = 0xaa0003f3,
        .load_errno_at = LOAD(struct code_of_back, 1, load_errno_at, errno_at),
        .load_errno = 0x18000002 | DISTANCE(struct code_of_back, load_errno, errno_value),
        .set_errno = 0xb9000022,
        .load_frame = LOAD(struct code_of_back, 1, load_frame, frame),
        .set_stack = 0x9100003f,
        .number = MOVE(8, SYS_rt_sigreturn),
        .sigreturn = SVC,
        .errno_at = at + sizeof frame,
        .frame = at,
    };
    fill_context(&frame.context, registers, mask, vectors);
    f->back = f->call + offsetof(struct sigframe_code, back);
    f->returned = f->back + offsetof(struct code_of_back, errno_at);
    return remote_write(r, at, &frame, sizeof frame) &&
           remote_write(r, f->back, &back, sizeof back);
}

bool sigframe_keep_errno(const struct sigframe *f, const struct remote *r, uint64_t at, int value)
{
    return remote_write(r, f->back + offsetof(struct code_of_back, errno_at), &at, sizeof at) &&
           remote_write(r, f->back + offsetof(struct code_of_back, errno_value), &value,
                        sizeof value);
}

bool sigframe_set_pc(const struct sigframe *f, const struct remote *r, uint64_t frame, uint64_t pc)
{
    return remote_write(r, f->call + offsetof(struct sigframe_code, call.pc), &pc, sizeof pc) &&
           (!frame || remote_write(r, frame + offsetof(struct kernel_frame, context.uc_mcontext.pc),
                                   &pc, sizeof pc));
}

void sigframe_end(struct sigframe *f, const struct remote *r)
{
    static const struct sigframe_code none;
    if (f->call && !remote_write(r, f->call, &none, sizeof none))
        errno = 0; // the process has ended
    f->call = 0;
}
