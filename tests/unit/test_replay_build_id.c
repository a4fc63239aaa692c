#include "replay/machine.h"
#include "unit.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// An ELF file with one segment of notes and the build ID deadbeef.
struct file {
    ElfW(Ehdr) header;
    ElfW(Phdr) segment;
    struct {
        ElfW(Nhdr) h;
        char name[4];
        unsigned char id[4];
    } note;
};

static struct file good(void)
{
    struct file f = {.segment = {.p_type = PT_NOTE},
                     .note = {{4, 4, NT_GNU_BUILD_ID}, "GNU", {0xde, 0xad, 0xbe, 0xef}}};
    memcpy(f.header.e_ident, ELFMAG, SELFMAG);
    f.header.e_ident[EI_CLASS] = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    f.header.e_phentsize = sizeof f.segment;
    f.header.e_phnum = 1;
    f.header.e_phoff = offsetof(struct file, segment);
    f.segment.p_offset = offsetof(struct file, note);
    f.segment.p_filesz = sizeof f.note;
    return f;
}

static const char *build_id_of(const void *bytes, size_t n)
{
    static char text[129];
    char path[] = "/tmp/heaptape-build-id-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
    machine_build_id(path, text, sizeof text);
    unlink(path);
    return text;
}

static void test_the_build_id_of_readelf(void **state)
{
    (void)state;
    struct file f = good();
    assert_string_equal(build_id_of(&f, sizeof f), "deadbeef");
    char own[129], command[256], wanted[129] = "";
    machine_build_id("/proc/self/exe", own, sizeof own);
    snprintf(command, sizeof command, "readelf -n /proc/%d/exe | sed -n 's/.*Build ID: //p'",
             getpid());
    FILE *p = popen(command, "r");
    assert_non_null(p);
    if (fgets(wanted, sizeof wanted, p))
        wanted[strcspn(wanted, "\n")] = 0;
    pclose(p);
    assert_string_equal(own, wanted);
}

static void test_no_such_file(void **state)
{
    (void)state;
    char text[129] = "left";
    machine_build_id("/nowhere", text, sizeof text);
    assert_string_equal(text, "");
    machine_build_id("/", text, sizeof text);
    assert_string_equal(text, "");
}

// Tests the file truncated at every byte.
static void test_short_files(void **state)
{
    (void)state;
    struct file f = good();
    for (size_t n = 0; n < offsetof(struct file, note) + sizeof f.note; n++)
        assert_string_equal(build_id_of(&f, n), "");
}

static void test_lengths_that_lie(void **state)
{
    (void)state;
    struct file f = good();
    f.note.h.n_descsz = UINT32_MAX;
    assert_string_equal(build_id_of(&f, sizeof f), "");
    f.note.h.n_descsz = 5;
    assert_string_equal(build_id_of(&f, sizeof f), "");
    f = good();
    f.note.h.n_namesz = UINT32_MAX;
    assert_string_equal(build_id_of(&f, sizeof f), "");
    f.note.h.n_namesz = UINT32_MAX - 3;
    assert_string_equal(build_id_of(&f, sizeof f), "");
    f = good();
    f.note.h.n_type = NT_GNU_ABI_TAG; // the next note would begin beyond the end
    f.note.h.n_descsz = 3;
    assert_string_equal(build_id_of(&f, sizeof f), "");
    f = good();
    f.segment.p_filesz = UINT64_MAX;
    assert_string_equal(build_id_of(&f, sizeof f), "deadbeef");
    f.segment.p_offset = UINT64_MAX;
    assert_string_equal(build_id_of(&f, sizeof f), "");
    f = good();
    f.header.e_phoff = UINT64_MAX - 8;
    assert_string_equal(build_id_of(&f, sizeof f), "");
    f = good();
    f.header.e_phnum = UINT16_MAX;
    f.segment.p_type = PT_LOAD;
    assert_string_equal(build_id_of(&f, sizeof f), "");
}

static void test_no_elf_of_ours(void **state)
{
    (void)state;
    struct file f = good();
    f.header.e_ident[EI_CLASS] = sizeof(void *) == 8 ? ELFCLASS32 : ELFCLASS64;
    assert_string_equal(build_id_of(&f, sizeof f), "");
    f = good();
    f.header.e_phentsize = 1;
    assert_string_equal(build_id_of(&f, sizeof f), "");
    f = good();
    f.header.e_ident[0] = 'M';
    assert_string_equal(build_id_of(&f, sizeof f), "");
}

// Changes each byte of the file. The result must be a text that fits.
static void test_any_byte_changed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(struct file); i++) {
        for (unsigned value = 0; value < 256; value += 17) {
            struct file f = good();
            ((unsigned char *)&f)[i] = (unsigned char)value;
            const char *id = build_id_of(&f, sizeof f);
            assert_true(strspn(id, "0123456789abcdef") == strlen(id) && strlen(id) <= 8);
        }
    }
}

// The ID is longer than the buffer of the text.
static void test_a_long_id(void **state)
{
    (void)state;
    struct {
        struct file f;
        unsigned char more[200];
    } file = {.f = good()};
    file.f.note.h.n_descsz = 204;
    file.f.segment.p_filesz += 200;
    const char *id = build_id_of(&file, sizeof file);
    assert_int_equal(strlen(id), 128);
    assert_memory_equal(id, "deadbeef00", 10);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_the_build_id_of_readelf),
    cmocka_unit_test(test_no_such_file),
    cmocka_unit_test(test_short_files),
    cmocka_unit_test(test_lengths_that_lie),
    cmocka_unit_test(test_no_elf_of_ours),
    cmocka_unit_test(test_any_byte_changed),
    cmocka_unit_test(test_a_long_id),
};

UNIT_MAIN(tests)
