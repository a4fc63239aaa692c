#include "record/attach/remote.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/gnu_hash.h"
#include "record/attach/status.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_SEGMENTS = 64,
    MAX_OBJECTS = 65536,
    MAX_DYNAMIC = 1024,
    DYNAMIC_AT_ONCE = 8,
    MAX_CHAIN = 1 << 20,
    CHAIN_WORDS = 16, // hash values that are read at once
    PAGE = 4096,
    VERSION_HIDDEN = 0x8000,
    LIST_TRIES = 50, // attempts to read the loader's list in a consistent state
    LIST_PAUSE_NS = 200000,
    START_PAUSE_NS = 1000000,
};

bool remote_read(const struct remote *r, uint64_t at, void *to, size_t bytes)
{
    return pread(r->memory, to, bytes, (off_t)at) == (ssize_t)bytes;
}

bool remote_write(const struct remote *r, uint64_t at, const void *from, size_t bytes)
{
    return pwrite(r->memory, from, bytes, (off_t)at) == (ssize_t)bytes;
}

// After exit or exec, the kernel returns 0 for every transfer. Before that, reading address 0
// fails, because nothing is mapped there.
bool remote_is_over(const struct remote *r)
{
    uint8_t byte;
    return pread(r->memory, &byte, sizeof byte, 0) == 0;
}

int remote_set_over(const struct remote *r, struct err *e)
{
    if (e)
        *e = (struct err){0};
    return err_set(e, -ESRCH, "%ld: the process ended, or executed another program", (long)r->pid);
}

static int open_file(const struct remote *r, const char *name, int flags, struct err *e)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)r->pid, name);
    int fd = open(path, flags | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    // The kernel refuses to open the files of an exiting process.
    char state = status_letter(r->pid, r->pid, "State");
    if (errno == ENOENT || errno == ESRCH || !state || state == 'Z' || state == 'X')
        return err_set(e, -ESRCH, "%ld: no such process", (long)r->pid);
    return status_denied(r->pid, e);
}

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
    return known && own.e_machine == other.e_machine &&
           own.e_ident[EI_CLASS] == other.e_ident[EI_CLASS];
}

// Reads the dynamic section. If its segment ends early, fills the rest of *to with zeros.
static bool read_dynamic(const struct remote *r, uint64_t at, ElfW(Dyn) * to)
{
    ssize_t n = pread(r->memory, to, DYNAMIC_AT_ONCE * sizeof *to, (off_t)at);
    for (size_t i = n < 0 ? 0 : (size_t)n / sizeof *to; i < DYNAMIC_AT_ONCE; i++)
        to[i] = (ElfW(Dyn)){0};
    return n >= (ssize_t)sizeof *to;
}

// Reads the symbol tables. The loader has relocated the pointers to them, except in the vDSO.
static bool read_tables(const struct remote *r, const struct link_map *m, struct remote_object *o)
{
    ElfW(Dyn) all[DYNAMIC_AT_ONCE];
    *o = (struct remote_object){.base = m->l_addr};
    for (unsigned i = 0; i < MAX_DYNAMIC; i++) {
        const ElfW(Dyn) *d = &all[i % DYNAMIC_AT_ONCE];
        if (i % DYNAMIC_AT_ONCE == 0 && !read_dynamic(r, (uintptr_t)m->l_ld + i * sizeof *d, all))
            return false;
        uint64_t at = d->d_un.d_ptr < m->l_addr ? d->d_un.d_ptr + m->l_addr : d->d_un.d_ptr;
        if (d->d_tag == DT_NULL)
            break;
        o->symbols = d->d_tag == DT_SYMTAB ? at : o->symbols;
        o->strings = d->d_tag == DT_STRTAB ? at : o->strings;
        o->hash = d->d_tag == DT_GNU_HASH ? at : o->hash;
        o->versions = d->d_tag == DT_VERSYM ? at : o->versions;
    }
    return o->symbols && o->strings && o->hash &&
           remote_read(r, o->hash, o->head, sizeof o->head) && o->head[0];
}

static bool has_name(const struct remote *r, const struct remote_object *o, const ElfW(Sym) * s,
                     const char *name)
{
    char text[64];
    size_t n = strlen(name) + 1;
    return n <= sizeof text && remote_read(r, o->strings + s->st_name, text, n) &&
           memcmp(text, name, n) == 0;
}

