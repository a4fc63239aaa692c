#include "record/entries/image.h"

#include "base/build_id.h"
#include "base/fio.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#define MACHINE_NAME "aarch64"
#else
enum { MACHINE = EM_X86_64 };
#define MACHINE_NAME "x86-64"
#endif

enum {
    MAX_DYNAMIC = 1024, // maximum number of entries in the dynamic section
    CHAIN_WORDS = 1024, // number of hash values that are read at once
};

// Reads n bytes at an offset. Returns the number of bytes read.
static size_t read_at(int fd, uint64_t at, void *to, size_t n)
{
    size_t got = 0;
    while (got < n && at + got <= INT64_MAX) {
        ssize_t more = pread(fd, (uint8_t *)to + got, n - got, (off_t)(at + got));
        if (more <= 0)
            break;
        got += (size_t)more;
    }
    return got;
}

static bool is_object_of_this_machine(const Elf64_Ehdr *h)
{
    return memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_ident[EI_CLASS] == ELFCLASS64 &&
           h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_machine == MACHINE &&
           (h->e_type == ET_EXEC || h->e_type == ET_DYN) && h->e_phentsize == sizeof(Elf64_Phdr);
}

// Stores a segment. Returns false if its addresses overflow.
static bool add_segment(struct entries_image *i, const Elf64_Phdr *p)
{
    uint64_t end;
    if (p->p_type != PT_LOAD && p->p_type != PT_DYNAMIC)
        return true;
    if (i->n_segments == IMAGE_MAX_SEGMENTS ||
        __builtin_add_overflow(p->p_vaddr, p->p_memsz, &end) || p->p_filesz > p->p_memsz ||
        p->p_offset > INT64_MAX || p->p_filesz > INT64_MAX - p->p_offset)
        return false;
    if (p->p_type == PT_LOAD) {
        i->start = p->p_vaddr < i->start ? p->p_vaddr : i->start;
        i->end = end > i->end ? end : i->end;
    }
    i->segments[i->n_segments++] = *p;
    return true;
}

// Reads the program headers from the file, or from the memory of the process, where the first
// segment contains them.
static bool read_segments(struct entries_image *i, int fd, uint64_t start)
{
    Elf64_Phdr p;
    for (unsigned k = 0; k < i->header.e_phnum; k++) {
        uint64_t at = i->header.e_phoff + (uint64_t)k * sizeof p;
        if (at < i->header.e_phoff || read_at(fd, start + at, &p, sizeof p) != sizeof p ||
            !add_segment(i, &p))
            return false;
    }
    return i->start < i->end;
}

// Computes the base from the segment that contains the ELF header.
static void find_base(struct entries_image *i)
{
    for (unsigned k = 0; i->object->header && k < i->n_segments; k++) {
        const Elf64_Phdr *p = &i->segments[k];
        if (p->p_type == PT_LOAD && p->p_offset < ENTRIES_PAGE_BYTES) {
            i->base = i->object->header - (p->p_vaddr - p->p_offset);
            return;
        }
    }
}

int image_open(struct entries_image *i, const struct entries_object *object, struct err *e)
{
    bool is_file = object->file >= 0;
    int fd = is_file ? object->file : object->memory;
    uint64_t start = is_file ? 0 : object->header;
    *i = (struct entries_image){.object = object, .start = UINT64_MAX};
    if (read_at(fd, start, &i->header, sizeof i->header) != sizeof i->header ||
        !is_object_of_this_machine(&i->header))
        return err_set(e, -ENOEXEC, "%s: is not an ELF object for " MACHINE_NAME, object->path);
    if (!read_segments(i, fd, start))
        return err_set(e, -ENOEXEC, "%s: has invalid ELF program headers", object->path);
    find_base(i);
    return 0;
}

static const Elf64_Phdr *segment_at(const struct entries_image *i, uint64_t address)
{
    for (unsigned k = 0; k < i->n_segments; k++) {
        const Elf64_Phdr *p = &i->segments[k];
        if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)
            return p;
    }
    return NULL;
}

