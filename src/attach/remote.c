#include "attach/remote.h"

#include "base/gnu_hash.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SEGMENTS = 64, MAX_OBJECTS = 65536, MAX_DYNAMIC = 1024, MAX_CHAIN = 1 << 20, VERSION_HIDDEN = 0x8000 };

// What is needed of an object's dynamic section.
struct tables {
    uint64_t symbols, strings, hash, versions;
};

bool remote_read(const struct remote *r, uint64_t at, void *to, size_t bytes)
{
    return pread(r->memory, to, bytes, (off_t)at) == (ssize_t)bytes;
}

bool remote_write(const struct remote *r, uint64_t at, const void *from, size_t bytes)
{
    return pwrite(r->memory, from, bytes, (off_t)at) == (ssize_t)bytes;
}

static int open_file(const struct remote *r, const char *name, int flags, struct err *e)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)r->pid, name);
    int fd = open(path, flags | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    if (errno == ENOENT || errno == ESRCH)
        return err_set(e, -ESRCH, "%ld: no such process", (long)r->pid);
    return err_set(e, -EACCES, "%ld: not permitted: %s", (long)r->pid, strerror(errno));
}

// The kernel's facts for the loader.
static int read_auxv(struct remote *r, uint64_t *segments, uint64_t *n_segments, struct err *e)
{
    int fd = open_file(r, "auxv", O_RDONLY, e);
    ElfW(auxv_t) a;
    if (fd < 0)
        return fd;
    while (read(fd, &a, sizeof a) == (ssize_t)sizeof a && a.a_type != AT_NULL) {
        *segments = a.a_type == AT_PHDR ? a.a_un.a_val : *segments;
        *n_segments = a.a_type == AT_PHNUM ? a.a_un.a_val : *n_segments;
        r->entry = a.a_type == AT_ENTRY ? a.a_un.a_val : r->entry;
        r->loader = a.a_type == AT_BASE ? a.a_un.a_val : r->loader;
    }
    close(fd);
    return 0;
}

static uint64_t find_r_debug(const struct remote *r, uint64_t dynamic)
{
    ElfW(Dyn) d;
    for (unsigned i = 0; dynamic && i < MAX_DYNAMIC; i++) {
        if (!remote_read(r, dynamic + i * sizeof d, &d, sizeof d) || d.d_tag == DT_NULL)
            return 0;
        if (d.d_tag == DT_DEBUG)
            return d.d_un.d_ptr;
    }
    return 0;
}

static bool is_same_machine(const struct remote *r)
{
    ElfW(Ehdr) own, other;
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)r->pid);
    int a = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), b = open(path, O_RDONLY | O_CLOEXEC);
    bool known = a >= 0 && b >= 0 && read(a, &own, sizeof own) == (ssize_t)sizeof own &&
                 read(b, &other, sizeof other) == (ssize_t)sizeof other;
    if (a >= 0)
        close(a);
    if (b >= 0)
        close(b);
    return known && own.e_machine == other.e_machine && own.e_ident[EI_CLASS] == other.e_ident[EI_CLASS];
}

// The loader has put addresses in place of offsets, but in the kernel's own object.
static bool read_tables(const struct remote *r, const struct link_map *m, struct tables *t)
{
    *t = (struct tables){0};
    for (unsigned i = 0; i < MAX_DYNAMIC; i++) {
        ElfW(Dyn) d;
        if (!remote_read(r, (uintptr_t)m->l_ld + i * sizeof d, &d, sizeof d))
            return false;
        uint64_t at = d.d_un.d_ptr < m->l_addr ? d.d_un.d_ptr + m->l_addr : d.d_un.d_ptr;
        if (d.d_tag == DT_NULL)
            break;
        t->symbols = d.d_tag == DT_SYMTAB ? at : t->symbols;
        t->strings = d.d_tag == DT_STRTAB ? at : t->strings;
        t->hash = d.d_tag == DT_GNU_HASH ? at : t->hash;
        t->versions = d.d_tag == DT_VERSYM ? at : t->versions;
    }
    return t->symbols && t->strings && t->hash;
}

static bool is_called(const struct remote *r, const struct tables *t, const ElfW(Sym) * s, const char *name)
{
    char text[64];
    size_t n = strlen(name) + 1;
    return n <= sizeof text && remote_read(r, t->strings + s->st_name, text, n) && memcmp(text, name, n) == 0;
}

// Symbol `i`, if it is the function: its address, and whether that is of an old version.
static uint64_t read_function(const struct remote *r, const struct tables *t, uint32_t i, const char *name,
                              bool *hidden)
{
    ElfW(Sym) s;
    ElfW(Half) version = 0;
    if (!remote_read(r, t->symbols + i * sizeof s, &s, sizeof s) || s.st_shndx == SHN_UNDEF ||
        ELF64_ST_TYPE(s.st_info) != STT_FUNC || !is_called(r, t, &s, name))
        return 0;
    if (t->versions && !remote_read(r, t->versions + i * sizeof version, &version, sizeof version))
        version = 0;
    *hidden = version & VERSION_HIDDEN;
    return s.st_value;
}