// Returns the symbol's value if the symbol is the function `name`, else 0. Sets *hidden if the
// symbol is not the default version.
static uint64_t read_function(const struct remote *r, const struct remote_object *o, uint32_t i,
                              const char *name, bool *hidden)
{
    ElfW(Sym) s;
    ElfW(Half) version = 0;
    if (!remote_read(r, o->symbols + i * sizeof s, &s, sizeof s) || s.st_shndx == SHN_UNDEF ||
        ELF64_ST_TYPE(s.st_info) != STT_FUNC || !has_name(r, o, &s, name))
        return 0;
    if (o->versions && !remote_read(r, o->versions + i * sizeof version, &version, sizeof version))
        version = 0;
    *hidden = version & VERSION_HIDDEN;
    return s.st_value;
}

// Returns false if the filter of the GNU hash table shows that no symbol has this hash. Then one
// read is enough, which matters because threads may be stopped.
static bool may_define(const struct remote *r, const struct remote_object *o, uint32_t hash)
{
    uint64_t word = 0;
    uint32_t words = o->head[2], shift = o->head[3] % 32;
    uint64_t at =
        o->hash + sizeof o->head + (uint64_t)(words ? hash / 64 % words : 0) * sizeof word;
    return words && remote_read(r, at, &word, sizeof word) && word >> hash % 64 & 1 &&
           word >> (hash >> shift) % 64 & 1;
}

// Searches the GNU hash table. Its layout is: number of buckets, index of the first symbol, filter
// size in words, shift, filter, buckets, hashes. Returns the symbol's value, or 0.
static uint64_t find_function(const struct remote *r, const struct remote_object *o,
                              const char *name)
{
    const uint32_t *head = o->head;
    uint32_t i = 0, hash = gnu_hash(name);
    uint64_t found = 0;
    uint64_t buckets = o->hash + sizeof o->head + (uint64_t)head[2] * sizeof(ElfW(Addr));
    uint64_t hashes = buckets + (uint64_t)head[0] * sizeof i;
    if (!may_define(r, o, hash) ||
        !remote_read(r, buckets + hash % head[0] * sizeof i, &i, sizeof i) || i < head[1])
        return 0;
    uint32_t chain[CHAIN_WORDS];
    ssize_t bytes = 0;
    for (unsigned k = 0; k < MAX_CHAIN; k++, i++) {
        unsigned at = k % CHAIN_WORDS;
        bool hidden = false;
        if (at == 0)
            bytes = pread(r->memory, chain, sizeof chain,
                          (off_t)(hashes + (uint64_t)(i - head[1]) * sizeof *chain));
        if (bytes < (ssize_t)((at + 1) * sizeof *chain))
            return found;
        uint64_t value = ((chain[at] ^ hash) | 1) == 1 ? read_function(r, o, i, name, &hidden) : 0;
        if (value && (!found || !hidden))
            found = value;
        if (chain[at] & 1)
            return found;
    }
    return found;
}

// Finds the tables of an object, in the cache if possible.
static bool find_tables(const struct remote *r, uint64_t at, const struct link_map *map,
                        struct remote_object *o)
{
    char name[REMOTE_NAME] = "";
    if (pread(r->memory, name, sizeof name - 1, (off_t)(uintptr_t)map->l_name) < 0)
        return false;
    for (size_t i = 0; i < r->n_objects; i++) {
        *o = r->objects[i];
        // Also compare the names, because another object may have been loaded at the same
        // addresses.
        if (o->map == at && o->base == map->l_addr && strcmp(o->name, name) == 0)
            return true;
    }
    if (!read_tables(r, map, o))
        return false;
    o->map = at;
    strcpy(o->name, name);
    return true;
}

// Appends the objects in the loader's list. Sets *whole to true if the list was consistent.
static int list_objects(const struct remote *r, struct remote *to, bool *whole)
{
    struct r_debug before, after;
    struct link_map m = {0};
    uint64_t previous = 0;
    if (!remote_read(r, r->r_debug, &before, sizeof before))
        return -EACCES;
    uint64_t at = (uintptr_t)before.r_map;
    *whole = before.r_state == RT_CONSISTENT;
    for (unsigned i = 0; at && i < MAX_OBJECTS && remote_read(r, at, &m, sizeof m); i++) {
        struct remote_object o;
        *whole = *whole && (uintptr_t)m.l_prev == previous;
        if (find_tables(r, at, &m, &o)) {
            if (HT_APPEND(&to->objects, &to->n_objects, &to->capacity, o) < 0)
                return -ENOMEM;
        }
        previous = at;
        at = (uintptr_t)m.l_next;
    }
    *whole = *whole && !at && remote_read(r, r->r_debug, &after, sizeof after) &&
             after.r_state == RT_CONSISTENT;
    return 0;
}

