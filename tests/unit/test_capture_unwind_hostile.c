// Tests the unwinder with unwind tables that loop, contain wrong rules or are damaged. Each walk
// must end without a fault. Also tests stacks through a library that is loaded at the address of an
// unloaded library.
#include "capture/unwind/unwind.h"
#include "trace/codec.h"
#include "unit.h"

#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DAMAGED = 1500, MOST_BYTES = 1 << 20 };

static struct unwind_memory memory;
static unsigned walks, complete;
static struct unwind_stack last, truth;

// Unwinds the stack of the caller, first without and then with a cache.
static __attribute__((noinline)) void walk(void)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    struct unwind_cursor c = {.from = {frame[1], (uintptr_t)(frame + 2), frame[0]},
                              .low = (uintptr_t)frame,
                              .high = (uintptr_t)environ & ~(uintptr_t)7};
    unwind_walk(&c, UNWIND_DEPTH, &last);
    uint64_t walked = last.sites[0];
    c.memory = &memory;
    assert_int_equal(unwind_walk_site(&c, UNWIND_DEPTH), walked);
    unwind_walk(&c, UNWIND_DEPTH, &last);
    assert_in_range(last.n, 1, UNWIND_DEPTH);
    assert_int_equal(last.codes[0], frame[1]);
    assert_int_equal(last.sites[0], walked);
    complete += last.n == truth.n && last.codes[last.n - 1] == truth.codes[truth.n - 1];
    walks++;
}

static void begin(void)
{
    memset(&memory, 0, sizeof memory);
    unwind_memory_init(&memory);
    unwind_check_unloaded();
    walks = complete = 0;
}

// Defines a function that calls `walk` and has a wrong unwind table. The frame of the function has
// 40 bytes.
#define LIAR(name, lie)                                                                            \
    void name(void (*call)(void));                                                                 \
    __asm__(".text\n.type " #name ", @function\n" #name ": .cfi_startproc\n sub $40, %rsp\n" lie   \
            "\n call *%rdi\n add $40, %rsp\n ret\n .cfi_endproc\n.size " #name ", . - " #name      \
            "\n")

LIAR(own_caller, ".cfi_def_cfa_offset 0");
// def_cfa_offset_sf: the CFA is 512 bytes below the frame.
LIAR(below_itself, ".cfi_escape 0x13, 0x40");
LIAR(far_above, ".cfi_def_cfa_offset 0x7ffffff8");
LIAR(odd, ".cfi_def_cfa_offset 45");
LIAR(by_data, ".cfi_def_cfa %rbp, 16"); // rbp still has the caller's value
LIAR(no_such_register, ".cfi_escape 0x0c, 99, 16");
LIAR(fp_far_above,
     ".cfi_def_cfa_offset 48\n .cfi_escape 0x05, 6, 0xff, 0xff, 0x7f");      // offset_extended
LIAR(fp_not_known, ".cfi_def_cfa_offset 48\n .cfi_escape 0x09, 6, 99");      // register
LIAR(endless_expression, ".cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff");           // DW_OP_skip to itself
LIAR(states, ".rept 1000\n .cfi_escape 0x0a\n .endr");                       // remember_state
LIAR(no_state, ".cfi_escape 0x0b");                                          // restore_state
LIAR(backwards, ".cfi_escape 1, 0, 0, 0, 0\n .cfi_escape 1, 0, 0, 0, 0x80"); // set_loc
LIAR(beyond, ".cfi_escape 4, 0xff, 0xff, 0xff, 0xff"); // advance_loc4 by 4 GiB
LIAR(realigned_by_data, ".cfi_escape 0x0f, 3, 0x76, 0xf8, 6\n .cfi_escape 0x10, 6, 2, 0x76, 0");

static void (*const liars[])(void (*)(void)) = {
    own_caller,   below_itself,      far_above,          odd,    by_data,  no_such_register,
    fp_far_above, fp_not_known,      endless_expression, states, no_state, backwards,
    beyond,       realigned_by_data,
};

static void test_lies(void **state)
{
    (void)state;
    begin();
    // The second round checks that a wrong rule in the cache does no harm.
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof liars / sizeof *liars; i++)
            liars[i](walk);
    }
    own_caller(walk);
    assert_int_equal(last.n, 1);
    assert_int_equal(walks, 2 * sizeof liars / sizeof *liars + 1);
}

static const char *library(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/lib%s.so",
             getenv("HEAPTAPE_PROGRAMS") ? getenv("HEAPTAPE_PROGRAMS") : ".", name);
    return path;
}

