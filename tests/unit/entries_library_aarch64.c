// A library for test_entries_plan, like entries_library.c, for aarch64. Its functions begin with
// all kinds of instructions that depend on their address.

// FUNCTION(name, code) defines an exported function that starts at a multiple of 16.
#define LOCAL(name, code)                                                                          \
    ".p2align 4\n.type " name ", %function\n" name ":\n" code ".size " name ", . - " name "\n"
#define FUNCTION(name, code) ".globl " name "\n" LOCAL(name, code)

// clang-format off
__asm__(
    ".text\n"
    // An instruction that does not depend on its address.
    FUNCTION("je_malloc", "add x0, x0, x0, lsl 1\n ret\n")
    // Addresses: of a page, of a byte, and loads of all sizes.
    FUNCTION("je_calloc", "adrp x9, entries_value\n ldr x9, [x9, :lo12:entries_value]\n"
                          "add x0, x0, x9\n ret\n")
    FUNCTION("je_valloc", "adr x9, entries_word\n ldr w9, [x9]\n add x0, x0, x9\n ret\n")
    FUNCTION("je_posix_memalign", "ldr w9, entries_word\n add x0, x0, x9\n ret\n")
    FUNCTION("je_reallocarray", "ldr x9, entries_word\n add x0, x0, x9\n ret\n")
    ".globl je_free_sized\n.type je_free_sized, %function\n.set je_free_sized, je_reallocarray\n"
    ".size je_free_sized, 12\n"
    FUNCTION("dlreallocarray", "ldrsw x9, entries_word\n add x0, x0, x9\n ret\n")
    FUNCTION("dlaligned_alloc", "ldr s0, entries_word\n fmov w9, s0\n add x0, x0, x9\n ret\n")
    FUNCTION("dlfree_aligned_sized", "ldr d0, entries_word\n fmov x9, d0\n add x0, x0, x9\n ret\n")
    FUNCTION("rpfree", "ldr q0, entries_word\n fmov x9, v0.d[1]\n add x0, x0, x9\n ret\n")
    // Branches with conditions.
    FUNCTION("je_realloc", "cbz x0, 1f\n add x0, x0, 1\n ret\n 1: mov x0, 77\n ret\n")
    FUNCTION("je_memalign", "tbnz x0, 0, 1f\n mov x0, 5\n ret\n 1: mov x0, 6\n ret\n")
    // The plan leaves bti in place. The function calls itself.
    FUNCTION("je_free", "bti c\n mov x9, 0\n cbz x0, 1f\n stp x0, x30, [sp, -16]!\n sub x0, x0, 1\n"
                        "bl je_free\n mov x9, x0\n ldp x0, x30, [sp], 16\n add x9, x9, x0\n"
                        "1: mov x0, x9\n ret\n")
    // The plan leaves paciasp in place.
    FUNCTION("scalable_malloc", "paciasp\n stp x29, x30, [sp, -16]!\n add x0, x0, 2\n"
                                "ldp x29, x30, [sp], 16\n autiasp\n ret\n")
    FUNCTION("scalable_free", "prfm pldl1keep, entries_word\n add x0, x0, 3\n ret\n")
    FUNCTION("scalable_aligned_malloc", "cmp x0, x1\n b.hi 1f\n add x0, x0, 4\n 1: ret\n")
    // Functions that consist of a jump.
    FUNCTION("je_aligned_alloc", "b je_malloc\n")
    FUNCTION("je_pvalloc", "b 2f\n")
    FUNCTION("entries_target", "nop\n 2: add x0, x0, 9\n ret\n")
    FUNCTION("rpmalloc", "bti c\n b 3f\n")
    ".p2align 4\n 3: add x0, x0, 11\n ret\n"
    FUNCTION("entries_strdup", "str x30, [sp, -16]!\n bl 3b\n ldr x30, [sp], 16\n"
                               "add x0, x0, 1000\n ret\n")
    FUNCTION("rpcalloc", "b 4f\n")
    FUNCTION("rpvalloc", "b 4f\n")
    ".p2align 4\n 4: add x0, x0, 13\n ret\n"
    FUNCTION("je_malloc_usable_size", "mov x0, 1\n ret\n")

    // A loop that starts at the first instruction, and a jump of another function to this
    // instruction, which is harmless.
    FUNCTION("dlmalloc", "sub x0, x0, 1\n cbnz x0, dlmalloc\n ret\n")
    FUNCTION("dlfree", "1: subs x0, x0, 1\n b.hi 1b\n ret\n")
    FUNCTION("dlcalloc", "b dlcalloc\n")
    FUNCTION("entries_other", "b je_malloc\n")
    // The first function is too short. A symbol is at the replaced instruction of the second.
    FUNCTION("dlrealloc", "bti c\n") "nop\n"
    FUNCTION("dlmemalign", "bti c\n .globl entries_inside\n .type entries_inside, %function\n"
                           "entries_inside: mov x0, 3\n ret\n .size entries_inside, 8\n")
    FUNCTION("dlvalloc", "adr xzr, dlvalloc\n ret\n")
    FUNCTION("dlpvalloc", "udf 0\n ret\n")
    FUNCTION("dlposix_memalign", ".inst 0xdc000000\n ret\n")
    FUNCTION("nedposix_memalign", "brk 0\n ret\n")
    FUNCTION("nedcalloc", "blr x2\n ret\n")
    FUNCTION("nedrealloc", "bl je_malloc\n ret\n")
    ".globl dlfree_sized\n.type dlfree_sized, %gnu_indirect_function\n"
    "dlfree_sized: adr x0, je_malloc\n ret\n.size dlfree_sized, . - dlfree_sized\n"

    // These names are in the table of all symbols, but not in the table of dynamic symbols.
    LOCAL("nedmalloc", "add x0, x0, 2\n ret\n")
    LOCAL("nedfree.lto_priv.0", "add x0, x0, 3\n ret\n")
    LOCAL("nedmalloc.part.0", "add x0, x0, 4\n ret\n")
    LOCAL("nedfree_sized.isra.0", "add x0, x0, 5\n ret\n")

    // This family of functions has no function that frees.
    FUNCTION("sn_malloc", "add x0, x0, 2\n ret\n")

    // Two names of one function show that both families have one heap.
    FUNCTION("pvalloc", "add x0, x0, 2\n ret\n")
    ".globl tc_pvalloc\n.type tc_pvalloc, %function\n.set tc_pvalloc, pvalloc\n"
    ".size tc_pvalloc, 8\n"
    FUNCTION("tc_malloc", "add x0, x0, 3\n ret\n")
    FUNCTION("tc_free", "add x0, x0, 4\n ret\n")

    // In Firefox, the functions with arenas use the same heap as the functions with libc's names.
    FUNCTION("moz_arena_malloc", "add x0, x1, 5\n ret\n")
    FUNCTION("moz_arena_free", "add x0, x1, 6\n ret\n")

    // The capture library also wraps these three functions. The second does nothing, so a linker may
    // give other functions its address. The third has a local symbol.
    FUNCTION("malloc_stats", "add x0, x0, 2\n nop\n nop\n ret\n")
    FUNCTION("mallopt", "mov w0, 0\n ret\n")
    ".p2align 4\n.type munmap, %function\nmunmap: add x0, x0, 2\n ret\n.size munmap, . - munmap\n"

    // Functions with names that a user passes to --wrap.
    FUNCTION("entries_my_malloc", "add x0, x0, 5\n ret\n")

    // Functions with names that rustc mangles.
    FUNCTION("_RNvCsdBezzDwma51_7___rustc12___rust_alloc", "add x0, x0, 6\n ret\n")
    FUNCTION("_RNvCsdBezzDwma51_7___rustc14___rust_dealloc", "add x0, x0, 7\n ret\n")
    ".p2align 4\nnop\nentries_word: .word -5, 6, 7, 8\n"
    ".data\n.globl entries_value\n.hidden entries_value\n.type entries_value, %object\n"
    "entries_value: .quad 3\n.size entries_value, 8\n"
    // Data that no jump from the code reaches.
    ".bss\n.skip 0x10000000\n.text\n");
// clang-format on
