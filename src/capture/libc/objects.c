#include "capture/libc/objects.h"

#include "base/gnu_hash.h"

#include <string.h>

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOB_DAT = R_X86_64_GLOB_DAT };
#else
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOB_DAT = R_AARCH64_GLOB_DAT };
#endif

enum { VERSION_HIDDEN = 0x8000 };

bool object_contains(const struct object *o, const void *at, size_t bytes)
{
    uintptr_t offset = (uintptr_t)at - o->base;
    for (size_t i = 0; i < o->n_segments; i++) {
        const ElfW(Phdr) *s = &o->segments[i];
        if (s->p_type == PT_LOAD && (s->p_flags & PF_R) && offset - s->p_vaddr < s->p_memsz &&
            bytes <= s->p_memsz - (offset - s->p_vaddr))
            return true;
    }
    return false;
}

static void read_dynamic(struct object *o, const ElfW(Dyn) * d, size_t n)
{
    static const struct {
        ElfW(Sxword) tag;
        size_t member; // offset in struct object
        bool is_size;  // not an address
    } rows[] = {
        {DT_SYMTAB, offsetof(struct object, symbols), false},
        {DT_STRTAB, offsetof(struct object, strings), false},
        {DT_STRSZ, offsetof(struct object, string_bytes), true},
        {DT_GNU_HASH, offsetof(struct object, gnu_hash), false},
        {DT_HASH, offsetof(struct object, hash), false},
        {DT_VERSYM, offsetof(struct object, versions), false},
        {DT_JMPREL, offsetof(struct object, relocations[0]), false},
        {DT_PLTRELSZ, offsetof(struct object, relocation_bytes[0]), true},
        {DT_RELA, offsetof(struct object, relocations[1]), false},
        {DT_RELASZ, offsetof(struct object, relocation_bytes[1]), true},
    };
    for (; n && d->d_tag != DT_NULL; n--, d++) {
        // The loader has replaced the offsets with addresses in every object except the vDSO.
        uintptr_t value = d->d_un.d_ptr, at = value < o->base ? value + o->base : value;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            if (rows[i].tag == d->d_tag)
                memcpy((char *)o + rows[i].member, rows[i].is_size ? &value : &at, sizeof at);
        }
    }
}

static void read_segments(struct object *o, const struct dl_phdr_info *info)
{
    *o = (struct object){.path = info->dlpi_name,
                         .loads = info->dlpi_adds,
                         .unloads = info->dlpi_subs,
                         .base = info->dlpi_addr,
                         .start = UINTPTR_MAX,
                         .segments = info->dlpi_phdr,
                         .n_segments = info->dlpi_phnum};
    for (size_t i = 0; i < o->n_segments; i++) {
        const ElfW(Phdr) *s = &o->segments[i];
        uintptr_t from = o->base + s->p_vaddr, to = from + s->p_memsz;
        if (s->p_type == PT_LOAD) {
            o->start = from < o->start ? from : o->start;
            o->end = to > o->end ? to : o->end;
        } else if (s->p_type == PT_GNU_RELRO) {
            o->relro_start = from;
            o->relro_end = to;
        }
    }
}

void object_read(struct object *o, const struct dl_phdr_info *info)
{
    read_segments(o, info);
    for (size_t i = 0; i < o->n_segments; i++) {
        const ElfW(Phdr) *s = &o->segments[i];
        const void *at = (const void *)(o->base + s->p_vaddr);
        if (s->p_type == PT_DYNAMIC && object_contains(o, at, s->p_memsz))
            read_dynamic(o, at, s->p_memsz / sizeof(ElfW(Dyn)));
    }
    if (!object_contains(o, o->strings, o->string_bytes))
        o->symbols = NULL;
}

struct visit {
    bool (*visit)(const struct object *o, void *context);
    void *context;
};

static int visit_object(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct visit *v = data;
    struct object o;
    (void)size;
    object_read(&o, info);
    return v->visit(&o, v->context);
}

