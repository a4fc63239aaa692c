#include "record/entries/functions.h"

#include "base/buf.h"
#include "trace/event/event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Names of the families; "" for ENTRIES_FAMILY_LIBC.
static const char *const family_names[ENTRIES_FAMILIES] = {
#define ROW(SYMBOL, name) name,
    ENTRIES_FAMILY_TABLE(ROW)
#undef ROW
};

_Static_assert((int)ENTRIES_FAMILIES <= (int)HT_ALLOCATORS, "the numbers in traces");

const char *entries_allocator_name(unsigned allocator)
{
    return !allocator                     ? "malloc"
           : allocator < ENTRIES_FAMILIES ? family_names[allocator]
                                          : "unknown";
}

int entries_allocator_by_name(const char *name)
{
    int i = ENTRIES_FAMILIES - 1;
    while (i >= 0 && strcmp(entries_allocator_name((unsigned)i), name) != 0)
        i--;
    return i;
}

const char *const entries_reason_texts[ENTRIES_REASONS] = {
#define ROW(SYMBOL, text) text,
    ENTRIES_REASON_TABLE(ROW)
#undef ROW
};

enum { USABLE_SIZE = 0 };

// A function of a family, without the family's prefix.
struct own_row {
    const char *name;
    uint16_t function;
    const char *arguments;
};

// https://jemalloc.net/jemalloc.3.html
static const struct own_row jemalloc_rows[] = {
    {"mallocx", HT_MALLOC, "sf"},       {"rallocx", HT_REALLOC, "psf"},
    {"xallocx", HT_REALLOC, "bsxx"},    {"dallocx", HT_FREE, "pf"},
    {"sdallocx", HT_FREE_SIZED, "psf"}, {NULL, 0, NULL},
};

// mimalloc.h
static const struct own_row mimalloc_rows[] = {
    {"malloc_small", HT_MALLOC, ""},
    {"zalloc", HT_CALLOC, "s"},
    {"zalloc_small", HT_CALLOC, "s"},
    {"mallocn", HT_CALLOC, ""},
    {"reallocn", HT_REALLOCARRAY, ""},
    {"reallocf", HT_REALLOC, ""},
    {"rezalloc", HT_REALLOC, ""},
    {"recalloc", HT_REALLOCARRAY, ""},
    {"expand", HT_REALLOC, ""},
    {"_expand", HT_REALLOC, ""},
    {"cfree", HT_FREE, ""},
    {"malloc_size", USABLE_SIZE, ""},
    {"usable_size", USABLE_SIZE, ""},
    {"malloc_aligned", HT_ALIGNED_ALLOC, "sa"},
    {"zalloc_aligned", HT_ALIGNED_ALLOC, "sa"},
    {"calloc_aligned", HT_ALIGNED_ALLOC, "csa"},
    {"malloc_aligned_at", HT_ALIGNED_ALLOC, "sax"},
    {"zalloc_aligned_at", HT_ALIGNED_ALLOC, "sax"},
    {"calloc_aligned_at", HT_ALIGNED_ALLOC, "csax"},
    {"realloc_aligned", HT_REALLOC, "psx"},
    {"realloc_aligned_at", HT_REALLOC, "psxx"},
    {"rezalloc_aligned", HT_REALLOC, "psx"},
    {"rezalloc_aligned_at", HT_REALLOC, "psxx"},
    {"recalloc_aligned", HT_REALLOCARRAY, "pcsx"},
    {"recalloc_aligned_at", HT_REALLOCARRAY, "pcsxx"},
    {"aligned_recalloc", HT_REALLOCARRAY, "pcsx"},
    {"aligned_offset_recalloc", HT_REALLOCARRAY, "pcsxx"},
    {"free_size", HT_FREE_SIZED, ""},
    {"free_aligned", HT_FREE, "px"},
    {"free_size_aligned", HT_FREE_ALIGNED_SIZED, "psa"},
    {"new", HT_NEW, ""},
    {"new_nothrow", HT_NEW_NOTHROW, ""},
    {"new_aligned", HT_NEW_ALIGNED, ""},
    {"new_aligned_nothrow", HT_NEW_ALIGNED_NOTHROW, ""},
    {"new_n", HT_CALLOC, ""},
    {"new_realloc", HT_REALLOC, ""},
    {"new_reallocn", HT_REALLOCARRAY, ""},
    {"heap_malloc", HT_MALLOC, "xs"},
    {"heap_malloc_small", HT_MALLOC, "xs"},
    {"heap_zalloc", HT_CALLOC, "xs"},
    {"heap_calloc", HT_CALLOC, "xcs"},
    {"heap_mallocn", HT_CALLOC, "xcs"},
    {"heap_realloc", HT_REALLOC, "xps"},
    {"heap_reallocn", HT_REALLOCARRAY, "xpcs"},
    {"heap_alloc_new", HT_NEW, "xs"},
    {"heap_alloc_new_n", HT_CALLOC, "xcs"},
    {"heap_reallocf", HT_REALLOC, "xps"},
    {"heap_rezalloc", HT_REALLOC, "xps"},
    {"heap_recalloc", HT_REALLOCARRAY, "xpcs"},
    {"heap_malloc_aligned", HT_ALIGNED_ALLOC, "xsa"},
    {"heap_malloc_aligned_at", HT_ALIGNED_ALLOC, "xsax"},
    {"heap_zalloc_aligned", HT_ALIGNED_ALLOC, "xsa"},
    {"heap_zalloc_aligned_at", HT_ALIGNED_ALLOC, "xsax"},
    {"heap_calloc_aligned", HT_ALIGNED_ALLOC, "xcsa"},
    {"heap_calloc_aligned_at", HT_ALIGNED_ALLOC, "xcsax"},
    {"heap_realloc_aligned", HT_REALLOC, "xpsx"},
    {"heap_realloc_aligned_at", HT_REALLOC, "xpsxx"},
    {"heap_rezalloc_aligned", HT_REALLOC, "xpsx"},
    {"heap_rezalloc_aligned_at", HT_REALLOC, "xpsxx"},
    {"heap_recalloc_aligned", HT_REALLOCARRAY, "xpcsx"},
    {"heap_recalloc_aligned_at", HT_REALLOCARRAY, "xpcsxx"},
    {NULL, 0, NULL},
};