const Elf64_Phdr *image_code_at(const struct entries_image *i, uint64_t address)
{
    const Elf64_Phdr *p = segment_at(i, address);
    return p && p->p_flags & PF_X ? p : NULL;
}

size_t image_read(const struct entries_image *i, uint64_t address, void *to, size_t n)
{
    const Elf64_Phdr *p = segment_at(i, address);
    if (!p)
        return 0;
    uint64_t offset = address - p->p_vaddr, left = p->p_filesz - offset;
    n = n < left ? n : (size_t)left;
    return i->object->file >= 0 ? read_at(i->object->file, p->p_offset + offset, to, n)
                                : read_at(i->object->memory, i->base + address, to, n);
}

// Virtual addresses of the loader's tables.
struct tables {
    uint64_t symbols, names, name_bytes, gnu_hash, hash;
};

// Converts a pointer in the dynamic section to a virtual address. In memory, glibc's loader has
// added the base to the pointer.
static uint64_t pointer_of(const struct entries_image *i, uint64_t value)
{
    bool moved = i->object->file < 0 && !segment_at(i, value) && value >= i->base;
    return moved ? value - i->base : value;
}

static void find_tables(const struct entries_image *i, uint64_t dynamic, struct tables *t)
{
    const struct {
        int64_t tag;
        uint64_t *to;
    } rows[] = {{DT_SYMTAB, &t->symbols},
                {DT_STRTAB, &t->names},
                {DT_GNU_HASH, &t->gnu_hash},
                {DT_HASH, &t->hash}};
    Elf64_Dyn d;
    for (unsigned k = 0; k < MAX_DYNAMIC; k++) {
        if (image_read(i, dynamic + k * sizeof d, &d, sizeof d) != sizeof d || d.d_tag == DT_NULL)
            return;
        for (unsigned r = 0; r < sizeof rows / sizeof *rows; r++)
            *rows[r].to = d.d_tag == rows[r].tag ? pointer_of(i, d.d_un.d_ptr) : *rows[r].to;
        t->name_bytes = d.d_tag == DT_STRSZ ? d.d_un.d_val : t->name_bytes;
    }
}

// Returns the index of the highest symbol that starts a chain of the GNU hash table, or 0.
static uint32_t find_last_chain(const struct entries_image *i, uint64_t at, uint64_t n)
{
    uint32_t words[CHAIN_WORDS], last = 0;
    while (n) {
        size_t want = n < CHAIN_WORDS ? (size_t)n : CHAIN_WORDS;
        size_t got = image_read(i, at, words, want * sizeof *words) / sizeof *words;
        for (size_t k = 0; k < got; k++)
            last = words[k] > last ? words[k] : last;
        n = got == want ? n - got : 0;
        at += got * sizeof *words;
    }
    return last;
}

// Returns the number of symbols, derived from the end of the last chain in the GNU hash table. The
// last hash value of a chain has the lowest bit set.
static uint64_t count_gnu_hash(const struct entries_image *i, uint64_t at)
{
    uint32_t header[4], words[CHAIN_WORDS];
    if (image_read(i, at, header, sizeof header) != sizeof header)
        return 0;
    uint64_t buckets = at + sizeof header + (uint64_t)header[2] * sizeof(uint64_t);
    uint64_t chains = buckets + (uint64_t)header[0] * sizeof *words;
    uint64_t last = find_last_chain(i, buckets, header[0]);
    if (last < header[1])
        return header[1];
    for (;;) {
        size_t got =
            image_read(i, chains + (last - header[1]) * sizeof *words, words, sizeof words) /
            sizeof *words;
        for (size_t k = 0; k < got; k++) {
            if (words[k] & 1)
                return last + k + 1;
        }
        last += got;
        if (!got || last * sizeof(Elf64_Sym) > IMAGE_MAX_TABLE)
            return last;
    }
}

static uint64_t count_hash(const struct entries_image *i, uint64_t at)
{
    uint32_t header[2];
    return image_read(i, at, header, sizeof header) == sizeof header ? header[1] : 0;
}

