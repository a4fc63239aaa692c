// Searches symbol tables that the loader does not read for malloc functions: the tables of the
// executable, of its debug file, and of libraries.
#include "capture/producer/producer_private.h"
#include "capture/spool/entries.h"
#include "capture/wrap/wrap.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 16384, // bytes of a table that are read at once
    MAX_SECTIONS = 128,
    MAX_PLACES = 64,
    LONGEST_NAME = 32, // size of the longest name, with the terminating 0
};

static const char malloc_name[] = "malloc"; // all names in entries_malloc_names end with this

static bool read_at(int fd, void *to, size_t bytes, uint64_t at)
{
    return syscall(SYS_pread64, fd, to, bytes, at) == (long)bytes;
}

// Positions of malloc's names in a string table. A position may be inside a longer name with the
// same ending.
struct places {
    uint32_t at[MAX_PLACES];
    size_t n;
    bool prefixed; // only names with a prefix
};

// Bytes of a table. The buffer is static, because the stack may be small. Only the startup code,
// and threads that hold the loader's lock, use it.
static union {
    char names[PIECE_BYTES];
    ElfW(Sym) symbols[PIECE_BYTES / sizeof(ElfW(Sym))];
    ElfW(Shdr) sections[MAX_SECTIONS];
} piece;

// Returns how far to advance if `c` is the last byte of the compared part (Horspool's algorithm).
static size_t advance_for(char c)
{
    const char *last = c ? strrchr(malloc_name, c) : NULL;
    return sizeof malloc_name - (last ? (size_t)(last - malloc_name) + 1 : 0);
}

// Adds the names that end with the "malloc" at offset `i` in the piece.
static void add_names(size_t i, uint64_t offset, struct places *to)
{
    for (size_t k = to->prefixed; k < ENTRIES_PREFIXES && to->n < MAX_PLACES; k++) {
        size_t prefix = strlen(entries_malloc_names[k]) - (sizeof malloc_name - 1);
        if (prefix <= i && memcmp(piece.names + i - prefix, entries_malloc_names[k], prefix) == 0)
            to->at[to->n++] = (uint32_t)(offset + i - prefix);
    }
}

static void find_in_piece(size_t n, uint64_t offset, struct places *to)
{
    uint8_t advance[256];
    for (unsigned c = 0; c < sizeof advance; c++)
        advance[c] = (uint8_t)advance_for((char)c);
    for (size_t i = 0; i + sizeof malloc_name <= n;) {
        const char *at = piece.names + i;
        uint8_t last = (uint8_t)at[sizeof malloc_name - 1];
        if (!last && memcmp(at, malloc_name, sizeof malloc_name) == 0)
            add_names(i, offset, to);
        i += advance[last];
    }
}

static void find_places(int fd, const ElfW(Shdr) * names, struct places *to)
{
    // Pieces overlap, because a name may begin in one piece and end in the next.
    const size_t step = PIECE_BYTES - LONGEST_NAME;
    for (uint64_t at = 0; at < names->sh_size && at < UINT32_MAX; at += step) {
        uint64_t left = names->sh_size - at;
        size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        if (!read_at(fd, piece.names, n, names->sh_offset + at))
            return;
        find_in_piece(n, at, to);
    }
}

static bool is_malloc(const ElfW(Sym) * s, const struct places *places)
{
    bool is_named = false;
    for (size_t i = 0; i < places->n; i++)
        is_named |= s->st_name == places->at[i];
    return is_named && s->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(s->st_info) == STT_FUNC;
}

static bool has_function(int fd, const ElfW(Shdr) * symbols, const struct places *places)
{
    const size_t most = sizeof piece.symbols / sizeof *piece.symbols;
    uint64_t n = symbols->sh_size / sizeof(ElfW(Sym));
    for (uint64_t first = 0, count; first < n; first += count) {
        count = n - first < most ? n - first : most;
        if (!read_at(fd, piece.symbols, (size_t)count * sizeof(ElfW(Sym)),
                     symbols->sh_offset + first * sizeof(ElfW(Sym))))
            return false;
        for (uint64_t i = 0; i < count; i++) {
            if (is_malloc(&piece.symbols[i], places))
                return true;
        }
    }
    return false;
}

// Reads the section headers to `piece`. Returns the number of headers, or 0 if the file is invalid.
static unsigned read_sections(int fd, ElfW(Ehdr) * h)
{
    bool good = read_at(fd, h, sizeof *h, 0) && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
                h->e_shentsize == sizeof(ElfW(Shdr)) && h->e_shnum <= MAX_SECTIONS &&
                read_at(fd, piece.sections, h->e_shnum * sizeof(ElfW(Shdr)), h->e_shoff);
    return good ? h->e_shnum : 0;
}

