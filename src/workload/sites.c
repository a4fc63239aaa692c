#include "workload/sites.h"

#include "base/bytes.h"
#include "base/varint.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void workload_sites_release(struct workload_sites *s)
{
    for (size_t i = 0; i < s->n_modules; i++) {
        free(s->modules[i].build_id);
        free(s->modules[i].path);
    }
    free(s->modules);
    free(s->frames);
    free(s->sites);
    names_release(&s->names);
    *s = (struct workload_sites){0};
}

static int add_module(struct workload_sites *s, const struct workload_module *where, const char *id,
                      size_t id_bytes, const char *path, size_t path_bytes)
{
    if (HT_GROW(&s->modules, &s->modules_capacity, s->n_modules + 1) < 0)
        return -ENOMEM;
    struct workload_module m = *where;
    m.build_id = strndup(id, id_bytes);
    m.path = strndup(path, path_bytes);
    if (!m.build_id || !m.path) {
        free(m.build_id);
        free(m.path);
        return -ENOMEM;
    }
    s->modules[s->n_modules++] = m;
    return 0;
}

int workload_sites_module(struct workload_sites *s, const struct workload_module *where,
                          const char *text, size_t n)
{
    const char *space = memchr(text, ' ', n);
    size_t id = space ? (size_t)(space - text) : n, path = space ? id + 1 : n;
    return add_module(s, where, text, id, text + path, n - path);
}

static uint32_t module_of(const struct workload_sites *s, uint64_t address)
{
    for (size_t i = s->n_modules; i > 0; i--) {
        const struct workload_module *m = &s->modules[i - 1];
        if (address - m->start < m->bytes)
            return (uint32_t)i;
    }
    return 0;
}

// Extends the array of sites up to site `number`.
static int reserve_sites(struct workload_sites *s, size_t number)
{
    return HT_EXTEND(&s->sites, &s->n_sites, &s->sites_capacity, number);
}

struct workload_frame workload_sites_locate(const struct workload_sites *s, uint64_t address)
{
    return (struct workload_frame){address, module_of(s, address)};
}

// Reserves space for a site's frames. Sets *to to NULL if the site is already defined or has no
// frames. Returns 0 or -ENOMEM.
static int begin_site(struct workload_sites *s, uint32_t number, uint32_t n,
                      struct workload_frame **to)
{
    if (reserve_sites(s, number) < 0 ||
        HT_GROW(&s->frames, &s->frames_capacity, s->n_frames + n) < 0)
        return -ENOMEM;
    struct workload_site *site = &s->sites[number - 1];
    *to = site->n || !n ? NULL : s->frames + s->n_frames;
    if (site->n)
        return 0;
    *site = (struct workload_site){s->n_frames, n};
    s->n_frames += n;
    return 0;
}

int workload_sites_define(struct workload_sites *s, uint32_t number, const char *text, uint32_t n)
{
    struct workload_frame *to;
    int rc = begin_site(s, number, n, &to);
    for (uint32_t i = 0; rc == 0 && to && i < n; i++)
        to[i] = workload_sites_locate(s, get_u64((const uint8_t *)text + 8 * (size_t)i));
    return rc;
}

int workload_sites_set(struct workload_sites *s, uint32_t number,
                       const struct workload_frame *frames, uint32_t n)
{
    struct workload_frame *to;
    int rc = begin_site(s, number, n, &to);
    if (rc == 0 && to)
        memcpy(to, frames, n * sizeof *frames);
    return rc;
}

int workload_sites_copy(struct workload_sites *s, uint32_t number,
                        const struct workload_sites *from, uint32_t from_number, uint32_t shift)
{
    const struct workload_site *site = &from->sites[from_number - 1];
    if (reserve_sites(s, number) < 0 ||
        HT_GROW(&s->frames, &s->frames_capacity, s->n_frames + site->n) < 0)
        return -ENOMEM;
    s->sites[number - 1] = (struct workload_site){s->n_frames, site->n};
    for (uint32_t i = 0; i < site->n; i++) {
        struct workload_frame f = from->frames[site->first + i];
        f.module += f.module ? shift : 0;
        s->frames[s->n_frames++] = f;
    }
    return 0;
}

