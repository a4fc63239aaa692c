// Wrapper for redirected functions (redirect.h) that the program does not call through symbols.
// Examples are functions of an allocator in the executable, and functions with other names. Plans
// describe the arguments, so that one wrapper serves all functions.
#include "capture/wrap/patch.h"
#include "capture/wrap/redirect.h"
#include "capture/wrap/wrap.h"

enum { ARGUMENTS = 6 }; // maximum number of arguments in registers

// A call of a redirected function.
struct entry_call {
    const struct redirect_function *function;
    const uintptr_t *arguments;
    const void *caller, *frame; // return address and frame address of the thunk
};

// Sets those members of the event that the arguments contain. The flags `f` of mallocx contain the
// logarithm of the alignment in their lower 6 bits.
static void read_arguments(const struct entry_call *c, struct event *ev)
{
    const char *letters = c->function->arguments;
    ev->count = event_infos[ev->kind].class == HT_CLASS_ALLOC;
    for (size_t i = 0; i < ARGUMENTS && letters[i]; i++) {
        uintptr_t value = c->arguments[i];
        if (letters[i] == 'p' || letters[i] == 'b')
            ev->ptr = value;
        else if (letters[i] == 's')
            ev->size = value;
        else if (letters[i] == 'c')
            ev->count = value;
        else if (letters[i] == 'a')
            ev->align = value;
        else if (letters[i] == 'f' && value & 63)
            ev->align = (uintptr_t)1 << (value & 63);
    }
    if (ev->align && ev->kind == HT_MALLOC)
        ev->kind = HT_ALIGNED_ALLOC;
    if (!(event_infos[ev->kind].fields & HT_F_COUNT) && ev->count > 1 &&
        __builtin_mul_overflow(ev->size, ev->count, &ev->size))
        ev->size = UINT64_MAX;
}

static uintptr_t call_real(const void *context)
{
    const struct entry_call *c = context;
    const uintptr_t *a = c->arguments;
    uintptr_t (*real)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t) =
        (uintptr_t(*)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                      uintptr_t))c->function->trampoline;
    return real(a[0], a[1], a[2], a[3], a[4], a[5]);
}

// Body of wrap_cxx_guard, which restores the state of the thread.
static uintptr_t call_throwing(const void *context)
{
    producer_enter(PRODUCER_MUTED);
    return call_real(context);
}

// Calls the real function. Nested calls of redirected functions are not events.
static uintptr_t call_muted(const struct entry_call *c)
{
    uint64_t begin = producer_call_begin();
    uint32_t was = producer_tls.busy;
    if (!c->function->throws)
        producer_enter(PRODUCER_MUTED);
    uintptr_t result = c->function->throws ? wrap_cxx_guard(call_throwing, c) : call_real(c);
    producer_leave(was);
    producer_call_end(begin);
    return result;
}

// Records an event on the slow path.
static void record(const struct entry_call *c, const struct event *ev)
{
    uint32_t was = producer_enter(c->function->mark);
    struct event noted = *ev;
    noted.notes[HT_NOTE_ALLOCATOR] = c->function->family;
    producer_record(&noted, c->caller);
    producer_leave(was);
}

static void record_release(const struct entry_call *c, const struct event *ev)
{
    bool plain = event_infos[ev->kind].form == HT_FORM_PLAIN;
    unsigned family = c->function->family;
    if (c->function->mark == PRODUCER_NAMED)
        patch_check_objects();
    bool done = plain && (family ? producer_put_noted_plain(ev->kind, ev->ptr, family)
                                 : producer_put_plain(ev->kind, ev->ptr) ||
                                       producer_retry_plain(ev->kind, ev->ptr));
    if (!done)
        record(c, ev);
}

static void record_allocation(const struct entry_call *c, const struct event *ev)
{
    bool sized = event_infos[ev->kind].form == HT_FORM_SIZED && ev->count < 2;
    unsigned family = c->function->family;
    bool done = sized && (family ? producer_put_noted(ev->kind, ev->size, ev->result, family)
                                 : producer_put_allocated(ev->kind, ev->size, ev->result) ||
                                       producer_put_retry(ev->kind, ev->size, ev->result, c->caller,
                                                          c->frame));
    if (!done)
        record(c, ev);
}