// Reads a table from the object's memory, up to the end of the segment. Appends a 0 byte that
// to->size does not include.
static int read_table(const struct entries_image *i, uint64_t at, uint64_t bytes, struct buf *to)
{
    if (bytes > IMAGE_MAX_TABLE)
        return 0;
    if (buf_resize(to, (size_t)bytes + 1) < 0)
        return -ENOMEM;
    to->size = image_read(i, at, to->data, (size_t)bytes);
    to->data[to->size] = 0;
    return 0;
}

int image_read_dynamic(const struct entries_image *i, struct image_symbols *to)
{
    struct tables t = {0};
    for (unsigned k = 0; k < i->n_segments; k++) {
        if (i->segments[k].p_type == PT_DYNAMIC)
            find_tables(i, i->segments[k].p_vaddr, &t);
    }
    uint64_t n = t.gnu_hash ? count_gnu_hash(i, t.gnu_hash) : t.hash ? count_hash(i, t.hash) : 0;
    if (!n || !t.symbols || !t.names)
        return 0;
    int rc = read_table(i, t.symbols, n * sizeof(Elf64_Sym), &to->symbols);
    return rc < 0 ? rc : read_table(i, t.names, t.name_bytes, &to->names);
}

// Reads the contents of a section. Appends a 0 byte that to->size does not include. Leaves *to
// empty if the section is invalid.
static int read_section(int file, uint64_t file_bytes, const Elf64_Shdr *s, struct buf *to)
{
    if (s->sh_type == SHT_NOBITS || s->sh_flags & SHF_COMPRESSED || s->sh_size > IMAGE_MAX_TABLE ||
        s->sh_size > file_bytes || s->sh_offset > file_bytes - s->sh_size)
        return 0;
    if (buf_resize(to, (size_t)s->sh_size + 1) < 0)
        return -ENOMEM;
    to->size = read_at(file, s->sh_offset, to->data, (size_t)s->sh_size);
    to->data[to->size] = 0;
    return 0;
}

// Section headers of a file.
struct sections {
    int file;
    uint64_t file_bytes;
    struct buf headers; // Elf64_Shdr
    unsigned n;
    unsigned names; // index of the section with the names
};

static int read_sections(int file, struct sections *s)
{
    Elf64_Ehdr h;
    struct stat st;
    *s = (struct sections){.file = file};
    if (fstat(file, &st) < 0 || read_at(file, 0, &h, sizeof h) != sizeof h ||
        !is_object_of_this_machine(&h) || h.e_shentsize != sizeof(Elf64_Shdr))
        return 0;
    s->file_bytes = (uint64_t)st.st_size;
    const Elf64_Shdr all = {.sh_offset = h.e_shoff, .sh_size = h.e_shnum * sizeof(Elf64_Shdr)};
    int rc = read_section(file, s->file_bytes, &all, &s->headers);
    s->n = (unsigned)(s->headers.size / sizeof(Elf64_Shdr));
    s->names = h.e_shstrndx;
    return rc;
}

static const Elf64_Shdr *section_of(const struct sections *s, unsigned k)
{
    return k < s->n ? (const Elf64_Shdr *)(const void *)s->headers.data + k : NULL;
}

int image_read_static(int file, struct image_symbols *to)
{
    struct sections s;
    unsigned k = 0;
    int rc = read_sections(file, &s);
    while (k < s.n && section_of(&s, k)->sh_type != SHT_SYMTAB)
        k++;
    const Elf64_Shdr *symbols = section_of(&s, k);
    const Elf64_Shdr *names = symbols ? section_of(&s, symbols->sh_link) : NULL;
    if (rc == 0 && names && symbols->sh_entsize == sizeof(Elf64_Sym))
        rc = read_section(file, s.file_bytes, symbols, &to->symbols);
    if (rc == 0 && to->symbols.size)
        rc = read_section(file, s.file_bytes, names, &to->names);
    buf_release(&s.headers);
    return rc;
}

