// A library for test_entries_plan. Its functions have names of allocator functions and begin with
// all kinds of instructions. Each function has up to three integer arguments and one result.

// FUNCTION(name, code) defines an exported function that starts at a multiple of 16. The bytes
// before the next function are nops.
#define LOCAL(name, code)                                                                          \
    ".p2align 4\n.type " name ", @function\n" name ":\n" code ".size " name ", . - " name "\n"
#define FUNCTION(name, code) ".globl " name "\n" LOCAL(name, code)

// clang-format off
__asm__(
    ".text\n"
    // Functions whose instructions do not depend on their address.
    FUNCTION("je_malloc", "push %rbx\n mov %rdi, %rbx\n lea (%rbx,%rbx,2), %rax\n pop %rbx\n ret\n")
    // An operand relative to the instruction pointer. In the second function, an immediate follows
    // the operand.
    FUNCTION("je_calloc", "mov entries_value(%rip), %rax\n add %rdi, %rax\n ret\n")
    FUNCTION("je_valloc", "cmpl $3, entries_value(%rip)\n sete %al\n movzbl %al, %eax\n ret\n")
    // A short conditional jump in the first bytes.
    FUNCTION("je_realloc", "test %rdi, %rdi\n je 1f\n lea 1(%rdi), %rax\n ret\n 1: mov $77, %eax\n"
                           "ret\n")
    // A conditional jump with 32 bits.
    FUNCTION("je_memalign", "test %rdi, %rdi\n .byte 0x0f, 0x85\n .long 1f - . - 4\n"
                            "mov $5, %eax\n ret\n 1: mov $6, %eax\n ret\n")
    // The plan leaves endbr64 in place. The function calls itself.
    FUNCTION("je_free", "endbr64\n xor %eax, %eax\n test %rdi, %rdi\n je 1f\n push %rdi\n"
                        "dec %rdi\n call je_free\n pop %rdi\n add %rdi, %rax\n 1: ret\n")
    // Functions that consist of a jump: with a displacement of 32 bits, and with a displacement of
    // 8 bits followed by padding.
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
    // A function that is shorter than a jump. Padding follows.
    FUNCTION("je_posix_memalign", "mov %edi, %eax\n ret\n")
    // Two names of one function.
    FUNCTION("je_reallocarray", "lea (%rdi,%rsi), %rax\n add %rdx, %rax\n ret\n")
    ".globl je_free_sized\n.type je_free_sized, @function\n.set je_free_sized, je_reallocarray\n"
    ".size je_free_sized, 8\n"
    FUNCTION("je_malloc_usable_size", "mov $1, %eax\n ret\n")

    // Loops that start within the first bytes, and at the first byte.
    FUNCTION("dlmalloc", "xor %eax, %eax\n 1: inc %rax\n dec %rdi\n jnz 1b\n ret\n")
    FUNCTION("dlfree", "dec %rdi\n mov %rdi, %rax\n test %rdi, %rdi\n jg dlfree\n ret\n")
    // A jump of another function leads into the first bytes.
    FUNCTION("dlcalloc", "xor %eax, %eax\n mov $3, %eax\n ret\n")
    FUNCTION("entries_other", ".byte 0xe9\n .long dlcalloc + 2 - . - 4\n")
    // A function with bytes that look like a call of je_malloc + 1, but belong to mov and inc.
    FUNCTION("entries_lookalike", "mov %rdi, %rax\n .byte 0xb8, 0xe8\n .long je_malloc + 1 - . - 4\n"
                                  ".byte 0xc0\n ret\n")
    // A function that is shorter than a jump and has no padding.
    FUNCTION("dlrealloc", "ret\n")
    "dlrealloc_neighbour: .type dlrealloc_neighbour, @function\n mov $1, %eax\n ret\n"
    ".size dlrealloc_neighbour, . - dlrealloc_neighbour\n"
    // The code of a function without a symbol follows.
    FUNCTION("nedrealloc", "mov %edi, %eax\n ret\n") "xor %eax, %eax\n ret\n"
    // The nops after this function belong to another function with a symbol. At the next multiple
    // of 16, a third function with a symbol begins.
    FUNCTION("nedreallocarray", "ret\n")
    "nedreallocarray_neighbour: .type nedreallocarray_neighbour, @function\n"
    "nop\n nop\n nop\n nop\n nop\n ret\n"
    ".size nedreallocarray_neighbour, . - nedreallocarray_neighbour\n"
    ".p2align 4\n.skip 13, 0x90\n.globl nedaligned_alloc\n.type nedaligned_alloc, @function\n"
    "nedaligned_alloc: mov %edi, %eax\n ret\n.size nedaligned_alloc, . - nedaligned_alloc\n"
    "nop\n nop\n nop\n nop\n nop\n ret\n"
    // A loop in the first bytes.
    FUNCTION("nedmemalign", "1: dec %rdi\n jnz 1b\n mov %rdi, %rax\n ret\n")
    // The first function uses an address of 32 bits. The second contains a jump with the prefix for
    // 16 bits.
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
    // The called function reads its return address, and the registers and flags of its caller.
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

    // These names are in the table of all symbols, but not in the table of dynamic symbols.
    LOCAL("nedmalloc", "lea 2(%rdi), %rax\n nop\n ret\n")
    LOCAL("nedfree.lto_priv.0", "lea 3(%rdi), %rax\n nop\n ret\n")
    LOCAL("nedmalloc.part.0", "lea 4(%rdi), %rax\n nop\n ret\n")
    LOCAL("nedfree_sized.isra.0", "lea 5(%rdi), %rax\n nop\n ret\n")

    // This family of functions has no function that frees.
    FUNCTION("sn_malloc", "lea 2(%rdi), %rax\n nop\n ret\n")

    // scalable_aligned_malloc and aligned_alloc have their arguments in different orders.
    FUNCTION("scalable_malloc", "lea 2(%rdi), %rax\n nop\n ret\n")
    FUNCTION("scalable_free", "lea 3(%rdi), %rax\n nop\n ret\n")
    FUNCTION("scalable_aligned_malloc", "lea 4(%rdi), %rax\n nop\n ret\n")

    // Two names of one function show that both families have one heap.
    FUNCTION("pvalloc", "lea 2(%rdi), %rax\n nop\n ret\n")
    ".globl tc_pvalloc\n.type tc_pvalloc, @function\n.set tc_pvalloc, pvalloc\n"
    ".size tc_pvalloc, 6\n"
    FUNCTION("tc_malloc", "lea 3(%rdi), %rax\n nop\n ret\n")
    FUNCTION("tc_free", "lea 4(%rdi), %rax\n nop\n ret\n")

    // In Firefox, the functions with arenas use the same heap as the functions with libc's names.
    FUNCTION("moz_arena_malloc", "lea 5(%rsi), %rax\n nop\n ret\n")
    FUNCTION("moz_arena_free", "lea 6(%rsi), %rax\n nop\n ret\n")

    // The capture library also wraps these three functions. The second does nothing, so a linker may
    // give other functions its address. The third has a local symbol.
    FUNCTION("malloc_stats", "lea 2(%rdi), %rax\n .skip 8, 0x90\n ret\n")
    FUNCTION("mallopt", "push %rbp\n mov %rsp, %rbp\n xor %eax, %eax\n pop %rbp\n ret\n")
    ".p2align 4\n.type munmap, @function\nmunmap: lea 2(%rdi), %rax\n nop\n ret\n"
    ".size munmap, . - munmap\n"

    // Functions with names that a user passes to --wrap.
    FUNCTION("entries_my_malloc", "lea 5(%rdi), %rax\n nop\n ret\n")

    // Functions with names that rustc mangles.
    FUNCTION("_RNvCsdBezzDwma51_7___rustc12___rust_alloc", "lea 6(%rdi), %rax\n nop\n ret\n")
    FUNCTION("_RNvCsdBezzDwma51_7___rustc14___rust_dealloc", "lea 7(%rdi), %rax\n nop\n ret\n")
    ".p2align 4\n"
    ".data\n.globl entries_value\n.hidden entries_value\n.type entries_value, @object\n"
    "entries_value: .quad 3\n.size entries_value, 8\n"
    "entries_pointer: .quad entries_callee\n.text\n");
// clang-format on
