// Tests plans of entries by applying them in this process, to the functions of entries_library.c.
#include "record/entries/functions.h"
#include "record/entries/plan.h"
#include "trace/event/event.h"
#include "unit.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct spool_wrap user = {.items = {{"entries_my_malloc", HT_MALLOC}}, .n = 1};
static const struct entries_names all_names = {
    .wrap = &user, .families = UINT32_MAX, .reordered = true};

// The library, as a loaded object and as a file.
static struct {
    char path[4096];
    uint64_t base;
    int file, memory;
} library;

static int load_library(void **state)
{
    (void)state;
    ssize_t n = readlink("/proc/self/exe", library.path, sizeof library.path - 64);
    assert_true(n > 0);
    library.path[n] = 0;
    strcpy(strrchr(library.path, '/'), "/libentries-functions.so");
    void *handle = dlopen(library.path, RTLD_NOW);
    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    assert_non_null(handle);
    struct link_map *map;
    assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
    library.base = map->l_addr;
    library.file = open(library.path, O_RDONLY | O_CLOEXEC);
    library.memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    assert_true(library.file >= 0 && library.memory >= 0);
    return 0;
}

static struct entries_object object(bool is_file)
{
    return (struct entries_object){.path = library.path,
                                   .file = is_file ? library.file : -1,
                                   .memory = library.memory,
                                   .header = library.base};
}

static struct entries_result plan_library(bool is_file, const struct entries_names *names)
{
    struct entries_result r = {0};
    struct err e = {0};
    const struct entries_object o = object(is_file);
    int rc = entries_plan_object(&o, names, &r, &e);
    assert_string_equal(e.text, "");
    assert_int_equal(rc, 0);
    assert_non_null(r.plan);
    assert_true(entries_are_valid(r.plan));
    assert_int_equal(r.base, library.base);
    return r;
}

static uint64_t address_of(const char *name)
{
    void *handle = dlopen(library.path, RTLD_NOW);
    uint64_t at = (uint64_t)(uintptr_t)dlsym(handle, name);
    dlclose(handle);
    return at ? at - library.base : 0;
}

static const struct entries_entry *entry_at(const struct entries_result *r, uint64_t at)
{
    for (uint32_t i = 0; r->plan && i < r->plan->n_entries; i++) {
        if (r->plan->entries[i].at == at)
            return &r->plan->entries[i];
    }
    return NULL;
}

static const struct entries_refusal *refusal_of(const struct entries_result *r, const char *name)
{
    const struct entries_refusal *found = NULL;
    for (size_t i = 0; i < r->n_refused; i++) {
        if (strcmp(r->refused[i].name, name) == 0) {
            assert_null(found);
            found = &r->refused[i];
        }
    }
    return found;
}