static void set_result(const struct entry_call *c, struct event *ev, uintptr_t result)
{
    // The result is stored through the first argument.
    bool is_stored = ev->kind == HT_POSIX_MEMALIGN;
    bool is_empty = !event_requested(ev->kind, ev->size, ev->count);
    if (c->function->arguments[0] == 'b')
        result = result < ev->size ? 0 : ev->ptr;
    ev->result = !is_stored ? result : result ? 0 : *(const uintptr_t *)c->arguments[0];
    ev->error = is_stored ? (uint8_t)result : wrap_error((const void *)result, !is_empty);
}

// Called by the thunks. Returns the result of the real function.
__attribute__((used, visibility("hidden"))) uintptr_t
wrap_entry_call(size_t index, const uintptr_t *arguments, const uintptr_t *frame);
uintptr_t wrap_entry_call(size_t index, const uintptr_t *arguments, const uintptr_t *frame)
{
    const struct entry_call c = {&redirect_table.all[index], arguments, (const void *)frame[1],
                                 frame};
    struct event ev = {.kind = (enum event_kind)c.function->function};
    enum event_class class = event_infos[ev.kind].class;
    // The C library calls its own functions directly only to free the cache of an exiting thread.
    if (producer_tls.busy & PRODUCER_MUTED ||
        (c.function->in_libc && next_call_target(c.caller) == c.function->at))
        return call_real(&c);
    read_arguments(&c, &ev);
    if (class == HT_CLASS_FREE)
        record_release(&c, &ev);
    else if (class == HT_CLASS_RESIZE && ev.ptr)
        record_release(&c, &(struct event){.kind = HT_REALLOC_BEGIN, .ptr = ev.ptr});
    uintptr_t result = call_muted(&c);
    if (class != HT_CLASS_FREE) {
        set_result(&c, &ev, result);
        record_allocation(&c, &ev);
    }
    return result;
}

// A thunk passes its index and the registers with arguments to wrap_entry_call. The thunk restores
// all registers except the result register. If a compiler sees a function's code, it may rely on
// the registers that the function leaves unchanged, and keep values in them during a call.
enum { THUNK_BYTES = 16 };
_Static_assert(REDIRECT_THUNKS == 224, "the number of thunks below");
extern const char wrap_entry_thunks[] __attribute__((visibility("hidden")));

#if defined(__x86_64__)
// A compiler that sees the code may also call the function with an unaligned stack, so the thunk
// aligns the stack.
#define TEXT_OF(x) #x
#define NUMBER(x)  TEXT_OF(x)
#define MOVE_XMM(move)                                                                             \
    move(0) move(1) move(2) move(3) move(4) move(5) move(6) move(7) move(8) move(9) move(10)       \
        move(11) move(12) move(13) move(14) move(15)
#define SAVE_XMM(n)    "movaps %xmm" #n ", 64+16*" #n "(%rsp)\n"
#define RESTORE_XMM(n) "movaps 64+16*" #n "(%rsp), %xmm" #n "\n"
// clang-format off
#define MOVE_GENERAL(move)                                                                         \
    move(rdi, 0) move(rsi, 8) move(rdx, 16) move(rcx, 24) move(r8, 32) move(r9, 40) move(r10, 48)  \
        move(r11, 56)
// clang-format on
#define SAVE(name, at)    "mov %" #name ", " #at "(%rsp)\n"
#define RESTORE(name, at) "mov " #at "(%rsp), %" #name "\n"

