// Checks the search for unused bytes after the code of an object. The object is in this process.
#include "unit.h"

#include "record/attach/remote.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 4, CODE = 1, TABLE = 256, WANTED = 32 };

static uint8_t *memory; // PAGES pages
static struct remote_object object = {.name = "prog"};
static struct remote process = {.objects = &object, .n_objects = 1};

static ElfW(Phdr) * segments(void)
{
    return (ElfW(Phdr) *)(void *)(memory + TABLE);
}

// Makes an object whose page CODE has `bytes` bytes of code. A data segment precedes the code.
static int make_object(size_t bytes)
{
    memset(memory, 0, (size_t)PAGES * PAGE);
    ElfW(Ehdr) h = {.e_phoff = TABLE, .e_phnum = 2};
    memcpy(h.e_ident, ELFMAG, SELFMAG);
    memcpy(memory, &h, sizeof h);
    segments()[0] = (ElfW(Phdr)){.p_type = PT_LOAD, .p_flags = PF_R, .p_memsz = TABLE};
    segments()[1] = (ElfW(Phdr)){
        .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = CODE * PAGE, .p_memsz = bytes};
    memset(memory + CODE * PAGE, 0xcc, bytes);
    return 0;
}

// Returns the offset of the unused bytes in the object, or 0.
static uint64_t find(void)
{
    uint64_t at = remote_find_padding(&process, WANTED);
    return at ? at - object.base : 0;
}

static void test_padding_follows_the_code(void **state)
{
    (void)state;
    make_object(100);
    assert_int_equal(find(), CODE * PAGE + 112);
    make_object(112);
    assert_int_equal(find(), CODE * PAGE + 112);
    // Bytes that are not zero are in use.
    memory[CODE * PAGE + 112 + WANTED - 1] = 1;
    assert_int_equal(find(), CODE * PAGE + 112 + WANTED);
    memory[CODE * PAGE + 112 + WANTED] = 1;
    assert_int_equal(find(), CODE * PAGE + 112 + WANTED + 16);
}

static void test_padding_ends_with_the_page(void **state)
{
    (void)state;
    make_object(PAGE - WANTED);
    assert_int_equal(find(), (CODE + 1) * PAGE - WANTED);
    make_object(PAGE - WANTED + 1);
    assert_int_equal(find(), 0);
    make_object(PAGE);
    assert_int_equal(find(), 0);
}

static void test_only_segments_with_code_count(void **state)
{
    (void)state;
    make_object(100);
    segments()[1].p_flags = PF_R | PF_W;
    assert_int_equal(find(), 0);
    segments()[1].p_flags = PF_R | PF_X;
    segments()[1].p_type = PT_NOTE;
    assert_int_equal(find(), 0);
    // The table has two segments.
    segments()[2] = segments()[1];
    segments()[2].p_type = PT_LOAD;
    assert_int_equal(find(), 0);
    segments()[1] = segments()[2];
    assert_int_equal(find(), CODE * PAGE + 112);
    memory[0] = 0; // not an ELF file
    assert_int_equal(find(), 0);
}

static void test_the_objects_of_the_kernel_are_skipped(void **state)
{
    struct remote_object objects[] = {{.name = "linux-vdso.so.1"}, {.name = "libc.so.6"}};
    struct remote r = process;
    (void)state;
    make_object(100);
    r.objects = objects;
    objects[0].base = object.base;
    r.n_objects = 1;
    assert_int_equal(remote_find_padding(&r, WANTED), 0);
    objects[1].base = object.base;
    r.n_objects = 2;
    assert_int_equal(remote_find_padding(&r, WANTED), object.base + CODE * PAGE + 112);
}

static int map_object(void **state)
{
    (void)state;
    memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                  -1, 0);
    process.memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    object.base = (uintptr_t)memory;
    return memory == MAP_FAILED || process.memory < 0 ? -1 : 0;
}

static int unmap_object(void **state)
{
    (void)state;
    close(process.memory);
    return munmap(memory, (size_t)PAGES * PAGE);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_padding_follows_the_code),
    cmocka_unit_test(test_padding_ends_with_the_page),
    cmocka_unit_test(test_only_segments_with_code_count),
    cmocka_unit_test(test_the_objects_of_the_kernel_are_skipped),
};

int main(void)
{
    return cmocka_run_group_tests(tests, map_object, unmap_object);
}