// gperftools/tcmalloc.h
static const struct own_row tcmalloc_rows[] = {
    {"malloc_skip_new_handler", HT_MALLOC, ""},
    {"cfree", HT_FREE, ""},
    {"malloc_size", USABLE_SIZE, ""},
    {"new", HT_NEW, ""},
    {"new_nothrow", HT_NEW_NOTHROW, ""},
    {"newarray", HT_NEW_ARRAY, ""},
    {"newarray_nothrow", HT_NEW_ARRAY_NOTHROW, ""},
    {"delete", HT_DELETE, ""},
    {"delete_nothrow", HT_DELETE_NOTHROW, ""},
    {"delete_sized", HT_DELETE_SIZED, ""},
    {"deletearray", HT_DELETE_ARRAY, ""},
    {"deletearray_nothrow", HT_DELETE_ARRAY_NOTHROW, ""},
    {"deletearray_sized", HT_DELETE_ARRAY_SIZED, ""},
    {"new_aligned", HT_NEW_ALIGNED, ""},
    {"new_aligned_nothrow", HT_NEW_ALIGNED_NOTHROW, ""},
    {"newarray_aligned", HT_NEW_ARRAY_ALIGNED, ""},
    {"newarray_aligned_nothrow", HT_NEW_ARRAY_ALIGNED_NOTHROW, ""},
    {"delete_aligned", HT_DELETE_ALIGNED, ""},
    {"delete_aligned_nothrow", HT_DELETE_ALIGNED_NOTHROW, ""},
    {"delete_sized_aligned", HT_DELETE_SIZED_ALIGNED, ""},
    {"deletearray_aligned", HT_DELETE_ARRAY_ALIGNED, ""},
    {"deletearray_aligned_nothrow", HT_DELETE_ARRAY_ALIGNED_NOTHROW, ""},
    {"deletearray_sized_aligned", HT_DELETE_ARRAY_SIZED_ALIGNED, ""},
    {NULL, 0, NULL},
};

// rpmalloc.h
static const struct own_row rpmalloc_rows[] = {
    {"zalloc", HT_CALLOC, "s"},
    {"aligned_zalloc", HT_ALIGNED_ALLOC, ""},
    {"aligned_calloc", HT_ALIGNED_ALLOC, "acs"},
    {"aligned_realloc", HT_REALLOC, "pxsxx"},
    {"malloc_heap_alloc", HT_MALLOC, "xs"},
    {"malloc_heap_aligned_alloc", HT_ALIGNED_ALLOC, "xas"},
    {"malloc_heap_calloc", HT_CALLOC, "xcs"},
    {"malloc_heap_aligned_calloc", HT_ALIGNED_ALLOC, "xacs"},
    {"malloc_heap_realloc", HT_REALLOC, "xpsx"},
    {"malloc_heap_aligned_realloc", HT_REALLOC, "xpxsx"},
    {"malloc_heap_free", HT_FREE, "xp"},
    {NULL, 0, NULL},
};

