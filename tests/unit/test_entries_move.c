// Moves the first instructions of every function of real libraries to trampolines, decodes the
// trampolines, and compares each instruction with the original. Arguments of the program are paths
// of other objects to test.
#include "record/entries/move.h"
#include "unit.h"

#include <Zydis/Zydis.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct decoded {
    ZydisDecodedInstruction in;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

static void decode(const uint8_t *code, size_t n, struct decoded *to)
{
    ZydisDecoder d;
    ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    assert_true(ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, code, n, &to->in, to->operands)));
}

// Returns true if both operands have the same meaning. Each operand is relative to the address of
// its instruction.
static bool is_same_operand(const struct decoded *a, uint64_t at_a, const struct decoded *b,
                            uint64_t at_b, unsigned k)
{
    const ZydisDecodedOperand *x = &a->operands[k], *y = &b->operands[k];
    ZyanU64 to_x, to_y;
    if (x->type != y->type || x->actions != y->actions)
        return false;
    switch (x->type) {
    case ZYDIS_OPERAND_TYPE_REGISTER:
        return x->reg.value == y->reg.value;
    case ZYDIS_OPERAND_TYPE_IMMEDIATE:
        if (x->imm.is_relative != y->imm.is_relative)
            return false;
        if (!x->imm.is_relative)
            return x->size == y->size && x->imm.value.u == y->imm.value.u;
        break;
    case ZYDIS_OPERAND_TYPE_MEMORY:
        if (x->size != y->size || x->mem.base != y->mem.base || x->mem.index != y->mem.index ||
            x->mem.scale != y->mem.scale || x->mem.segment != y->mem.segment)
            return false;
        if (x->mem.base != ZYDIS_REGISTER_RIP)
            return x->mem.disp.value == y->mem.disp.value;
        break;
    default:
        return false;
    }
    return ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&a->in, x, at_a, &to_x)) &&
           ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&b->in, y, at_b, &to_y)) && to_x == to_y;
}

static bool is_same(const struct decoded *a, uint64_t at_a, const struct decoded *b, uint64_t at_b)
{
    if (a->in.mnemonic != b->in.mnemonic || a->in.operand_count != b->in.operand_count)
        return false;
    for (unsigned k = 0; k < a->in.operand_count; k++) {
        if (!is_same_operand(a, at_a, b, at_b, k))
            return false;
    }
    return true;
}

// Checks the code that replaces a call. This code calls a sequence that replaces the return address
// by the end of the original call. The code then jumps to the called function. Returns the size of
// the code.
static unsigned check_call(const struct move *m, unsigned to, const struct decoded *was,
                           uint64_t end)
{
    static const ZydisMnemonic wanted[] = {
        ZYDIS_MNEMONIC_CALL, ZYDIS_MNEMONIC_UD2, ZYDIS_MNEMONIC_PUSH, ZYDIS_MNEMONIC_LEA,
        ZYDIS_MNEMONIC_MOV,  ZYDIS_MNEMONIC_POP, ZYDIS_MNEMONIC_JMP};
    unsigned at = to;
    struct decoded is;
    ZyanU64 target, called;
    for (unsigned k = 0; k < sizeof wanted / sizeof *wanted; k++) {
        decode(m->code + at, sizeof m->code - at, &is);
        assert_int_equal(is.in.mnemonic, wanted[k]);
        if (wanted[k] == ZYDIS_MNEMONIC_LEA) {
            assert_true(ZYAN_SUCCESS(
                ZydisCalcAbsoluteAddress(&is.in, &is.operands[1], m->trampoline + at, &target)));
            assert_int_equal(target, end);
        }
        if (wanted[k] == ZYDIS_MNEMONIC_JMP) {
            assert_int_equal(is.operands[0].type, was->operands[0].type);
            assert_true(ZYAN_SUCCESS(
                ZydisCalcAbsoluteAddress(&is.in, is.operands, m->trampoline + at, &target)));
            assert_true(ZYAN_SUCCESS(
                ZydisCalcAbsoluteAddress(&was->in, was->operands, end - was->in.length, &called)));
            assert_int_equal(target, called);
        }
        at += is.in.length;
    }
    return at - to;
}

