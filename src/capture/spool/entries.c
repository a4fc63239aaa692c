#include "capture/spool/entries.h"

#include "trace/event/event.h"

#include <string.h>

const char *const entries_malloc_names[ENTRIES_PREFIXES] = {
#define NAME(family, prefix, rows) prefix "malloc",
    ENTRIES_PREFIX_TABLE(NAME)
#undef NAME
};

const char *entries_symbol(unsigned function)
{
    switch (function) {
#define ROW(number, SYMBOL, symbol)                                                                \
    case number:                                                                                   \
        return symbol;
        ENTRIES_CONTROL_TABLE(ROW)
#undef ROW
    }
    bool wrapped = function < HT_KIND_LIMIT && event_infos[function].symbol;
    return wrapped && event_infos[function].symbol[0] ? event_infos[function].symbol : NULL;
}

void entries_name_file(const struct stat *file, char name[ENTRIES_FILE_BYTES])
{
    static const char digits[] = "0123456789abcdef", prefix[] = "plan-";
    const uint64_t parts[] = {file->st_dev, file->st_ino, (uint64_t)file->st_size,
                              (uint64_t)file->st_mtim.tv_sec, (uint64_t)file->st_mtim.tv_nsec};
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
    for (size_t i = 0; i < sizeof parts; i++)
        hash = (hash ^ ((const uint8_t *)parts)[i]) * 0x100000001b3u;
    memcpy(name, prefix, sizeof prefix);
    char *at = name + sizeof prefix - 1;
    for (unsigned shift = 64; shift; *at++ = digits[hash >> shift & 15])
        shift -= 4;
    *at = 0;
}

unsigned entries_class(unsigned function)
{
    unsigned class = function < HT_KIND_LIMIT ? event_infos[function].class : HT_CLASS_NONE;
    bool allocates = class == HT_CLASS_ALLOC || class == HT_CLASS_FREE || class == HT_CLASS_RESIZE;
    return allocates ? class : HT_CLASS_NONE;
}

const char *entries_letters(unsigned function)
{
    if (function >= HT_KIND_LIMIT || !event_infos[function].symbol)
        return "";
    const struct event_info *i = &event_infos[function];
    bool is_cxx = strncmp(i->symbol, "_Z", 2) == 0, is_aligned = i->fields & HT_F_ALIGN;
    if (i->class == HT_CLASS_RESIZE)
        return i->fields & HT_F_COUNT ? "pcs" : "ps";
    if (i->class == HT_CLASS_ALLOC && is_aligned)
        return function == HT_POSIX_MEMALIGN ? "xas" : is_cxx ? "sa" : "as";
    if (i->class == HT_CLASS_ALLOC)
        return i->fields & HT_F_COUNT ? "cs" : "s";
    if (!(i->fields & HT_F_SIZE))
        return is_aligned ? "pa" : "p";
    return !is_aligned ? "ps" : is_cxx ? "psa" : "pas";
}

static bool is_entry_valid(const struct entries_plan *p, const struct entries_entry *e)
{
    if (!entries_symbol(e->function) || e->bytes > ENTRIES_MAX_BYTES ||
        (e->keep != 0 && e->keep != ENTRIES_KEEP_BYTES) || e->bytes < e->keep + ENTRIES_JUMP_BYTES)
        return false;
    for (unsigned i = 0; i < e->bytes; i++) {
        uint32_t moved = e->moved[i];
        if (moved != ENTRIES_NO_INSTRUCTION && moved >= p->code_bytes - e->trampoline)
            return false;
    }
    return e->at < p->span && e->bytes <= p->span - e->at && e->trampoline < p->code_bytes &&
           e->stub < p->code_bytes && e->slot % sizeof(uint64_t) == 0 &&
           e->slot >= entries_slots(p) && e->slot < p->area_bytes;
}

static bool are_apart(const struct entries_entry *a, const struct entries_entry *b)
{
    return (a->at >= b->at + b->bytes || b->at >= a->at + a->bytes) && a->slot != b->slot &&
           a->stub != b->stub && a->trampoline != b->trampoline;
}

bool entries_are_valid(const struct entries_plan *p)
{
    if (p->magic != ENTRIES_MAGIC || !p->code_bytes || p->code_bytes % ENTRIES_UNIT_BYTES != 0 ||
        p->code_bytes > ENTRIES_MAX_CODE || p->area_bytes % ENTRIES_PAGE_BYTES != 0 ||
        p->area_bytes <= ENTRIES_PAGE_BYTES || p->area_bytes > 4 * ENTRIES_PAGE_BYTES ||
        p->code_bytes > entries_slots(p) || !p->n_entries || p->n_entries > ENTRIES_MAX ||
        p->n_fixups > ENTRIES_MAX_FIXUPS || p->span >= ENTRIES_REACH ||
        p->place % ENTRIES_UNIT_BYTES != 0 || p->place >= (int64_t)ENTRIES_REACH ||
        p->place < -(int64_t)ENTRIES_REACH)
        return false;
    for (uint32_t i = 0; i < p->n_fixups; i++) {
        if (p->fixups[i] > p->code_bytes - sizeof(uint32_t))
            return false;
    }
    for (uint32_t i = 0; i < p->n_entries; i++) {
        if (!is_entry_valid(p, &p->entries[i]))
            return false;
        for (uint32_t k = 0; k < i; k++) {
            if (!are_apart(&p->entries[i], &p->entries[k]))
                return false;
        }
    }
    return true;
}

bool entries_relocate(struct entries_plan *p, int64_t distance)
{
    for (uint32_t i = 0; i < p->n_fixups; i++) {
        if (!entries_shift(p->code + p->fixups[i], distance))
            return false;
    }
    p->place += distance;
    return true;
}

bool entries_is_system_library(const char *path)
{
    return strncmp(path, "/usr/lib/", 9) == 0 || strncmp(path, "/lib", 4) == 0;
}

uint64_t entries_move(const struct entries_entry *e, uint64_t base, uint64_t area, uint64_t pc)
{
    uint64_t offset = pc - (base + e->at);
    if (offset >= e->bytes || offset == 0 || offset == e->keep)
        return pc;
    return e->moved[offset] == ENTRIES_NO_INSTRUCTION ? 0 : area + e->trampoline + e->moved[offset];
}