__asm__(".text\n.p2align 4\n.globl wrap_entry_thunks\n.hidden wrap_entry_thunks\n"
        ".type wrap_entry_thunks, @function\nwrap_entry_thunks:\n.cfi_startproc\n"
        ".set wrap_entry_index, 0\n.rept 224\n.p2align 4\n.cfi_def_cfa %rsp, 8\n"
        "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
        "mov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"
        "pushq $wrap_entry_index\njmp wrap_entry_common\n"
        ".set wrap_entry_index, wrap_entry_index + 1\n.endr\n"
        "wrap_entry_common:\n"
        "and $-16, %rsp\nsub $320, %rsp\n" // 8 registers of 8 bytes and 16 of 16 bytes
        MOVE_GENERAL(SAVE)
            MOVE_XMM(SAVE_XMM) "mov -8(%rbp), %edi\nmov %rsp, %rsi\nmov %rbp, %rdx\n"
                               "call wrap_entry_call\n" MOVE_XMM(RESTORE_XMM) MOVE_GENERAL(
                                   RESTORE) "leave\n.cfi_def_cfa %rsp, 8\nret\n.cfi_endproc\n"
                                            ".size wrap_entry_thunks, . - wrap_entry_thunks\n");
#else
// clang-format off
#define MOVE_GENERAL(move)                                                                         \
    move(x2, x3, 16) move(x4, x5, 32) move(x6, x7, 48) move(x8, x9, 64) move(x10, x11, 80)         \
        move(x12, x13, 96) move(x14, x15, 112)
#define MOVE_VECTORS(move)                                                                         \
    move(q0, q1, 144) move(q2, q3, 176) move(q4, q5, 208) move(q6, q7, 240) move(q8, q9, 272)      \
        move(q10, q11, 304) move(q12, q13, 336) move(q14, q15, 368) move(q16, q17, 400)            \
        move(q18, q19, 432) move(q20, q21, 464) move(q22, q23, 496) move(q24, q25, 528)            \
        move(q26, q27, 560) move(q28, q29, 592) move(q30, q31, 624)
#define SAVE(a, b, at)    "stp " #a ", " #b ", [sp, " #at "]\n"
#define RESTORE(a, b, at) "ldp " #a ", " #b ", [sp, " #at "]\n"

// The caller expects that x16 and x17 change, because the linker may insert code that changes them.
__asm__(
    ".text\n.p2align 4\n.globl wrap_entry_thunks\n.hidden wrap_entry_thunks\n"
    ".type wrap_entry_thunks, %function\nwrap_entry_thunks:\n.cfi_startproc\n"
    ".set wrap_entry_index, 0\n.rept 224\n"
    ".cfi_def_cfa sp, 0\n.cfi_restore x29\n.cfi_restore x30\n"
    "stp x29, x30, [sp, -16]!\n.cfi_def_cfa_offset 16\n.cfi_offset x29, -16\n"
    ".cfi_offset x30, -8\nmov x29, sp\n.cfi_def_cfa_register x29\n"
    "mov w17, wrap_entry_index\nb wrap_entry_common\n"
    ".set wrap_entry_index, wrap_entry_index + 1\n.endr\n"
    "wrap_entry_common:\n"
    "sub sp, sp, 656\n" // 18 registers of 8 bytes and 32 of 16 bytes
    SAVE(x0, x1, 0) MOVE_GENERAL(SAVE) MOVE_VECTORS(SAVE) "str x18, [sp, 128]\n"
    "mov w0, w17\nmov x1, sp\nmov x2, x29\nbl wrap_entry_call\n"
    MOVE_GENERAL(RESTORE) MOVE_VECTORS(RESTORE) "ldr x1, [sp, 8]\nldr x18, [sp, 128]\n"
    "mov sp, x29\n.cfi_def_cfa_register sp\nldp x29, x30, [sp], 16\n.cfi_def_cfa_offset 0\n"
    ".cfi_restore x29\n.cfi_restore x30\nret\n.cfi_endproc\n"
    ".size wrap_entry_thunks, . - wrap_entry_thunks\n");
// clang-format on
#endif

uintptr_t wrap_entry_thunk(size_t index)
{
    return (uintptr_t)wrap_entry_thunks + index * THUNK_BYTES;
}