// Compares the trampoline with the replaced bytes. Returns the number of instructions.
static unsigned check_move(const struct move *m)
{
    const struct entries_entry *e = m->entry;
    unsigned at = e->keep, to = 0, n = 0;
    struct decoded was, is;
    bool ends = false;
    while (at < e->bytes && !ends) {
        decode(e->was + at, sizeof e->was - at, &was);
        assert_int_equal(e->moved[at], to);
        n++;
        if (was.in.meta.category == ZYDIS_CATEGORY_CALL) {
            at += was.in.length;
            assert_int_equal(at, e->bytes);
            to += check_call(m, to, &was, e->at + at);
            ends = true;
            continue;
        }
        decode(m->code + to, sizeof m->code - to, &is);
        if (!is_same(&was, e->at + at, &is, m->trampoline + to))
            print_message("%" PRIx64 "+%u\n", e->at, at);
        assert_true(is_same(&was, e->at + at, &is, m->trampoline + to));
        at += was.in.length;
        to += is.in.length;
        ends = was.in.meta.category == ZYDIS_CATEGORY_RET ||
               was.in.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
               was.in.mnemonic == ZYDIS_MNEMONIC_UD2 || was.in.mnemonic == ZYDIS_MNEMONIC_HLT;
    }
    if (!ends) {
        // The last instruction of a trampoline jumps back to the function.
        ZyanU64 target;
        decode(m->code + to, sizeof m->code - to, &is);
        assert_int_equal(is.in.mnemonic, ZYDIS_MNEMONIC_JMP);
        assert_true(ZYAN_SUCCESS(
            ZydisCalcAbsoluteAddress(&is.in, is.operands, m->trampoline + to, &target)));
        assert_int_equal(target, e->at + e->bytes);
        to += is.in.length;
    }
    assert_int_equal(to, m->code_bytes);
    return n;
}

