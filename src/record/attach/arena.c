#include "record/attach/arena.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_VERSION = 35, // 2.35 introduced hp_flags
    LAST_VERSION = 40,  // 2.42 changes the thread caches
    CACHED_MAX = 1032,
    MAX_CACHED = 127, // maximum number of blocks per size
    MAX_DATA = 1 << 20,
    PAGE = 4096,
};

bool arena_is_known(const char *version)
{
    int minor = 0, end = 0;
    return sscanf(version, "2.%d%n", &minor, &end) == 1 && !version[end] &&
           minor >= FIRST_VERSION && minor <= LAST_VERSION;
}

int arena_read_data(struct arena_data *d, const struct remote *r)
{
    ElfW(Ehdr) h;
    ElfW(Phdr) s;
    *d = (struct arena_data){0};
    if (!remote_read(r, r->libc, &h, sizeof h))
        return -EACCES;
    for (unsigned i = 0; i < h.e_phnum; i++) {
        if (!remote_read(r, r->libc + h.e_phoff + i * sizeof s, &s, sizeof s))
            return -EACCES;
        if (s.p_type == PT_LOAD && s.p_flags & PF_W && s.p_memsz < MAX_DATA) {
            d->start = (r->libc + s.p_vaddr + 7) & ~7ull;
            d->end = r->libc + s.p_vaddr + s.p_memsz;
        }
    }
    size_t bytes = d->end - d->start;
    d->bytes = malloc(bytes + 1);
    if (!d->bytes)
        return -ENOMEM;
    return bytes && remote_read(r, d->start, d->bytes, bytes) ? 0 : -EACCES;
}

unsigned arena_find_parameters(const struct arena_data *d, struct arena_parameters *to)
{
    unsigned n = 0;
    for (uint64_t at = d->start; at + sizeof *to <= d->end; at += 8) {
        struct arena_parameters p;
        memcpy(&p, d->bytes + (at - d->start), sizeof p);
        if (p.cached_sizes != ARENA_CACHED_SIZES || p.cached_max != CACHED_MAX ||
            p.cached_count > MAX_CACHED || p.n_mmaps < 0 || p.max_n_mmaps < p.n_mmaps ||
            p.mmapped_mem > p.max_mmapped_mem || p.mmapped_mem % PAGE)
            continue;
        *to = p;
        n++;
    }
    return n;
}