static void test_functions_are_found_with_their_events(void **state)
{
    static const struct {
        const char *name;
        enum entries_family family;
        unsigned function;
        const char *arguments;
    } wanted[] = {
        {"je_malloc", ENTRIES_FAMILY_JEMALLOC, HT_MALLOC, ""},
        {"je_calloc", ENTRIES_FAMILY_JEMALLOC, HT_CALLOC, ""},
        {"je_valloc", ENTRIES_FAMILY_JEMALLOC, HT_VALLOC, ""},
        {"je_realloc", ENTRIES_FAMILY_JEMALLOC, HT_REALLOC, ""},
        {"je_memalign", ENTRIES_FAMILY_JEMALLOC, HT_MEMALIGN, ""},
        {"je_free", ENTRIES_FAMILY_JEMALLOC, HT_FREE, ""},
        {"je_aligned_alloc", ENTRIES_FAMILY_JEMALLOC, HT_ALIGNED_ALLOC, ""},
        {"je_pvalloc", ENTRIES_FAMILY_JEMALLOC, HT_PVALLOC, ""},
        {"je_posix_memalign", ENTRIES_FAMILY_JEMALLOC, HT_POSIX_MEMALIGN, ""},
        {"je_reallocarray", ENTRIES_FAMILY_JEMALLOC, HT_REALLOCARRAY, ""},
        {"dlreallocarray", ENTRIES_FAMILY_DLMALLOC, HT_REALLOCARRAY, ""},
        {"dlaligned_alloc", ENTRIES_FAMILY_DLMALLOC, HT_ALIGNED_ALLOC, ""},
        {"dlfree_aligned_sized", ENTRIES_FAMILY_DLMALLOC, HT_FREE_ALIGNED_SIZED, ""},
        {"rpcalloc", ENTRIES_FAMILY_RPMALLOC, HT_CALLOC, ""},
        {"rpvalloc", ENTRIES_FAMILY_RPMALLOC, HT_VALLOC, ""},
        {"rpfree", ENTRIES_FAMILY_RPMALLOC, HT_FREE, ""},
        {"scalable_malloc", ENTRIES_FAMILY_TBBMALLOC, HT_MALLOC, ""},
        {"scalable_free", ENTRIES_FAMILY_TBBMALLOC, HT_FREE, ""},
        {"scalable_aligned_malloc", ENTRIES_FAMILY_TBBMALLOC, HT_ALIGNED_ALLOC, "sa"},
        {"pvalloc", ENTRIES_FAMILY_LIBC, HT_PVALLOC, ""},
        {"tc_malloc", ENTRIES_FAMILY_LIBC, HT_MALLOC, "s"},
        {"tc_free", ENTRIES_FAMILY_LIBC, HT_FREE, "p"},
        {"moz_arena_malloc", ENTRIES_FAMILY_LIBC, HT_MALLOC, "xs"},
        {"moz_arena_free", ENTRIES_FAMILY_LIBC, HT_FREE, "xp"},
        {"entries_my_malloc", ENTRIES_FAMILY_USER, HT_MALLOC, ""},
        {"_RNvCsdBezzDwma51_7___rustc12___rust_alloc", ENTRIES_FAMILY_RUST, HT_ALIGNED_ALLOC, "sa"},
        {"_RNvCsdBezzDwma51_7___rustc14___rust_dealloc", ENTRIES_FAMILY_RUST, HT_FREE_ALIGNED_SIZED,
         "psa"},
    };
    enum { WANTED = sizeof wanted / sizeof *wanted, STATIC = 2, TARGETS = 1 };
    (void)state;
    struct entries_result r = plan_library(true, &all_names);
    for (size_t i = 0; i < WANTED; i++) {
        const struct entries_entry *e = entry_at(&r, address_of(wanted[i].name));
        if (!e)
            print_message("%s: no entry\n", wanted[i].name);
        assert_non_null(e);
        assert_int_equal(e->family, wanted[i].family);
        assert_int_equal(e->function, wanted[i].function);
        assert_string_equal(e->arguments, wanted[i].arguments);
    }
    // nedmalloc and nedfree.lto_priv.0 have local symbols only. nedmalloc.part.0 is not an entry.
    unsigned ned = 0;
    for (uint32_t i = 0; i < r.plan->n_entries; i++)
        ned += r.plan->entries[i].family == ENTRIES_FAMILY_NEDMALLOC;
    assert_int_equal(ned, STATIC);
    // rpmalloc is redirected at the code to which it jumps.
    uint64_t rpmalloc = address_of("rpmalloc");
    const struct entries_entry *target = entry_at(&r, rpmalloc + 16);
    assert_null(entry_at(&r, rpmalloc));
    assert_non_null(target);
    assert_int_equal(target->family, ENTRIES_FAMILY_RPMALLOC);
    assert_int_equal(target->function, HT_MALLOC);
    assert_int_equal(r.plan->n_entries, WANTED + STATIC + TARGETS);
    assert_int_equal(r.usable_size[ENTRIES_FAMILY_JEMALLOC], address_of("je_malloc_usable_size"));
    assert_int_equal(r.usable_size[ENTRIES_FAMILY_LIBC], 0);
    entries_result_release(&r);
}

struct refused {
    const char *name;
    enum entries_reason reason;
};

