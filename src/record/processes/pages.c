#include "record/processes/pages.h"

#include "base/clock.h"
#include "record/processes/cgroup.h"
#include "record/processes/proc_file.h"
#include "trace/libraries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// See Documentation/admin-guide/mm/pagemap.rst. A zero page that was only read is present, but is
// neither resident nor exclusive.
#define PAGEMAP_PRESENT   (1ull << 63)
#define PAGEMAP_EXCLUSIVE (1ull << 56)

#define SPARSE_BYTES      (16ull << 30)

// A thread stack follows a guard of inaccessible pages, by default one (pthread_attr_setguardsize).
// By contrast, the inaccessible rest of a glibc heap (HEAP_MAX_SIZE in malloc/arena.c) ends at a
// multiple of 64 MiB.
#define GUARD_MAX_BYTES (1ull << 20)
#define HEAP_ALIGN      (64ull << 20)

enum {
    SPARSE_FACTOR = 16,
    TEXT_BYTES = 1 << 16,
    LINE_BYTES = 4096 + 128,
};

struct pages_reading {
    struct trace_pages *to;
    const struct proc_pages_how *how;
    uint64_t began_ns;
    int pagemap_fd;
    struct trace_mapping mapping; // mapping whose lines are being read
    char permissions[8], name[TRACE_PAGES_NAME_BYTES];
    unsigned long long inode;
    bool any, is_listed, is_named, was_file, was_guard;
    uint64_t end;                     // end of the previous mapping
    uint64_t entries[TEXT_BYTES / 8]; // entries of pagemap
    // The start of a line, followed by the next piece of the file.
    char text[LINE_BYTES + TEXT_BYTES + 1];
};

static bool is_late(const struct pages_reading *r)
{
    return clock_ns(r->how->clock) - r->began_ns > r->how->max_ns;
}

static enum trace_memory classify_mapping(const char *permissions, const char *name,
                                          const char *recording)
{
    if (strcmp(name, "[heap]") == 0)
        return TRACE_MEMORY_HEAP;
    if (strstr(name, recording))
        return TRACE_MEMORY_RECORDING;
    if (strncmp(name, "[stack", 6) == 0 ||
        (strncmp(name, "[anon:", 6) == 0 && strstr(name, "stack")))
        return TRACE_MEMORY_STACK;
    if (permissions[3] == 's')
        return TRACE_MEMORY_SHARED;
    if (!name[0] || strncmp(name, "[anon:", 6) == 0)
        return TRACE_MEMORY_ANONYMOUS;
    return name[0] == '/' ? TRACE_MEMORY_FILE : TRACE_MEMORY_OTHER;
}

// Adds the runs of pages that have all of `bits` set.
static int read_runs(struct pages_reading *r, const struct trace_mapping *m, uint64_t bits,
                     uint64_t *resident)
{
    uint64_t page = r->to->page_bytes, first = m->start / page, n = m->bytes / page;
    *resident = 0;
    for (uint64_t at = 0; at < n;) {
        size_t want = n - at < TEXT_BYTES / 8 ? (size_t)(n - at) : TEXT_BYTES / 8;
        ssize_t got = pread(r->pagemap_fd, r->entries, want * 8, (off_t)((first + at) * 8));
        if (got < 8)
            break; // the mapping was unmapped in the meantime
        for (size_t i = 0; i < (size_t)got / 8; i++) {
            if ((r->entries[i] & bits) != bits)
                continue;
            ++*resident;
            if (trace_pages_add_run(r->to, first + at + i, 1) < 0)
                return -ENOMEM;
        }
        at += (size_t)got / 8;
        if (is_late(r))
            return -ETIME;
    }
    return 0;
}

// Returns true for a huge mapping with few resident pages, such as a sanitizer's shadow memory.
// Reading its pagemap would take seconds.
static bool is_too_sparse(const struct pages_reading *r)
{
    return r->mapping.bytes > SPARSE_BYTES &&
           r->mapping.bytes / SPARSE_FACTOR > r->mapping.rss_bytes;
}

