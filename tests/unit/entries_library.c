// A library for test_entries_plan: functions with names of allocator functions and all kinds of
// first instructions. Each function has up to three integer arguments and one result.

// FUNCTION(name, code) defines an exported function that starts at a multiple of 16. The bytes
// before the next function are nops.
#define FUNCTION(name, code)                                                                       \
    ".p2align 4\n.globl " name "\n.type " name ", @function\n" name ":\n" code ".size " name       \
    ", . - " name "\n"

// clang-format off
__asm__(
    ".text\n"
    // Instructions that do not depend on their address.
    FUNCTION("je_malloc", "push %rbx\n mov %rdi, %rbx\n lea (%rbx,%rbx,2), %rax\n pop %rbx\n ret\n")
    // An operand relative to the instruction pointer, with and without an immediate behind it.
    FUNCTION("je_calloc", "mov entries_value(%rip), %rax\n add %rdi, %rax\n ret\n")
    FUNCTION("je_valloc", "cmpl $3, entries_value(%rip)\n sete %al\n movzbl %al, %eax\n ret\n")
    // A short conditional jump in the first bytes.
    FUNCTION("je_realloc", "test %rdi, %rdi\n je 1f\n lea 1(%rdi), %rax\n ret\n 1: mov $77, %eax\n"
                           "ret\n")
    // A conditional jump with 32 bits.
    FUNCTION("je_memalign", "test %rdi, %rdi\n .byte 0x0f, 0x85\n .long 1f - . - 4\n"
                            "mov $5, %eax\n ret\n 1: mov $6, %eax\n ret\n")
    // endbr64 stays. The function calls itself.
    FUNCTION("je_free", "endbr64\n xor %eax, %eax\n test %rdi, %rdi\n je 1f\n push %rdi\n"
                        "dec %rdi\n call je_free\n pop %rdi\n add %rdi, %rax\n 1: ret\n")
    // A function that consists of a jump, with 32 bits and with 8 bits and padding.
    FUNCTION("je_aligned_alloc", ".byte 0xe9\n .long je_malloc - . - 4\n")
    FUNCTION("je_pvalloc", "jmp 2f\n")
    FUNCTION("entries_target", "nop\n 2: lea 9(%rdi), %rax\n ret\n")
    // A function that consists of a jump to code without a name, which another function calls.
    FUNCTION("rpmalloc", "endbr64\n .byte 0xe9\n .long 3f - . - 4\n")
    ".p2align 4\n 3: lea 11(%rdi), %rax\n nop\n ret\n"
    FUNCTION("entries_strdup", "call 3b\n add $1000, %rax\n ret\n")
    FUNCTION("rpfree", "lea 12(%rdi), %rax\n nop\n ret\n")
    // Two functions that jump to the same code.
    FUNCTION("rpcalloc", ".byte 0xe9\n .long 4f - . - 4\n")
    FUNCTION("rpvalloc", ".byte 0xe9\n .long 4f - . - 4\n")
    ".p2align 4\n 4: lea 13(%rdi), %rax\n nop\n ret\n"
    // Shorter than a jump, followed by padding.
    FUNCTION("je_posix_memalign", "mov %edi, %eax\n ret\n")
    // Two names of one function.
    FUNCTION("je_reallocarray", "lea (%rdi,%rsi), %rax\n add %rdx, %rax\n ret\n")
    ".globl je_free_sized\n.type je_free_sized, @function\n.set je_free_sized, je_reallocarray\n"
    ".size je_free_sized, 8\n"
    FUNCTION("je_malloc_usable_size", "mov $1, %eax\n ret\n")

    // A loop that starts in the first bytes, or at the first one.
    FUNCTION("dlmalloc", "xor %eax, %eax\n 1: inc %rax\n dec %rdi\n jnz 1b\n ret\n")
    FUNCTION("dlfree", "dec %rdi\n mov %rdi, %rax\n test %rdi, %rdi\n jg dlfree\n ret\n")
    // A jump of another function leads into the first bytes.
    FUNCTION("dlcalloc", "xor %eax, %eax\n mov $3, %eax\n ret\n")
    FUNCTION("entries_other", ".byte 0xe9\n .long dlcalloc + 2 - . - 4\n")
    // Bytes that look like a call of je_malloc + 1, but belong to mov and inc.
    FUNCTION("entries_lookalike", "mov %rdi, %rax\n .byte 0xb8, 0xe8\n .long je_malloc + 1 - . - 4\n"
                                  ".byte 0xc0\n ret\n")
    // Without padding.
    FUNCTION("dlrealloc", "ret\n")
    "dlrealloc_neighbour: .type dlrealloc_neighbour, @function\n mov $1, %eax\n ret\n"
    ".size dlrealloc_neighbour, . - dlrealloc_neighbour\n"
    // Followed by code of a function without a symbol.
    FUNCTION("nedrealloc", "mov %edi, %eax\n ret\n") "xor %eax, %eax\n ret\n"
    // Followed by nops of a function with a symbol, and, at a multiple of 16, of another one.
    FUNCTION("nedreallocarray", "ret\n")
    "nedreallocarray_neighbour: .type nedreallocarray_neighbour, @function\n"
    "nop\n nop\n nop\n nop\n nop\n ret\n"
    ".size nedreallocarray_neighbour, . - nedreallocarray_neighbour\n"
    ".p2align 4\n.skip 13, 0x90\n.globl nedaligned_alloc\n.type nedaligned_alloc, @function\n"
    "nedaligned_alloc: mov %edi, %eax\n ret\n.size nedaligned_alloc, . - nedaligned_alloc\n"
    "nop\n nop\n nop\n nop\n nop\n ret\n"
    // A loop in the first bytes.
    FUNCTION("nedmemalign", "1: dec %rdi\n jnz 1b\n mov %rdi, %rax\n ret\n")
    // An address of 32 bits. A jump with the prefix for 16 bits.
    FUNCTION("nedvalloc", "mov entries_value(%eip), %eax\n ret\n")
    FUNCTION("nedpvalloc", ".byte 0x66, 0xe9\n .long nedvalloc - . - 4\n ret\n")
    // A symbol in the first bytes.
    FUNCTION("dlmemalign", "xor %eax, %eax\n .globl entries_inside\n"
                           ".type entries_inside, @function\n entries_inside: mov $3, %eax\n ret\n"
                           ".size entries_inside, . - entries_inside\n")
    FUNCTION("dlvalloc", "jrcxz 1f\n mov $1, %eax\n 1: ret\n")
    FUNCTION("dlpvalloc", ".byte 0x06\n mov $1, %eax\n ret\n")
    FUNCTION("nedposix_memalign", "int3\n mov $1, %eax\n ret\n")
    FUNCTION("dlposix_memalign", "endbr64\n mov %rdi, %rax\n movabs $0x123456789abcdef, %rdx\n"
                                 "ret\n")
    // A call that passes on registers and flags and reads its return address.
    FUNCTION("dlreallocarray", "push %rdi\n cmp %rsi, %rdi\n call entries_callee\n pop %rdx\n"
                               "add %rdx, %rax\n ret\n")
    FUNCTION("dlfree_aligned_sized", "push %rdi\n call *entries_pointer(%rip)\n pop %rdx\n ret\n")
    ".hidden entries_callee\n"
    FUNCTION("entries_callee", "setb %cl\n movzbl %cl, %ecx\n lea (%rcx,%rdi,2), %rax\n"
                               "add (%rsp), %rax\n ret\n")
    // A direct call with a prefix, as the first instruction.
    FUNCTION("dlaligned_alloc", ".byte 0x67, 0xe8\n .long entries_callee - . - 4\n ret\n")
    // A call through a register.
    FUNCTION("nedcalloc", "push %rdi\n call *%rdx\n pop %rdx\n ret\n")
    ".globl dlfree_sized\n.type dlfree_sized, @gnu_indirect_function\n"
    "dlfree_sized: lea je_malloc(%rip), %rax\n ret\n.size dlfree_sized, . - dlfree_sized\n"

    // Only the table of all symbols has these names.
    ".p2align 4\n.type nedmalloc, @function\nnedmalloc: lea 2(%rdi), %rax\n nop\n ret\n"
    ".size nedmalloc, . - nedmalloc\n"
    ".p2align 4\n.type nedfree, @function\nnedfree: lea 3(%rdi), %rax\n nop\n ret\n"
    ".size nedfree, . - nedfree\n"

    // A family without a function that frees.
    FUNCTION("sn_malloc", "lea 2(%rdi), %rax\n nop\n ret\n")

    // Other arguments than aligned_alloc.
    FUNCTION("scalable_malloc", "lea 2(%rdi), %rax\n nop\n ret\n")
    FUNCTION("scalable_free", "lea 3(%rdi), %rax\n nop\n ret\n")
    FUNCTION("scalable_aligned_malloc", "lea 4(%rdi), %rax\n nop\n ret\n")

    // Two names of one function show that both families have one heap.
    FUNCTION("pvalloc", "lea 2(%rdi), %rax\n nop\n ret\n")
    ".globl tc_pvalloc\n.type tc_pvalloc, @function\n.set tc_pvalloc, pvalloc\n"
    ".size tc_pvalloc, 6\n"
    FUNCTION("tc_malloc", "lea 3(%rdi), %rax\n nop\n ret\n")
    FUNCTION("tc_free", "lea 4(%rdi), %rax\n nop\n ret\n")

    // Firefox: functions with arenas have the heap of libc's names.
    FUNCTION("moz_arena_malloc", "lea 5(%rsi), %rax\n nop\n ret\n")
    FUNCTION("moz_arena_free", "lea 6(%rsi), %rax\n nop\n ret\n")

    // Other functions that the library wraps: the second is a local symbol.
    FUNCTION("malloc_stats", "lea 2(%rdi), %rax\n nop\n ret\n")
    ".p2align 4\n.type munmap, @function\nmunmap: lea 2(%rdi), %rax\n nop\n ret\n"
    ".size munmap, . - munmap\n"

    // Names of the user.
    FUNCTION("entries_my_malloc", "lea 5(%rdi), %rax\n nop\n ret\n")

    // Mangled by rustc.
    FUNCTION("_RNvCsdBezzDwma51_7___rustc12___rust_alloc", "lea 6(%rdi), %rax\n nop\n ret\n")
    FUNCTION("_RNvCsdBezzDwma51_7___rustc14___rust_dealloc", "lea 7(%rdi), %rax\n nop\n ret\n")
    ".p2align 4\n"
    ".data\n.globl entries_value\n.hidden entries_value\n.type entries_value, @object\n"
    "entries_value: .quad 3\n.size entries_value, 8\n"
    "entries_pointer: .quad entries_callee\n.text\n");
// clang-format on
