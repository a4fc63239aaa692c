// Parses /proc/self/maps, and reads the build IDs of the mapped files.
#include "base/elf_note.h"
#include "base/search.h"
#include "capture/producer/producer_private.h"
#include "capture/producer/producer_site.h"
#include "capture/unwind/unwind_python.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/syscall.h>

enum {
    MAX_BUILD_ID = 32,
    // Space for the program headers of an ELF file. The rest of the buffer is for the file's notes.
    HEADERS_BYTES = PRODUCER_PIECE_BYTES * 3 / 4,
};

struct lines {
    long fd;
    char *buffer; // PRODUCER_LINES_BYTES long
    size_t at, size;
};

// Returns false if system calls are filtered, or if /proc is not mounted.
static bool lines_open(struct lines *l, struct producer_sites *sites)
{
    if (producer_inherited.filtered)
        return false;
    l->buffer = sites->lines;
    l->fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    l->at = l->size = 0;
    return l->fd >= 0;
}

// Returns the next complete line, or NULL at the end. Replaces the line's newline with NUL.
static char *lines_next(struct lines *l)
{
    for (;;) {
        char *line = l->buffer + l->at, *end = memchr(line, '\n', l->size - l->at);
        if (end) {
            *end = 0;
            l->at = (size_t)(end - l->buffer) + 1;
            return line;
        }
        l->size -= l->at;
        memmove(l->buffer, line, l->size);
        l->at = 0;
        size_t room = PRODUCER_LINES_BYTES - l->size;
        long got = room ? syscall(SYS_read, l->fd, l->buffer + l->size, room) : 0;
        if (got <= 0)
            return NULL;
        l->size += (size_t)got;
    }
}

static uint64_t parse_number(char **at, unsigned base)
{
    uint64_t v = 0;
    for (;; (*at)++) {
        char c = **at;
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                : base;
        if (digit >= base)
            return v;
        v = v * base + digit;
    }
}

// Format of a line: start-end rwxp offset major:minor inode   path
static void parse_mapping(char *line, struct producer_mapping *m)
{
    char *at = line;
    m->start = parse_number(&at, 16);
    at += *at == '-';
    m->end = parse_number(&at, 16);
    at += *at == ' ';
    m->executable = at[0] && at[1] && at[2] == 'x';
    while (*at && *at != ' ')
        at++;
    at += *at == ' ';
    m->offset = parse_number(&at, 16);
    at += *at == ' ';
    m->device = parse_number(&at, 16) << 32;
    at += *at == ':';
    m->device |= parse_number(&at, 16);
    at += *at == ' ';
    m->inode = parse_number(&at, 10);
    while (*at == ' ')
        at++;
    m->path = at;
    m->grows = strcmp(at, "[stack]") == 0;
}

bool producer_maps_find(struct producer_sites *sites, uint64_t address, struct producer_mapping *m)
{
    struct lines l;
    bool found = false;
    if (!lines_open(&l, sites))
        return false;
    for (char *line; !found && (line = lines_next(&l));) {
        parse_mapping(line, m);
        found = address >= m->start && address < m->end;
    }
    syscall(SYS_close, l.fd);
    return found;
}

// Returns the index of the first range that ends above the address.
static uint32_t range_index(const struct producer_sites *sites, uint64_t address)
{
    return (uint32_t)HT_SEARCH(i, sites->n_ranges, sites->ranges[i].end > address);
}

bool producer_maps_has(const struct producer_sites *sites, uint64_t address)
{
    uint32_t i = range_index(sites, address);
    return i < sites->n_ranges && sites->ranges[i].start <= address;
}

static bool is_same_code(const struct producer_range *a, const struct producer_range *b)
{
    return a->file == b->file && a->bias == b->bias;
}

static uint64_t hash_range(const struct producer_range *r)
{
    uint64_t x = r->start * 0x9e3779b97f4a7c15u + r->file * 0xbf58476d1ce4e5b9u + r->bias;
    return (x ^ x >> 29) * 0x94d049bb133111ebu;
}

// Inserts the range and replaces ranges that overlap it. Returns false if the range is already
// known or there is no space. If a file's code was replaced, adds the configuration change to
// *change.
static bool add_range(struct producer_sites *sites, const struct producer_range *r,
                      uint64_t *change)
{
    uint32_t first = range_index(sites, r->start), last = first;
    for (; last < sites->n_ranges && sites->ranges[last].start < r->end; last++) {
        const struct producer_range *old = &sites->ranges[last];
        if (old->file && !is_same_code(old, r))
            *change += hash_range(r) - hash_range(old);
    }
    struct producer_range *old = &sites->ranges[first];
    if (last == first + 1 && old->start == r->start && old->end == r->end && is_same_code(old, r)) {
        old->scan = r->scan;
        return false;
    }
    if (sites->n_ranges - (last - first) >= PRODUCER_MAX_RANGES)
        return false;
    memmove(&sites->ranges[first + 1], &sites->ranges[last], (sites->n_ranges - last) * sizeof *r);
    sites->ranges[first] = *r;
    sites->n_ranges = sites->n_ranges - (last - first) + 1;
    return true;
}