bool objects_visit(bool (*visit)(const struct object *o, void *context), void *context)
{
    return dl_iterate_phdr(visit_object, &(struct visit){visit, context});
}

// Returns the address of symbol `i` if the symbol is a definition of `name`, and is the default
// version or `found` is NULL. Otherwise returns `found`.
static void *choose_definition(const struct object *o, uint32_t i, unsigned type, const char *name,
                               void *found)
{
    const ElfW(Sym) *s = &o->symbols[i];
    bool hidden = object_contains(o, &o->versions[i], sizeof *o->versions) &&
                  (o->versions[i] & VERSION_HIDDEN);
    return object_contains(o, s, sizeof *s) && s->st_shndx != SHN_UNDEF &&
                   ELF64_ST_TYPE(s->st_info) == type && s->st_name < o->string_bytes &&
                   strcmp(o->strings + s->st_name, name) == 0 && (!found || !hidden)
               ? (void *)(o->base + s->st_value)
               : found;
}

// Searches all symbols. The second word of the older hash table is the number of symbols.
static void *search_symbols(const struct object *o, unsigned type, const char *name)
{
    uint32_t n = object_contains(o, o->hash, 2 * sizeof *o->hash) ? o->hash[1] : 0;
    void *found = NULL;
    for (uint32_t i = 0; i < n; i++)
        found = choose_definition(o, i, type, name, found);
    return found;
}

// Layout of the GNU hash table: number of buckets, index of the first symbol, filter size in words,
// shift, filter, buckets, hashes.
static void *find_definition(const struct object *o, unsigned type, const char *name)
{
    const uint32_t *head = o->gnu_hash;
    uint32_t hash = gnu_hash(name);
    void *found = NULL;
    if (!o->symbols)
        return NULL;
    if (!object_contains(o, head, 4 * sizeof *head) || !head[0])
        return search_symbols(o, type, name);
    const uint32_t *buckets = head + 4 + (size_t)head[2] * (sizeof(ElfW(Addr)) / sizeof *head);
    const uint32_t *hashes = buckets + head[0], *bucket = buckets + hash % head[0];
    uint32_t i = object_contains(o, bucket, sizeof *bucket) ? *bucket : 0;
    if (i < head[1])
        return NULL;
    for (;; i++) {
        const uint32_t *at = hashes + (i - head[1]);
        if (!object_contains(o, at, sizeof *at))
            break;
        if (((*at ^ hash) | 1) == 1)
            found = choose_definition(o, i, type, name, found);
        if (*at & 1)
            break;
    }
    return found;
}

void *object_find_function(const struct object *o, const char *name)
{
    return find_definition(o, STT_FUNC, name);
}

void *object_find_variable(const struct object *o, const char *name)
{
    return find_definition(o, STT_OBJECT, name);
}

void object_each_slot(const struct object *o,
                      void (*visit)(const struct object *o, const char *name, uintptr_t *slot,
                                    void *context),
                      void *context)
{
    for (unsigned k = 0; o->symbols && k < 2; k++) {
        size_t n = o->relocation_bytes[k] / sizeof(ElfW(Rela));
        if (!object_contains(o, o->relocations[k], n * sizeof(ElfW(Rela))))
            continue;
        for (size_t i = 0; i < n; i++) {
            const ElfW(Rela) *r = o->relocations[k] + i;
            const ElfW(Sym) *s = o->symbols + ELF64_R_SYM(r->r_info);
            uintptr_t *slot = (uintptr_t *)(o->base + r->r_offset);
            // Skip other relocations. They are for data, which the program may have changed since.
            if ((ELF64_R_TYPE(r->r_info) == JUMP_SLOT || ELF64_R_TYPE(r->r_info) == GLOB_DAT) &&
                object_contains(o, s, sizeof *s) && s->st_name < o->string_bytes &&
                object_contains(o, slot, sizeof *slot))
                visit(o, o->strings + s->st_name, slot, context);
        }
    }
}
