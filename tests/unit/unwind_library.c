// A library for test_capture_unwind_hostile. It is built twice, with two values of FRAME_BYTES. The
// two versions have different unwind tables for the same addresses. The functions call their
// argument from frames of several kinds.
#define TEXT(x)  #x
#define VALUE(x) TEXT(x)
#define BYTES    VALUE(FRAME_BYTES)
#define CFA      VALUE(FRAME_BYTES + 8)

void library_plain(void (*call)(void));
void library_pointed(void (*call)(void));
void library_nested(void (*call)(void));

// `sub` has a 4-byte operand in both versions.
__asm__(
    ".text\n.globl library_plain\n.type library_plain, @function\n"
    "library_plain: .cfi_startproc\n .byte 0x48, 0x81, 0xec\n .long " BYTES
    "\n .cfi_def_cfa_offset " CFA "\n"
    "call *%rdi\n .byte 0x48, 0x81, 0xc4\n .long " BYTES
    "\n .cfi_def_cfa_offset 8\n ret\n .cfi_endproc\n"
    ".size library_plain, . - library_plain\n"

    ".globl library_pointed\n.type library_pointed, @function\n"
    "library_pointed: .cfi_startproc\n push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
    "mov %rsp, %rbp\n .cfi_def_cfa_register %rbp\n .byte 0x48, 0x81, 0xec\n .long " BYTES " + 8\n"
    "call library_plain\n leave\n .cfi_def_cfa %rsp, 8\n ret\n .cfi_endproc\n"
    ".size library_pointed, . - library_pointed\n"

    ".globl library_nested\n.type library_nested, @function\n"
    "library_nested: .cfi_startproc\n push %rbx\n .cfi_def_cfa_offset 16\n .cfi_offset %rbx, -16\n"
    "call library_pointed\n pop %rbx\n .cfi_def_cfa_offset 8\n ret\n .cfi_endproc\n"
    ".size library_nested, . - library_nested\n"
    ".section .note.GNU-stack, \"\", @progbits\n");