// Copies the file name in .gnu_debuglink. Returns false if there is no valid name.
static bool read_debug_link(int file, char name[static NAME_MAX + 1])
{
    struct sections s;
    struct buf names = {0};
    bool found = false;
    if (file >= 0 && read_sections(file, &s) == 0) {
        const Elf64_Shdr *of_names = section_of(&s, s.names), *at;
        if (of_names && read_section(file, s.file_bytes, of_names, &names) == 0) {
            for (unsigned k = 0; !found && (at = section_of(&s, k)); k++) {
                found = at->sh_name < names.size &&
                        strcmp((char *)names.data + at->sh_name, ".gnu_debuglink") == 0 &&
                        at->sh_size <= NAME_MAX &&
                        read_at(file, at->sh_offset, name, (size_t)at->sh_size) == at->sh_size;
                name[found ? at->sh_size : 0] = 0;
            }
        }
        buf_release(&s.headers);
    }
    buf_release(&names);
    return found && *name && !strchr(name, '/');
}

static int open_with_id(const char *path, const char *id)
{
    struct stat st;
    int fd = input_regular_fd(path, &st);
    char *found = fd >= 0 ? build_id_at(fd, 0) : NULL;
    bool same = found && strcmp(found, id) == 0;
    free(found);
    if (fd >= 0 && !same)
        close(fd);
    return same ? fd : -1;
}

static int open_linked(const struct entries_image *i, const char *id)
{
    static const struct {
        const char *above, *below;
    } directories[] = {{"", ""}, {"", "/.debug"}, {"/usr/lib/debug", ""}};
    char path[PATH_MAX], link[64], file[PATH_MAX], name[NAME_MAX + 1];
    // Resolve the path of the object, because it may lead through /proc/PID.
    snprintf(link, sizeof link, "/proc/self/fd/%d", i->object->file);
    ssize_t bytes = i->object->file < 0 ? -1 : readlink(link, file, sizeof file - 1);
    int fd = -1;
    file[bytes < 0 ? 0 : bytes] = 0;
    const char *slash = strrchr(file, '/');
    if (!slash || !read_debug_link(i->object->file, name))
        return -1;
    for (unsigned k = 0; fd < 0 && k < sizeof directories / sizeof *directories; k++) {
        int n = snprintf(path, sizeof path, "%s%.*s%s/%s", directories[k].above,
                         (int)(slash - file), file, directories[k].below, name);
        if (n > 0 && (size_t)n < sizeof path)
            fd = open_with_id(path, id);
    }
    return fd;
}

// Opens a debug file in the cache of debuginfod's client, without asking a server.
static int open_cached(const char *id)
{
    const char *cache = getenv("DEBUGINFOD_CACHE_PATH"), *user = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    char path[PATH_MAX];
    int n = cache && *cache ? snprintf(path, sizeof path, "%s/%s/debuginfo", cache, id)
            : user && *user
                ? snprintf(path, sizeof path, "%s/debuginfod_client/%s/debuginfo", user, id)
                : snprintf(path, sizeof path, "%s/.cache/debuginfod_client/%s/debuginfo",
                           home ? home : "", id);
    return n > 0 && (size_t)n < sizeof path ? open_with_id(path, id) : -1;
}

int image_open_debug(const struct entries_image *i)
{
    char path[PATH_MAX];
    bool is_file = i->object->file >= 0;
    char *id =
        build_id_at(is_file ? i->object->file : i->object->memory, is_file ? 0 : i->object->header);
    if (!id || strlen(id) < 4) {
        free(id);
        return -1;
    }
    snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
    int fd = open_with_id(path, id);
    if (fd < 0)
        fd = open_linked(i, id);
    if (fd < 0)
        fd = open_cached(id);
    free(id);
    return fd;
}

const char *image_name(const struct image_symbols *s, const Elf64_Sym *symbol)
{
    return symbol->st_name < s->names.size ? (const char *)s->names.data + symbol->st_name : NULL;
}

void image_symbols_release(struct image_symbols *s)
{
    buf_release(&s->symbols);
    buf_release(&s->names);
}
