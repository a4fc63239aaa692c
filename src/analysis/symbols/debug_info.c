#include "analysis/symbols/debug_info.h"

#include "analysis/symbols/debug_files.h"
#include "base/buf.h"
#include "base/search.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    MAX_RANGES = 1 << 22, // limit per file; no real file has more ranges
    MAX_DEPTH = 256,      // limit on the nesting of DIEs
};

// Code in [low, high) that belongs to a function, unit or symbol.
struct range {
    uint64_t low, high;
    uint64_t reach; // largest `high` of this entry and all preceding entries
    // Among entries with equal `low`, a lookup finds the entry with the highest rank.
    unsigned rank;
    union {
        Dwarf_Off function;
        size_t unit;
        const char *symbol;
    };
};

struct ranges {
    struct range *list; // sorted by `low` when complete
    size_t n, capacity;
};

struct unit {
    Dwarf_Die die;   // DIE in the file itself
    Dwarf_Die split; // DIE in the .dwo file with -gsplit-dwarf; otherwise equal to `die`
    struct ranges functions;
    bool read;
};

struct debug_info {
    Dwfl_Module *file;
    bool read;
    Dwarf_Addr bias;
    struct unit *units;
    size_t n_units, units_capacity;
    struct ranges by_unit;
    bool symbols_read;
    struct ranges sized,
        labels;  // symbols with a size, and symbols without a size, which end with their section
    size_t left; // number of ranges until MAX_RANGES is reached
};

struct debug_info *debug_info_new(Dwfl_Module *file)
{
    struct debug_info *d = calloc(1, sizeof *d);
    if (d)
        *d = (struct debug_info){.file = file, .left = MAX_RANGES};
    return d;
}

void debug_info_free(struct debug_info *d)
{
    for (size_t i = 0; d && i < d->n_units; i++)
        free(d->units[i].functions.list);
    if (d) {
        free(d->by_unit.list);
        free(d->sized.list);
        free(d->labels.list);
        free(d->units);
    }
    free(d);
}

static int by_low(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    // Sort the smaller range last, because find_range searches backwards.
    return (x->high < y->high) - (x->high > y->high);
}

static void sort_ranges(struct ranges *r)
{
    uint64_t reach = 0;
    if (r->n)
        qsort(r->list, r->n, sizeof *r->list, by_low);
    for (size_t i = 0; i < r->n; i++) {
        reach = r->list[i].high > reach ? r->list[i].high : reach;
        r->list[i].reach = reach;
    }
}

static size_t count_until(const struct ranges *r, uint64_t address)
{
    return HT_SEARCH(i, r->n, r->list[i].low > address);
}

// Among the ranges that contain the address, returns the one that begins last, or NULL.
static const struct range *find_range(const struct ranges *r, uint64_t address)
{
    for (size_t i = count_until(r, address); i > 0 && r->list[i - 1].reach > address; i--) {
        if (r->list[i - 1].high > address)
            return &r->list[i - 1];
    }
    return NULL;
}

// Adds the code of a DIE. Skips address 0, which linkers store in functions that they have removed.
static void add_ranges(struct debug_info *d, struct ranges *to, Dwarf_Die *die, struct range r)
{
    Dwarf_Addr base;
    ptrdiff_t at = 0;
    while (d->left && (at = dwarf_ranges(die, at, &base, &r.low, &r.high)) > 0) {
        d->left--;
        if (!r.low || r.low >= r.high)
            continue;
        if (HT_GROW(&to->list, &to->capacity, to->n + 1) < 0)
            return;
        to->list[to->n++] = r;
    }
}

// Returns true if the DIE follows the previous DIE, whose offset is *last. In a preorder walk,
// offsets increase unless the file is corrupt.
static bool is_later(Dwarf_Die *die, Dwarf_Off *last)
{
    Dwarf_Off offset = dwarf_dieoffset(die);
    if (offset <= *last)
        return false;
    *last = offset;
    return true;
}

static bool first_child(Dwarf_Die *die, Dwarf_Die *child, Dwarf_Off *last)
{
    return dwarf_child(die, child) == 0 && is_later(child, last);
}

static bool next_sibling(Dwarf_Die *die, Dwarf_Off *last)
{
    return dwarf_siblingof(die, die) == 0 && is_later(die, last);
}

static void add_functions(struct debug_info *d, struct ranges *to, Dwarf_Die *parent,
                          unsigned depth, Dwarf_Off *last)
{
    Dwarf_Die die;
    if (depth == MAX_DEPTH || !first_child(parent, &die, last))
        return;
    do {
        if (dwarf_tag(&die) == DW_TAG_subprogram)
            add_ranges(d, to, &die, (struct range){.function = dwarf_dieoffset(&die)});
        if (dwarf_haschildren(&die))
            add_functions(d, to, &die, depth + 1, last);
    } while (next_sibling(&die, last));
}

static void read_unit(struct debug_info *d, struct unit *u)
{
    Dwarf_Die split;
    Dwarf_Off last = 0;
    uint8_t type = 0;
    u->read = true;
    u->split = u->die;
    if (dwarf_cu_info(u->die.cu, NULL, &type, NULL, &split, NULL, NULL, NULL) == 0 &&
        type == DW_UT_skeleton && dwarf_tag(&split) != DW_TAG_invalid)
        u->split = split;
    add_functions(d, &u->functions, &u->split, 0, &last);
    sort_ranges(&u->functions);
}