// src/snmalloc/override/rust.cc of snmalloc
static const struct own_row snmalloc_rows[] = {
    {"rust_alloc", HT_ALIGNED_ALLOC, ""},
    {"rust_alloc_zeroed", HT_ALIGNED_ALLOC, ""},
    {"rust_dealloc", HT_FREE_ALIGNED_SIZED, ""},
    {"rust_realloc", HT_REALLOC, "pxxs"},
    {NULL, 0, NULL},
};

// oneapi/tbb/scalable_allocator.h
static const struct own_row tbbmalloc_rows[] = {
    {"aligned_malloc", HT_ALIGNED_ALLOC, "sa"},
    {"aligned_realloc", HT_REALLOC, "psx"},
    {"aligned_free", HT_FREE, ""},
    {"msize", USABLE_SIZE, ""},
    {NULL, 0, NULL},
};

// memory/build/malloc_decls.h of Firefox
static const struct own_row mozjemalloc_rows[] = {
    {"malloc", HT_MALLOC, "xs"},      {"calloc", HT_CALLOC, "xcs"}, {"realloc", HT_REALLOC, "xps"},
    {"memalign", HT_MEMALIGN, "xas"}, {"free", HT_FREE, "xp"},      {NULL, 0, NULL},
};

// library/alloc/src/alloc.rs of Rust
static const struct own_row rust_rows[] = {
    {"alloc", HT_ALIGNED_ALLOC, "sa"},
    {"alloc_zeroed", HT_ALIGNED_ALLOC, "sa"},
    {"dealloc", HT_FREE_ALIGNED_SIZED, "psa"},
    {"realloc", HT_REALLOC, "pxxs"},
    {NULL, 0, NULL},
};

struct family {
    enum entries_family family;
    const char *prefix;
    bool has_libc_names; // the names of libc's functions also occur with the prefix
    const struct own_row *rows;
};

static const struct family families[] = {
#define FAMILY_ROW(family, prefix, rows) {ENTRIES_FAMILY_##family, prefix, true, rows},
    ENTRIES_PREFIX_TABLE(FAMILY_ROW)
#undef FAMILY_ROW
        {ENTRIES_FAMILY_MOZJEMALLOC, "moz_arena_", false, mozjemalloc_rows},
    {ENTRIES_FAMILY_RUST, "__rust_", false, rust_rows},
    {ENTRIES_FAMILY_RUST, "__rdl_", false, rust_rows},
    {ENTRIES_FAMILY_RUST, "__rg_", false, rust_rows},
};

// Returns the hash (FNV-1a) of the first n characters of a name, or 0 if the name is too long.
static uint64_t hash_name(const char *name, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)name[i]) * 0x100000001b3u;
    return n < SPOOL_WRAP_BYTES ? h : 0;
}

// Returns the bit that represents the first four characters of a name.
static unsigned bit_of(const char *name)
{
    uint32_t text = 0;
    for (unsigned k = 0; k < 4 && name[k] && name[k] != '@'; k++)
        text |= (uint32_t)(unsigned char)name[k] << 8 * k;
    return text * 0x9e3779b1u >> 20;
}

// Adds a name. If a name occurs twice, the first row is used.
static int add_row(struct functions *f, const struct family *family, const struct own_row *row)
{
    char name[SPOOL_WRAP_BYTES];
    int n = snprintf(name, sizeof name, "%s%s", family->prefix, row->name);
    uint64_t hash = n < 0 ? 0 : hash_name(name, (size_t)n);
    if (!hash || map_get(&f->by_name, hash))
        return 0;
    if (HT_GROW(&f->rows, &f->capacity, f->n + 1) < 0)
        return -ENOMEM;
    struct functions_row *to = &f->rows[f->n++];
    *to = (struct functions_row){.family = family->family, .function = row->function};
    strcpy(to->name, name);
    memcpy(to->arguments, row->arguments, strlen(row->arguments));
    f->beginnings[bit_of(name) / 64] |= 1ull << bit_of(name) % 64;
    return map_put(&f->by_name, hash, f->n);
}