// Copies the build ID to `to`. Returns its length, or 0.
static uint32_t read_build_id(long fd, char *piece, uint8_t *to)
{
    Elf64_Ehdr head;
    const Elf64_Phdr *program = (const Elf64_Phdr *)piece;
    char *notes = piece + HEADERS_BYTES;
    if (syscall(SYS_pread64, fd, &head, sizeof head, 0l) != (long)sizeof head ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_phentsize != sizeof program[0] || head.e_phnum > HEADERS_BYTES / sizeof program[0])
        return 0;
    long bytes = (long)(head.e_phnum * sizeof program[0]);
    if (syscall(SYS_pread64, fd, piece, bytes, head.e_phoff) != bytes)
        return 0;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        const size_t room = PRODUCER_PIECE_BYTES - HEADERS_BYTES;
        size_t n = program[i].p_filesz < room ? program[i].p_filesz : room;
        if (program[i].p_type != PT_NOTE ||
            syscall(SYS_pread64, fd, notes, n, program[i].p_offset) != (long)n)
            continue;
        uint32_t found;
        const uint8_t *id = elf_note_build_id((const uint8_t *)notes, n, &found);
        if (id && found <= MAX_BUILD_ID) {
            memcpy(to, id, found);
            return found;
        }
    }
    return 0;
}

static uint32_t read_file_id(const char *path, char *piece, uint8_t *id)
{
    long fd = path[0] == '/' ? syscall(SYS_openat, AT_FDCWD, path,
                                       O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
                             : -1;
    if (fd < 0)
        return 0;
    uint32_t n = read_build_id(fd, piece, id);
    syscall(SYS_close, fd);
    return n;
}

// Writes the text of HT_MODULE: the build ID in hexadecimal digits, a space and the path. Returns
// the length of the text.
static uint32_t describe_mapping(struct producer_sites *sites, const struct producer_mapping *m)
{
    char *text = sites->text;
    static const char digits[] = "0123456789abcdef";
    uint8_t id[MAX_BUILD_ID];
    uint32_t n = read_file_id(m->path, sites->piece, id), at = 0;
    for (uint32_t i = 0; i < n; i++) {
        text[at++] = digits[id[i] >> 4];
        text[at++] = digits[id[i] & 15];
    }
    text[at++] = ' ';
    size_t path = strlen(m->path), room = CODEC_MAX_TEXT_BYTES - at;
    memcpy(text + at, m->path, path < room ? path : room);
    return at + (uint32_t)(path < room ? path : room);
}

// Publishes the range of addresses that contains all files that the last scan no longer found.
static void publish_gone(const struct producer_sites *sites)
{
    uint64_t start = 0, end = 0;
    for (uint32_t i = 0; i < sites->n_ranges; i++) {
        const struct producer_range *r = &sites->ranges[i];
        if (!r->file || r->scan == sites->scans)
            continue;
        start = end ? start : r->start;
        end = r->end;
    }
    atomic_store_explicit(&unwind_gone_start, start, memory_order_release);
    atomic_store_explicit(&unwind_gone_bytes, end - start, memory_order_release);
}

// Returns a generation that no configuration of this process or its ancestors has used. If all
// generations have been used, returns the highest one.
static uint32_t next_generation(void)
{
    producer_inherited.generations += producer_inherited.generations < CODEC_GENERATIONS - 1;
    return producer_inherited.generations;
}

static void use_generation(uint32_t generation)
{
    atomic_store_explicit(&unwind_generation, generation, memory_order_relaxed);
    atomic_fetch_add_explicit(&unwind_age, 1, memory_order_release);
}

void producer_maps_start(struct producer_sites *sites)
{
    uint32_t first = next_generation();
    sites->configurations[0] = (struct producer_configuration){0, first};
    sites->n_configurations = 1;
    use_generation(first);
}

// Selects the configuration's generation, so that sites in replaced code differ from sites in the
// new code. If code is mapped again at its earlier address, its sites have the same numbers as
// before.
static void change_configuration(struct producer_sites *sites, uint64_t change)
{
    struct producer_configuration *all = sites->configurations;
    uint32_t i = 0, was = atomic_load_explicit(&unwind_generation, memory_order_relaxed);
    if (!sites->n_configurations)
        all[sites->n_configurations++] = (struct producer_configuration){0, was};
    sites->configuration += change;
    while (i < sites->n_configurations && all[i].sum != sites->configuration)
        i++;
    if (i == sites->n_configurations) {
        i = i < PRODUCER_CONFIGURATIONS ? sites->n_configurations++ : i - 1;
        all[i] = (struct producer_configuration){sites->configuration, next_generation()};
    }
    use_generation(all[i].generation);
}

void producer_maps_scan(struct producer_sites *sites, const struct producer_writer *w)
{
    struct lines l;
    struct producer_mapping m;
    uint64_t change = 0;
    bool added = false;
    if (!lines_open(&l, sites))
        return;
    sites->scans++;
    for (char *line; (line = lines_next(&l));) {
        parse_mapping(line, &m);
        struct producer_range r = {m.start, m.end, m.inode ^ m.device << 32, m.start - m.offset,
                                   sites->scans};
        if (!m.executable || !add_range(sites, &r, &change))
            continue;
        added = true;
        const struct event ev = {.kind = HT_MODULE,
                                 .ptr = m.start,
                                 .size = m.end - m.start,
                                 .value = m.offset,
                                 .text = sites->text,
                                 .text_bytes = describe_mapping(sites, &m)};
        producer_stream_put(w, &ev);
    }
    syscall(SYS_close, l.fd);
    // Do this before publish_gone, so that a walk that no longer finds its code among the unloaded
    // objects loads the new age.
    if (change) {
        change_configuration(sites, change);
        // Stacks of other threads in the new objects must have later stamps than HT_MODULE.
        producer_request_readings(w->p->header);
    }
    publish_gone(sites);
    // A thread that exists only in the parent may have locked the loader.
    if (added && !producer_inherited.forked)
        unwind_python_find();
}