#if defined(__aarch64__)
#define MACHINE_NAME "aarch64"
#define OBJCOPY      "aarch64-linux-gnu-objcopy"
static const struct refused wanted_refusals[] = {
    {"dlmalloc", ENTRIES_REASON_JUMPED_TO},
    {"dlfree", ENTRIES_REASON_JUMPED_TO},
    {"dlcalloc", ENTRIES_REASON_JUMPED_TO},
    {"dlrealloc", ENTRIES_REASON_SHORT},
    {"dlmemalign", ENTRIES_REASON_OVERLAP},
    {"dlvalloc", ENTRIES_REASON_UNMOVABLE},
    {"dlpvalloc", ENTRIES_REASON_UNKNOWN},
    {"dlposix_memalign", ENTRIES_REASON_UNKNOWN},
    {"nedposix_memalign", ENTRIES_REASON_BREAKPOINT},
    {"nedcalloc", ENTRIES_REASON_CALL},
    {"nedrealloc", ENTRIES_REASON_CALL},
    {"dlfree_sized", ENTRIES_REASON_INDIRECT},
    {"je_free_sized", ENTRIES_REASON_ALIAS},
    {"nedfree_sized", ENTRIES_REASON_COPY},
};
#else
#define MACHINE_NAME "x86-64"
#define OBJCOPY      "objcopy"
static const struct refused wanted_refusals[] = {
    {"dlmalloc", ENTRIES_REASON_JUMPED_TO},     {"dlfree", ENTRIES_REASON_JUMPED_TO},
    {"dlcalloc", ENTRIES_REASON_JUMPED_TO},     {"dlrealloc", ENTRIES_REASON_SHORT},
    {"dlmemalign", ENTRIES_REASON_OVERLAP},     {"dlvalloc", ENTRIES_REASON_UNMOVABLE},
    {"dlpvalloc", ENTRIES_REASON_UNKNOWN},      {"nedposix_memalign", ENTRIES_REASON_BREAKPOINT},
    {"dlposix_memalign", ENTRIES_REASON_LONG},  {"nedcalloc", ENTRIES_REASON_CALL},
    {"nedrealloc", ENTRIES_REASON_SHORT},       {"nedvalloc", ENTRIES_REASON_UNMOVABLE},
    {"nedpvalloc", ENTRIES_REASON_UNMOVABLE},   {"nedreallocarray", ENTRIES_REASON_SHORT},
    {"nedaligned_alloc", ENTRIES_REASON_SHORT}, {"nedmemalign", ENTRIES_REASON_JUMPED_TO},
    {"dlfree_sized", ENTRIES_REASON_INDIRECT},  {"je_free_sized", ENTRIES_REASON_ALIAS},
    {"nedfree_sized", ENTRIES_REASON_COPY},
};
#endif

static void test_refusals_have_reasons(void **state)
{
    const struct refused *wanted = wanted_refusals;
    const size_t n = sizeof wanted_refusals / sizeof *wanted_refusals;
    (void)state;
    struct entries_result r = plan_library(true, &all_names);
    for (size_t i = 0; i < n; i++) {
        const struct entries_refusal *f = refusal_of(&r, wanted[i].name);
        if (!f || f->reason != wanted[i].reason)
            print_message("%s: %s\n", wanted[i].name, f ? entries_reason_texts[f->reason] : "none");
        assert_non_null(f);
        assert_int_equal(f->reason, wanted[i].reason);
    }
    assert_int_equal(r.n_refused, n);
    entries_result_release(&r);
}

#if !defined(__aarch64__) // moves no calls
static void test_return_addresses_are_kept_with_shadow_stacks(void **state)
{
    (void)state;
    struct entries_names names = all_names;
    names.shadow_stack = true;
    struct entries_result r = plan_library(true, &names);
    assert_null(entry_at(&r, address_of("dlreallocarray")));
    assert_int_equal(refusal_of(&r, "dlreallocarray")->reason, ENTRIES_REASON_CALL);
    assert_int_equal(refusal_of(&r, "dlfree_aligned_sized")->reason, ENTRIES_REASON_CALL);
    assert_non_null(entry_at(&r, address_of("je_malloc")));
    entries_result_release(&r);
}
#endif

static void test_names_of_the_user_stay_in_their_families(void **state)
{
    static const struct spool_wrap wrap = {.items = {{"sn_malloc", HT_MALLOC},
                                                     {"je_valloc", HT_FREE},
                                                     {"tc_free", 0},
                                                     {"moz_arena_malloc", HT_CALLOC}},
                                           .n = 4};
    const struct entries_names names = {
        .wrap = &wrap, .families = UINT32_MAX & ~(1u << ENTRIES_FAMILY_MOZJEMALLOC)};
    (void)state;
    struct entries_result r = plan_library(true, &names);
    const struct entries_entry *e = entry_at(&r, address_of("je_valloc"));
    assert_int_equal(e->family, ENTRIES_FAMILY_JEMALLOC);
    assert_int_equal(e->function, HT_FREE);
    e = entry_at(&r, address_of("sn_malloc"));
    assert_int_equal(e->family, ENTRIES_FAMILY_SNMALLOC);
    e = entry_at(&r, address_of("moz_arena_malloc"));
    assert_int_equal(e->family, ENTRIES_FAMILY_USER);
    assert_int_equal(e->function, HT_CALLOC);
    assert_null(entry_at(&r, address_of("moz_arena_free")));
    assert_null(entry_at(&r, address_of("tc_free")));
    assert_int_equal(r.usable_size[ENTRIES_FAMILY_LIBC], address_of("tc_free"));
    entries_result_release(&r);
}