// Adds the allocator functions of the event table, and malloc_usable_size. For family 0, also adds
// the C++ operators, the loader's function and, on request, the other functions that the library
// wraps.
static int add_libc_names(struct functions *f, const struct family *to,
                          const struct entries_names *names)
{
    int rc = add_row(f, to, &(struct own_row){"malloc_usable_size", USABLE_SIZE, ""});
    for (unsigned function = 0; rc == 0 && function < ENTRIES_FUNCTION_LIMIT; function++) {
        const struct own_row row = {entries_symbol(function), (uint16_t)function, ""};
        bool allocates = entries_class(function) != HT_CLASS_NONE,
             other = !*to->prefix && (names->wrapped || function == ENTRIES_LOADS);
        bool has_prefix = row.name && (!*to->prefix || strncmp(row.name, "_Z", 2) != 0);
        if (has_prefix && (allocates || other))
            rc = add_row(f, to, &row);
    }
    return rc;
}

// Adds the names that the user gave with --wrap. A name of a known family stays in that family, so
// that the functions of the family share one heap.
static int add_user_names(struct functions *f, const struct spool_wrap *wrap, bool addresses)
{
    static const struct family user = {.family = ENTRIES_FAMILY_USER, .prefix = ""};
    for (unsigned i = 0; i < wrap->n; i++) {
        const struct own_row own = {wrap->items[i].name, wrap->items[i].function, ""};
        if (add_row(f, &user, &own) < 0)
            return -ENOMEM;
        uint64_t index = map_get(&f->by_name, hash_name(own.name, strlen(own.name)));
        if (!index)
            continue; // the name is longer than any row
        struct functions_row *row = &f->rows[index - 1];
        row->function = own.function;
        row->named |= 1u << i;
        row->at = addresses ? spool_wrap_address(own.name) : 0;
        memset(row->arguments, 0, sizeof row->arguments);
    }
    return 0;
}

int functions_init(struct functions *f, const struct entries_names *names)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof families / sizeof *families; i++) {
        const struct family *of = &families[i];
        if (!(names->families & 1u << of->family))
            continue;
        if (of->has_libc_names)
            rc = add_libc_names(f, of, names);
        for (const struct own_row *r = of->rows; rc == 0 && r && r->name; r++) {
            if (names->reordered || !*r->arguments)
                rc = add_row(f, of, r);
        }
    }
    return rc == 0 && names->wrap ? add_user_names(f, names->wrap, names->addresses) : rc;
}

void functions_release(struct functions *f)
{
    free(f->rows);
    map_release(&f->by_name);
    *f = (struct functions){0};
}

void entries_set_families(struct spool_wrap *wrap)
{
    const struct entries_names names = {
        .wrap = wrap, .families = ENTRIES_RECORDED_FAMILIES, .reordered = true};
    struct functions f = {0};
    int rc = functions_init(&f, &names);
    for (unsigned i = 0; i < wrap->n; i++) {
        const struct functions_row *row =
            rc == 0 ? functions_find(&f, wrap->items[i].name, NULL) : NULL;
        wrap->items[i].family = row ? (uint16_t)row->family : ENTRIES_FAMILY_USER;
    }
    functions_release(&f);
}

// If the symbol is mangled by the crate __rustc ("_RNvCs…_7___rustc12___rust_alloc"), returns the
// name after the mangling. Otherwise returns the symbol.
static const char *skip_mangling(const char *symbol)
{
    const char *crate = strncmp(symbol, "_RNvC", 5) == 0 ? strstr(symbol, "7___rustc") : NULL;
    if (!crate)
        return symbol;
    crate += strlen("7___rustc");
    crate += strspn(crate, "0123456789");
    return *crate == '_' ? crate + 1 : symbol;
}

// Returns the row of the first n characters of a name, or NULL.
static const struct functions_row *find_row(const struct functions *f, const char *name, size_t n)
{
    uint64_t hash = hash_name(name, n), index = hash ? map_get(&f->by_name, hash) : 0;
    const struct functions_row *row = index ? &f->rows[index - 1] : NULL;
    return row && strlen(row->name) == n && memcmp(row->name, name, n) == 0 ? row : NULL;
}

const struct functions_row *functions_find(const struct functions *f, const char *symbol,
                                           const char **suffix)
{
    const char *name = skip_mangling(symbol);
    if (!(f->beginnings[bit_of(name) / 64] & 1ull << bit_of(name) % 64))
        return NULL;
    size_t n = strcspn(name, "@"), of_original = strcspn(name, ".@");
    const struct functions_row *row = find_row(f, name, n);
    bool is_copy = !row && suffix && of_original < n;
    if (suffix)
        *suffix = is_copy ? name + of_original : "";
    return is_copy ? find_row(f, name, of_original) : row;
}