static void read_units(struct debug_info *d)
{
    Dwarf_Die *die = NULL;
    d->read = true;
    while ((die = dwfl_module_nextcu(d->file, die, &d->bias))) {
        if (!debug_files_unit_is_safe(d->file, die))
            continue;
        if (HT_GROW(&d->units, &d->units_capacity, d->n_units + 1) < 0)
            return;
        add_ranges(d, &d->by_unit, die, (struct range){.unit = d->n_units});
        d->units[d->n_units++] = (struct unit){.die = *die};
    }
    sort_ranges(&d->by_unit);
}

static struct unit *unit_at(struct debug_info *d, uint64_t address)
{
    if (!d->read)
        read_units(d);
    const struct range *r = find_range(&d->by_unit, address - d->bias);
    Dwarf_Addr bias;
    Dwarf_Die *die = r ? NULL : dwfl_module_addrdie(d->file, address, &bias);
    for (size_t i = 0; die && !r && i < d->n_units; i++) {
        if (dwarf_dieoffset(&d->units[i].die) == dwarf_dieoffset(die))
            return &d->units[i];
    }
    return r ? &d->units[r->unit] : NULL;
}

static bool is_block(int tag)
{
    return tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block ||
           tag == DW_TAG_with_stmt;
}

// Appends the functions that were inlined at the address, outermost first. Returns true if a child
// of `parent` contains the address.
static bool append_inlined(Dwarf_Die *parent, struct debug_info_place *place, unsigned depth,
                           Dwarf_Off *last)
{
    Dwarf_Die die;
    Dwarf_Addr low;
    if (depth == MAX_DEPTH || !first_child(parent, &die, last))
        return false;
    do {
        int tag = dwarf_tag(&die);
        bool block = is_block(tag), holds = false;
        if (!block && tag != DW_TAG_inlined_subroutine)
            continue;
        holds = dwarf_haspc(&die, place->address) > 0;
        if (holds && !block && place->n < sizeof place->functions / sizeof *place->functions)
            place->functions[place->n++] = die;
        // A block without an address range may still contain DIEs with an address range.
        bool open = block && !dwarf_hasattr(&die, DW_AT_ranges) && dwarf_lowpc(&die, &low) != 0;
        if ((holds || open) && (append_inlined(&die, place, depth + 1, last) || holds))
            return true;
    } while (next_sibling(&die, last));
    return false;
}

static void reverse_functions(struct debug_info_place *place)
{
    for (size_t i = 0, j = place->n; i + 1 < j; i++) {
        Dwarf_Die die = place->functions[--j];
        place->functions[j] = place->functions[i];
        place->functions[i] = die;
    }
}

void debug_info_find(struct debug_info *d, uint64_t address, struct debug_info_place *place)
{
    struct unit *u = unit_at(d, address);
    place->n = 0;
    place->unit = u ? &u->die : NULL;
    place->address = address - d->bias;
    if (!u)
        return;
    if (!u->read)
        read_unit(d, u);
    const struct range *r = find_range(&u->functions, place->address);
    if (!r || !dwarf_offdie(dwarf_cu_getdwarf(u->split.cu), r->function, &place->functions[0]))
        return;
    Dwarf_Off last = 0;
    place->n = 1;
    append_inlined(&place->functions[0], place, 0, &last);
    reverse_functions(place);
}

static unsigned rank_of(const GElf_Sym *symbol)
{
    unsigned binding = GELF_ST_BIND(symbol->st_info);
    return binding == STB_LOCAL ? 0 : binding == STB_WEAK ? 1 : 2;
}

static uint64_t section_end(Elf *elf, GElf_Word section, uint64_t bias)
{
    GElf_Shdr header;
    Elf_Scn *at = elf_getscn(elf, section);
    return at && gelf_getshdr(at, &header) ? header.sh_addr + header.sh_size + bias : 0;
}

static void read_symbols(struct debug_info *d)
{
    int n = dwfl_module_getsymtab(d->file);
    d->symbols_read = true;
    for (int i = 1; i < n && i < MAX_RANGES; i++) {
        GElf_Sym symbol;
        GElf_Word section = SHN_UNDEF;
        Elf *elf = NULL;
        struct range r = {0};
        Dwarf_Addr bias = 0;
        r.symbol = dwfl_module_getsym_info(d->file, i, &symbol, &r.low, &section, &elf, &bias);
        unsigned type = r.symbol ? GELF_ST_TYPE(symbol.st_info) : STT_FILE;
        if (type > STT_FUNC && type != STT_GNU_IFUNC)
            continue;
        if (!*r.symbol || section == SHN_UNDEF || section >= SHN_LORESERVE)
            continue;
        struct ranges *to = symbol.st_size ? &d->sized : &d->labels;
        r.high = symbol.st_size ? r.low + symbol.st_size : section_end(elf, section, bias);
        r.rank = rank_of(&symbol);
        if (r.low >= r.high)
            continue;
        if (HT_APPEND(&to->list, &to->n, &to->capacity, r) < 0)
            break;
    }
    sort_ranges(&d->sized);
    sort_ranges(&d->labels);
}

const char *debug_info_symbol(struct debug_info *d, uint64_t address, uint64_t *bytes)
{
    if (!d->symbols_read)
        read_symbols(d);
    const struct range *r = find_range(&d->sized, address);
    *bytes = r ? r->high - r->low : 0;
    if (r)
        return r->symbol;
    r = find_range(&d->labels, address);
    size_t before = count_until(&d->sized, address);
    // If a sized function begins after the label, the label ends there.
    return r && (!before || d->sized.list[before - 1].low <= r->low) ? r->symbol : NULL;
}