static void *call_library(const char *path, bool again)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return NULL;
    void *symbol = dlsym(handle, "library_nested");
    assert_non_null(symbol);
    void (*nested)(void (*)(void));
    memcpy(&nested, &symbol, sizeof nested);
    nested(walk);
    if (again)
        nested(walk);
    dlclose(handle);
    return symbol;
}

// Checks that the walk matches libgcc and the tables of the present library. Called after this
// library was loaded at the addresses of another library.
static void check_truth(void)
{
    void *theirs[UNWIND_DEPTH];
    int all = backtrace(theirs, UNWIND_DEPTH), first = 0;
    void *caller = __builtin_return_address(0);
    walk();
    while (first < all && theirs[first] != caller)
        first++;
    // last.codes[0] is in this function.
    assert_int_equal(last.n - 1, all - first);
    for (uint32_t i = 1; i < last.n; i++)
        assert_int_equal(last.codes[i], (uintptr_t)theirs[first + (int)i - 1]);
}

static void test_reused_addresses(void **state)
{
    (void)state;
    void *at[2] = {NULL, NULL};
    unsigned reused = 0;
    begin();
    for (int i = 0; i < 20; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s", library(i % 2 ? "unwind-large" : "unwind-small"));
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(handle);
        void *symbol = dlsym(handle, "library_nested");
        void (*nested)(void (*)(void));
        memcpy(&nested, &symbol, sizeof nested);
        at[i % 2] = symbol;
        reused += i > 0 && at[0] == at[1];
        unwind_check_unloaded();
        nested(check_truth);
        nested(check_truth);
        dlclose(handle);
    }
    // The kernel usually maps the second library at the address of the first.
    assert_in_range(reused, 10, 19);
}

// Finds .eh_frame_hdr and .eh_frame in the file. The linker places them next to each other.
static void find_tables(const uint8_t *file, size_t *from, size_t *to)
{
    Elf64_Ehdr elf;
    memcpy(&elf, file, sizeof elf);
    for (unsigned i = 0; i < elf.e_shnum; i++) {
        Elf64_Shdr s, names;
        memcpy(&s, file + elf.e_shoff + i * sizeof s, sizeof s);
        memcpy(&names, file + elf.e_shoff + elf.e_shstrndx * sizeof s, sizeof s);
        const char *name = (const char *)file + names.sh_offset + s.sh_name;
        if (!strcmp(name, ".eh_frame_hdr"))
            *from = s.sh_offset;
        else if (!strcmp(name, ".eh_frame"))
            *to = s.sh_offset + s.sh_size;
    }
}

// Overwrites some bytes of the tables with random values, zeros or ones.
static void damage(uint8_t *tables, size_t n, uint64_t *random)
{
    for (uint64_t left = 1 + unit_random(random) % 4; left > 0; left--) {
        uint64_t r = unit_random(random), at = r % n, bytes = 1 + (r >> 32) % 4;
        uint8_t with = (uint8_t)(r >> 40);
        for (uint64_t i = 0; i < bytes && at + i < n; i++)
            tables[at + i] = (r >> 50) % 3 == 0   ? 0
                             : (r >> 50) % 3 == 1 ? 0xff
                                                  : (uint8_t)(with + i * 37);
    }
}

static void test_damaged(void **state)
{
    (void)state;
    static uint8_t file[MOST_BYTES], tables[MOST_BYTES];
    uint64_t random = 11;
    size_t from = 0, to = 0;
    FILE *in = fopen(library("unwind-small"), "rb");
    assert_non_null(in);
    size_t n = fread(file, 1, sizeof file, in);
    fclose(in);
    find_tables(file, &from, &to);
    assert_true(from > 0 && from < to && to < n);
    char path[] = "/tmp/heaptape-unwind-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, file, n), (ssize_t)n);
    begin();
    assert_non_null(call_library(library("unwind-small"), false));
    truth = last;
    walks = complete = 0;
    unsigned loaded = 0;
    for (int i = 0; i < DAMAGED; i++) {
        memcpy(tables, file + from, to - from);
        damage(tables, to - from, &random);
        assert_int_equal(pwrite(fd, tables, to - from, (off_t)from), (ssize_t)(to - from));
        unwind_check_unloaded();
        loaded += call_library(path, true) != NULL;
    }
    unlink(path);
    close(fd);
    print_message("# %u libraries, %u walks, %u complete\n", loaded, walks, complete);
    assert_int_equal(walks, 2 * loaded);
    assert_int_equal(loaded, DAMAGED);
    // Most damage does not touch the rules of these functions, but some does.
    assert_in_range(complete, 1, walks - 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_lies),
    cmocka_unit_test(test_reused_addresses),
    cmocka_unit_test(test_damaged),
};

UNIT_MAIN(tests)