static int pass_mapping(const struct pages_reading *r)
{
    struct proc_mapping m = {.mapping = r->mapping, .is_file = r->inode != 0, .name = r->name};
    memcpy(m.permissions, r->permissions, sizeof m.permissions);
    return r->how->each ? r->how->each(r->how->context, &m) : 0;
}

// Adds the resident bytes to the name. The names are sorted by their bytes. If there is no space, a
// new name replaces the last name, provided that the new name has more bytes.
static void add_name(struct trace_pages *p, enum trace_memory kind, const char *name, uint64_t rss)
{
    size_t at = 0;
    while (at < p->n_names && (p->names[at].kind != kind || strcmp(p->names[at].name, name) != 0))
        at++;
    if (at == TRACE_PAGES_NAMES && p->names[--at].rss_bytes >= rss)
        return;
    struct trace_pages_name found = {.kind = kind};
    if (at < p->n_names && strcmp(p->names[at].name, name) == 0)
        found = p->names[at];
    p->n_names += at == p->n_names;
    found.rss_bytes += rss;
    snprintf(found.name, sizeof found.name, "%s", name);
    for (; at > 0 && p->names[at - 1].rss_bytes < found.rss_bytes; at--)
        p->names[at] = p->names[at - 1];
    p->names[at] = found;
}

static int end_mapping(struct pages_reading *r)
{
    uint64_t resident, rss = r->mapping.rss_bytes;
    if (!r->any)
        return 0;
    if (pass_mapping(r) < 0)
        return -ENOMEM;
    if (r->is_named && r->name[0] && rss)
        add_name(r->to, r->mapping.kind, r->name, rss);
    if (r->mapping.kind == TRACE_MEMORY_FILE)
        r->to->libraries |= libraries_bit(r->name);
    r->to->rss_bytes += rss;
    r->to->swap_bytes += r->mapping.swap_bytes;
    r->to->huge_bytes += r->mapping.huge_bytes;
    if (!r->is_listed || is_too_sparse(r)) {
        r->to->rss_of[r->mapping.kind] += rss;
        return 0;
    }
    if (!rss && !r->mapping.swap_bytes)
        return 0;
    if (trace_pages_add(r->to, &r->mapping) < 0)
        return -ENOMEM;
    struct trace_mapping *m = &r->to->mappings[r->to->n_mappings - 1];
    int rc = rss ? read_runs(r, m, PAGEMAP_PRESENT, &resident) : 0;
    if (rc < 0 || !rss || resident * r->to->page_bytes <= rss)
        return rc;
    r->to->n_runs = m->first_run;
    m->n_runs = 0;
    return read_runs(r, m, PAGEMAP_PRESENT | PAGEMAP_EXCLUSIVE, &resident);
}

static int begin_mapping(struct pages_reading *r, const char *line, unsigned long long start,
                         unsigned long long end)
{
    int name_at = 0, rc = end_mapping(r);
    r->inode = 0;
    memset(r->permissions, 0, sizeof r->permissions);
    sscanf(line, "%*x-%*x %7s %*x %*s %llu %n", r->permissions, &r->inode, &name_at);
    const char *name = name_at ? line + name_at : "";
    snprintf(r->name, sizeof r->name, "%s", name);
    enum trace_memory kind = classify_mapping(r->permissions, name, r->how->recording);
    if (kind == TRACE_MEMORY_ANONYMOUS && strncmp(r->permissions, "rw", 2) == 0 && r->was_guard &&
        r->end == start && start % HEAP_ALIGN)
        kind = TRACE_MEMORY_STACK;
    r->mapping = (struct trace_mapping){.start = start,
                                        .bytes = end - start,
                                        .kind = kind,
                                        .after_file = r->was_file && r->end == start};
    r->is_named = kind == TRACE_MEMORY_FILE || kind == TRACE_MEMORY_SHARED ||
                  kind == TRACE_MEMORY_ANONYMOUS || kind == TRACE_MEMORY_OTHER;
    r->any = true;
    // List anonymous stacks, because the memory of an allocator that uses guard pages looks like a
    // stack and may contain blocks.
    r->is_listed = kind == TRACE_MEMORY_HEAP || kind == TRACE_MEMORY_ANONYMOUS ||
                   (kind == TRACE_MEMORY_STACK && !name[0]);
    r->was_file = kind == TRACE_MEMORY_FILE;
    r->was_guard =
        strcmp(r->permissions, "---p") == 0 && !name[0] && end - start <= GUARD_MAX_BYTES;
    r->end = end;
    return rc;
}