// The table is number of buckets, number of the first symbol, words of the filter, shift; filter; buckets; hashes. Returns the
// value of the symbol, 0 when there is none.
static uint64_t find_function(const struct remote *r, const struct tables *t, const char *name)
{
    uint32_t head[4], i = 0, hash = gnu_hash(name);
    uint64_t found = 0;
    if (!remote_read(r, t->hash, head, sizeof head) || !head[0])
        return 0;
    uint64_t buckets = t->hash + sizeof head + (uint64_t)head[2] * sizeof(ElfW(Addr));
    uint64_t hashes = buckets + (uint64_t)head[0] * sizeof i;
    if (!remote_read(r, buckets + hash % head[0] * sizeof i, &i, sizeof i) || i < head[1])
        return 0;
    for (unsigned k = 0; k < MAX_CHAIN; k++, i++) {
        uint32_t h;
        bool hidden = false;
        if (!remote_read(r, hashes + (uint64_t)(i - head[1]) * sizeof h, &h, sizeof h))
            return found;
        uint64_t value = ((h ^ hash) | 1) == 1 ? read_function(r, t, i, name, &hidden) : 0;
        if (value && (!found || !hidden))
            found = value;
        if (h & 1)
            return found;
    }
    return found;
}

// Moves to the next object, or to the first from NULL. False at the end.
static bool next_object(const struct remote *r, struct link_map *m, unsigned number)
{
    uint64_t at = (uintptr_t)m->l_next;
    if (number == 0 && !remote_read(r, r->r_debug + offsetof(struct r_debug, r_map), &at, sizeof at))
        return false;
    return at && number < MAX_OBJECTS && remote_read(r, at, m, sizeof *m);
}

uint64_t remote_function(const struct remote *r, const char *name)
{
    struct link_map m = {0};
    struct tables t;
    for (unsigned i = 0; next_object(r, &m, i); i++) {
        uint64_t value = read_tables(r, &m, &t) ? find_function(r, &t, name) : 0;
        if (value)
            return m.l_addr + value;
    }
    return 0;
}

static uint64_t find_libc(const struct remote *r)
{
    struct link_map m = {0};
    struct tables t;
    for (unsigned i = 0; next_object(r, &m, i); i++) {
        if (read_tables(r, &m, &t) && find_function(r, &t, "gnu_get_libc_version"))
            return m.l_addr;
    }
    return 0;
}

static int read_program(struct remote *r, struct err *e)
{
    ElfW(Phdr) s[MAX_SEGMENTS];
    uint64_t at = 0, n = 0, base = 0, dynamic = 0;
    int rc = read_auxv(r, &at, &n, e);
    if (rc < 0)
        return rc;
    if (!is_same_machine(r))
        return err_set(e, -ENOTSUP, "%ld: is not a program for the machine that heaptape was built for", (long)r->pid);
    if (n > MAX_SEGMENTS || !remote_read(r, at, s, n * sizeof *s))
        return err_set(e, -EACCES, "%ld: its memory cannot be read: %s", (long)r->pid, strerror(errno));
    for (uint64_t i = 0; i < n; i++)
        base = s[i].p_type == PT_PHDR ? at - s[i].p_vaddr : base;
    for (uint64_t i = 0; i < n; i++)
        dynamic = s[i].p_type == PT_DYNAMIC ? base + s[i].p_vaddr : dynamic;
    r->r_debug = r->loader ? find_r_debug(r, dynamic) : 0;
    if (!r->r_debug)
        return err_set(e, -ENOTSUP, "%ld: is statically linked, or has not finished starting", (long)r->pid);
    r->libc = find_libc(r);
    if (!r->libc)
        return err_set(e, -ENOTSUP, "%ld: its C library is not glibc", (long)r->pid);
    return 0;
}

int remote_open(struct remote *r, pid_t pid, struct err *e)
{
    *r = (struct remote){.pid = pid, .memory = -1};
    int rc = open_file(r, "mem", O_RDWR, e);
    if (rc < 0)
        return rc;
    r->memory = rc;
    rc = read_program(r, e);
    if (rc < 0)
        remote_close(r);
    return rc;
}

void remote_close(struct remote *r)
{
    if (r->memory >= 0)
        close(r->memory);
    r->memory = -1;
}

// The object's segments, which begin with its ELF header.
static bool is_within(const struct remote *r, uint64_t base, uint64_t address)
{
    ElfW(Ehdr) h;
    ElfW(Phdr) s;
    if (!remote_read(r, base, &h, sizeof h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    for (unsigned i = 0; i < h.e_phnum; i++) {
        if (remote_read(r, base + h.e_phoff + i * sizeof s, &s, sizeof s) && s.p_type == PT_LOAD &&
            address - base - s.p_vaddr < s.p_memsz)
            return true;
    }
    return false;
}

bool remote_is_libc(const struct remote *r, uint64_t address)
{
    return is_within(r, r->loader, address) || is_within(r, r->libc, address);
}