// Returns 0 on success, 1 if the list is being changed (perhaps by a stopped thread), or a negative
// errno.
static int read_objects(struct remote *r)
{
    bool whole = false;
    for (unsigned i = 0; i < LIST_TRIES && !whole; i++) {
        struct remote now = {0};
        if (i > 0)
            nanosleep(&(struct timespec){.tv_nsec = LIST_PAUSE_NS}, NULL);
        int rc = list_objects(r, &now, &whole);
        if (rc < 0) {
            free(now.objects);
            return rc;
        }
        free(r->objects);
        r->objects = now.objects;
        r->n_objects = now.n_objects;
        r->capacity = now.capacity;
    }
    return !whole;
}

uint64_t remote_next_space(const struct remote *r, uint64_t list, struct remote_object *o)
{
    struct r_debug first;
    struct remote space = *r;
    *o = (struct remote_object){0};
    // The address of the next list follows the struct.
    if (!remote_read(r, r->r_debug, &first, sizeof first) || first.r_version < 2 ||
        !remote_read(r, list + sizeof first, &space.r_debug, sizeof space.r_debug) ||
        !space.r_debug)
        return 0;
    space.objects = NULL;
    space.n_objects = space.capacity = 0;
    read_objects(&space);
    for (size_t i = 0; i < space.n_objects && !o->base; i++) {
        if (find_function(&space, &space.objects[i], "malloc"))
            *o = space.objects[i];
    }
    free(space.objects);
    return space.r_debug;
}

uint64_t remote_first_function(const struct remote *r, const char *name)
{
    for (size_t i = 0; i < r->n_objects; i++) {
        uint64_t value = find_function(r, &r->objects[i], name);
        if (value)
            return r->objects[i].base + value;
    }
    return 0;
}

uint64_t remote_function(struct remote *r, const char *name)
{
    for (size_t k = 0; k < r->n_found; k++) {
        if (strcmp(r->found[k].name, name) == 0)
            return r->found[k].at;
    }
    uint64_t value = remote_first_function(r, name);
    if (value && r->n_found < REMOTE_FOUND)
        r->found[r->n_found++] = (struct remote_found){name, value};
    return value;
}

uint64_t remote_last_function(struct remote *r, const char *name)
{
    if (read_objects(r) < 0)
        return 0;
    for (size_t i = r->n_objects; i-- > 0;) {
        uint64_t value = find_function(r, &r->objects[i], name);
        if (value)
            return r->objects[i].base + value;
    }
    return 0;
}

size_t remote_count(const struct remote *r, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_objects; i++)
        n += find_function(r, &r->objects[i], name) != 0;
    return n;
}

static uint64_t find_libc(const struct remote *r)
{
    for (size_t i = 0; i < r->n_objects; i++) {
        const struct remote_object *o = &r->objects[i];
        if (find_function(r, o, o->base == r->loader ? "dlopen" : "gnu_get_libc_version"))
            return o->base;
    }
    return 0;
}

// Finds the loader and the libc of the program. Sets *wait if the loader is not ready yet, or if
// the process has called exec since remote_open.
static int read_program(struct remote *r, bool *wait, struct err *e)
{
    ElfW(Phdr) s[MAX_SEGMENTS];
    uint64_t at = 0, n = 0, base = 0, dynamic = 0;
    int rc = read_auxv(r, &at, &n, e);
    if (rc < 0)
        return rc;
    if (!is_same_machine(r))
        return err_set(e, -ENOTSUP,
                       "%ld: is not a program for the machine that heaptape was built for",
                       (long)r->pid);
    if (n > MAX_SEGMENTS || !remote_read(r, at, s, n * sizeof *s)) {
        *wait = remote_is_over(r);
        return *wait ? remote_set_over(r, e)
                     : err_set(e, -EACCES, "%ld: its memory cannot be read", (long)r->pid);
    }
    for (uint64_t i = 0; i < n; i++)
        base = s[i].p_type == PT_PHDR ? at - s[i].p_vaddr : base;
    for (uint64_t i = 0; i < n; i++) {
        dynamic = s[i].p_type == PT_DYNAMIC ? base + s[i].p_vaddr : dynamic;
        r->tls_bytes = s[i].p_type == PT_TLS ? s[i].p_memsz : r->tls_bytes;
    }
    // Wait if the auxiliary vector has not been written yet, or the loader has not run.
    *wait = !at || r->loader;
    r->r_debug = r->loader ? find_r_debug(r, dynamic) : 0;
    if (!r->r_debug)
        return err_set(e, -ENOTSUP,
                       *wait ? "%ld: has not finished starting" : "%ld: is statically linked",
                       (long)r->pid);
    rc = read_objects(r);
    if (rc == -ENOMEM)
        return err_no_memory(e, NULL);
    r->libc = find_libc(r);
    bool over = !r->libc && remote_is_over(r);
    *wait = over || rc != 0 || !r->n_objects;
    if (over)
        return remote_set_over(r, e);
    if (!r->libc)
        return err_set(e, -ENOTSUP,
                       "%ld: its C library is neither glibc nor musl (start the program with "
                       "'heaptape record')",
                       (long)r->pid);
    return 0;
}

