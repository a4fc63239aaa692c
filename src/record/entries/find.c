#include "record/entries/find.h"

#include "base/search.h"
#include "record/entries/move.h"
#include "trace/event/event.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TABLES = 3, // dynamic symbols, static symbols, debug file
    // Maximum number of symbols with a known name that are examined in an object.
    MAX_MATCHES = 1 << 14
};

static bool is_code(const Elf64_Sym *s)
{
    unsigned type = ELF64_ST_TYPE(s->st_info);
    return s->st_shndx != SHN_UNDEF && s->st_value &&
           (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

static const Elf64_Sym *symbol_of(const struct image_symbols *table, size_t k)
{
    bool exists = k < table->symbols.size / sizeof(Elf64_Sym);
    return exists ? (const Elf64_Sym *)(const void *)table->symbols.data + k : NULL;
}

// Functions that compilers derive from a function, by the beginning of the symbol's suffix.
enum derived {
    DERIVED_NOT,
    DERIVED_WHOLE, // the function has only another name
    DERIVED_COPY,  // a copy with other arguments, or a part of the function
    DERIVED_OTHER, // unlikely code, or an alias
};

static enum derived derived_by(const char *suffix)
{
    static const struct {
        const char *suffix;
        enum derived derived;
    } rows[] = {{".lto_priv.", DERIVED_WHOLE},
                {".llvm.", DERIVED_WHOLE},
                {".part.", DERIVED_COPY},
                {".isra.", DERIVED_COPY},
                {".constprop.", DERIVED_COPY}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strncmp(suffix, rows[i].suffix, strlen(rows[i].suffix)) == 0)
            return rows[i].derived;
    }
    return *suffix ? DERIVED_OTHER : DERIVED_NOT;
}

static void add_function(struct find_list *to, const struct functions_row *row, const Elf64_Sym *s,
                         bool is_dynamic, bool is_copy)
{
    size_t k = 0;
    while (k < to->n && (to->functions[k].at != s->st_value || to->functions[k].row != row))
        k++;
    if (k == FIND_MAX)
        return;
    struct find_function *f = &to->functions[k];
    if (k == to->n) {
        to->n++;
        *f = (struct find_function){.row = row,
                                    .family = row->family,
                                    .at = s->st_value,
                                    .next = UINT64_MAX,
                                    .is_dynamic = is_dynamic,
                                    .is_copy = is_copy};
    }
    f->bytes = s->st_size > f->bytes ? s->st_size : f->bytes;
    f->is_indirect |= ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC;
}

static void find_names(const struct image_symbols *table, const struct functions *names,
                       bool is_dynamic, struct find_list *to)
{
    const Elf64_Sym *s;
    unsigned matches = 0;
    for (size_t k = 0; matches < MAX_MATCHES && (s = symbol_of(table, k)); k++) {
        const char *name = is_code(s) ? image_name(table, s) : NULL;
        const char *suffix = "";
        const struct functions_row *row = name ? functions_find(names, name, &suffix) : NULL;
        enum derived derived = derived_by(suffix);
        bool is_other = row && row->function && entries_class(row->function) == HT_CLASS_NONE;
        if (!row || (is_other && !is_dynamic) || ELF64_ST_TYPE(s->st_info) == STT_NOTYPE ||
            derived == DERIVED_OTHER)
            continue;
        add_function(to, row, s, is_dynamic, derived == DERIVED_COPY);
        matches++;
    }
}

// Removes the copies of functions that are in the list themselves: only the allocator calls these
// copies.
static void drop_copies(struct find_list *l)
{
    size_t n = 0;
    for (size_t k = 0; k < l->n; k++) {
        size_t other = 0;
        while (other < l->n &&
               (l->functions[other].is_copy || l->functions[other].row != l->functions[k].row))
            other++;
        if (!l->functions[k].is_copy || other == l->n)
            l->functions[n++] = l->functions[k];
    }
    l->n = n;
}

// Adds the functions that the user named by their addresses.
static void add_addresses(const struct functions *names, struct find_list *to)
{
    for (size_t k = 0; k < names->n; k++) {
        const Elf64_Sym s = {.st_value = names->rows[k].at};
        if (s.st_value)
            add_function(to, &names->rows[k], &s, false, false);
    }
}

static uint64_t read_jump(const struct entries_image *i, uint64_t at)
{
    uint8_t code[MOVE_JUMP_BYTES] = {0};
    image_read(i, at, code, sizeof code);
    return move_jump_target(code, at);
}

// Returns true if a function in the list is at the target of `f`, or another function jumps there.
static bool is_known(const struct find_list *l, const struct find_function *f)
{
    for (size_t k = 0; k < l->n; k++) {
        const struct find_function *other = &l->functions[k];
        if (other->at == f->target || (other->target == f->target && other->row != f->row))
            return true;
    }
    return false;
}

// If a function only jumps to other code, adds that code. Other functions may enter the code
// without the jump: for example, an allocator's strdup may enter the code of malloc. Skips code
// that is already in the list, and code that functions with different names jump to, because its
// event is not known.
static void add_targets(const struct entries_image *i, struct find_list *l)
{
    size_t n = l->n;
    for (size_t k = 0; k < n; k++) {
        struct find_function *f = &l->functions[k];
        bool records = entries_class(f->row->function) != HT_CLASS_NONE;
        uint64_t target = records && !f->is_indirect && !f->is_copy ? read_jump(i, f->at) : 0;
        f->target = image_code_at(i, target) ? target : 0;
    }
    for (size_t k = 0; k < n && l->n < FIND_MAX; k++) {
        struct find_function *f = &l->functions[k];
        if (f->target && !is_known(l, f))
            l->functions[l->n++] = (struct find_function){.row = f->row,
                                                          .family = f->family,
                                                          .at = f->target,
                                                          .next = UINT64_MAX,
                                                          .is_target = true};
    }
}

static int compare_functions(const void *a, const void *b)
{
    const struct find_function *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->family != y->family)
        return x->family < y->family ? -1 : 1;
    // malloc_usable_size has no event kind, so it is sorted last.
    int of_x = x->row->function ? x->row->function : INT16_MAX;
    int of_y = y->row->function ? y->row->function : INT16_MAX;
    return of_x - of_y;
}