static void check_name(const struct functions *f, const char *symbol, unsigned function,
                       const char *arguments)
{
    const struct functions_row *row = functions_find(f, symbol, NULL);
    if (!row)
        print_message("%s\n", symbol);
    assert_non_null(row);
    assert_int_equal(row->function, function);
    assert_string_equal(row->arguments, arguments);
}

static void test_names_have_versions_and_mangling(void **state)
{
    (void)state;
    struct functions f = {0};
    assert_int_equal(functions_init(&f, &all_names), 0);
    check_name(&f, "malloc", HT_MALLOC, "");
    check_name(&f, "malloc@@GLIBC_2.2.5", HT_MALLOC, "");
    check_name(&f, "_ZdlPvmSt11align_val_t", HT_DELETE_SIZED_ALIGNED, "");
    check_name(&f, "mallocx", HT_MALLOC, "sf");
    check_name(&f, "_rjem_sdallocx", HT_FREE_SIZED, "psf");
    check_name(&f, "xallocx", HT_REALLOC, "bsxx");
    check_name(&f, "mi_expand", HT_REALLOC, "");
    check_name(&f, "mi_heap_calloc", HT_CALLOC, "xcs");
    check_name(&f, "mi_heap_recalloc_aligned_at", HT_REALLOCARRAY, "xpcsxx");
    check_name(&f, "rpmalloc_heap_aligned_realloc", HT_REALLOC, "xpxsx");
    check_name(&f, "tc_deletearray_sized", HT_DELETE_ARRAY_SIZED, "");
    check_name(&f, "rpaligned_alloc", HT_ALIGNED_ALLOC, "");
    check_name(&f, "__rdl_dealloc", HT_FREE_ALIGNED_SIZED, "psa");
    check_name(&f, "_RNvCsdBezzDwma51_7___rustc14___rust_realloc", HT_REALLOC, "pxxs");
    check_name(&f, "je_malloc_usable_size", 0, "");
    const char *const others[] = {
        "",
        "mallo",
        "malloc_",
        "_ZN4je_mallocEv",
        "je__ZdlPv",
        "mmap",
        "tc__Znwm",
        "_RNvCsdBezzDwma51_7___rustc",
        "heaptape_mark",
        "a_function_whose_name_has_more_characters_than_a_name_of_the_table"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_null(functions_find(&f, others[i], NULL));
    // A search for the name of each row finds this row.
    for (size_t i = 0; i < f.n; i++)
        assert_ptr_equal(functions_find(&f, f.rows[i].name, NULL), &f.rows[i]);
    functions_release(&f);
}

static void test_other_functions_are_found_on_request(void **state)
{
    (void)state;
    struct functions f = {0};
    const struct entries_names names = {.families = UINT32_MAX, .wrapped = true};
    assert_int_equal(functions_init(&f, &names), 0);
    for (unsigned function = 0; function < ENTRIES_FUNCTION_LIMIT; function++) {
        if (entries_symbol(function))
            check_name(&f, entries_symbol(function), function, "");
    }
    assert_null(functions_find(&f, "je_mmap", NULL));
    assert_null(functions_find(&f, "mallocx", NULL));
    functions_release(&f);
    // Here the plan uses only dynamic symbols. The library also has a local symbol munmap.
    struct entries_result r = plan_library(true, &names);
    unsigned found = 0;
    for (uint32_t i = 0; i < r.plan->n_entries; i++) {
        found += r.plan->entries[i].function == HT_MALLOC_STATS;
        assert_int_not_equal(r.plan->entries[i].function, HT_MUNMAP);
        assert_int_not_equal(r.plan->entries[i].function, HT_MALLOPT);
    }
    assert_int_equal(found, 1);
    entries_result_release(&r);
}

static void test_names_are_selected(void **state)
{
    static const struct entries_names jemalloc = {.families = 1u << ENTRIES_FAMILY_JEMALLOC},
                                      tbb = {.families = 1u << ENTRIES_FAMILY_TBBMALLOC},
                                      mine = {.wrap = &user};
    (void)state;
    struct entries_result r = plan_library(true, &jemalloc);
    assert_int_equal(r.plan->n_entries, 10);
    entries_result_release(&r);
    // The plan does not contain the function whose arguments differ.
    r = plan_library(true, &tbb);
    assert_int_equal(r.plan->n_entries, 2);
    entries_result_release(&r);
    r = plan_library(true, &mine);
    assert_int_equal(r.plan->n_entries, 1);
    assert_int_equal(r.plan->entries[0].at, address_of("entries_my_malloc"));
    entries_result_release(&r);
    // The library has sn_malloc but not sn_free, so these functions are not an allocator.
    const struct entries_names snmalloc = {.families = 1u << ENTRIES_FAMILY_SNMALLOC};
    const struct entries_object o = object(true);
    r = (struct entries_result){0};
    assert_int_equal(entries_plan_object(&o, &snmalloc, &r, NULL), 0);
    assert_null(r.plan);
    assert_int_equal(r.n_refused, 0);
}

static void test_memory_and_file_have_one_plan(void **state)
{
    static const struct entries_names dynamic = {.families = 1u << ENTRIES_FAMILY_JEMALLOC |
                                                             1u << ENTRIES_FAMILY_TBBMALLOC};
    (void)state;
    struct entries_result file = plan_library(true, &dynamic),
                          memory = plan_library(false, &dynamic);
    assert_int_equal(file.n_refused, memory.n_refused);
    assert_memory_equal(file.plan, memory.plan, sizeof *file.plan);
    assert_memory_equal(file.usable_size, memory.usable_size, sizeof file.usable_size);
    entries_result_release(&file);
    entries_result_release(&memory);
}

// A plan that was applied to the library in this process.
struct applied {
    const struct entries_plan *plan;
    uint8_t *area;
};

// Emulators of a processor notice only writes by the program itself.
static void write_code(uint64_t at, const void *bytes, size_t n)
{
    const uint64_t page = at & ~4095ull, size = at + n - page;
    char *to = (char *)(uintptr_t)at;
    void *start = (void *)(uintptr_t)page;
    assert_int_equal(mprotect(start, size, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
    memcpy(to, bytes, n);
    __builtin___clear_cache(to, to + n);
    assert_int_equal(mprotect(start, size, PROT_READ | PROT_EXEC), 0);
}

// Maps the area `distance` bytes above the planned place. Returns false if other memory is there.
static bool map_area(struct applied *a, struct entries_plan *plan, int64_t distance)
{
    void *place = (void *)(uintptr_t)(library.base + (uint64_t)plan->place + (uint64_t)distance);
    a->plan = plan;
    a->area = mmap(place, plan->area_bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (a->area != place)
        return false;
    assert_true(entries_relocate(plan, distance));
    memcpy(a->area, plan->code, plan->code_bytes);
    __builtin___clear_cache((char *)a->area, (char *)a->area + plan->code_bytes);
    return true;
}

static void apply(const struct applied *a)
{
    for (uint32_t i = 0; i < a->plan->n_entries; i++) {
        const struct entries_entry *e = &a->plan->entries[i];
        uint8_t jump[ENTRIES_MAX_BYTES];
        uint64_t trampoline = (uint64_t)(uintptr_t)a->area + e->trampoline;
        memcpy(a->area + e->slot, &trampoline, sizeof trampoline);
        assert_memory_equal((void *)(uintptr_t)(library.base + e->at), e->was, e->bytes);
        assert_true(entries_make_jump(e, library.base, (uint64_t)(uintptr_t)a->area, jump));
        write_code(library.base + e->at, jump, e->bytes);
    }
}

static void restore(struct applied *a)
{
    for (uint32_t i = 0; i < a->plan->n_entries; i++) {
        const struct entries_entry *e = &a->plan->entries[i];
        write_code(library.base + e->at, e->was, e->bytes);
    }
    munmap(a->area, a->plan->area_bytes);
}

typedef uint64_t (*any_function)(uint64_t, uint64_t, uint64_t);

static any_function function_at(uint64_t address)
{
    return (any_function)(uintptr_t)address;
}

// The trampoline that the wrapper calls, and the number of calls of the wrapper.
static struct {
    any_function real;
    unsigned calls;
} wrapped;

static uint64_t count_call(uint64_t a, uint64_t b, uint64_t c)
{
    wrapped.calls++;
    return wrapped.real(a, b, c);
}

enum { ARGUMENTS = 5 };

static uint64_t call_with(const struct entries_entry *e, uint64_t argument)
{
    return function_at(library.base + e->at)(argument, 3 * argument, argument + 7);
}

// Calls each function twice: while its slot leads to the trampoline, and while its slot leads to a
// wrapper.
static void check_calls(const struct applied *a, uint64_t wanted[][ARGUMENTS])
{
    for (uint32_t i = 0; i < a->plan->n_entries; i++) {
        const struct entries_entry *e = &a->plan->entries[i];
        void *volatile *slot = (void *volatile *)(void *)(a->area + e->slot);
        bool is_recursive = library.base + e->at == library.base + address_of("je_free");
        for (uint64_t k = 0; k < ARGUMENTS; k++) {
            assert_int_equal(call_with(e, k), wanted[i][k]);
            wrapped.real = function_at((uint64_t)(uintptr_t)*slot);
            wrapped.calls = 0;
            *slot = (void *)(uintptr_t)count_call;
            assert_int_equal(call_with(e, k), wanted[i][k]);
            *slot = (void *)(uintptr_t)wrapped.real;
            assert_int_equal(wrapped.calls, is_recursive ? k + 1 : 1);
            assert_int_equal(call_with(e, k), wanted[i][k]);
        }
    }
}

static void run_at(int64_t distance)
{
    struct entries_result r = plan_library(true, &all_names);
    uint64_t wanted[ENTRIES_MAX][ARGUMENTS];
    for (uint32_t i = 0; i < r.plan->n_entries; i++) {
        for (uint64_t k = 0; k < ARGUMENTS; k++)
            wanted[i][k] = call_with(&r.plan->entries[i], k);
    }
    struct applied a;
    if (!map_area(&a, r.plan, distance)) {
        entries_result_release(&r);
        UNIT_SKIP("other memory is at the place");
    }
    apply(&a);
    check_calls(&a, wanted);
    restore(&a);
    entries_result_release(&r);
}

static void test_functions_run_at_the_planned_place(void **state)
{
    (void)state;
    run_at(0);
}

static void test_functions_run_at_another_place(void **state)
{
    (void)state;
    run_at(-(int64_t)(64 << 20));
}

#if defined(__aarch64__)
// Each entry moves one instruction. paciasp stays, and the trampoline repeats it.
static void check_moved(const struct entries_entry *plain, const struct entries_entry *jump,
                        const struct entries_entry *kept)
{
    static const uint8_t moved[] = {0, 255, 255, 255, 0, 255, 255, 255};
    assert_int_equal(plain->bytes, 4);
    assert_memory_equal(plain->moved, moved, plain->bytes);
    assert_int_equal(jump->bytes, 4);
    assert_memory_equal(jump->moved, moved, jump->bytes);
    assert_int_equal(kept->bytes, sizeof moved);
    assert_int_equal(kept->keep, ENTRIES_KEEP_BYTES);
    assert_memory_equal(kept->moved, moved, sizeof moved);
}
#else
static void check_moved(const struct entries_entry *plain, const struct entries_entry *jump,
                        const struct entries_entry *endbr)
{
    // The instructions are push, mov and lea. Their offsets do not change.
    static const uint8_t moved_plain[] = {0, 1, 255, 255, 4, 255, 255, 255};
    assert_int_equal(plain->bytes, sizeof moved_plain);
    assert_memory_equal(plain->moved, moved_plain, sizeof moved_plain);
    // The instructions are test, and je with 2 bytes.
    static const uint8_t moved_jump[] = {0, 255, 255, 3, 255};
    assert_int_equal(jump->bytes, sizeof moved_jump);
    assert_memory_equal(jump->moved, moved_jump, sizeof moved_jump);
    // The plan leaves endbr64 in place and moves xor and test.
    static const uint8_t moved_endbr[] = {0, 255, 255, 255, 0, 255, 2, 255, 255};
    assert_int_equal(endbr->bytes, sizeof moved_endbr);
    assert_int_equal(endbr->keep, ENTRIES_KEEP_BYTES);
    assert_memory_equal(endbr->moved, moved_endbr, sizeof moved_endbr);
}
#endif

// Starts at each moved instruction and runs the trampoline from there, like a thread that was
// stopped at this instruction.
static void test_moved_instructions_have_their_offsets(void **state)
{
    (void)state;
    struct entries_result r = plan_library(true, &all_names);
    const struct entries_entry *plain = entry_at(&r, address_of("je_malloc")),
                               *jump = entry_at(&r, address_of("je_realloc")),
                               *kept = entry_at(&r, address_of("je_free"));
    check_moved(plain, jump, kept);
    entries_result_release(&r);
}

static void test_the_place_is_below_the_object(void **state)
{
    (void)state;
    struct entries_result r = plan_library(true, &all_names);
    assert_int_equal(r.plan->place, -(int64_t)r.plan->area_bytes);
    assert_true(r.plan->span > address_of("je_malloc"));
    entries_result_release(&r);
}

// The library has a hash table in the System V format instead of the GNU format. All symbols that
// are not dynamic are stripped.
static void test_tables_of_system_v(void **state)
{
    (void)state;
    char path[sizeof library.path];
    strcpy(path, library.path);
    strcpy(strrchr(path, '/'), "/libentries-sysv.so");
    const struct entries_object o = {
        .path = path, .file = open(path, O_RDONLY | O_CLOEXEC), .memory = -1};
    assert_true(o.file >= 0);
    static const struct entries_names names = {.families = 1u << ENTRIES_FAMILY_JEMALLOC};
    struct entries_result r = {0};
    assert_int_equal(entries_plan_object(&o, &names, &r, NULL), 0);
    assert_non_null(r.plan);
    assert_int_equal(r.plan->n_entries, 10);
    entries_result_release(&r);
    close(o.file);
}

// A copy of the library's file whose bytes are changed.
struct copy {
    uint8_t *bytes;
    size_t n;
    int file;
};

static struct copy copy_library(void)
{
    struct copy c = {.file = memfd_create("copy", MFD_CLOEXEC)};
    c.n = (size_t)lseek(library.file, 0, SEEK_END);
    c.bytes = malloc(c.n);
    assert_non_null(c.bytes);
    assert_int_equal(pread(library.file, c.bytes, c.n, 0), (ssize_t)c.n);
    assert_int_equal(pwrite(c.file, c.bytes, c.n, 0), (ssize_t)c.n);
    return c;
}

static void release_copy(struct copy *c)
{
    close(c->file);
    free(c->bytes);
}

// Plans the copy. Whatever it contains, the result is an error or a valid plan.
static int plan_copy(const struct copy *c, struct err *e)
{
    struct entries_result r = {0};
    const struct entries_object o = {.path = "copy", .file = c->file, .memory = -1};
    int rc = entries_plan_object(&o, &all_names, &r, e);
    assert_true(rc == 0 || rc == -ENOEXEC);
    assert_true(rc == 0 || !r.plan);
    assert_true(!r.plan || entries_are_valid(r.plan));
    for (uint32_t i = 0; r.plan && i < r.plan->n_entries; i++)
        assert_true(r.plan->entries[i].at < r.plan->span);
    entries_result_release(&r);
    return rc;
}

// Replaces the number at `at` by hostile numbers, one at a time.
static void try_numbers(const struct copy *c, size_t at, size_t bytes)
{
    const uint64_t numbers[] = {0,          1,
                                c->n,       c->n - 1,
                                1u << 31,   (uint64_t)1 << 32,
                                1ull << 47, (uint64_t)1 << 63,
                                INT64_MAX,  UINT64_MAX};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        assert_int_equal(pwrite(c->file, &numbers[k], bytes, (off_t)at), (ssize_t)bytes);
        plan_copy(c, NULL);
    }
    assert_int_equal(pwrite(c->file, c->bytes + at, bytes, (off_t)at), (ssize_t)bytes);
}

static void try_range(const struct copy *c, size_t from, size_t bytes, size_t word)
{
    for (size_t at = from; at + word <= from + bytes && at + word <= c->n; at += word)
        try_numbers(c, at, word);
}

static void test_hostile_headers(void **state)
{
    (void)state;
    struct copy c = copy_library();
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)(const void *)c.bytes;
    assert_int_equal(plan_copy(&c, NULL), 0);
    try_range(&c, offsetof(Elf64_Ehdr, e_phoff), 16, 8);
    try_range(&c, offsetof(Elf64_Ehdr, e_flags), 16, 2);
    try_range(&c, h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr), 8);
    release_copy(&c);
}

static void test_hostile_sections(void **state)
{
    (void)state;
    struct copy c = copy_library();
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)(const void *)c.bytes;
    const Elf64_Shdr *s = (const Elf64_Shdr *)(const void *)(c.bytes + h->e_shoff);
    for (unsigned k = 0; k < h->e_shnum; k++) {
        bool is_table = s[k].sh_type == SHT_SYMTAB || s[k].sh_type == SHT_STRTAB;
        bool is_loaded = s[k].sh_type == SHT_DYNAMIC || s[k].sh_type == SHT_GNU_HASH;
        if (is_table)
            try_range(&c, h->e_shoff + k * sizeof *s, sizeof *s, 8);
        if (is_loaded)
            try_range(&c, s[k].sh_offset, s[k].sh_size, 8);
        if (s[k].sh_type == SHT_DYNSYM || s[k].sh_type == SHT_SYMTAB)
            try_range(&c, s[k].sh_offset + 20 * sizeof(Elf64_Sym), 20 * sizeof(Elf64_Sym), 8);
    }
    release_copy(&c);
}

