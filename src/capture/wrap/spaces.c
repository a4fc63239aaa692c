#include "capture/wrap/spaces.h"

#include "capture/libc/libc.h"
#include "capture/spool/entries.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const struct space *spaces_next(const struct space *at)
{
    return libc_objects()->r_version > 1 ? at->next : NULL;
}

bool spaces_read(struct object *o, const struct link_map *m)
{
    unsigned char resident;
    bool is_mapped = m->l_addr && syscall(SYS_mincore, m->l_addr, 1l, &resident) == 0;
    if (!is_mapped || memcmp((const void *)m->l_addr, ELFMAG, SELFMAG) != 0)
        return false;
    libc_read_object(o, m);
    return true;
}

static const struct link_map *find_in_space(const struct space *at, uintptr_t base)
{
    const struct link_map *m = at->list.r_map;
    while (m && m->l_addr != base)
        m = m->l_next;
    return m;
}

bool spaces_is_loaded(uintptr_t base)
{
    const struct space *at = (const struct space *)libc_objects();
    bool found = false;
    for (size_t i = 0; i < ENTRIES_NAMESPACES && at && !found; i++, at = spaces_next(at))
        found = find_in_space(at, base);
    return found;
}

bool spaces_find(uintptr_t base, struct object *o)
{
    const struct space *at = (const struct space *)libc_objects();
    const struct link_map *m = NULL;
    for (size_t i = 1; i < ENTRIES_NAMESPACES && at && !m; i++) {
        at = spaces_next(at);
        m = at ? find_in_space(at, base) : NULL;
    }
    return m && base != libc_objects()->r_ldbase && spaces_read(o, m);
}