// Returns the number of functions below the address.
static size_t count_below(const struct find_list *l, uint64_t at)
{
    return HT_SEARCH(i, l->n, l->functions[i].at >= at);
}

// Sets `next` of the functions. The list must be sorted. If several functions have the same
// address, sets `next` only in the last of them.
static void find_next(const struct image_symbols *table, struct find_list *to)
{
    const Elf64_Sym *s;
    for (size_t k = 0; (s = symbol_of(table, k)); k++) {
        size_t below = is_code(s) ? count_below(to, s->st_value) : 0;
        if (below && s->st_value < to->functions[below - 1].next)
            to->functions[below - 1].next = s->st_value;
    }
}

// Marks targets inside a function of the table.
static void find_inside(const struct image_symbols *table, struct find_list *to)
{
    const Elf64_Sym *s;
    for (size_t k = 0; (s = symbol_of(table, k)); k++) {
        size_t f = is_code(s) && s->st_size ? count_below(to, s->st_value + 1) : to->n;
        for (; f < to->n && to->functions[f].at - s->st_value < s->st_size; f++)
            to->functions[f].is_inside = to->functions[f].is_target;
    }
}

static void copy_next_to_aliases(struct find_list *l)
{
    for (size_t k = l->n; k-- > 1;) {
        if (l->functions[k - 1].at == l->functions[k].at)
            l->functions[k - 1].next = l->functions[k].next;
    }
}