// Checks the displacements of a trampoline. If the trampoline is at another address, only the bytes
// of its fixups change.
static void check_fixups(const struct move *m, const struct entries_image *i,
                         const struct find_function *f)
{
    enum { DISTANCE = 0x123000 };
    struct entries_entry e = {0};
    struct move other = {.entry = &e, .trampoline = m->trampoline + DISTANCE};
    assert_int_equal(move_function(&other, i, f), ENTRIES_REASONS);
    assert_int_equal(other.code_bytes, m->code_bytes);
    for (unsigned k = 0; k < m->n_fixups; k++) {
        int32_t displacement;
        memcpy(&displacement, m->code + m->fixups[k], sizeof displacement);
        displacement -= DISTANCE;
        assert_memory_equal(other.code + m->fixups[k], &displacement, sizeof displacement);
        memcpy(other.code + m->fixups[k], m->code + m->fixups[k], sizeof displacement);
    }
    assert_memory_equal(other.code, m->code, m->code_bytes);
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t next_of(const uint64_t *all, size_t n, uint64_t at)
{
    for (size_t k = 0; k < n; k++) {
        if (all[k] > at)
            return all[k];
    }
    return UINT64_MAX;
}

// Moves every function with a dynamic symbol. Returns true if most of them could be moved.
static bool check_functions(const struct entries_image *i, const struct image_symbols *symbols,
                            const char *path)
{
    const Elf64_Sym *s = (const Elf64_Sym *)(const void *)symbols->symbols.data;
    size_t n = symbols->symbols.size / sizeof *s, n_all = 0;
    unsigned reasons[ENTRIES_REASONS + 1] = {0}, instructions = 0;
    uint64_t *all = calloc(n + 1, sizeof *all);
    assert_non_null(all);
    for (size_t k = 0; k < n; k++) {
        if (s[k].st_shndx && ELF64_ST_TYPE(s[k].st_info) == STT_FUNC)
            all[n_all++] = s[k].st_value;
    }
    qsort(all, n_all, sizeof *all, compare_numbers);
    for (size_t k = 0; k < n; k++) {
        if (!s[k].st_shndx || ELF64_ST_TYPE(s[k].st_info) != STT_FUNC)
            continue;
        struct entries_entry e = {0};
        struct move m = {.entry = &e, .trampoline = i->start - 0x2000};
        const struct find_function f = {
            .at = s[k].st_value, .bytes = s[k].st_size, .next = next_of(all, n_all, s[k].st_value)};
        enum entries_reason reason = move_function(&m, i, &f);
        reasons[reason]++;
        if (reason == ENTRIES_REASONS) {
            instructions += check_move(&m);
            check_fixups(&m, i, &f);
        }
    }
    free(all);
    print_message("%s: %u functions can be moved, %u instructions\n", path,
                  reasons[ENTRIES_REASONS], instructions);
    for (unsigned r = 0; r < ENTRIES_REASONS; r++) {
        if (reasons[r])
            print_message("    %u: %s\n", reasons[r], entries_reason_texts[r]);
    }
    return reasons[ENTRIES_REASONS] > n_all / 2;
}

// Returns the result of check_functions, or -ENOENT without an object of this machine.
static int check_file(const char *path)
{
    const struct entries_object o = {
        .path = path, .file = open(path, O_RDONLY | O_CLOEXEC), .memory = -1};
    struct entries_image i;
    struct image_symbols symbols = {0};
    int rc = -ENOENT;
    if (o.file >= 0 && image_open(&i, &o, NULL) == 0) {
        assert_int_equal(image_read_dynamic(&i, &symbols), 0);
        rc = check_functions(&i, &symbols, path);
        image_symbols_release(&symbols);
    }
    if (o.file >= 0)
        close(o.file);
    return rc;
}

static void check_library(const char *name)
{
    void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    char path[4096] = "/usr/lib/x86_64-linux-gnu/";
    struct link_map *map;
    if (handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0)
        snprintf(path, sizeof path, "%s", map->l_name);
    else
        strncat(path, name, sizeof path - strlen(path) - 1);
    int rc = check_file(path);
    if (rc == -ENOENT)
        UNIT_SKIP(path);
    assert_int_equal(rc, true);
}

enum { SCANNED = 96, ENTRY_STEP = 256, SPACE = 64, SIZE_BYTES = 5 };

// Writes an object that consists of one segment of code. Returns its descriptor.
static int open_code(uint64_t bytes)
{
    const Elf64_Phdr p = {.p_type = PT_LOAD,
                          .p_flags = PF_R | PF_X,
                          .p_filesz = bytes,
                          .p_memsz = bytes,
                          .p_align = 4096};
    Elf64_Ehdr h = {.e_type = ET_DYN,
                    .e_machine = EM_X86_64,
                    .e_phoff = sizeof h,
                    .e_phentsize = sizeof p,
                    .e_phnum = 1};
    int fd = memfd_create("code", MFD_CLOEXEC);
    memcpy(h.e_ident, ELFMAG, SELFMAG);
    h.e_ident[EI_CLASS] = ELFCLASS64;
    h.e_ident[EI_DATA] = ELFDATA2LSB;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    assert_int_equal(pwrite(fd, &h, sizeof h, 0), sizeof h);
    assert_int_equal(pwrite(fd, &p, sizeof p, sizeof h), sizeof p);
    return fd;
}

// Writes a conditional jump that ends at `end`, after instructions of one byte.
static void put_jump_at(int fd, uint64_t end, uint64_t target)
{
    uint8_t code[SPACE + 6];
    const int32_t displacement = (int32_t)(int64_t)(target - end);
    memset(code, 0x90, sizeof code);
    code[SPACE] = 0x0f;
    code[SPACE + 1] = 0x84;
    memcpy(code + SPACE + 2, &displacement, sizeof displacement);
    assert_int_equal(pwrite(fd, code, sizeof code, (off_t)(end - sizeof code)), sizeof code);
}

// Returns where the jump to an entry ends: around the borders of pieces, or near the end.
static uint64_t place_jump(uint64_t bytes, unsigned k)
{
    enum { PIECE_STEP = (1 << 18) - 8, AT_BORDERS = 80 };
    uint64_t borders = (bytes / PIECE_STEP - 1) | 1;
    if (k < AT_BORDERS)
        return (1 + k % borders) * PIECE_STEP + k / borders * 2 * SPACE + k % 11 - 2;
    return bytes - (uint64_t)(SCANNED - 1 - k) * (2 * SPACE + 1);
}

// Every second entry has a jump into its bytes from one place in the code. The other entries have a
// jump to their start, like a call.
static void find_jumps_in(uint64_t bytes)
{
    struct entries_entry entries[SCANNED] = {0};
    enum entries_reason reasons[SCANNED];
    uint64_t sizes[SCANNED];
    int fd = open_code(bytes);
    for (unsigned k = 0; k < SCANNED; k++) {
        entries[k] = (struct entries_entry){.at = bytes / 2 + k * ENTRY_STEP, .bytes = SIZE_BYTES};
        sizes[k] = ENTRY_STEP;
        reasons[k] = ENTRIES_REASONS;
        put_jump_at(fd, place_jump(bytes, k), entries[k].at + (k & 1 ? 1 + k % 4 : 0));
    }
    const struct entries_object o = {.path = "code", .file = fd, .memory = -1};
    struct entries_image i;
    assert_int_equal(image_open(&i, &o, NULL), 0);
    assert_int_equal(move_find_jumps(&i, entries, SCANNED, sizes, reasons), 0);
    for (unsigned k = 0; k < SCANNED; k++) {
        enum entries_reason wanted = k & 1 ? ENTRIES_REASON_JUMPED_TO : ENTRIES_REASONS;
        if (reasons[k] != wanted)
            print_message("entry %u in %llu bytes\n", k, (unsigned long long)bytes);
        assert_int_equal(reasons[k], wanted);
    }
    close(fd);
}

static void test_jumps_are_found_in_the_whole_code(void **state)
{
    (void)state;
    find_jumps_in((1 << 20) + 12345);
    // Large enough for a search by two threads.
    find_jumps_in((40 << 20) + 777);
}

static void test_libc(void **state)
{
    (void)state;
    check_library("libc.so.6");
}

static void test_jemalloc(void **state)
{
    (void)state;
    check_library("libjemalloc.so.2");
}

static void test_tcmalloc(void **state)
{
    (void)state;
    check_library("libtcmalloc_minimal.so.4");
}

static void test_mimalloc(void **state)
{
    (void)state;
    check_library("libmimalloc.so.2");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_jumps_are_found_in_the_whole_code),
    cmocka_unit_test(test_libc),
    cmocka_unit_test(test_jemalloc),
    cmocka_unit_test(test_tcmalloc),
    cmocka_unit_test(test_mimalloc),
};

int main(int argc, char **argv)
{
    if (argc < 2 || !strchr(argv[1], '/')) {
        if (argc > 1)
            cmocka_set_test_filter(argv[1]);
        return cmocka_run_group_tests(tests, NULL, NULL);
    }
    for (int k = 1; k < argc; k++)
        check_file(argv[k]);
    return 0;
}