// Copies the file name in .gnu_debuglink, or "" if there is no valid name. The section headers are
// in `piece`. Compares only the names of sections without flags, because .gnu_debuglink has no
// flags and such sections are rare.
static void read_debug_link(int fd, const ElfW(Ehdr) * h, char to[static NAME_MAX + 1])
{
    static const char section[] = ".gnu_debuglink";
    uint64_t names = h->e_shstrndx < h->e_shnum ? piece.sections[h->e_shstrndx].sh_offset : 0;
    char name[sizeof section];
    *to = 0;
    for (unsigned i = 0; names && i < h->e_shnum && !*to; i++) {
        const ElfW(Shdr) *s = &piece.sections[i];
        if (s->sh_type == SHT_PROGBITS && !s->sh_flags && s->sh_size && s->sh_size <= NAME_MAX &&
            read_at(fd, name, sizeof name, names + s->sh_name) &&
            memcmp(name, section, sizeof name) == 0 &&
            read_at(fd, to, (size_t)s->sh_size, s->sh_offset))
            to[strchr(to, '/') ? 0 : s->sh_size] = 0;
    }
}

// Returns 1 if the file has a symbol of a function in entries_malloc_names, or 0 if it has only
// other symbols. If it has no symbols, returns -1 and sets *link to the name of its debug file, or
// "". If `prefixed` is set, only names with a prefix count.
static int defines_malloc(int fd, bool prefixed, char link[static NAME_MAX + 1])
{
    ElfW(Ehdr) h;
    ElfW(Shdr) symbols = {0}, names = {0};
    struct places places = {.prefixed = prefixed};
    unsigned n = read_sections(fd, &h);
    *link = 0;
    for (unsigned i = 0; i < n; i++) {
        const ElfW(Shdr) *s = &piece.sections[i];
        if (s->sh_type == SHT_SYMTAB && s->sh_link < n) {
            symbols = *s;
            names = piece.sections[s->sh_link];
        }
    }
    if (n && !symbols.sh_size)
        read_debug_link(fd, &h, link);
    if (!symbols.sh_size)
        return -1;
    find_places(fd, &names, &places);
    return places.n && has_function(fd, &symbols, &places);
}

int wrap_open_file(const char *path)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static int open_debug_file(const uint8_t *id)
{
    static const char prefix[] = "/usr/lib/debug/.build-id/", digits[] = "0123456789abcdef";
    char path[sizeof prefix + 2 * WRAP_BUILD_ID_BYTES + 16], *at = stpcpy(path, prefix);
    for (unsigned i = 0; i < WRAP_BUILD_ID_BYTES; i++) {
        *at++ = digits[id[i] >> 4];
        *at++ = digits[id[i] & 15];
        if (i == 0)
            *at++ = '/';
    }
    stpcpy(at, ".debug");
    return wrap_open_file(path);
}

// Returns true if the file defines malloc. Closes the file.
static bool debug_file_defines_malloc(int fd)
{
    char ignored[NAME_MAX + 1];
    bool found = fd >= 0 && defines_malloc(fd, false, ignored) > 0;
    if (fd >= 0)
        close(fd);
    return found;
}

// Examines the debug file with this name next to the executable, in .debug, and in /usr/lib/debug.
static bool linked_file_defines_malloc(const char *link)
{
    static const char *const directories[][2] = {
        {"", "/"}, {"", "/.debug/"}, {"/usr/lib/debug", "/"}};
    static char directory[PATH_MAX], path[PATH_MAX]; // static, because the stack may be small
    long n =
        *link ? syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", directory, sizeof directory - 1)
              : -1;
    bool found = false;
    directory[n < 0 ? 0 : n] = 0;
    char *slash = strrchr(directory, '/');
    if (!slash)
        return false;
    *slash = 0;
    for (unsigned i = 0; i < sizeof directories / sizeof *directories && !found; i++) {
        found = producer_format(path, sizeof path, "%s%s%s%s", directories[i][0], directory,
                                directories[i][1], link) &&
                debug_file_defines_malloc(wrap_open_file(path));
    }
    return found;
}

bool wrap_has_hidden_malloc(int executable, const uint8_t *build_id)
{
    char link[NAME_MAX + 1];
    int found = defines_malloc(executable, false, link);
    // Without a build ID, the recorder would not use a debug file either.
    if (found >= 0 || !build_id)
        return found > 0;
    return debug_file_defines_malloc(open_debug_file(build_id)) || linked_file_defines_malloc(link);
}

bool wrap_has_hidden_prefix(int library)
{
    char ignored[NAME_MAX + 1];
    return defines_malloc(library, true, ignored) > 0;
}