// Returns the families that the object implements: families with both an allocating and a freeing
// function, families with a function that the user named, and libc's family if a dynamic symbol has
// one of libc's names.
static uint32_t find_families(const struct find_list *l)
{
    uint32_t allocate = 0, release = 0, dynamic = 0, named = 0;
    for (size_t k = 0; k < l->n; k++) {
        const struct find_function *f = &l->functions[k];
        unsigned class = entries_class(f->row->function);
        allocate |= (uint32_t)(class == HT_CLASS_ALLOC) << f->row->family;
        release |= (uint32_t)(class == HT_CLASS_FREE) << f->row->family;
        dynamic |= (uint32_t)f->is_dynamic << f->row->family;
        named |= (uint32_t)(f->row->named != 0) << f->row->family;
    }
    return (allocate & release) | (dynamic & 1u << ENTRIES_FAMILY_LIBC) | named;
}

// Returns the families that allocate from the same heap as the functions with libc's names in this
// object. These are families with a function at the address of a function with a libc name, and
// mozjemalloc, whose arenas belong to that heap.
static uint32_t find_shared(const struct find_list *l, uint32_t present)
{
    uint32_t shared = 0;
    for (size_t k = 1; k < l->n; k++) {
        const struct find_function *f = &l->functions[k];
        for (size_t a = k; a-- > 0 && l->functions[a].at == f->at;) {
            if (l->functions[a].row->family == ENTRIES_FAMILY_LIBC)
                shared |= 1u << f->row->family;
        }
    }
    return present & 1u << ENTRIES_FAMILY_LIBC ? shared | 1u << ENTRIES_FAMILY_MOZJEMALLOC : shared;
}

// Returns true if the function does nothing but return, and is not an allocator function. A linker
// that folds equal code (--icf) may give such a function the same address as unrelated functions.
static bool may_be_folded(const struct entries_image *i, const struct find_function *f)
{
    enum { FOLDED_BYTES = 12 };
    unsigned function = f->row->function;
    return function && function != ENTRIES_LOADS && entries_class(function) == HT_CLASS_NONE &&
           f->bytes && f->bytes <= FOLDED_BYTES && move_is_return(i, f->at + f->bytes);
}

static void finish_list(const struct entries_image *i, struct find_list *l)
{
    copy_next_to_aliases(l);
    uint32_t present = find_families(l), shared = find_shared(l, present);
    size_t n = 0;
    for (size_t k = 0; k < l->n; k++) {
        struct find_function f = l->functions[k];
        if (!(present & 1u << f.row->family) || f.is_inside || may_be_folded(i, &f))
            continue;
        if (shared & 1u << f.row->family)
            f.family = ENTRIES_FAMILY_LIBC;
        f.is_alias = n && l->functions[n - 1].at == f.at;
        l->functions[n++] = f;
    }
    l->n = n;
}

// Reads the symbols of the object's file. If the file is stripped, reads the symbols of the debug
// file.
static int read_static(const struct entries_image *i, struct image_symbols tables[TABLES])
{
    int rc = i->object->file >= 0 ? image_read_static(i->object->file, &tables[1]) : 0;
    int debug = rc == 0 && !tables[1].symbols.size ? image_open_debug(i) : -1;
    if (debug >= 0) {
        rc = image_read_static(debug, &tables[2]);
        close(debug);
    }
    return rc;
}

int find_functions(const struct entries_image *i, const struct functions *names,
                   struct find_list *to)
{
    struct image_symbols tables[TABLES] = {0};
    to->n = 0;
    int rc = image_read_dynamic(i, &tables[0]) ?: read_static(i, tables);
    for (unsigned t = 0; rc == 0 && t < TABLES; t++)
        find_names(&tables[t], names, t == 0, to);
    drop_copies(to);
    add_addresses(names, to);
    add_targets(i, to);
    qsort(to->functions, to->n, sizeof *to->functions, compare_functions);
    for (unsigned t = 0; rc == 0 && to->n && t < TABLES; t++) {
        find_next(&tables[t], to);
        find_inside(&tables[t], to);
    }
    for (unsigned t = 0; t < TABLES; t++)
        image_symbols_release(&tables[t]);
    finish_list(i, to);
    return rc;
}