int workload_sites_copy_modules(struct workload_sites *s, const struct workload_sites *from)
{
    int rc = names_copy(&s->names, &from->names, (uint32_t)s->n_modules);
    for (size_t i = 0; rc == 0 && i < from->n_modules; i++) {
        const struct workload_module *m = &from->modules[i];
        rc = add_module(s, m, m->build_id, strlen(m->build_id), m->path, strlen(m->path));
    }
    return rc;
}

int workload_sites_copy_all(struct workload_sites *s, const struct workload_sites *from)
{
    int rc = 0;
    for (uint32_t i = 1; rc == 0 && i <= from->n_sites; i++)
        rc = workload_sites_copy(s, i, from, i, 0);
    return rc < 0 ? rc : workload_sites_copy_modules(s, from);
}

// Finds the name of the call instruction, which ends just before the return address.
static const struct names_entry *name_at(const struct names_index *x, uint32_t module,
                                         const struct workload_frame *f)
{
    return f->address ? names_find(x, module, f->address - 1) : NULL;
}

const struct names_entry *workload_sites_name(const struct names_index *x,
                                              const struct workload_frame *f)
{
    return f->module ? name_at(x, f->module, f) : NULL;
}

const struct names_entry *workload_sites_made_name(const struct names_index *x,
                                                   const struct workload_frame *f)
{
    return name_at(x, 0, f);
}

bool workload_sites_is_made(const struct workload_sites *s, const struct workload_frame *f)
{
    const char *path = f->module ? s->modules[f->module - 1].path : "";
    return path[0] != '/' || strncmp(path, "/memfd:", 7) == 0 || strncmp(path, "/dev/", 5) == 0;
}

static int copy_name(struct names *to, const struct names *from, const struct names_entry *e,
                     const struct workload_frame *f)
{
    int rc = names_begin(to, f->module, f->address - 1, 1);
    for (uint32_t i = 0; rc == 0 && i < e->n; i++) {
        const struct names_function *g = &from->functions[e->first + i];
        rc = names_function(to, names_text(from, g->function), NAMES_TEXT_BYTES,
                            names_text(from, g->file), NAMES_TEXT_BYTES, g->line);
    }
    return rc;
}

int workload_sites_used_names(const struct workload_sites *s, struct names *to)
{
    struct names_index x;
    struct map seen = {0};
    int rc = s->names.n_entries ? names_index_init(&x, &s->names) : 1;
    if (rc)
        return rc < 0 ? rc : 0;
    for (size_t i = 0; rc == 0 && i < s->n_frames; i++) {
        const struct workload_frame *f = &s->frames[i];
        const struct names_entry *e = workload_sites_name(&x, f);
        if (!e && workload_sites_is_made(s, f))
            e = workload_sites_made_name(&x, f);
        uint64_t key = workload_sites_key(f);
        if (!e || map_get(&seen, key))
            continue;
        rc = map_put(&seen, key, 1) ?: copy_name(to, &s->names, e, f);
    }
    names_index_release(&x);
    map_release(&seen);
    return rc;
}

static int put_text(struct buf *b, const char *text)
{
    size_t n = strlen(text);
    return buf_put_varint(b, n) || buf_put(b, text, n) ? -ENOMEM : 0;
}