// Parses the first line of a mapping, or a line with one of its sizes.
static int parse_line(struct pages_reading *r, const char *line)
{
    unsigned long long start, end, kib;
    if (line[0] >= 'A' && line[0] <= 'Z') {
        const char *colon = strchr(line, ':');
        uint64_t bytes = colon && sscanf(colon + 1, "%llu kB", &kib) == 1 ? kib * 1024 : 0;
        if (strncmp(line, "Rss:", 4) == 0)
            r->mapping.rss_bytes = bytes;
        else if (strncmp(line, "Pss:", 4) == 0)
            r->to->pss_bytes += bytes;
        else if (strncmp(line, "Swap:", 5) == 0)
            r->mapping.swap_bytes = bytes;
        else if (strncmp(line, "AnonHugePages:", 14) == 0)
            r->mapping.huge_bytes = bytes;
        return 0;
    }
    return sscanf(line, "%llx-%llx", &start, &end) == 2 ? begin_mapping(r, line, start, end) : 0;
}

// Parses complete lines and moves the rest to the front, unless the rest is too long for a line.
// Returns the size of the rest, or a negative errno.
static ssize_t parse_lines(struct pages_reading *r, size_t n)
{
    char *at = r->text, *end;
    r->text[n] = 0;
    while ((end = memchr(at, '\n', n - (size_t)(at - r->text)))) {
        *end = 0;
        int rc = parse_line(r, at);
        if (rc < 0)
            return rc;
        at = end + 1;
    }
    size_t left = n - (size_t)(at - r->text);
    left = left < LINE_BYTES ? left : 0;
    memmove(r->text, at, left);
    return (ssize_t)left;
}

static int read_smaps(struct pages_reading *r, int fd)
{
    ssize_t have = 0, got = 0;
    while (have >= 0 && (got = read(fd, r->text + have, TEXT_BYTES)) > 0) {
        have = parse_lines(r, (size_t)(have + got));
        if (have >= 0 && is_late(r))
            return -ETIME;
    }
    if (have < 0 || got < 0)
        return have < 0 ? (int)have : -errno;
    return r->any ? end_mapping(r) : -ESRCH;
}

static void read_faults(struct trace_pages *p, pid_t pid)
{
    char text[1024];
    proc_file_read(pid, "stat", text, sizeof text);
    p->minor_faults = proc_file_stat(text, PROC_FILE_MINOR_FAULTS);
    p->major_faults = proc_file_stat(text, PROC_FILE_MAJOR_FAULTS);
    uint64_t ticks =
        proc_file_stat(text, PROC_FILE_USER_TICKS) + proc_file_stat(text, PROC_FILE_SYSTEM_TICKS);
    p->cpu_ns = ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

static void read_cgroup(struct trace_pages *p, pid_t pid)
{
    char lines[4096];
    struct proc_cgroup c;
    proc_file_read(pid, "cgroup", lines, sizeof lines);
    proc_cgroup_read(lines, "/sys/fs/cgroup", NULL, &c);
    p->cgroup_bytes = c.used;
    p->cgroup_limit_bytes = c.limit;
}

int proc_pages_read(struct trace_pages *p, pid_t pid, const struct proc_pages_how *how)
{
    struct pages_reading *r = calloc(1, sizeof *r);
    int fd = proc_file_open(pid, "smaps"), pagemap = proc_file_open(pid, "pagemap");
    int rc = !r ? -ENOMEM : fd < 0 ? fd : pagemap < 0 ? pagemap : 0;
    p->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    if (rc == 0) {
        r->to = p;
        r->how = how;
        r->began_ns = clock_ns(how->clock);
        r->pagemap_fd = pagemap;
        rc = read_smaps(r, fd);
        read_faults(p, pid);
        read_cgroup(p, pid);
    }
    proc_file_close(fd);
    proc_file_close(pagemap);
    free(r);
    return rc;
}