// Writes random bytes to several random places of the file at once.
static void test_random_damage(void **state)
{
    (void)state;
    struct copy c = copy_library();
    uint64_t seed = 41;
    for (unsigned round = 0; round < 2000; round++) {
        for (unsigned k = 0; k < 8; k++) {
            uint64_t number = unit_random(&seed);
            assert_int_equal(
                pwrite(c.file, &number, 1 + number % 8, (off_t)(unit_random(&seed) % (c.n - 8))),
                1 + (ssize_t)(number % 8));
        }
        plan_copy(&c, NULL);
        assert_int_equal(pwrite(c.file, c.bytes, c.n, 0), (ssize_t)c.n);
    }
    release_copy(&c);
}

static void test_cut_files(void **state)
{
    (void)state;
    struct copy c = copy_library();
    struct err e = {0};
    for (size_t n = c.n; n; n -= n < 97 ? n : 97) {
        assert_int_equal(ftruncate(c.file, (off_t)n - 1), 0);
        plan_copy(&c, NULL);
    }
    assert_int_equal(ftruncate(c.file, sizeof(Elf64_Ehdr) - 1), 0);
    assert_int_equal(plan_copy(&c, &e), -ENOEXEC);
    assert_string_equal(e.text, "copy: is not an ELF object for " MACHINE_NAME);
    release_copy(&c);
}