// Time limit for loading a new program.
#define START_NS 2000000000u

static int try_open(struct remote *r, pid_t pid, bool *wait, struct err *e)
{
    *r = (struct remote){.pid = pid, .memory = -1};
    *wait = false;
    int rc = open_file(r, "mem", O_RDWR, e);
    if (rc < 0)
        return rc;
    r->memory = rc;
    rc = read_program(r, wait, e);
    if (rc < 0)
        remote_close(r);
    return rc;
}

int remote_open(struct remote *r, pid_t pid, struct err *e)
{
    struct err last = {0};
    bool wait;
    int rc = try_open(r, pid, &wait, &last);
    for (uint64_t start = clock_monotonic_ns();
         rc < 0 && wait && clock_monotonic_ns() - start < START_NS;) {
        nanosleep(&(struct timespec){.tv_nsec = START_PAUSE_NS}, NULL);
        last = (struct err){0};
        rc = try_open(r, pid, &wait, &last);
    }
    return rc < 0 ? err_set(e, rc, "%s", last.text) : rc;
}

void remote_close(struct remote *r)
{
    if (r->memory >= 0)
        close(r->memory);
    r->memory = -1;
    free(r->objects);
    r->objects = NULL;
}

// Returns the range of the object at `base`, whose first segment starts with the ELF header. Both
// bounds are 0 on failure.
static struct remote_range find_range(const struct remote *r, uint64_t base)
{
    struct remote_range range = {0};
    ElfW(Ehdr) h;
    ElfW(Phdr) s;
    if (!remote_read(r, base, &h, sizeof h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
        return range;
    for (unsigned i = 0; i < h.e_phnum; i++) {
        if (!remote_read(r, base + h.e_phoff + i * sizeof s, &s, sizeof s) || s.p_type != PT_LOAD)
            continue;
        range.start = range.start ? range.start : base + s.p_vaddr;
        range.end = base + s.p_vaddr + s.p_memsz;
    }
    return range;
}

static bool is_within(struct remote_range range, uint64_t address)
{
    return address >= range.start && address < range.end;
}

bool remote_is_libc(const struct remote *r, uint64_t address)
{
    return is_within(find_range(r, r->loader), address) ||
           is_within(find_range(r, r->libc), address);
}

bool remote_defines(const struct remote *r, const struct remote_object *o, const char *name)
{
    return find_function(r, o, name) != 0;
}

struct remote_range remote_range_of(const struct remote *r, const struct remote_object *o)
{
    return find_range(r, o->base);
}

struct remote_range remote_object_of(const struct remote *r, uint64_t function)
{
    for (size_t i = 0; i < r->n_objects; i++) {
        struct remote_range range = find_range(r, r->objects[i].base);
        if (is_within(range, function))
            return range;
    }
    return (struct remote_range){0};
}

static bool is_zero(const struct remote *r, uint64_t at, size_t bytes)
{
    uint8_t have[PAGE];
    if (bytes > sizeof have || !remote_read(r, at, have, bytes))
        return false;
    for (size_t i = 0; i < bytes; i++) {
        if (have[i])
            return false;
    }
    return true;
}

// Finds padding in the last page of a segment with code.
static uint64_t find_padding(const struct remote *r, uint64_t base, size_t bytes)
{
    ElfW(Ehdr) h;
    ElfW(Phdr) s;
    if (!remote_read(r, base, &h, sizeof h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
        return 0;
    for (unsigned i = 0; i < h.e_phnum; i++) {
        if (!remote_read(r, base + h.e_phoff + i * sizeof s, &s, sizeof s) || s.p_type != PT_LOAD ||
            !(s.p_flags & PF_X))
            continue;
        uint64_t end = base + s.p_vaddr + s.p_memsz, page_end = (end + PAGE - 1) & ~(PAGE - 1ull);
        for (uint64_t at = (end + 15) & ~15ull; at + bytes <= page_end; at += 16) {
            if (is_zero(r, at, bytes))
                return at;
        }
    }
    return 0;
}

uint64_t remote_find_padding(const struct remote *r, size_t bytes)
{
    uint64_t at = 0;
    // Skip linux-vdso.so.1, because all processes share its pages.
    for (size_t i = 0; i < r->n_objects && !at; i++)
        at = strncmp(r->objects[i].name, "linux-", 6) ? find_padding(r, r->objects[i].base, bytes)
                                                      : 0;
    return at;
}