static int put_modules(struct buf *b, const struct workload_sites *s, size_t *at)
{
    size_t n = 0, bytes = 0;
    while (*at + n < s->n_modules && bytes < WORKLOAD_SITES_BYTES / 2) {
        bytes += strlen(s->modules[*at + n].path) + 4 * (size_t)VARINT_MAX_BYTES;
        n++;
    }
    int rc = buf_put_varint(b, n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct workload_module *m = &s->modules[*at + i];
        rc = buf_put_varint(b, m->start) || buf_put_varint(b, m->bytes) ||
             buf_put_varint(b, m->offset) || put_text(b, m->build_id) || put_text(b, m->path);
    }
    *at += n;
    return rc ? -ENOMEM : 0;
}

static int put_site(struct buf *b, const struct workload_sites *s, const struct workload_site *site,
                    uint64_t *last)
{
    int rc = buf_put_varint(b, site->n);
    for (uint32_t i = 0; rc == 0 && i < site->n; i++) {
        const struct workload_frame *f = &s->frames[site->first + i];
        rc = buf_put_varint(b, f->module) ||
             buf_put_varint(b, zigzag_put((int64_t)(f->address - *last)));
        *last = f->address;
    }
    return rc ? -ENOMEM : 0;
}

int workload_sites_put(struct buf *b, const struct workload_sites *s, size_t *module, size_t *site)
{
    size_t n = 0, frames = 0;
    uint64_t last = 0;
    int rc = put_modules(b, s, module);
    // Sites refer only to modules in this frame or earlier ones, so the modules come first.
    bool all = *module == s->n_modules;
    while (all && *site + n < s->n_sites && frames < WORKLOAD_SITES_BYTES / 2 / VARINT_MAX_BYTES)
        frames += 1 + s->sites[*site + n++].n;
    rc |= buf_put_varint(b, n);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = put_site(b, s, &s->sites[*site + i], &last);
    *site += n;
    return rc ? -ENOMEM : 0;
}

static int get_modules(struct varint_source *from, struct workload_sites *s)
{
    int rc = 0;
    for (uint64_t n = varint_source_number(from); rc == 0 && !from->bad && n > 0; n--) {
        size_t id_bytes, path_bytes;
        struct workload_module m = {.start = varint_source_number(from)};
        m.bytes = varint_source_number(from);
        m.offset = varint_source_number(from);
        const char *id = varint_source_text(from, SIZE_MAX, &id_bytes),
                   *path = varint_source_text(from, SIZE_MAX, &path_bytes);
        rc = from->bad ? -EBADMSG : add_module(s, &m, id, id_bytes, path, path_bytes);
    }
    return rc;
}

static int get_site(struct varint_source *from, struct workload_sites *s, uint64_t *last)
{
    uint64_t n = varint_source_number(from);
    if (from->bad || n > (size_t)(from->end - from->at) / 2)
        return -EBADMSG;
    if (reserve_sites(s, s->n_sites + 1) < 0 ||
        HT_GROW(&s->frames, &s->frames_capacity, s->n_frames + n) < 0)
        return -ENOMEM;
    s->sites[s->n_sites - 1] = (struct workload_site){s->n_frames, (uint32_t)n};
    for (uint64_t i = 0; i < n; i++) {
        uint64_t module = varint_source_number(from);
        *last += (uint64_t)zigzag_get(varint_source_number(from));
        if (from->bad || module > s->n_modules)
            return -EBADMSG;
        s->frames[s->n_frames++] = (struct workload_frame){*last, (uint32_t)module};
    }
    return 0;
}

int workload_sites_get(const uint8_t *at, size_t n, struct workload_sites *s)
{
    struct varint_source from = {at, at + n, false};
    uint64_t last = 0;
    int rc = get_modules(&from, s);
    uint64_t sites = rc == 0 ? varint_source_number(&from) : 0;
    // Site numbers must fit in an op's `value`, so no valid file has UINT32_MAX sites.
    if (rc == 0 && s->n_sites + sites > UINT32_MAX)
        return -EBADMSG;
    for (; rc == 0 && sites > 0; sites--)
        rc = get_site(&from, s, &last);
    return rc < 0 ? rc : from.bad || from.at != from.end ? -EBADMSG : 0;
}