// Copies the debug file to DIRECTORY/BUILDID/debuginfo.
static void cache_debug_file(const char *directory, const char *object)
{
    char command[1024];
    snprintf(command, sizeof command,
             "cd %s && id=$(readelf -n %s | sed -n 's/.*Build ID: //p') && mkdir $id && "
             "cp .debug/own.debug $id/debuginfo",
             directory, object);
    if (system(command) != 0)
        fail_msg("readelf failed");
}

// `objcopy` splits the debug information from the library, as packages do.
static void test_debug_files_are_found(void **state)
{
    (void)state;
    char directory[] = "/tmp/heaptape-entries-XXXXXX", command[16384];
    assert_non_null(mkdtemp(directory));
    snprintf(command, sizeof command,
             "cd %s && mkdir .debug && " OBJCOPY
             " --only-keep-debug %s .debug/own.debug && " OBJCOPY
             " --strip-all --add-gnu-debuglink=.debug/own.debug %s stripped.so && " OBJCOPY
             " --strip-all %s other.so",
             directory, library.path, library.path, library.path);
    if (system(command) != 0)
        fail_msg("objcopy failed");
    static const struct entries_names ned = {.families = 1u << ENTRIES_FAMILY_NEDMALLOC};
    setenv("DEBUGINFOD_CACHE_PATH", directory, 1);
    // The second file has a link, the third has its debug file in the cache of debuginfod.
    for (unsigned linked = 0; linked < 3; linked++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", directory, linked == 1 ? "stripped.so" : "other.so");
        if (linked == 2)
            cache_debug_file(directory, path);
        struct entries_result r = {0};
        const struct entries_object o = {
            .path = path, .file = open(path, O_RDONLY | O_CLOEXEC), .memory = -1};
        assert_int_equal(entries_plan_object(&o, &ned, &r, NULL), 0);
        assert_int_equal(r.plan ? r.plan->n_entries : 0, linked ? 2 : 0);
        entries_result_release(&r);
        close(o.file);
    }
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_are_found_with_their_events),
        cmocka_unit_test(test_refusals_have_reasons),
#if !defined(__aarch64__)
        cmocka_unit_test(test_return_addresses_are_kept_with_shadow_stacks),
#endif
        cmocka_unit_test(test_names_of_the_user_stay_in_their_families),
        cmocka_unit_test(test_names_have_versions_and_mangling),
        cmocka_unit_test(test_other_functions_are_found_on_request),
        cmocka_unit_test(test_names_are_selected),
        cmocka_unit_test(test_memory_and_file_have_one_plan),
        cmocka_unit_test(test_functions_run_at_the_planned_place),
        cmocka_unit_test(test_functions_run_at_another_place),
        cmocka_unit_test(test_moved_instructions_have_their_offsets),
        cmocka_unit_test(test_the_place_is_below_the_object),
        cmocka_unit_test(test_tables_of_system_v),
        cmocka_unit_test(test_hostile_headers),
        cmocka_unit_test(test_hostile_sections),
        cmocka_unit_test(test_random_damage),
        cmocka_unit_test(test_cut_files),
        cmocka_unit_test(test_debug_files_are_found),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, load_library, NULL);
}
